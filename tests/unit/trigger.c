/* The file of CUSTREAM_TRIGGER as the control thread takes it (process/trigger.c): which files it
 * reads, what it does with them, and how often it says that one is wrong. Windows and policies are
 * made up here; test_trigger.py has real ones. */
#include <time.h>

static int now_is(clockid_t which, struct timespec *to);
#define clock_gettime now_is
#include "shim/process/trigger.c"
#undef clock_gettime

#include <stdlib.h>

#include "tests/unit/check.h"

/* --- what it is beside --- */

static cs_u64 wall; /* seconds since 1970 */
static int now_is(clockid_t which, struct timespec *to)
{
    if (which != CLOCK_REALTIME) return clock_gettime(which, to);
    *to = (struct timespec){(time_t)wall, 0};
    return 0;
}

static int holds, ready, policies, dates; /* how often each is in force, or was done */
static const char *refuses;
static char policy[256];

bool cs_window_hold(enum cs_held_by who, const char **why)
{
    CHECK(who == CS_HELD_BY_TRIGGER);
    holds += !refuses;
    *why = refuses;
    return !refuses;
}
void cs_window_release(enum cs_held_by who) { holds -= who == CS_HELD_BY_TRIGGER; }
void cs_window_ready(void) { ready++; }
void cs_window_unready(void) { ready--; }
bool cs_ctl_bring_up_to_date(void)
{
    dates++;
    return true;
}
bool cs_ctl_policy(const char *json, char *error, size_t room)
{
    (void)error, (void)room;
    policies++;
    snprintf(policy, sizeof policy, "%s", json);
    return true;
}

/* --- a file, and what is said of it --- */

static char folder[] = "/tmp/custream-trigger-XXXXXX", name[64], beside[64], errors[64];

static void begin_as(const char *rank)
{
    REQUIRE(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/trigger", folder);
    snprintf(beside, sizeof beside, "%s/new", folder);
    snprintf(errors, sizeof errors, "%s/errors", folder);
    setenv("CUSTREAM_TRIGGER", name, 1);
    if (rank) setenv("RANK", rank, 1);
    cs_environment_read();
    stderr = fdopen(dup(STDERR_FILENO), "w"); /* checks go on saying what is wrong */
    const int fd = open(errors, O_RDWR | O_CREAT, 0644);
    REQUIRE(stderr && fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    setvbuf(stderr, NULL, _IONBF, 0);
    close(fd);
    cs_log_remember();
    cs_mode_begin(false, 0);
    cs_options_read();
    wall = 1000000;
    cs_trigger_begin(true);
    CHECK(cs_trigger_wanted());
}

static void write_file(const char *to, const char *content)
{
    FILE *file = fopen(to, "w");
    REQUIRE(file && fputs(content, file) >= 0 && !fclose(file));
}

/* A file that has its name as a whole. */
static void put(const char *content)
{
    write_file(beside, content);
    REQUIRE(!rename(beside, name));
}

/* As a second later. */
static cs_u64 look_again(void)
{
    now.looked_ns = 0;
    return cs_trigger_due();
}

static int lines(const char *with)
{
    static char line[1024];
    int n = 0;
    FILE *file = fopen(errors, "r");
    while (file && fgets(line, sizeof line, file)) n += strstr(line, with) != NULL;
    if (file) fclose(file);
    return n;
}

static void end(void)
{
    unlink(name), unlink(beside), unlink(errors);
    rmdir(folder);
}

/* --- seconds --- */

TEST(is_recorded_from_its_start_to_its_end)
{
    begin_as("3");
    CHECK(cs_trigger_due() <= LOOK_NS && !holds); /* there is no file yet */
    put("# a comment\r\nstart=1000010\r\n\n  duration=5s  \nranks=0-2,3\npolicy={\"priority\": "
        "\"0:-1\"}  \n");
    CHECK(look_again() <= LOOK_NS && !holds && !ready && !policies);
    wall = 1000008;
    look_again();
    CHECK(ready == 1 && !holds);
    wall = 1000010;
    cs_trigger_due();
    CHECK(holds == 1 && policies == 1 && !dates);
    CHECK_TEXT(policy, "{\"priority\": \"0:-1\"}");
    CHECK(now.ends_ns - cs_monotonic_ns() <= 5000000000 &&
          now.ends_ns - cs_monotonic_ns() > 4000000000);
    wall = 1000014; /* the end is by the monotonic clock */
    look_again();
    CHECK_IS(holds, 1);
    now.ends_ns = cs_monotonic_ns();
    cs_trigger_due();
    CHECK(!holds && dates == 1);
    put("# a comment\r\nstart=1000010\r\n\n  duration=5s  \nranks=0-2,3\npolicy={\"priority\": "
        "\"0:-1\"}  \n"); /* the same again, while its time is not over */
    look_again();
    CHECK(!holds && policies == 1 && !lines(""));
    end();
}

TEST(one_under_way_is_joined_and_one_that_is_over_is_not)
{
    begin_as(NULL);
    put("start=999990\nduration=60");
    cs_trigger_due();
    CHECK(holds == 1 && now.ends_ns - cs_monotonic_ns() <= 50000000000 &&
          now.ends_ns - cs_monotonic_ns() > 49000000000);
    put("start=999000\nduration=60");
    look_again();
    CHECK(!holds && !now.planned &&
          !lines("")); /* the newest counts, and asks for nothing any more */
    end();
}

TEST(a_newer_file_takes_the_place_of_an_older_one)
{
    begin_as("1");
    put("start=1000002\nduration=60\n");
    cs_trigger_due();
    CHECK(ready == 1 && now.planned);
    put("start=1000100\nduration=60\n");
    look_again();
    CHECK(!ready && now.planned && now.from_ns == 1000100000000000);
    put("start=1000000\nduration=60\n");
    look_again();
    CHECK(holds == 1 && !now.planned);
    put("start=999999\nduration=120\n"); /* under way too: no gap */
    look_again();
    CHECK(holds == 1 && !dates && now.ends_ns - cs_monotonic_ns() > 118000000000);
    put("start=1000000\nduration=60\nranks=2\n");
    look_again();
    CHECK(!holds && !now.planned && dates == 1);
    end();
}

TEST(only_those_that_it_names)
{
    static const struct {
        const char *rank, *ranks;
        int is;
    } cases[] = {{"3", "0-7", 1}, {"3", "3", 1}, {"3", "0,1,2,4-9", 0}, {"8", "0-7", 0},
        {"7", "0-7,12", 1}, {"12", "0-7,12", 1}, {"3", "all", 1}, {NULL, "all", 1}, {NULL, "0", 0}};
    char content[128];
    begin_as(NULL);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        if (cases[i].rank) setenv("RANK", cases[i].rank, 1);
        else unsetenv("RANK");
        cs_environment_read();
        snprintf(content, sizeof content, "start=1000000\nduration=%zu\nranks=%s\n", 60 + i,
            cases[i].ranks);
        put(content);
        look_again();
        CHECK_IS(holds, cases[i].is);
        cs_trigger_end();
    }
    end();
}

TEST(a_start_that_is_missed_is_forgotten)
{
    begin_as("1");
    put("start=1000100\nduration=5\n");
    cs_trigger_due();
    CHECK(now.planned);
    wall = 1000200; /* it was stopped */
    cs_trigger_due();
    CHECK(!now.planned && !holds && !ready);
    end();
}

TEST(what_cannot_be_recorded_is_said)
{
    begin_as("1");
    refuses = "the trace is full";
    put("start=1000000\nduration=5\n");
    cs_trigger_due();
    CHECK(!holds && lines("nothing is recorded: the trace is full") == 1 && lines("") == 1);
    look_again();
    CHECK_IS(lines(""), 1);
    end();
}

TEST(a_process_that_ends_says_nothing)
{
    begin_as("1");
    refuses = "the process is ending";
    cs_mode_end();
    put("start=1000000\nduration=5\n");
    cs_trigger_due();
    CHECK(!holds && !lines(""));
    end();
}

TEST(a_child_looks_for_itself)
{
    begin_as("1");
    put("start=1000000\nduration=60\n");
    cs_trigger_due();
    CHECK_IS(holds, 1);
    holds = 0; /* as window.c forgets it */
    cs_trigger_after_fork_in_child();
    CHECK_IS(cs_trigger_due(), UINT64_MAX);
    cs_trigger_begin(true);
    cs_trigger_due();
    CHECK_IS(holds, 1);
    end();
}

/* --- wrong files --- */

static const char GOOD[] = "start=1000000\nduration=60\n";

/* One line, however often it is looked at; then a good file is taken. */
static void check_refused(const char *why)
{
    for (int i = 0; i < 3; i++) look_again();
    if (holds || lines(why) != 1 || lines("") != 1) CHECK_TEXT(why, "one line that says so");
    if (unlink(name)) rmdir(name);
    put(GOOD);
    look_again();
    CHECK(holds == 1 && lines("") == 1);
    cs_trigger_end();
    end();
}

enum wrong { LINK, LINK_TO_NOTHING, PIPE, FOLDER, OTHER_USER, GROUP_WRITES, ALL_WRITE, HUGE_FILE };

static void plant(enum wrong what)
{
    put(GOOD);
    if (what <= FOLDER) unlink(name);
    if (what == LINK) write_file(beside, GOOD);
    const int failed = what == LINK              ? symlink(beside, name)
                       : what == LINK_TO_NOTHING ? symlink("/nowhere", name)
                       : what == PIPE            ? mkfifo(name, 0600)
                       : what == FOLDER          ? mkdir(name, 0700)
                       : what == OTHER_USER      ? chown(name, 4711, 4711)
                       : what == GROUP_WRITES    ? chmod(name, 0664)
                       : what == ALL_WRITE       ? chmod(name, 0646)
                                                 : truncate(name, (off_t)1 << 40);
    REQUIRE(!failed);
}

static void check_planted(enum wrong what, const char *why)
{
    begin_as("1");
    plant(what);
    check_refused(why);
}

TEST(a_link) { check_planted(LINK, "it is a symbolic link"); }
TEST(a_link_to_nothing) { check_planted(LINK_TO_NOTHING, "it is a symbolic link"); }
TEST(a_pipe) { check_planted(PIPE, "it is no regular file"); }
TEST(a_folder) { check_planted(FOLDER, "it is no regular file"); }
TEST(another_user) { check_planted(OTHER_USER, "it belongs to another user"); }
TEST(a_group_that_may_write) { check_planted(GROUP_WRITES, "others can write to it"); }
TEST(all_may_write) { check_planted(ALL_WRITE, "others can write to it"); }
TEST(a_huge_one) { check_planted(HUGE_FILE, "it is too large"); }

TEST(one_that_is_no_text)
{
    begin_as("1");
    FILE *file = fopen(name, "w");
    REQUIRE(file && fwrite("start=1\0\xff\xfe", 1, 10, file) == 10 && !fclose(file));
    check_refused("it is no text");
}

TEST(root_owned_is_fine_for_another_user)
{
    begin_as("1");
    put(GOOD);
    REQUIRE(!chmod(folder, 0755) && !seteuid(4711));
    cs_trigger_due();
    CHECK(holds == 1 && !lines(""));
    REQUIRE(!seteuid(0));
    end();
}

TEST(one_that_it_may_not_read)
{
    begin_as("1");
    put(GOOD);
    REQUIRE(!chmod(folder, 0755) && !chmod(name, 0600) && !seteuid(4711));
    for (int i = 0; i < 3; i++) look_again();
    CHECK(!holds && lines("Permission denied") == 1 && lines("") == 1);
    REQUIRE(!seteuid(0) && !chmod(name, 0644) &&
            !seteuid(4711)); /* nothing of it that is looked at has changed */
    look_again();
    CHECK_IS(holds, 1);
    REQUIRE(!seteuid(0));
    end();
}

TEST(each_wrong_line_is_named_with_what_is_allowed)
{
    static const struct {
        const char *content, *line;
    } cases[] = {
        {"start=yesterday\nduration=5\n", "line 1: allowed is start=2026-11-25T22:10:00Z"},
        {"start=99999999999\nduration=5\n", "line 1: "},
        {"start=-5\nduration=5\n", "line 1: "},
        {"start=2026-02-29T00:00:00Z\nduration=5\n", "line 1: "},
        {"start=2026-11-25T22:10:00\nduration=5\n", "line 1: "},
        {"# at\nstart=1000000\n\nduration=0\n",
            "line 4: allowed is duration= with seconds above 0"},
        {"start=1000000\nduration=1000001\n", "line 2: "},
        {"start=1000000\nduration=5\nranks=7-0\n", "line 3: allowed is ranks=all, or at most 64"},
        {"start=1000000\nduration=5\nranks=\n", "line 3: "},
        {"start=1000000\nduration=5\npolicy=/tmp/policy.json\n", "line 3: allowed is policy={...}"},
        {"start=1000000\nstart=1000000\nduration=5\n",
            "line 2: allowed is start=, duration=, ranks= and policy=, each once"},
        {"start=1000000\nduration=5\nrank=1\n", "line 3: allowed is start=, "},
        {"start=1000000 duration=5\n", "line 1: "},
        {"duration=5\n", "allowed is a file with start= and duration="},
        {"start=1000000\n", "allowed is a file with start= and duration="},
    };
    begin_as("1");
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        put(cases[i].content);
        look_again();
        look_again();
        CHECK(!holds && !now.planned);
        if (lines("; it is ignored until it changes") != (int)i + 1 || !lines(cases[i].line))
            CHECK_TEXT(cases[i].content, cases[i].line);
    }
    put("  \n\n"); /* of an editor, or made before the start: nothing is asked for yet */
    look_again();
    CHECK_IS(lines(""), CS_COUNT(cases));
    end();
}
