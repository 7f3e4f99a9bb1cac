/*
 * What `custream report` takes for a trace of launches with GPU times: report CUSTREAM TRACE
 *
 *   report_mb_per_second  of JSON, uncompressed, over the processor time of the command, which has
 * one thread report_memory_ratio   its resident memory at the most, mapped pages included, over 650
 * bytes a launch: what one took of the file at f9bc819
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { ROUNDS = 3, BYTES_A_LAUNCH = 650 };

static struct rusage report_once(const char *command, const char *trace)
{
    struct rusage usage;
    int status;
    const pid_t pid = fork();
    if (!pid) {
        const int null = open("/dev/null", O_WRONLY);
        if (null < 0 || dup2(null, STDOUT_FILENO) < 0) _exit(127);
        execl(command, command, "report", trace, NULL);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status) exit(2);
    return usage;
}

/* The kernels that the trailer counts, and how long the file is. */
static double launches_of(const char *trace, double *bytes)
{
    static char tail[8192];
    FILE *file = fopen(trace, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(2);
    *bytes = (double)ftell(file);
    if (fseek(file, *bytes > sizeof tail ? -(long)sizeof tail + 1 : 0,
            *bytes > sizeof tail ? SEEK_END : SEEK_SET))
        exit(2);
    tail[fread(tail, 1, sizeof tail - 1, file)] = 0;
    fclose(file);
    const char *kernels = strstr(tail, "\"kernels\":");
    if (!kernels) exit(2);
    return atof(kernels + sizeof "\"kernels\":" - 1);
}

int main(int argc, char **argv)
{
    double rate[ROUNDS], ratio[ROUNDS], bytes;
    if (argc != 3) return 2;
    const double launches = launches_of(argv[2], &bytes);
    for (int i = 0; i < ROUNDS; i++) {
        const struct rusage usage = report_once(argv[1], argv[2]);
        const double busy = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                            (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
        rate[i] = bytes / 1e6 / busy;
        ratio[i] = (double)usage.ru_maxrss * 1024 / (launches * BYTES_A_LAUNCH);
    }
    line("report_mb_per_second", median(rate, ROUNDS), "MB/s");
    line("report_memory_ratio", median(ratio, ROUNDS), "ratio");
    return 0;
}
