/*
 * locked         all memory is locked, that to come too: each page of it is there from the beginning
 * locked late    all that is there after the first launch is locked
 *
 * Notes how many kB are there in the end.
 */
#include "app.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    const int late = argc > 1 && !strcmp(argv[1], "late");
    char line[256];
    if (!late && mlockall(MCL_CURRENT | MCL_FUTURE)) perror("mlockall"), exit(1);
    app_start(0);
    CUfunction kernel = app_kernel("k");
    LAUNCH(kernel, NULL);
    OK(cuCtxSynchronize);
    if (late && mlockall(MCL_CURRENT)) perror("mlockall"), exit(1);
    for (int i = 0; i < 20000; i++) LAUNCH(kernel, NULL);
    OK(cuCtxSynchronize);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) NOTE("kB", "%ld", strtol(line + 6, NULL, 10));
    app_report();
    return 0;
}
