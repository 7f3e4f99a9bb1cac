#define _GNU_SOURCE
#include "shim/base/beside.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/module.h"

/* Looked at first: a dlopen that fails would cost more than that. */
void *cs_open_beside(const char *soname)
{
    struct cs_module module;
    char path[PATH_MAX];
    const char *file = cs_module_of((const void *)&cs_open_beside, &module) ? cs_module_path(&module) : "", *slash = strrchr(file, '/');
    if (!slash || snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, soname) >= (int)sizeof path || access(path, R_OK)) return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}
