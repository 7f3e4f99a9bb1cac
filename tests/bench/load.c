/* load_ms: how much longer a program without CUDA takes to start and end under the preload. load
 * LIBRARY PROGRAM */
#define _GNU_SOURCE
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/bench/bench.h"

static double run_once(const char *program, char *const environment[])
{
    pid_t pid;
    int status;
    char *arguments[] = {(char *)program, NULL};
    double start = seconds(CLOCK_MONOTONIC);
    if (posix_spawn(&pid, program, NULL, NULL, arguments, environment) ||
        waitpid(pid, &status, 0) != pid || status)
        exit(2);
    return (seconds(CLOCK_MONOTONIC) - start) * 1e3;
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 301 };
    static double over[ROUNDS], with[ROUNDS], without[ROUNDS];
    char preload[4096];
    if (argc != 3) return 2;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    char *bare[] = {NULL}, *loaded[] = {preload, NULL};
    for (int i = 0; i < ROUNDS; i++) {
        without[i] = run_once(argv[2], bare);
        with[i] = run_once(argv[2], loaded);
        over[i] = with[i] - without[i];
    }
    line("load_ms", median(over, ROUNDS), "ms");
    return 0;
}
