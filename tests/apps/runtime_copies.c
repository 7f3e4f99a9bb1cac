/* runtime_copies LIBRARY...: each is built from runtime_user.c, and linked to some runtime. The program, which has none, works with all of them in turn, again
 * when the first has been closed and opened, and says what came of it. */
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

int main(int argc, char **argv)
{
    const int n = argc - 1;
    if (n < 1 || n > MOST) return 2;
    for (int i = 0; i < n; i++) library[i] = open_one(argv[i + 1]);
    for (int i = 0; i < n; i++) printf("%d before its kernel is registered %d\n", i, call(i, "user_launch"));
    for (int i = 0; i < n; i++) call(i, "user_last"), call(i, "user_register");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < n; i++) printf("%d launch %d sync %d\n", i, call(i, "user_launch"), call(i, "user_sync"));
        for (int i = 0; i < n; i++) {
            printf("%d fails %d and then of all", i, call(i, "user_fail"));
            for (int k = 0; k < n; k++) printf(" %d", call(k, "user_last"));
            printf("\n");
        }
        int (*pointer)(void *) = ((int (*(*)(void))(void *))dlsym(library[n - 1], "user_pointer"))();
        printf("pointer %d", pointer(NULL));
        printf(" tail %d\n", call(n - 1, dlsym(library[n - 1], "user_tail") ? "user_tail" : "own_tail"));
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
