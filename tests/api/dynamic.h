/*
 * With -DAPI_DLOPEN a program reaches the functions of custream.h as one that is not linked to
 * them: by dlopen("libcustream.so.0"), or with API_DEFAULT=1 in the environment by
 * dlsym(RTLD_DEFAULT), which finds the preload library's. dynamic.inc is made from the header.
 */
#ifndef TESTS_API_DYNAMIC_H
#define TESTS_API_DYNAMIC_H

#include <dlfcn.h>

UNUSED static void *api_library(void)
{
    const char *in_process = getenv("API_DEFAULT");
    void *library;

    if (in_process && *in_process == '1') return RTLD_DEFAULT;
    library = dlopen("libcustream.so.0", RTLD_NOW); /* once loaded, the same again */
    if (!library) fprintf(stderr, "%s\n", dlerror()), exit(3);
    return library;
}

UNUSED static void *api_find(const char *name)
{
    void *address = dlsym(api_library(), name);
    if (!address) fprintf(stderr, "no %s\n", name), exit(4);
    return address;
}

/* #define custream_create(...) API_CALL(custream_create, __VA_ARGS__): no name is replaced inside
 * of its own macro. */
#define API_CALL(name, ...) ((__typeof__(&name))api_find(#name))(__VA_ARGS__)
#include "dynamic.inc"

#endif
