/* The next part of a trace (out/part.h) where the file system can do less: no files without a name,
 * no exchange of two names, no move to a free one. */
#define _GNU_SOURCE
#include "shim/out/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/check.h"

static bool no_unnamed;
static unsigned no_renames; /* flags that are refused */

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const unsigned mode = va_arg(more, unsigned);
    va_end(more);
    if (no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    if (flags & no_renames) return errno = EINVAL, -1;
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static const char *text_of(const char *name)
{
    static char text[64];
    FILE *file = fopen(name, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file) fclose(file);
    return text;
}

static cs_u64 deleted; /* what the deleted parts had recorded */
static void deleted_part(cs_u64 recorded) { deleted += recorded; }

static int files_here(void)
{
    int count = 0;
    DIR *files = opendir(".");
    for (const struct dirent *file; (file = readdir(files));) count += file->d_name[0] != '.';
    closedir(files);
    return count;
}

static void swap(void)
{
    struct cs_file_id old;
    int fd = open("t.json", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && write(fd, "old", 3) == 3 && cs_file_id_of(fd, &old) && !close(fd));
    REQUIRE(cs_parts_begin("t.json"));
    const int before = files_here();
    fd = cs_part_create();
    REQUIRE(fd >= 0 && write(fd, "new", 3) == 3);
    CHECK_IS(files_here(), before + no_unnamed);
    CHECK(cs_part_swap(fd, old, 1, 5));
    CHECK_TEXT(text_of("t.json"), "new");
    CHECK_TEXT(text_of("t.1.json"), "old");
    CHECK_IS(files_here(), before + 1);
    close(fd);
    fd = cs_part_create();
    CHECK_IS(files_here(), before + 1 + no_unnamed);
    cs_part_drop(fd); /* it is not wanted */
    CHECK_IS(files_here(), before + 1);
}

TEST(with_all_of_that) { swap(); }
TEST(without_unnamed_files) { no_unnamed = true, swap(); }
TEST(without_an_exchange) { no_renames = RENAME_EXCHANGE, swap(); }
TEST(without_any_of_that)
{
    no_unnamed = true, no_renames = RENAME_EXCHANGE | RENAME_NOREPLACE, swap();
}

/* Of a process that had our pid and was killed, or of somebody who knows: they are not ours to
 * delete. */
TEST(names_that_others_have_for_all_next_parts)
{
    char name[64];
    no_unnamed = true;
    REQUIRE(cs_parts_begin("t.json"));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "t.json.%d-%d.next", (int)getpid(), i);
        REQUIRE(!close(open(name, O_RDWR | O_CREAT | O_EXCL, 0600)));
    }
    const int fd = cs_part_create();
    CHECK(fd == -1 && errno == EEXIST);
    cs_part_drop(fd);
    CHECK_IS(files_here(), 100);
}

/* A short name leads there: the folder is known by links, or is the process's own. */
TEST(a_folder_so_deep_that_the_file_in_it_has_no_path)
{
    char folder[201], file[201];
    memset(folder, 'd', sizeof folder - 1);
    memset(file, 'f', sizeof file - 1);
    folder[200] = file[200] = 0;
    int depth = 0;
    for (char here[PATH_MAX]; getcwd(here, sizeof here) && strlen(here) < PATH_MAX - 202; depth++)
        REQUIRE(!mkdir(folder, 0700) && !chdir(folder));
    CHECK(!cs_parts_begin(file));
    CHECK(strlen(cs_parts_path()) < PATH_MAX);
    while (depth--) REQUIRE(!chdir("..") && !rmdir(folder));
}

/* The writer's own table of descriptors begins at 0. */
TEST(a_part_at_descriptor_0_is_dropped_too)
{
    REQUIRE(cs_parts_begin("t.json"));
    close(0);
    REQUIRE(cs_part_create() == 0);
    cs_part_drop(0);
    CHECK(fcntl(0, F_GETFD) < 0);
}

/* A part of an earlier run that another one's trace left; and names that only look so. */
static bool is_removed(const char *name, int part)
{
    FILE *file = fopen(name, "w");
    REQUIRE(file &&
            fprintf(file,
                "{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":1,"
                "\"part\":%d,\n\"distributedInfo\": {\"rank\": 0, "
                "\"world_size\": 1},\n\"metadata\":{\"tool\":\"custream 0\"}}\n",
                part) > 0 &&
            !fclose(file));
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    REQUIRE(!utimensat(AT_FDCWD, name, old, 0));
    REQUIRE(cs_parts_begin("t.json"));
    const bool gone = access(name, F_OK) != 0;
    unlink(name);
    return gone;
}

TEST(parts_that_an_earlier_run_has_left_are_removed)
{
    CHECK(is_removed("t.1.json", 1) && is_removed("t.9.json", 9) && is_removed("t.12.json", 12) &&
          is_removed("t.4294967295.json", -1) == false);
    CHECK(!is_removed("t.1.json", 2) && !is_removed("t.0.json", 0) && !is_removed("t.x.json", 1) &&
          !is_removed("t1.json", 1) && !is_removed("u.1.json", 1));
    CHECK(!is_removed("t.1.json.gz", 1) && !is_removed("t.1.jso", 1) &&
          !is_removed("t.1x.json", 1) && !is_removed("t.:.json", 1) && !is_removed("t..json", 1));
    CHECK(!is_removed("t.4294967297.json", 1)); /* the number is cut nowhere */
}

TEST(the_oldest_parts_are_deleted)
{
    struct cs_file_id id;
    int fd = open("t.json", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && cs_file_id_of(fd, &id) && cs_parts_begin("t.json"));
    for (cs_u32 number = 1; number <= 3; number++) {
        const int next = cs_part_create();
        REQUIRE(
            next >= 0 && cs_part_swap(next, id, number, 10 * number) && cs_file_id_of(next, &id));
    }
    cs_parts_trim(4, deleted_part);
    CHECK_IS(deleted, 0);
    cs_parts_trim(3, deleted_part);
    CHECK_IS(deleted, 10);
    CHECK(access("t.1.json", F_OK) && !access("t.2.json", F_OK) && !access("t.3.json", F_OK) &&
          !access("t.json", F_OK));
    REQUIRE(!unlink("t.2.json") &&
            !close(open("t.2.json", O_RDWR | O_CREAT, 0600))); /* somebody else's now */
    cs_parts_trim(1, deleted_part);
    CHECK_IS(deleted, 10 + 30);
    CHECK(!access("t.2.json", F_OK) && access("t.3.json", F_OK));
    cs_parts_trim(1, deleted_part);
    CHECK_IS(deleted, 10 + 30);
}

TEST(a_file_of_somebody_else_at_the_path_is_left_alone)
{
    struct cs_file_id old;
    char beside[64];
    int fd = open("t.json", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && cs_file_id_of(fd, &old) && cs_parts_begin("t.json"));
    REQUIRE(!unlink("t.json") && !close(open("t.json", O_RDWR | O_CREAT, 0600)));
    int next = cs_part_create();
    captured_begin();
    CHECK(cs_part_swap(next, old, 1, 5));
    snprintf(beside, sizeof beside, "t-%d.json", (int)getpid());
    const char *said = captured_end();
    CHECK(
        strstr(said, "t.json is another file now; the trace goes on in ") && strstr(said, beside));
    CHECK(!access(beside, F_OK) && access("t.1.json", F_OK) && strstr(cs_parts_path(), beside));
    REQUIRE(!unlink(beside));
    next = cs_part_create();
    CHECK(cs_part_swap(next, old, 2, 5)); /* taken away: the name is free */
    CHECK(!access(beside, F_OK));
}

TEST(a_name_that_is_taken_gets_the_pid)
{
    struct cs_file_id old;
    char name[64];
    int fd = open("t.json", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && cs_file_id_of(fd, &old) && cs_parts_begin("t.json"));
    REQUIRE(write(fd, "old", 3) == 3 && !close(open("t.1.json", O_RDWR | O_CREAT, 0600)));
    CHECK(cs_part_swap(cs_part_create(), old, 1, 5));
    snprintf(name, sizeof name, "t.1-%d.json", (int)getpid());
    CHECK_TEXT(text_of(name), "old");
    CHECK_TEXT(text_of("t.1.json"), "");
    cs_parts_trim(1, deleted_part);
    CHECK(access(name, F_OK) && !access("t.1.json", F_OK));
    CHECK_IS(deleted, 5);
}
