/*
 * Finding cJSON for the shim, where a policy is given: beside the shim, then as the loader finds it by name.
 *
 * By a thread of its own, since any use of dlopen takes away what the calling thread may yet want from dlerror. Where that thread does not get on, because the
 * caller holds the loader's lock (it is inside of a library's constructor), the caller opens the library itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/realdl.h"
#include "shim/base/worker.h"
#include "shim/policy/cjson_api.h"

enum { PATIENCE_MS = 300 };

static const char *const sonames[] = {"libcjson.so.1", "libcjson.so"};

static const struct cs_cjson *_Atomic opened; /* NULL: not yet, or missing */

/* Looked at first: a dlopen that fails would cost more than that. */
static void *open_beside(const char *soname)
{
    const char *file;
    char path[PATH_MAX];
    const char *slash = cs_module_of((const void *)&opened, &file, NULL) ? strrchr(file, '/') : NULL;
    if (!slash || snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, soname) >= (int)sizeof path || access(path, R_OK)) return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void library_open(struct cs_cjson *api)
{
    void *library = NULL;
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = open_beside(sonames[i]);
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    if (!library || !cs_realdl_init()) return;
    api->ParseWithOpts = (__typeof__(api->ParseWithOpts))cs_real_dlsym(library, "cJSON_ParseWithOpts");
    api->Delete = (__typeof__(api->Delete))cs_real_dlsym(library, "cJSON_Delete");
    if (api->ParseWithOpts && api->Delete) cs_store_rel(&opened, api);
}

static void *opener_runs(void *worker)
{
    static struct cs_cjson api;
    cs_worker_set(worker, CS_WORKER_RUNNING);
    library_open(&api);
    cs_worker_set(worker, CS_WORKER_FINISHED);
    return NULL;
}

const struct cs_cjson *cs_cjson(void)
{
    static struct cs_worker opener;
    static struct cs_cjson api;
    CS_KEEP_ERRNO;
    if (cs_load_acq(&opened)) return cs_load_acq(&opened);
    if (cs_load_acq(&opener.state) == CS_WORKER_IDLE && cs_worker_start(&opener, opener_runs)) cs_worker_ask(&opener, CS_WORKER_FINISHING, PATIENCE_MS);
    if (cs_load_acq(&opener.state) != CS_WORKER_FINISHED && !cs_load_acq(&opened)) library_open(&api);
    return cs_load_acq(&opened);
}
