/*
 * Opens libraries that use CUDA (user.c), uses them, and says what came of it: program
 * [-]LIBRARY...
 *
 * One with a - is closed again. Then its place is taken, so that it comes back elsewhere. Built
 * with -DLINKED, it is linked to such a library and uses that.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

#ifdef LINKED
int use(void);
#endif

static int open_and_use(const char *name, int closes)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    int (*uses)(void) = library ? (int (*)(void))dlsym(library, "use") : NULL;
    if (!uses) return printf("%s\n", dlerror()), 1;
    printf("results %d\n", uses());
    fflush(stdout);
    fprintf(stderr, "note use %p\n", (void *)uses);
    if (!closes) return 0;
    dlclose(library);
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) fprintf(stderr, "note stayed 1\n");
    for (int k = 0; k < 64; k++)
        if (mmap(NULL, (size_t)1 << (22 - k % 10), PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
#ifdef LINKED
    printf("results %d\n", use());
#endif
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= open_and_use(argv[i] + (*argv[i] == '-'), *argv[i] == '-');
    return failed;
}
