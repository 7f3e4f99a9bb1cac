/*
 * libcupti_kinds.so: a plain client of CUPTI, without custream, that asks for what CUPTI_KINDS
 * names, from cuInit on (CUDA_INJECTION64_PATH).
 *
 *     graph   GRAPH_TRACE         copy   MEMCPY      peer   MEMCPY2      kernel  CONCURRENT_KERNEL
 * set  MEMSET flush   cuptiActivityFlushAll(0) every 2 ms;   forced   the same with
 * CUPTI_ACTIVITY_FLAG_FLUSH_FORCED turns   GRAPH_TRACE and MEMCPY2 by turns, 20 ms each, never both
 *     period  cuptiActivityFlushPeriod(2), and buffers of 4 KiB
 *
 * At the end it writes how many records of each kind there were to standard error, and of copies
 * their direction.
 */
#include <cupti.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KINDS = 64, DIRECTIONS = 16 };
static const char *wanted;
static unsigned long records[KINDS], copies[DIRECTIONS], peer_copies[DIRECTIONS], turns;
static size_t buffer_size = 1 << 20;

static bool wants(const char *what) { return strstr(wanted, what) != NULL; }

static void CUPTIAPI ask(uint8_t **buffer, size_t *size, size_t *most)
{
    *buffer = aligned_alloc(8, buffer_size);
    *size = *buffer ? buffer_size : 0;
    *most = 0;
}

static void CUPTIAPI take(
    CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        if ((unsigned)record->kind < KINDS)
            __atomic_fetch_add(&records[record->kind], 1, __ATOMIC_RELAXED);
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
            copies[((CUpti_ActivityMemcpy6 *)record)->copyKind % DIRECTIONS]++;
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
            peer_copies[((CUpti_ActivityMemcpyPtoP4 *)record)->copyKind % DIRECTIONS]++;
    }
    free(buffer);
}

static void *flushes(void *unused)
{
    const CUpti_ActivityKind pair[] = {
        CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_MEMCPY2};
    for (unsigned round = 0;; round++) {
        usleep(2000);
        if (wants("turns") && round % 10 == 0) {
            cuptiActivityDisable(pair[turns % 2]);
            cuptiActivityEnable(pair[++turns % 2]);
        }
        if (wants("flush")) cuptiActivityFlushAll(0);
        if (wants("forced")) cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    return unused;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    static const struct {
        const char *name;
        CUpti_ActivityKind kind;
    } kinds[] = {{"kernel", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
        {"copy", CUPTI_ACTIVITY_KIND_MEMCPY}, {"peer", CUPTI_ACTIVITY_KIND_MEMCPY2},
        {"set", CUPTI_ACTIVITY_KIND_MEMSET}, {"graph", CUPTI_ACTIVITY_KIND_GRAPH_TRACE},
        {"turns", CUPTI_ACTIVITY_KIND_GRAPH_TRACE}};
    pthread_t thread;
    wanted = getenv("CUPTI_KINDS");
    if (!wanted) return 1;
    if (wants("period")) buffer_size = 4096;
    CUptiResult result = cuptiActivityRegisterCallbacks(ask, take);
    if (wants("period")) cuptiActivityFlushPeriod(2);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && result == CUPTI_SUCCESS; i++)
        if (wants(kinds[i].name)) result = cuptiActivityEnable(kinds[i].kind);
    if (result != CUPTI_SUCCESS) fprintf(stderr, "cupti_kinds: CUPTI gave %d\n", (int)result);
    if (wants("flush") || wants("forced") || wants("turns"))
        pthread_create(&thread, NULL, flushes, NULL);
    return 1;
}

__attribute__((destructor)) static void ends(void)
{
    if (!wanted) return;
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    fprintf(stderr, "records");
    for (int kind = 0; kind < KINDS; kind++)
        if (records[kind]) fprintf(stderr, " kind %d: %lu", kind, records[kind]);
    for (int d = 0; d < DIRECTIONS; d++)
        if (copies[d]) fprintf(stderr, " MEMCPY direction %d: %lu", d, copies[d]);
    for (int d = 0; d < DIRECTIONS; d++)
        if (peer_copies[d]) fprintf(stderr, " MEMCPY2 direction %d: %lu", d, peer_copies[d]);
    fprintf(stderr, " turns: %lu\n", turns);
}
