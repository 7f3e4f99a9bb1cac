/*
 * Finding cJSON for the shim, where a policy is given: beside the shim, then as the loader finds it by name.
 *
 * In the library's constructor, before the process has threads: opening a library takes the loader's lock, which another thread may hold later
 * while it waits for the one that needs the policy. Where a policy is given only then (the program sets the variable, or `custream ctl`), a thread
 * of our own opens it, which the caller waits for only so long.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "shim/base/module.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/base/worker.h"
#include "shim/policy/cjson_api.h"

enum { PATIENCE_MS = 1000 };

static const char *const sonames[] = {"libcjson.so.1", "libcjson.so"};

static const struct cs_cjson *_Atomic opened; /* NULL: not yet, or missing */

static void library_open(struct cs_cjson *api)
{
    struct cs_image image;
    void *library = NULL;
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = cs_open_beside((const void *)&cs_open_beside, sonames[i]);
    for (size_t i = 0; !library && i < CS_COUNT(sonames); i++) library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
    const struct link_map *map = library; /* glibc's handles are */
    if (!map || !cs_image_read(map->l_addr, map->l_ld, map->l_name, &image)) return;
    api->ParseWithOpts = (__typeof__(api->ParseWithOpts))cs_image_symbol(&image, "cJSON_ParseWithOpts");
    api->Delete = (__typeof__(api->Delete))cs_image_symbol(&image, "cJSON_Delete");
    if (api->ParseWithOpts && api->Delete) cs_store_rel(&opened, api);
}

__attribute__((constructor)) static void at_start(void)
{
    static struct cs_cjson api;
    const char *given = getenv(cs_option_info[CS_OPTION_POLICY].env);
    if (!given || !*given) return;
    library_open(&api);
    if (!cs_load_acq(&opened)) dlerror(); /* not the program's */
}

static void *opener_runs(void *worker)
{
    static struct cs_cjson api;
    cs_worker_set(worker, CS_WORKER_RUNNING);
    cs_loader_await();
    library_open(&api);
    cs_worker_set(worker, CS_WORKER_FINISHED);
    return NULL;
}

const struct cs_cjson *cs_cjson(void)
{
    static struct cs_worker opener;
    if (cs_load_acq(&opened)) return cs_load_acq(&opened);
    if (cs_load_acq(&opener.state) == CS_WORKER_IDLE && cs_worker_start(&opener, opener_runs)) cs_worker_ask(&opener, CS_WORKER_FINISHING, PATIENCE_MS);
    return cs_load_acq(&opened);
}
