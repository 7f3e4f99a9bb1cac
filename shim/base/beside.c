#define _GNU_SOURCE
#include "shim/base/beside.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "shim/base/module.h"

/* Looked at first: a dlopen that fails would cost more than that. */
void *cs_open_beside(const char *soname)
{
    char path[PATH_MAX];
    const bool there = cs_module_beside((const void *)&cs_open_beside, soname, path, sizeof path) && !access(path, R_OK);
    return there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}
