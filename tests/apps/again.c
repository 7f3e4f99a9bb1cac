/* again N [slow|at]: 10 + N launches, then this program once more in the same process with N - 1;
 * each time a stream is left alive. at: by execveat. */
#include "tests/apps/app.h"

#include <fcntl.h>

extern char **environ;

int main(int argc, char **argv)
{
    CUstream stream;
    char left[16];
    int n = argc > 1 ? atoi(argv[1]) : 0;
    app_start(0);
    CUfunction empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 10 + n; i++) LAUNCH(empty, stream);
    printf("round %d\n", n);
    fflush(stdout);
    if (!n) return 0;
    snprintf(left, sizeof left, "%d", n - 1);
    if (argc > 2 && !strcmp(argv[2], "at"))
        return execveat(AT_FDCWD, argv[0], (char *[]){argv[0], left, argv[2], NULL}, environ, 0);
    if (argc > 2) app_sleep_ms(700); /* longer than the writer's half second */
    execl(argv[0], argv[0], left, argc > 2 ? "slow" : NULL, (char *)NULL);
    return 1;
}
