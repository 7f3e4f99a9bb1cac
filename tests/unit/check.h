/*
 * Unit tests in C: TEST(name) { ... } in a file, CHECKs inside, and nothing else; this header
 * brings main.
 *
 * `program NAME` runs one test and ends with 1 if a check failed, each of which says where. Without
 * a name all of them run, each in a child and a folder of its own, so a test may change the
 * environment, descriptors, limits and files as it likes. One that hangs is ended by its alarm.
 * tests/cases/test_unit.py runs the programs.
 */
#ifndef CS_TESTS_UNIT_CHECK_H
#define CS_TESTS_UNIT_CHECK_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/patience.h"

static _Atomic int check_failures;

#define CHECK(condition) \
    do { \
        if (condition) break; \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        check_failures++; \
    } while (0)

/* CHECK_IS(actual, expected) shows both numbers. */
#define CHECK_IS(actual, expected) \
    do { \
        long long a_ = (long long)(actual), e_ = (long long)(expected); \
        if (a_ == e_) break; \
        fprintf(stderr, "%s:%d: %s: %lld, not %lld\n", __FILE__, __LINE__, #actual, a_, e_); \
        check_failures++; \
    } while (0)

#define CHECK_TEXT(actual, expected) \
    do { \
        const char *a_ = (actual), *e_ = (expected); \
        if (!strcmp(a_, e_)) break; \
        fprintf(stderr, "%s:%d: %s:\n  is       \"%s\"\n  expected \"%s\"\n", __FILE__, __LINE__, \
        #actual, a_, e_); \
        check_failures++; \
    } while (0)

/* For what makes the rest of the test pointless. */
#define REQUIRE(condition) \
    do { \
        if (condition) break; \
        fprintf(stderr, "%s:%d: %s: the test ends here\n", __FILE__, __LINE__, #condition); \
        exit(1); \
    } while (0)

static struct {
    const char *name;
    void (*run)(void);
} check_tests[64];
static int check_count;

#define TEST(test_) \
    static void test_(void); \
    __attribute__((constructor)) static void register_##test_(void) \
    { \
        check_tests[check_count].name = #test_; \
        check_tests[check_count++].run = test_; \
    } \
    static void test_(void)

/* From here on stderr goes to a file; captured_end gives what came and puts stderr back. One at a
 * time. */
static int captured_fd = -1, captured_stderr = -1;
extern void cs_log_remember(void)
    __attribute__((weak)); /* lines go to what stderr was, unless that is told anew */
__attribute__((unused)) static void captured_begin(void)
{
    char name[] = "/tmp/custream-unit-XXXXXX";
    fflush(stderr);
    captured_fd = mkstemp(name);
    REQUIRE(captured_fd >= 0);
    unlink(name);
    captured_stderr = dup(2);
    dup2(captured_fd, 2);
    if (cs_log_remember) cs_log_remember();
}

__attribute__((unused)) static const char *captured_end(void)
{
    static char text[1 << 16];
    fflush(stderr);
    dup2(captured_stderr, 2);
    if (cs_log_remember) cs_log_remember();
    close(captured_stderr);
    ssize_t n = pread(captured_fd, text, sizeof text - 1, 0);
    close(captured_fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

__attribute__((unused)) static int lines_in(const char *text)
{
    int n = 0;
    while ((text = strchr(text, '\n'))) n++, text++;
    return n;
}

static int run_here(int i)
{
    alarm(patience(100));
    check_tests[i].run();
    return check_failures ? 1 : 0;
}

/* Says what failed. */
static int run_apart(int i)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        exit(mkdir(check_tests[i].name, 0700) || chdir(check_tests[i].name) ? 3 : run_here(i));
    if (waitpid(child, &status, 0) == child && status == 0) return 0;
    fprintf(stderr, "%s: wait status %#x\n", check_tests[i].name, status);
    return 1;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 0; i < check_count; i++) {
        if (argc == 1) failed |= run_apart(i);
        else if (!strcmp(check_tests[i].name, argv[1])) return run_here(i);
    }
    if (argc == 1 && check_count) return failed;
    fprintf(stderr, "usage: %s [TEST]\n", argv[0]);
    return 2;
}

#endif
