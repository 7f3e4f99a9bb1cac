/*
 * What every call passes on its way in: not initialised, a child of fork, errors on demand,
 * counting. Also the settings.
 *
 * In the common case (initialised, nothing to inject or count) a call reads `fake_ready` and comes
 * no further.
 */
#define _GNU_SOURCE
#include "tests/fakecuda/driver/fake.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

int fake_ready;
bool fake_direct;
uint64_t fake_copy_ns, fake_slice_ns;
unsigned fake_queues, fake_depth;
bool fake_copy_engines;
bool fake_full;
bool fake_errno;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

/* Marks this library for what it is: nothing else exports this name. */
EXPORT const char custream_fakecuda_version[] = CUSTREAM_VERSION_STRING;

static enum { NOT_INITIALIZED, INITIALIZED, FORKED } state;
static int broken; /* CUresult; relaxed */
static pthread_mutex_t rules_lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the rules' and calls' counts and the list; taken alone */
static struct fake_call *called;

struct rule {
    char pattern[64];        /* "@NAME": calls that the preload library makes for itself */
    unsigned long nth, seen; /* nth 0: every call */
    CUresult result;
};
static struct rule rules[32];
static unsigned rule_count;
static const char *counts_path;

long fake_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

/* CUSTREAM_FAKE_FAIL: "pattern[:nth]=code[,...]". */
static void read_rules(const char *text)
{
    while (text && *text && rule_count < COUNT_OF(rules)) {
        struct rule *rule = &rules[rule_count];
        int length = 0;
        int code = 0;

        if (sscanf(text, "%63[^:=,]:%lu=%d%n", rule->pattern, &rule->nth, &code, &length) < 3 ||
            !length) {
            rule->nth = 0;
            length = 0;
            if (sscanf(text, "%63[^:=,]=%d%n", rule->pattern, &code, &length) < 2 || !length) {
                fprintf(
                    stderr, "custream simulated GPU: CUSTREAM_FAKE_FAIL: cannot read '%s'\n", text);
                return;
            }
        }
        rule->result = (CUresult)code;
        rule_count++;
        text += length;
        if (*text == ',') text++;
    }
}

static void write_counts(void)
{
    FILE *out = fopen(counts_path, "w");
    if (!out) return;
    for (struct fake_call *call = called; call; call = call->next)
        fprintf(out, "%s %lu\n", call->name, call->count);
    fclose(out);
}

__attribute__((constructor)) static void read_settings(void)
{
    read_rules(getenv("CUSTREAM_FAKE_FAIL"));
    fake_direct = fake_setting("CUSTREAM_FAKE_DIRECT", 0) != 0;
    fake_copy_ns = (uint64_t)fake_setting("CUSTREAM_FAKE_COPY_NS", 0);
    fake_slice_ns = (uint64_t)fake_setting("CUSTREAM_FAKE_SLICE_NS", 0);
    fake_queues = (unsigned)fake_setting("CUSTREAM_FAKE_QUEUES", 0) % (FAKE_QUEUES + 1);
    fake_depth = (unsigned)fake_setting("CUSTREAM_FAKE_DEPTH", 1024);
    fake_full = fake_setting("CUSTREAM_FAKE_FULL", 0) != 0;
    fake_errno = fake_setting("CUSTREAM_FAKE_ERRNO", 0) != 0;
    fake_copy_engines = fake_setting("CUSTREAM_FAKE_COPY_ENGINES", 0) != 0;
    if (fake_virtual) fake_depth = 0;
    counts_path = getenv("CUSTREAM_FAKE_COUNTS");
    if (counts_path) atexit(write_counts);
}

/* From the preload library, and from none of its wrappers: CUSTREAM_FAKE_WRAPPERS has where their
 * code is in its file, "from-to,...", in hex. */
static bool is_the_shims_own(const void *caller)
{
    Dl_info who;
    unsigned long from, to;
    int length = 0;
    if (!dladdr(caller, &who) || !who.dli_fname || !strstr(who.dli_fname, "/libcustream_shim.so"))
        return false;
    const unsigned long at = (unsigned long)((const char *)caller - (const char *)who.dli_fbase);
    for (const char *text = getenv("CUSTREAM_FAKE_WRAPPERS");
        text && sscanf(text, "%lx-%lx%n", &from, &to, &length) == 2;
        text += length + (text[length] == ','))
        if (at > from && at <= to) return false;
    return true;
}

static bool concerns(const struct rule *rule, const struct fake_call *call, const void *caller)
{
    const bool own = *rule->pattern == '@';
    return fnmatch(rule->pattern + own, call->name, 0) == 0 && (!own || is_the_shims_own(caller));
}

static CUresult injected(struct fake_call *call, const void *caller)
{
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&rules_lock);
    if (!call->listed) {
        call->listed = true;
        call->next = called;
        called = call;
    }
    call->count++;
    for (unsigned i = 0; i < rule_count && !result; i++) {
        struct rule *rule = &rules[i];
        if (!concerns(rule, call, caller)) continue;
        rule->seen++;
        if (!rule->nth || rule->nth == rule->seen) result = rule->result;
        if (result && *rule->pattern == '@') fprintf(stderr, "note refused %s\n", call->name);
    }
    pthread_mutex_unlock(&rules_lock);
    return result;
}

CUresult fake_enter(struct fake_call *call, struct fake_trace_call *traced, const void *caller)
{
    fake_trace_enter(call, traced);
    if (state == FORKED) return call->early ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    if (rule_count || counts_path) {
        CUresult result = injected(call, caller);
        if (result) return result;
    }
    if (!call->early && __atomic_load_n(&broken, __ATOMIC_RELAXED))
        return (CUresult)__atomic_load_n(&broken, __ATOMIC_RELAXED);
    return state == INITIALIZED || call->early ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

bool fake_forked(void) { return state == FORKED; }

/* With the lock held. */
void fake_ready_update(void)
{
    __atomic_store_n(&fake_ready,
        state == INITIALIZED && !broken && !rule_count && !counts_path && !fake_tracer &&
            !fake_journaling && !fake_errno,
        __ATOMIC_RELEASE);
}

void fake_break_down(CUresult error)
{
    __atomic_store_n(&broken, (int)error, __ATOMIC_RELAXED);
    fake_ready_update();
}

int fake_fallback(const char *name)
{
    if (fake_setting("CUSTREAM_FAKE_LOG", 0))
        fprintf(stderr, "custream simulated GPU: %s is not simulated\n", name);
    return state == INITIALIZED ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_INITIALIZED;
}

/* The child of a process that had initialised the driver can do nothing with it; its copy of the
 * lock may be held by nobody. */
static void in_child(void)
{
    if (state != INITIALIZED) return;
    state = FORKED;
    fake_ready = 0;
    fake_tracer = NULL;
    fake_journaling = false; /* it would need the lock, and mix its lines with the parent's */
}

API_EARLY(cuInit, (unsigned flags), (flags))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    extern void fake_devices_init(void);

    if (state == FORKED) return CUDA_ERROR_NOT_INITIALIZED;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (fake_setting("CUSTREAM_FAKE_NO_DEVICE", 0)) return CUDA_ERROR_NO_DEVICE;
    pthread_once(&once, fake_devices_init);
    FAKE_LOCKED;
    if (state == INITIALIZED) return CUDA_SUCCESS;
    pthread_atfork(NULL, NULL, in_child);
    state = INITIALIZED;
    fake_ready_update();
    return CUDA_SUCCESS;
}

API_EARLY(cuDriverGetVersion, (int *version), (version))
{
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = fake_driver_version();
    return CUDA_SUCCESS;
}

API_EARLY(cuGetExportTable, (const void **table, const CUuuid *id), (table, id))
{
    (void)id;
    if (!table) return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
