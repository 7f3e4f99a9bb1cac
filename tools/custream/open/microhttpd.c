#include "tools/custream/open/microhttpd.h"

#include <dlfcn.h>

static const char LIBRARY[] = "libmicrohttpd.so.12";

bool microhttpd_open(struct microhttpd *mhd)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define MICROHTTPD_FIND(member, name)                                                                                                                \
    if (!(mhd->member = (__typeof__(mhd->member))dlsym(library, #name))) return false;
    MICROHTTPD_CALLS(MICROHTTPD_FIND)
#undef MICROHTTPD_FIND
    return true;
}
