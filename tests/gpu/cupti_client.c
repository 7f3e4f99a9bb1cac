/*
 * libcupti_client.so: a plain client of CUPTI's activity records, as a profiler in the program
 * would be. Preloaded behind the shim, or alone.
 *
 * A program that knows of it (known) calls cupti_client_start() once CUDA is up and
 * cupti_client_stop() at the end; with CUPTI_CLIENT_EARLY=1 it starts before the program's first
 * line instead. It enables kernels, copies and memsets, and writes each record as one line of JSON
 * to CUPTI_CLIENT_OUT (%p is the pid). Its times are CUPTI's own, or with CUPTI_CLIENT_CLOCK=own
 * those of a timestamp callback, CLOCK_REALTIME; a line "clock" gives both clocks at one moment, at
 * the begin and at the end. CUPTI_COUNT_LIB is the libcupti to open where none is loaded.
 */
#include <cupti.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

#define CUPTI(X) \
    X(cuptiActivityRegisterCallbacks) X(cuptiActivityRegisterTimestampCallback) \
    X(cuptiActivityEnable) X(cuptiActivityDisable) X(cuptiActivityFlushAll) \
    X(cuptiActivityGetNextRecord) X(cuptiActivityGetNumDroppedRecords) X(cuptiGetTimestamp)

#define POINTER(name) static __typeof__(&name) p_##name;
CUPTI(POINTER)

static FILE *out;
static int started;

static uint64_t realtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t CUPTIAPI own_clock(void) { return realtime(); }

static void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void print(const CUpti_Activity *record)
{
    const CUpti_ActivityKernel10 *k = (const CUpti_ActivityKernel10 *)record;
    const CUpti_ActivityMemcpy6 *c = (const CUpti_ActivityMemcpy6 *)record;
    const CUpti_ActivityMemset4 *s = (const CUpti_ActivityMemset4 *)record;
#define TIMES(kind, r) \
    fprintf(out, "{\"kind\":\"" kind \
    "\",\"start\":%llu,\"end\":%llu,\"stream\":%u,\"correlation\":%u,\"node\":%llu", \
            (unsigned long long)(r)->start, (unsigned long long)(r)->end, (r)->streamId, \
            (r)->correlationId, (unsigned long long)(r)->graphNodeId)
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        TIMES("kernel", k);
        fprintf(out, ",\"name\":\"%s\",\"grid\":%d}\n", k->name ? k->name : "", k->gridX);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        TIMES("copy", c);
        fprintf(
            out, ",\"bytes\":%llu,\"direction\":%d}\n", (unsigned long long)c->bytes, c->copyKind);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        TIMES("memset", s);
        fprintf(out, ",\"bytes\":%llu,\"value\":%u}\n", (unsigned long long)s->bytes, s->value);
        break;
    default: fprintf(out, "{\"kind\":\"other\",\"number\":%d}\n", (int)record->kind); break;
    }
}

static void CUPTIAPI completed(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)size;
    while (valid && out && p_cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        print(record);
    p_cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    if (dropped && out) fprintf(out, "{\"kind\":\"dropped\",\"count\":%zu}\n", dropped);
    free(buffer);
}

static void both_clocks(const char *when)
{
    uint64_t before = realtime(), theirs = 0;
    CUptiResult rc = p_cuptiGetTimestamp(&theirs);
    uint64_t after = realtime();
    fprintf(out,
        "{\"kind\":\"clock\",\"when\":\"%s\",\"result\":%d,\"cupti\":%llu,\"realtime\":%llu}\n",
        when, (int)rc, (unsigned long long)theirs,
        (unsigned long long)(before + (after - before) / 2));
}

static int find(void)
{
    const char *path = getenv("CUPTI_COUNT_LIB");
    void *library = dlopen("libcupti.so.13",
        RTLD_NOW | RTLD_NOLOAD); /* two copies in a process take the records from each other */
    if (!library && path && *path) library = dlopen(path, RTLD_NOW);
    if (!library) library = dlopen("libcupti.so.13", RTLD_NOW);
    if (!library) library = dlopen("libcupti.so.12", RTLD_NOW);
    if (!library) return fprintf(stderr, "cupti_client: %s\n", dlerror()), 0;
#define LOOK_UP(name) \
    if (!(p_##name = (__typeof__(p_##name))dlsym(library, #name))) return \
    fprintf(stderr, "cupti_client: no " #name "\n"), 0;
    CUPTI(LOOK_UP)
    return 1;
}

#define STEP(call) \
    do { \
        CUptiResult rc_ = (call); \
        if (rc_ != CUPTI_SUCCESS) fprintf(stderr, "cupti_client: %s gave %d\n", #call, (int)rc_); \
    } while (0)

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

__attribute__((visibility("default"))) void cupti_client_start(void)
{
    char path[4096];
    const char *to = getenv("CUPTI_CLIENT_OUT"), *clock = getenv("CUPTI_CLIENT_CLOCK"), *mark;
    if (started || !to || !*to || !find()) return;
    mark = strstr(to, "%p");
    if (mark)
        snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - to), to, (int)getpid(), mark + 2);
    else snprintf(path, sizeof path, "%s", to);
    if (!(out = fopen(path, "w"))) return;
    started = 1;
    if (clock && !strcmp(clock, "own")) STEP(p_cuptiActivityRegisterTimestampCallback(own_clock));
    STEP(p_cuptiActivityRegisterCallbacks(requested, completed));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) STEP(p_cuptiActivityEnable(kinds[i]));
    both_clocks("begin");
}

__attribute__((visibility("default"))) void cupti_client_stop(void)
{
    if (!started || !out) return;
    both_clocks("end");
    STEP(p_cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        STEP(p_cuptiActivityDisable(kinds[i]));
    fflush(out);
    out = NULL; /* left open: a buffer may still come */
}

__attribute__((constructor)) static void at_load(void)
{
    const char *early = getenv("CUPTI_CLIENT_EARLY");
    if (early && *early == '1') cupti_client_start();
}
