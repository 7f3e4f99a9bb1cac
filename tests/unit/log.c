/* Lines on stderr: to the file that it was, without a signal, in order, from threads that have
 * none. */
#define _GNU_SOURCE
#include "shim/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "tests/unit/check.h"

static void stderr_is(int fd)
{
    dup2(fd, 2);
    cs_log_remember();
}

static int pending(int signal)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, signal);
}

TEST(a_pipe_that_nobody_reads_makes_no_signal)
{
    int ends[2];
    REQUIRE(!pipe(ends));
    stderr_is(ends[1]);
    close(ends[0]);
    errno = 7;
    cs_log(CS_LOG_WARN, "into the void"); /* by its default SIGPIPE ends the test */
    CHECK(errno == 7 && !pending(SIGPIPE));
}

TEST(a_signal_that_was_there_stays)
{
    int ends[2];
    sigset_t set, now;
    REQUIRE(!pipe(ends));
    stderr_is(ends[1]);
    close(ends[0]);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    cs_log(CS_LOG_WARN, "into the void");
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    CHECK(pending(SIGPIPE) && sigismember(&now, SIGPIPE));
}

TEST(a_full_pipe_holds_nobody_up)
{
    int ends[2];
    char byte = 0;
    REQUIRE(!pipe2(ends, O_NONBLOCK));
    while (write(ends[1], &byte, 1) == 1) {}
    fcntl(ends[1], F_SETFL, 0); /* a write blocks again */
    stderr_is(ends[1]);
    cs_log(CS_LOG_WARN, "no room");
}

/* The subject is a path that somebody has chosen. */
TEST(a_subject_that_fills_the_line)
{
    char subject[3000], line[3000];
    int ends[2];
    for (size_t n = 980; n < sizeof subject; n += n < 1030 ? 1 : 1969) {
        REQUIRE(!pipe(ends));
        stderr_is(ends[1]);
        memset(subject, 's', n);
        subject[n] = 0;
        cs_log_report(subject, "%s", "what there is to say");
        close(ends[1]);
        const ssize_t got = read(ends[0], line, sizeof line);
        CHECK(got > 980 && got <= 1023 && line[got - 1] == '\n' &&
              !memchr(line, '\n', (size_t)got - 1));
        close(ends[0]);
    }
}

TEST(another_file_gets_nothing)
{
    captured_begin();
    int other = open("/tmp", O_TMPFILE | O_RDWR, 0600), was = dup(2);
    REQUIRE(other >= 0 && was >= 0);
    dup2(other, 2);
    cs_log(CS_LOG_WARN, "not for you");
    close(2);
    cs_log(CS_LOG_WARN, "nor for nobody");
    CHECK(lseek(other, 0, SEEK_END) == 0);
    dup2(was, 2);
    cs_log(CS_LOG_WARN, "back again");
    CHECK_TEXT(captured_end(), "custream: warning: back again\n");
}

static void *has_no_stderr(void *given)
{
    cs_log_apart();
    for (long i = 0; i < (long)given; i++) cs_log(CS_LOG_WARN, "line %ld", i);
    return NULL;
}

static void lines_left(long count)
{
    pthread_t thread;
    REQUIRE(!pthread_create(&thread, NULL, has_no_stderr, (void *)count));
    pthread_join(thread, NULL);
}

TEST(lines_of_a_thread_apart_are_printed_by_others)
{
    captured_begin();
    lines_left(3);
    CHECK(lseek(captured_fd, 0, SEEK_END) == 0);
    cs_log_relay();
    cs_log_relay();
    CHECK_TEXT(captured_end(),
        "custream: warning: line 0\ncustream: warning: line 1\ncustream: warning: line 2\n");
}

TEST(more_lines_than_there_is_room_for_are_counted)
{
    captured_begin();
    for (int round = 0; round < 3; round++) {
        lines_left(70);
        cs_log_relay();
    }
    const char *text = captured_end();
    CHECK_IS(lines_in(text), 3 * 65);
    CHECK(strstr(text, "line 63\ncustream: warning: 6 more lines came too fast\n") &&
          !strstr(text, "line 64\n"));
}

static _Atomic int rings, leavers_done;
static void ring(void) { rings++; }

static void *leaves(void *number)
{
    cs_log_apart();
    for (int i = 1; i <= 2000; i++) cs_log(CS_LOG_WARN, "thread %ld line %d", (long)number, i);
    leavers_done++;
    return NULL;
}

static void *prints(void *unused)
{
    (void)unused;
    while (leavers_done < 2) cs_log_relay();
    return NULL;
}

/* Two that leave lines and two that print them: each line is there once, whole, each thread's in
 * order, or is counted. */
TEST(four_threads)
{
    pthread_t threads[4];
    int last[2] = {0, 0}, seen = 0;
    captured_begin();
    cs_log_left = ring;
    for (long i = 0; i < 4; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, i < 2 ? leaves : prints, (void *)i));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    cs_log_relay();
    CHECK_IS(rings, 4000);
    FILE *file = fdopen(dup(captured_fd), "r");
    captured_end();
    rewind(file);
    for (char line[256]; fgets(line, sizeof line, file);) {
        long thread = 0;
        int number = 0, lost = 0;
        if (sscanf(line, "custream: warning: thread %ld line %d\n", &thread, &number) == 2) {
            CHECK(number > last[thread]);
            last[thread] = number;
            seen++;
        } else {
            CHECK(sscanf(line, "custream: warning: %d more lines came too fast\n", &lost) == 1);
            seen += lost;
        }
    }
    CHECK_IS(seen, 4000);
}
