/*
 * The library's dlsym before the sanitizer's runtime is up. The runtime looks up the functions that
 * it stands in front of as it begins, and the first dlsym that it meets is ours, whose code is
 * sanitized and so needs the runtime. Compiled without a sanitizer, as is base/realdl.c.
 */
#include "shim/base/realdl.h"
#include "shim/wrap/inside.h"

struct cs_routed __real_cs_route(
    void *handle, const char *name, const char *version, const void *caller);
struct cs_routed __wrap_cs_route(
    void *handle, const char *name, const char *version, const void *caller);

/* The runtime is a library that ours needs, so its constructors have run before ours. */
static bool is_up;
__attribute__((constructor)) static void runtime_is_up(void) { is_up = true; }

struct cs_routed __wrap_cs_route(
    void *handle, const char *name, const char *version, const void *caller)
{
    return is_up ? __real_cs_route(handle, name, version, caller)
                 : (struct cs_routed){NULL, !cs_realdl_init()};
}
