/* All memory is locked, that to come too: each page of it is there from the beginning. Notes how many kB are. */
#include "app.h"

#include <sys/mman.h>

int main(void)
{
    char line[256];
    mlockall(MCL_CURRENT | MCL_FUTURE);
    app_start(0);
    LAUNCH(app_kernel("k"), NULL);
    OK(cuCtxSynchronize);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmRSS:", 6)) NOTE("kB", "%ld", strtol(line + 6, NULL, 10));
    app_report();
    return 0;
}
