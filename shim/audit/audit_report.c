/*
 * What the audit found, for people: an object in the trace's trailer, and lines on stderr when the process ends.
 */
#include <stdio.h>
#include <string.h>

#include "shim/audit/audit.h"
#include "shim/audit/audit_model.h"
#include "shim/base/append.h"
#include "shim/base/json.h"
#include "shim/base/log.h"
#include "shim/base/options.h"
#include "shim/calls/calls.h"
#include "shim/out/output.h"
#include "shim/trace/windows.h"

enum { PAIR_ROOM = 8192, LINES = 20 };

static cs_u64 pairs(void)
{
    cs_u32 n = 0;
    while (cs_audit_pair_at(n)) n++;
    return n + (cs_audit_pairs_untold() != 0);
}

static cs_u64 ordered(void)
{
    const cs_u64 *by = cs_audit_sums.ordered;
    return by[CS_AUDIT_BY_STREAM] + by[CS_AUDIT_BY_EVENT] + by[CS_AUDIT_BY_HOST] + by[CS_AUDIT_BY_COPY] + by[CS_AUDIT_BY_ANSWER];
}

/* Why there may be more than what was found: the n-th reason, NULL beyond the last. */
static const char *gap(int n)
{
    const char *reasons[7];
    int count = 0;
    if (!cs_audit_works()) reasons[count++] = "there was no memory for it";
    else if (!cs_audit_sums.ended) reasons[count++] = "the process had not ended when this was written";
    if (cs_audit_sums.lost) reasons[count++] = "calls were lost: the ring of a thread was full (CUSTREAM_BUFFER, CUSTREAM_FULL)";
    if (cs_windows_ever_closed()) reasons[count++] = "for some of the time nothing was recorded (CUSTREAM_WINDOW, custream ctl)";
    if (cs_output_full()) reasons[count++] = "the trace ended before the program did";
    if (cs_audit_sums.late) reasons[count++] = "the order of calls that lasted long is not certain";
    if (cs_audit_sums.unseen) reasons[count++] = "some operations could not be followed";
    return n < count ? reasons[n] : NULL;
}

/* Why nobody can say that it is safe: the n-th reason, NULL beyond the last. Gaps come first. */
static const char *doubt(int n)
{
    static const char *const texts[CS_AUDIT_DOUBTS] = {
        [CS_AUDIT_DOUBT_MEMORY] = "an order would be lost between operations on different memory, which the host may be watching",
        [CS_AUDIT_DOUBT_COPY] = "an order stands only by a synchronous copy that may return before its data have arrived",
        [CS_AUDIT_DOUBT_ANSWER] = "an order stands only because a query found the work done, which a slower GPU would deny",
        [CS_AUDIT_DOUBT_DENIED] = "a query found work under way that it would no longer ask about",
        [CS_AUDIT_DOUBT_THREADS] = "several threads make calls, and whether a lock keeps these in order is not recorded",
        [CS_AUDIT_DOUBT_ELSEWHERE] = "events are used in graphs or by other processes, where the audit does not follow them",
        [CS_AUDIT_DOUBT_TIME] = "a time between two events would no longer have the work of other streams in it",
        [CS_AUDIT_DOUBT_PEER] = "copies between contexts on the default stream wait for work that the audit does not follow",
        [CS_AUDIT_DOUBT_REFUSED] = "a call on the default stream failed because of a capture, and would not on another stream"};
    const bool *has = cs_audit_sums.doubt, orders = cs_audit_sums.by_default && cs_audit_sums.implied;
    for (int i = 0; gap(i); i++)
        if (!n--) return gap(i);
    for (int i = 0; i < CS_AUDIT_DOUBTS; i++) {
        bool doubts = has[i] || (orders && ((i == CS_AUDIT_DOUBT_THREADS && cs_audit_sums.several) || (i == CS_AUDIT_DOUBT_ELSEWHERE && cs_audit_sums.elsewhere)));
        if (doubts && !n--) return texts[i];
    }
    if (!cs_option_is(CS_OPTION_STREAMS, "keep") && !n--) return "the streams of this run are not the program's own (CUSTREAM_STREAMS)";
    return NULL;
}

static const char *verdict(void)
{
    if (cs_audit_sums.hazards) return "not safe";
    if (doubt(0)) return "cannot tell";
    return cs_audit_sums.by_default ? "safe" : "nothing on the default stream";
}

/* --- the trailer --- */

static char *put_number(char *at, const char *key, cs_u64 n)
{
    at = cs_put_text(at, key);
    return cs_put_uint(at, n);
}

static char *put_time(char *at, const char *key, cs_u64 ns)
{
    at = cs_put_text(at, key);
    return cs_put_us(at, ns);
}

static char *put_side(char *at, const struct cs_audit_side *side)
{
    at = cs_put_literal(at, "{\"operation\":");
    at = cs_put_string(at, cs_call_info[side->call].name ?: "", 128);
    const char *kernel = strchr(side->name, ' ');
    if (kernel) {
        at = cs_put_literal(at, ",\"kernel\":");
        at = cs_put_string(at, kernel + 1, sizeof side->name);
    }
    if (side->stream) at = put_number(at, ",\"stream\":", side->stream);
    if (side->device) at = put_number(at, ",\"device\":", side->device);
    at = put_number(at, ",\"thread\":", side->tid);
    if (*side->place) {
        at = cs_put_literal(at, ",\"site\":");
        at = cs_put_string(at, side->place, sizeof side->place);
    }
    return cs_put_literal(at, "}");
}

static char *put_pair(char *at, const struct cs_audit_pair *pair)
{
    at = cs_put_literal(at, "\n{\"first\":");
    at = put_side(at, &pair->first);
    at = cs_put_literal(at, ",\"second\":");
    at = put_side(at, &pair->second);
    at = put_number(at, ",\"count\":", pair->count);
    at = put_time(at, ",\"first_us\":", pair->first_ns);
    at = cs_put_literal(at, ",\"memory\":");
    at = cs_put_string(at, pair->same_memory ? "same" : "unknown", 16);
    if (pair->timed) at = put_time(at, ",\"waited_us\":", pair->waited_ns);
    return cs_put_literal(at, "}");
}

/* As many as there is room for; the others are counted. */
static char *put_pairs(char *at, size_t room)
{
    static char one[PAIR_ROOM];
    const char *end = at + room;
    cs_u32 i = 0;
    at = cs_put_literal(at, ",\"hazards\":[");
    for (const struct cs_audit_pair *pair; (pair = cs_audit_pair_at(i)); i++) {
        size_t n = (size_t)(put_pair(one, pair) - one);
        if ((size_t)(end - at) < n + 1 || end < at) break;
        if (i) *at++ = ',';
        at = cs_put(at, one, n);
    }
    return put_number(cs_put_literal(at, "]"), ",\"hazards_not_listed\":", pairs() - i);
}

char *cs_audit_put(char *at, size_t room)
{
    const cs_u64 *by = cs_audit_sums.ordered;
    at = cs_put_literal(at, ",\n\"defaultStreamAudit\":{\"verdict\":");
    at = cs_put_string(at, verdict(), 64);
    at = cs_put_literal(at, ",\"complete\":");
    at = cs_put_text(at, gap(0) ? "false" : "true");
    for (int i = 0; gap(i); i++) {
        at = cs_put_text(at, i ? "," : ",\"gaps\":[");
        at = cs_put_string(at, gap(i), 128);
        if (!gap(i + 1)) *at++ = ']';
    }
    for (int i = 0; !cs_audit_sums.hazards && doubt(i); i++) {
        at = cs_put_text(at, i ? "," : ",\"doubts\":[");
        at = cs_put_string(at, doubt(i), 128);
        if (!doubt(i + 1)) *at++ = ']';
    }
    at = put_number(at, ",\"ordered_anyway\":{\"event\":", by[CS_AUDIT_BY_EVENT]);
    at = put_number(at, ",\"host\":", by[CS_AUDIT_BY_HOST] + by[CS_AUDIT_BY_COPY] + by[CS_AUDIT_BY_ANSWER]);
    at = put_number(at, ",\"stream\":", by[CS_AUDIT_BY_STREAM]);
    at = put_number(at, "},\"by_copy_from_host\":", by[CS_AUDIT_BY_COPY]);
    at = put_number(at, ",\"unneeded\":{\"count\":", cs_audit_sums.unneeded);
    if (cs_audit_times.timed) at = put_time(at, ",\"waited_us\":", cs_audit_times.unneeded_ns);
    at = put_number(at, "},\"lost_orders\":", cs_audit_sums.hazards);
    if (cs_audit_times.timed) at = put_time(at, ",\"waited_us\":", cs_audit_times.hazards_ns + cs_audit_times.unneeded_ns);
    at = cs_put_literal(at, ",\"gpu_times\":");
    at = cs_put_text(at, cs_audit_times.timed ? "true" : "false");
    at = put_number(at, ",\"without_times\":", cs_audit_times.untimed);
    at = put_number(at, ",\"unseen\":", cs_audit_sums.unseen);
    at = put_number(at, ",\"late\":", cs_audit_sums.late);
    return cs_put_literal(put_pairs(at, room > 4096 ? room - 4096 : 0), "}");
}

/* --- the lines --- */

static const char *time_text(char *text, size_t size, cs_u64 ns)
{
    if (ns < 10000000) snprintf(text, size, "%llu.%03llu us", (unsigned long long)(ns / 1000), (unsigned long long)(ns % 1000));
    else snprintf(text, size, "%llu.%03llu ms", (unsigned long long)(ns / 1000000), (unsigned long long)(ns / 1000 % 1000));
    return text;
}

/* "cuLaunchKernel k on stream 13 (thread 4250, app+0x1234)" */
static const char *side_text(char *text, size_t size, const struct cs_audit_side *side)
{
    size_t n = cs_append(text, size, 0, "%s", side->name);
    if (side->stream) n = cs_append(text, size, n, " on stream %u", side->stream);
    if (side->device) n = cs_append(text, size, n, " of GPU %u", side->device);
    cs_append(text, size, n, " (thread %u%s%s)", side->tid, *side->place ? ", " : "", side->place);
    return text;
}

/* "1. FIRST -> SECOND: 12 times, waited 812.400 us, same memory" */
static void say_pair(cs_u32 i, const struct cs_audit_pair *pair)
{
    char first[460], second[460], number[64], waited[80] = "";
    if (pair->timed) snprintf(waited, sizeof waited, ", waited %s", time_text(number, sizeof number, pair->waited_ns));
    cs_log_report("audit", "%u. %s -> %s%s: %llu time%s%s, %s", i, side_text(first, sizeof first, &pair->first), pair->second.stream ? "" : "return of ",
                  side_text(second, sizeof second, &pair->second), (unsigned long long)pair->count, pair->count == 1 ? "" : "s", waited,
                  pair->same_memory ? "same memory" : "memory unknown");
}

static void say_verdict(void)
{
    const char *so_far = gap(0) ? ", as far as was recorded" : "";
    unsigned long long lost = pairs(), waits = ordered() + cs_audit_sums.unneeded;
    if (lost)
        cs_log_report("audit", "NOT SAFE for per-thread default streams%s: %llu pair%s of operations would lose the order (first -> second) that the legacy "
                      "one gives them", so_far, lost, lost == 1 ? "" : "s");
    else if (doubt(0)) {
        cs_log_report("audit", "cannot tell for per-thread default streams: %s", doubt(0));
        for (int i = 1; doubt(i); i++) cs_log_report("audit", "cannot tell: %s", doubt(i));
    } else if (!cs_audit_sums.by_default)
        cs_log_report("audit", "nothing on the default stream: per-thread default streams would change nothing");
    else if (!waits)
        cs_log_report("audit", "safe for per-thread default streams: nothing waits through the legacy default stream");
    else
        cs_log_report("audit", "safe for per-thread default streams: nothing depends on the %llu wait%s through the legacy one that would go", waits,
                      waits == 1 ? "" : "s");
}

static void say_times(void)
{
    char all[64], unneeded[64];
    if (!cs_audit_sums.hazards && !cs_audit_sums.unneeded) return;
    if (!cs_audit_times.timed) {
        cs_log_report("audit", "how long was waited is not known: there are no GPU times (CUSTREAM_GPU)");
        return;
    }
    cs_u64 waited = cs_audit_times.hazards_ns + cs_audit_times.unneeded_ns;
    if (!waited) cs_log_report("audit", "no time was spent in the waits that per-thread default streams would drop");
    else
        cs_log_report("audit", "%s were spent in waits that per-thread default streams would drop, %s of it in waits that nobody needed",
                      time_text(all, sizeof all, waited), time_text(unneeded, sizeof unneeded, cs_audit_times.unneeded_ns));
}

void cs_audit_say(void)
{
    cs_u32 i = 0;
    say_verdict();
    for (const struct cs_audit_pair *pair; (pair = cs_audit_pair_at(i)) && i < LINES; i++) say_pair(i + 1, pair);
    if (pairs() > i) cs_log_report("audit", "and %llu more, in the trace", (unsigned long long)(pairs() - i));
    say_times();
    if (cs_audit_sums.ordered[CS_AUDIT_BY_COPY])
        cs_log_report("audit", "%llu of the waits are only for a synchronous copy from host memory: with pageable memory it may return before its data have "
                      "arrived", (unsigned long long)cs_audit_sums.ordered[CS_AUDIT_BY_COPY]);
    for (int n = 0; cs_audit_sums.hazards && gap(n); n++) cs_log_report("audit", "not complete: %s", gap(n));
}

