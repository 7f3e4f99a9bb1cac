/* runtime_copies LIBRARY...: each is built from runtime_user.c, and linked to some runtime. The
 * program, which has none, works with all of them in turn, again when the first has been closed and
 * opened, and says what came of it. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 8 };
static void *library[MOST];

static int call(int i, const char *name)
{
    int (*function)(void) = (int (*)(void))dlsym(library[i], name);
    if (!function) fprintf(stderr, "no %s\n", name), exit(4);
    return function();
}

static void *open_one(const char *path)
{
    void *found = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!found) fprintf(stderr, "%s\n", dlerror()), exit(3);
    return found;
}

/* A library's own kernel by its own pointer, called from here: the call can be read, and says
 * nothing of whose it is. */
typedef cudaError_t launch_fn(const void *, dim3, dim3, void **, size_t, cudaStream_t);
launch_fn *launcher;
void *kernel;
static __attribute__((noinline)) void take_pointers(int i)
{
    launcher = ((launch_fn * (*)(void)) dlsym(library[i], "user_launcher"))();
    kernel = ((void *(*)(void))dlsym(library[i], "user_kernel"))();
}
#if defined(__x86_64__)
launch_fn launch_readable; /* a call through memory, with the arguments where they are */
void *returns;
__asm__(".text\nlaunch_readable:\n\tpopq returns(%rip)\n\tcall *launcher(%rip)\n\tpushq "
        "returns(%rip)\n\tret\n");
#else
#define launch_readable launcher
#endif
static int launch_by_pointer(int i)
{
    take_pointers(i);
    volatile int result = launch_readable(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
    return result;
}

int main(int argc, char **argv)
{
    const int n = argc - 1;
    if (n < 1 || n > MOST) return 2;
    for (int i = 0; i < n; i++) library[i] = open_one(argv[i + 1]);
    for (int i = 0; i < n; i++)
        printf("%d before its kernel is registered %d\n", i, call(i, "user_launch"));
    for (int i = 0; i < n; i++) call(i, "user_last"), call(i, "user_register");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++)
            printf("%d launch %d sync %d\n", i, call(i, "user_launch"), call(i, "user_sync"));
        for (int i = 0; i < n; i++) {
            printf("%d fails %d and then of all", i, call(i, "user_fail"));
            for (int k = 0; k < n; k++) printf(" %d", call(k, "user_last"));
            printf("\n");
        }
        for (int i = 0; i < n; i++) {
            void *kernel = ((void *(*)(void))dlsym(library[i], "user_kernel"))();
            printf("kernel of %d by each", i);
            for (int k = 0; k < n; k++)
                printf(" %d", ((int (*)(void *))dlsym(library[k], "user_launch_of"))(kernel));
            printf(" and then of all");
            for (int k = 0; k < n; k++) printf(" %d", call(k, "user_last"));
            printf("\n");
        }
        for (int i = 0; i < n; i++) printf("%d by pointer %d\n", i, launch_by_pointer(i));
        int (*pointer)(void *) =
            ((int (*(*)(void))(void *))dlsym(library[n - 1], "user_pointer"))();
        printf("pointer %d", pointer(NULL));
        printf(" tail %d\n",
            call(n - 1, dlsym(library[n - 1], "user_tail") ? "user_tail" : "own_tail"));
        for (int k = 0; k < n; k++) call(k, "user_last");
        if (dlsym(library[n - 1], "user_calls_tail")) {
            printf("through another %d and then of all", call(n - 1, "user_calls_tail"));
            for (int k = 0; k < n; k++) printf(" %d", call(k, "user_last"));
            printf("\n");
        }
        if (round < 2) { /* it may come back to its place, or another one may come there */
            dlclose(library[0]);
            library[0] = open_one(argv[1]);
            call(0, "user_register");
        }
    }
    return 0;
}
