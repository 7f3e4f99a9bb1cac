/* What a process tells the watcher of its run, and what it says itself at its end
 * (trace/closing.h). The test is the watcher. */
#include "shim/base/log.h"

void settles(void); /* not static: also where nobody calls it */
#define cs_log_settle() settles()
#include "shim/trace/closing.c"
#undef cs_log_settle

#include "tests/unit/trace_file.h"

static int listener = -1, peer = -1;

/* In a run, whose watcher listens; a name of the test's own. */
static void begin(void)
{
    struct sockaddr_un address;
    char name[32];
    snprintf(name, sizeof name, "unit-%d", (int)getpid());
    setenv(CS_WATCH_VARIABLE, name, 1);
    cs_watch_read();
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const socklen_t size = cs_watch_address(&address, name);
    REQUIRE(listener >= 0 && !bind(listener, (struct sockaddr *)&address, size) &&
            !listen(listener, 4));
    trace_file_begin();
}

static void hello(void)
{
    cs_closing_begin();
    peer = accept(listener, NULL, NULL);
    REQUIRE(peer >= 0);
}

/* The next packet; "" if there is none. */
static const char *packet(void)
{
    static char text[CS_WATCH_PACKET];
    const ssize_t n = recv(peer, text, sizeof text - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = 0;
    return text;
}

static bool settled_before_the_end;
void settles(void) { settled_before_the_end = peer < 0 || !*packet(); }

TEST(the_watcher_hears_of_the_process_its_file_and_an_exec)
{
    char file[CS_WATCH_PACKET];
    begin(), hello();
    CHECK_TEXT(packet(), "hello");
    cs_closing_file();
    const struct cs_file_id id = cs_output_id();
    snprintf(file, sizeof file, "file %llu %llu %s", (unsigned long long)id.device,
        (unsigned long long)id.inode, cs_output_path());
    CHECK_TEXT(packet(), file);
    cs_closing_file();
    CHECK_TEXT(packet(), ""); /* the same one */
    cs_closing_flushed();
    CHECK_TEXT(packet(), "");
    cs_closing_exec();
    CHECK_TEXT(packet(), ""); /* not before all is in the file */
    CHECK(cs_closing_flushed());
    CHECK_TEXT(packet(), "exec");
    cs_closing_exec(); /* another thread */
    CHECK(cs_closing_flushed());
    CHECK_TEXT(packet(), "exec");
    cs_closing_stays();
    CHECK(!cs_closing_flushed());
    CHECK_TEXT(packet(), ""); /* the first is about to */
    cs_closing_stays();
    CHECK_TEXT(packet(), "");
    CHECK(!cs_closing_flushed());
    CHECK_TEXT(packet(), "stays");
    cs_closing_stays(); /* of whom nobody has heard */
    cs_closing_exec();
    cs_closing_stays(); /* before any flush: it may have been told as well */
    CHECK(cs_closing_flushed());
    CHECK_TEXT(packet(), "exec");
    CHECK(!cs_closing_flushed());
    CHECK_TEXT(packet(), "stays");
    cs_closing_flushed();
    CHECK_TEXT(packet(), "");
}

TEST(a_quiet_process_says_so)
{
    setenv("CUSTREAM_QUIET", "on", 1);
    begin(), hello();
    CHECK_TEXT(packet(), "hello quiet");
    CHECK(!cs_closing_speaks());
}

TEST(a_process_that_logs_errors_alone_is_quiet)
{
    setenv("CUSTREAM_LOG", "error", 1);
    begin(), hello();
    CHECK_TEXT(packet(), "hello quiet");
    CHECK(!cs_closing_speaks());
}

/* The connection is the parent's, and so is what it was about to say. */
TEST(a_forked_child_tells_nothing)
{
    begin(), hello();
    CHECK_TEXT(packet(), "hello");
    cs_closing_file();
    CHECK(*packet());
    cs_closing_exec();
    REQUIRE(send(peer, "speak", 5, 0) == 5);
    cs_closing_prepare(true);
    CHECK_TEXT(packet(), "end");
    CHECK_TEXT(packet(), "speaks");
    cs_closing_after_fork_in_child();
    cs_closing_flushed();
    cs_watch_exec();
    CHECK_TEXT(packet(), "");
    captured_begin();
    cs_closing_say();
    CHECK_TEXT(captured_end(), "");
    hello(); /* as a process of its own */
    CHECK_TEXT(packet(), "hello");
    cs_closing_file();
    CHECK(!strncmp(packet(), "file ", 5)); /* though it is the parent's name */
}

static const char *said(void)
{
    captured_begin();
    cs_closing_say();
    return captured_end();
}

TEST(a_process_that_outlives_its_run_speaks_for_itself_once)
{
    begin(), hello();
    cs_closing_file();
    REQUIRE(send(peer, "speak", 5, 0) == 5);
    while (*packet()) {}
    cs_closing_prepare(true);
    CHECK_TEXT(packet(), "end");
    CHECK_TEXT(packet(), "speaks");
    CHECK(cs_closing_speaks());
    CHECK_TEXT(said(), "custream: t.json: 0 calls, nothing lost, no GPU times. Next: custream "
                       "report t.json; custream "
                       "open t.json\n");
    CHECK_TEXT(said(), "");
}

TEST(a_watcher_that_has_said_all_leaves_nothing_to_say)
{
    begin(), hello();
    cs_closing_file();
    CHECK(cs_closing_speaks());
    REQUIRE(send(peer, "done", 4, 0) == 4);
    while (*packet()) {}
    cs_closing_prepare(true);
    CHECK(settled_before_the_end); /* lines of warning come first */
    CHECK_TEXT(packet(), "end");
    CHECK(!cs_closing_speaks());
    CHECK_TEXT(said(), "");
}

TEST(a_process_without_a_file_says_nothing)
{
    begin(), hello();
    packet();
    REQUIRE(send(peer, "speak", 5, 0) == 5);
    cs_closing_prepare(false);
    CHECK_TEXT(packet(), "end");
    CHECK_TEXT(packet(), "speaks"); /* of a trace that nobody knows of */
    CHECK_TEXT(said(), "");
}

TEST(a_process_of_no_run_speaks_on_a_terminal_alone)
{
    unsetenv(CS_WATCH_VARIABLE);
    cs_watch_read();
    trace_file_begin();
    cs_closing_begin();
    cs_closing_prepare(true);
    CHECK(!cs_log_is_terminal() && !cs_closing_speaks());
    CHECK_TEXT(said(), "");
}
