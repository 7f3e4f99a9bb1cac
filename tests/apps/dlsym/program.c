/*
 * program [-g LIBRARY | -l LIBRARY | -d LIBRARY]... WHO HOW NAME ...: look-ups, one line each
 * (ask.h). WHO is `program`, or the name of a library's ask_ function, which is found in the
 * libraries opened before (-g for all, -l for themselves, -d deeply bound) and in those preloaded.
 * At the end the opened ones are closed, and the program says which of them stay.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "ask.h"

#ifdef DEFINES_DATA
/* As loaders of the driver do that keep its entry points in variables of the same names (cuew,
 * glad). */
__attribute__((visibility("default"))) void *cuLaunchKernel, *cuStreamCreate;
#endif

void *ask_program(const char *how, const char *name);
ASK_DEFINE(program)

int main(int argc, char **argv)
{
    void *opened[16];
    const char *names[16];
    int count = 0, i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        int flags = argv[i][1] == 'g'   ? RTLD_GLOBAL
                    : argv[i][1] == 'd' ? RTLD_LOCAL | RTLD_DEEPBIND
                                        : RTLD_LOCAL;
        names[count] = argv[i + 1];
        if (!(opened[count++] = dlopen(argv[i + 1], RTLD_NOW | flags)))
            return printf("cannot open: %s\n", dlerror()), 1;
    }
    for (; i + 2 < argc; i += 3) {
        char function[64];
        snprintf(function, sizeof function, "ask_%s", argv[i]);
        ask_fn *ask =
            strcmp(argv[i], "program") ? (ask_fn *)dlsym(RTLD_DEFAULT, function) : ask_program;
        for (int k = 0; !ask && k < count; k++) ask = (ask_fn *)dlsym(opened[k], function);
        if (!ask) return printf("no %s\n", function), 1;
        void *found = ask(argv[i + 1], argv[i + 2]);
#ifdef DEFINES_DATA
        if (!strcmp(argv[i + 1], "libcuda.so.1") && !strcmp(argv[i + 2], "cuLaunchKernel"))
            cuLaunchKernel = found;
        if (!strcmp(argv[i + 1], "default") && !strcmp(argv[i + 2], "cuLaunchKernel"))
            printf("own variable: %s\n", found == &cuLaunchKernel ? "yes" : "no");
#else
        (void)found;
#endif
    }
#ifdef DEFINES_DATA
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
        void *, void **, void **) = cuLaunchKernel;
    if (launch)
        printf("launched without a context: %d\n",
            launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
#endif
    while (count--) {
        dlclose(opened[count]);
        printf("%s %s\n", names[count],
            dlopen(names[count], RTLD_LAZY | RTLD_NOLOAD) ? "stays" : "is gone");
    }
    return 0;
}
