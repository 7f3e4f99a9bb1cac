/*
 * CUSTREAM_PLUGIN: shared objects that are opened at the process's first call of CUDA, on a thread of ours, before that call goes on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "custream.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/module.h"
#include "shim/base/options.h"
#include "shim/process/process.h"

static const custream_plugin_api_t api = {
    .version = CUSTREAM_PLUGIN_VERSION, .size = sizeof api,
    .register_hook = custream_register_hook, .unregister_hook = custream_unregister_hook,
    .wrap = custream_wrap, .release = custream_release, .format = custream_format, .set_name = custream_set_name,
    .last_driver_error = custream_last_driver_error, .status_name = custream_status_name, .version_string = custream_version_string,
    .range_push = custream_trace_range_push, .range_pop = custream_trace_range_pop, .mark = custream_trace_mark,
};

static void load(const char *path)
{
    if (cs_is_no_file(path)) {
        cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: %s: not a file; the program goes on without it", path);
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: %s; the program goes on without it", dlerror());
        return;
    }
    custream_plugin_init_fn *init = (custream_plugin_init_fn *)dlsym(library, "custream_plugin_init");
    custream_status_t answer = init ? init(&api) : CUSTREAM_SUCCESS;
    if (!init) cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: %s has no custream_plugin_init; the program goes on without it", path);
    else if (answer != CUSTREAM_SUCCESS) cs_log(CS_LOG_WARN, "CUSTREAM_PLUGIN: custream_plugin_init of %s answers %s", path, custream_status_name(answer));
}

static void load_all(void)
{
    CS_KEEP_ERRNO;
    char path[4096]; /* as long as an option is at most */
    for (const char *rest = cs_option_text(CS_OPTION_PLUGIN); *rest; rest += *rest == ':') {
        const size_t n = strcspn(rest, ":");
        snprintf(path, sizeof path, "%.*s", (int)n, rest);
        rest += n;
        if (*path) load(path);
    }
}

__attribute__((constructor)) static void at_start(void) { cs_activated = load_all; }
