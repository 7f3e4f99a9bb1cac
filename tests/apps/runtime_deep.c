/*
 * Opens and closes libraries for somebody else. Opened with RTLD_DEEPBIND, it calls the C library's
 * own functions for that, whatever is preloaded. Where DEEP_WAITS is set it is the address of two
 * numbers: being loaded, it counts the first up and waits for the second.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/patience.h"

__attribute__((visibility("default"))) void *deep_open(const char *path)
{
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
__attribute__((visibility("default"))) int deep_close(void *library) { return dlclose(library); }

__attribute__((constructor)) static void at_load(void)
{
    const char *text = getenv("DEEP_WAITS");
    int *numbers = text ? (int *)strtoul(text, NULL, 0) : NULL;
    const int limit = 100 * (int)patience(10);
    if (numbers) __atomic_store_n(&numbers[0], 1, __ATOMIC_SEQ_CST);
    for (int i = 0; numbers && !__atomic_load_n(&numbers[1], __ATOMIC_SEQ_CST) && i < limit; i++)
        usleep(10000);
}
