/*
 * A plug-in that prints a line for each stream: when it is made, with what was asked for, and when it is destroyed, with how much was put on it.
 *
 *     gcc -shared -fPIC -I include examples/plugin_streams.c -o plugin_streams.so
 *     CUSTREAM_PLUGIN=./plugin_streams.so LD_PRELOAD=libcustream_shim.so ./app
 */
#include <custream.h>
#include <stdatomic.h>
#include <stdio.h>

enum { STREAMS = 256 };
static struct {
    _Atomic(void *) handle;
    atomic_uint calls;
} streams[STREAMS]; /* by a hash of the handle: good enough for a line on stderr */

static size_t place_of(void *stream) { return ((uintptr_t)stream >> 4) % STREAMS; }

static void made(custream_hook_info_t *info, void *unused)
{
    (void)unused;
    if (!info->after || info->result) return;
    atomic_store(&streams[place_of(info->stream)].handle, info->stream);
    atomic_store(&streams[place_of(info->stream)].calls, 0);
    fprintf(stderr, "stream %p made by %s: flags %u, priority %d\n", info->stream, info->call, info->flags, info->priority);
}

static void used(custream_hook_info_t *info, void *unused)
{
    (void)unused;
    if (info->after && !info->result && atomic_load(&streams[place_of(info->stream)].handle) == info->stream) atomic_fetch_add(&streams[place_of(info->stream)].calls, 1);
}

static void ended(custream_hook_info_t *info, void *unused)
{
    (void)unused;
    if (!info->after) fprintf(stderr, "stream %p destroyed after %u pieces of work\n", info->stream, atomic_load(&streams[place_of(info->stream)].calls));
}

custream_status_t custream_plugin_init(const custream_plugin_api_t *api)
{
    custream_hook_t hook;
    if (api->version < 1) return CUSTREAM_NOT_SUPPORTED;
    custream_status_t status = api->register_hook(CUSTREAM_HOOK_CREATE, made, NULL, &hook);
    if (!status) status = api->register_hook(CUSTREAM_HOOK_ENQUEUE, used, NULL, &hook);
    if (!status) status = api->register_hook(CUSTREAM_HOOK_DESTROY, ended, NULL, &hook);
    return status;
}
