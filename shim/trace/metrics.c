#include "shim/trace/metrics.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/append.h"
#include "shim/base/claim.h"
#include "shim/base/clock.h"
#include "shim/base/environment.h"
#include "shim/base/json.h"
#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/calls/calls.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/mark.h"
#include "shim/out/publish.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/totals.h"
#include "shim/trace/windows.h"

enum { SPAN_S = 10, OWN = 512, LINE = OWN + 128, HOST_LINES = 80 /* with those of HELP and TYPE */, GPU_LINES = CS_HOLD_WHYS + 2, LINES = HOST_LINES + GPU_LINES * CS_GPU_PIDS };

static struct {
    bool named;
    cs_u64 written_ns;
    char own[OWN]; /* the labels of all series, without braces */
    char *text;
} now;
CS_TABLE_AT(METRICS, text, now.text, LINES * LINE);

/* --- text --- */

/* The value of a label, escaped, cut after so many bytes. The format is UTF-8, and so is what is not. */
static char *put_value(char *at, const char *text, size_t most)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    for (const unsigned char *last = p + most; p < end && p < last;) {
        const int n = cs_utf8_length(p, end);
        if (*p == '"' || *p == '\\') *at++ = '\\';
        if (!n || *p < ' ' || *p == 0x7f) *at++ = '?', p++;
        else at = cs_put(at, (const char *)p, (size_t)n), p += n;
    }
    return at;
}

/* Who this is. The pid, since the collector refuses all files of a host if two of them have the same series. */
static void name_process(void)
{
    enum { JOB = 128 };
    const char *job = cs_process_job();
    const int rank = cs_process_rank(&(int){0});
    char *at = cs_put_int(cs_put_literal(now.own, "pid=\""), getpid());
    if (rank >= 0) at = cs_put_int(cs_put_literal(at, "\",rank=\""), rank);
    if (job) at = put_value(cs_put_literal(at, "\",job=\""), job, JOB);
    *cs_put_literal(at, "\"") = 0;
    now.named = true;
}

static char *put_seconds(char *at, cs_u64 ns)
{
    char digits[16];
    at = cs_put_uint(at, ns / 1000000000);
    snprintf(digits, sizeof digits, ".%09u", (unsigned)(ns % 1000000000));
    return cs_put_text(at, digits);
}

static char *put_family(char *at, const char *name, const char *type, const char *help)
{
    return at + cs_append(at, LINE, 0, "# HELP custream_%s %s\n# TYPE custream_%s %s\n", name, help, name, type);
}

/* A series up to its value; `label` NULL: none of its own. */
static char *put_name(char *at, const char *name, const char *label, const char *value)
{
    at += cs_append(at, LINE, 0, "custream_%s{%s", name, now.own);
    if (label) at += cs_append(at, LINE, 0, ",%s=\"%s\"", label, value);
    return cs_put_literal(at, "} ");
}

static char *put_count(char *at, const char *name, const char *label, const char *value, cs_u64 count)
{
    at = cs_put_uint(put_name(at, name, label, value), count);
    *at++ = '\n';
    return at;
}

static char *put_time(char *at, const char *name, const char *label, const char *value, cs_u64 ns)
{
    at = put_seconds(put_name(at, name, label, value), ns);
    *at++ = '\n';
    return at;
}

/* --- of the process --- */

static bool is_recording(bool has_trace) { return has_trace && cs_windows_open() && !cs_output_full(); }

static char *put_calls(char *at, const struct cs_sums *all)
{
    static const char *const made[CS_SUMMED_CALLS] = {"launch", "copy", "memset", "graph"}, *const defaults[] = {"legacy", "per_thread", "other"};
    at = put_family(at, "calls_total", "counter", "Calls of the CUDA driver that were recorded.");
    at = put_count(at, "calls_total", NULL, NULL, all->calls);
    at = put_family(at, "lost_records_total", "counter", "Calls and ranges that are not in the trace: a ring or the file was full.");
    at = put_count(at, "lost_records_total", NULL, NULL, all->lost);
    at = put_family(at, "work_calls_total", "counter", "Recorded calls that put work on a GPU, also into a graph that is captured.");
    cs_u64 others = 0;
    for (int i = 0; i < CS_SUMMED_CALLS; i++) at = put_count(at, "work_calls_total", "kind", made[i], all->call.made[i]), others += all->call.made[i];
    at = put_family(at, "stream_work_calls_total", "counter", "The same calls, by the stream that they go to: a default stream, or another one.");
    for (int i = 0; i < 2; i++) at = put_count(at, "stream_work_calls_total", "stream", defaults[i], all->call.on_default[i]), others -= all->call.on_default[i];
    return put_count(at, "stream_work_calls_total", "stream", defaults[2], others);
}

/* Directions that the process has used: a call says it, or nobody knows. */
static char *put_copies(char *at, const struct cs_call_sums *sums)
{
    if (!sums->made[CS_SUMMED_COPY]) return at;
    at = put_family(at, "copy_calls_total", "counter", "Recorded copy calls, by the direction that the call names.");
    for (int way = 0; way < CS_WAY_COUNT; way++)
        if (sums->copies[way]) at = put_count(at, "copy_calls_total", "direction", cs_way_name[way] ?: "unknown", sums->copies[way]);
    at = put_family(at, "copy_bytes_total", "counter", "Bytes that these calls copy.");
    for (int way = 0; way < CS_WAY_COUNT; way++)
        if (sums->copies[way]) at = put_count(at, "copy_bytes_total", "direction", cs_way_name[way] ?: "unknown", sums->bytes[way]);
    return at;
}

static char *put_process(char *at, const struct cs_sums *all, bool recording)
{
    static const char *const waits[CS_BLOCKING_CALLS] = {"stream", "event", "context", "copy"};
    at = put_family(at, "recording", "gauge", "1 while calls are recorded; other counters stand still while it is 0.");
    at = put_count(at, "recording", NULL, NULL, recording);
    at = put_copies(put_calls(at, all), &all->call);
    at = put_family(at, "host_blocked_seconds_total", "counter", "Time of threads in recorded calls that wait for a stream, an event or a context, or copy and may wait.");
    for (int i = 0; i < CS_BLOCKING_CALLS; i++) at = put_time(at, "host_blocked_seconds_total", "call", waits[i], all->call.blocked_ns[i]);
    return at;
}

/* --- of its GPUs --- */

static const char *number(cs_u32 gpu)
{
    static char text[16];
    snprintf(text, sizeof text, "%u", gpu);
    return text;
}

static char *put_waits(char *at, cs_u32 gpu, const struct cs_gpu_sums *sums)
{
    static const char *const whys[CS_HOLD_WHYS] = {"launch", "stream", "event", "default_stream", "unknown"};
    char both[64];
    for (int why = 0; why < CS_HOLD_WHYS; why++) {
        snprintf(both, sizeof both, "%s\",cause=\"%s", number(gpu), whys[why]);
        at = put_time(at, "gpu_wait_seconds_total", "gpu", both, sums->waits_ns[why]);
    }
    return at;
}

/* Of each GPU that has been at work. */
static char *put_busy(char *at, cs_u32 gpu, const struct cs_gpu_sums *sums) { return put_time(at, "gpu_busy_seconds_total", "gpu", number(gpu), sums->busy_ns); }
static char *put_streams(char *at, cs_u32 gpu, const struct cs_gpu_sums *sums) { return put_count(at, "gpu_streams", "gpu", number(gpu), sums->streams); }

static char *put_each(char *at, const char *name, const char *type, const char *help, char *(*put)(char *at, cs_u32 gpu, const struct cs_gpu_sums *sums))
{
    bool any = false;
    for (cs_u32 gpu = 0; gpu < CS_GPU_PIDS; gpu++) {
        const struct cs_gpu_sums *sums = &cs_gpu_shown.devices[gpu].sums;
        if (!sums->until_ns || (put == put_waits && !sums->tells_waits)) continue;
        if (!any) at = put_family(at, name, type, help);
        at = put(at, gpu, sums);
        any = true;
    }
    return at;
}

/* While nobody tells what GPUs do, nothing is said of them: a counter that stands still would mean that they are idle. */
static char *put_gpus(char *at, const struct cs_gpu_totals *totals)
{
    static const char *const kinds[] = {"kernel", "copy", "memset", "graph"};
    at = put_family(at, "gpu_operations_total", "counter", "Pieces of GPU work in the trace.");
    for (int kind = CS_GPU_KERNEL; kind <= CS_GPU_GRAPH; kind++) at = put_count(at, "gpu_operations_total", "kind", kinds[kind], totals->count[kind]);
    at = put_family(at, "gpu_operations_lost_total", "counter", "Pieces of GPU work that the profiler or a full file lost.");
    at = put_count(at, "gpu_operations_lost_total", NULL, NULL, totals->lost);
    at = put_each(at, "gpu_busy_seconds_total", "counter", "Time in which work of this process ran on the GPU, as far as it is known.", put_busy);
    at = put_each(at, "gpu_streams", "gauge", "Streams of which work has come in since the file was written before.", put_streams);
    return put_each(at, "gpu_wait_seconds_total", "counter", "Time that GPU work waited after its call, by what it waited for last. Waits overlap.", put_waits);
}

/* --- */

static bool is_wanted(void) { return *cs_option_text(CS_OPTION_METRICS); }

bool cs_metrics_due(cs_u64 now_ns) { return is_wanted() && (!now.written_ns || now_ns - now.written_ns >= SPAN_S * 1000000000ull); }

void cs_metrics_write(bool has_trace)
{
    if (!is_wanted() || !cs_tables_make(CS_TABLES_METRICS, "metrics")) return; /* also before anything is recorded */
    const struct cs_sums all = has_trace ? cs_totals_of_all() : (struct cs_sums){0};
    const bool recording = is_recording(has_trace), gpu = recording && cs_gpu_is_on() && !cs_gpu_rests() && !cs_gpu_samples();
    now.written_ns = cs_monotonic_ns();
    if (!now.named) name_process();
    char *at = put_process(cs_put_literal(now.text, CS_METRICS_BEGIN " " CUSTREAM_VERSION_STRING "\n"), &all, recording);
    if (gpu) at = put_gpus(at, &all.gpu);
    cs_publish("CUSTREAM_METRICS", cs_option_text(CS_OPTION_METRICS), now.text, (size_t)(at - now.text));
    for (cs_u32 d = 0; d < CS_GPU_PIDS; d++) cs_gpu_shown.devices[d].sums.streams = 0;
    cs_gpu_shown.span++;
}

void cs_metrics_end(void) { cs_publish_end(); }

void cs_metrics_after_fork_in_child(void)
{
    now.named = false;
    now.written_ns = 0;
    cs_publish_forget();
}
