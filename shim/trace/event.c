#include "shim/trace/event.h"

#include <stdio.h>
#include <stdlib.h>

#include "shim/base/append.h"
#include "shim/trace/demangle.h"

/* --- pieces --- */

static char *put_title(char *at, struct cs_title title)
{
    if (!title.text) return cs_put_kernel(at, title.kernel);
    if (title.max) return cs_put_string(at, title.text, title.max);
    *at++ = '"';
    at = cs_put_text(at, title.text);
    *at++ = '"';
    return at;
}

/* `kind`: a literal, with what goes with it. */
#define PUT_KIND(at, kind, category, title) put_named(cs_put_literal(at, ",\n{\"ph\":\"" kind ",\"cat\":\""), category, title)
static char *put_named(char *at, const char *category, struct cs_title title)
{
    at = cs_put_text(at, category);
    at = cs_put_literal(at, "\",\"name\":");
    return put_title(at, title);
}

static inline char *put_lane(char *at, struct cs_lane lane)
{
    at = cs_put_literal(at, ",\"pid\":");
    at = cs_put_uint(at, lane.pid);
    at = cs_put_literal(at, ",\"tid\":");
    return cs_put_uint(at, lane.tid);
}

static inline char *put_time(char *at, cs_u64 ns) { return cs_put_us(cs_put_literal(at, ",\"ts\":"), ns); }

static inline char *put_times(char *at, cs_u64 from_ns, cs_u64 to_ns)
{
    at = put_time(at, from_ns);
    at = cs_put_literal(at, ",\"dur\":");
    return cs_put_us(at, to_ns > from_ns ? to_ns - from_ns : 1);
}

static inline struct cs_draft args(char *at) { return (struct cs_draft){cs_put_literal(at, ",\"args\":{")}; }

/* --- kinds --- */

static char *put_slice(char *at, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 from_ns, cs_u64 to_ns)
{
    return put_times(put_lane(PUT_KIND(at, "X\"", category, title), lane), from_ns, to_ns);
}

struct cs_draft cs_slice(struct cs_draft e, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 from_ns, cs_u64 to_ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_slice(e.at, category, title, lane, from_ns, to_ns)};
    return args(put_slice(e.at, category, title, lane, from_ns, to_ns));
}

struct cs_draft cs_slice_bare(struct cs_draft e, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 from_ns, cs_u64 to_ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_close_bare(cs_packets_slice(e.at, category, title, lane, from_ns, to_ns))};
    return (struct cs_draft){cs_put_literal(put_slice(e.at, category, title, lane, from_ns, to_ns), "}")};
}

void cs_slice_head_make(struct cs_slice_head *head, const char *category, const char *name, cs_u32 pid)
{
    head->length = (cs_u16)cs_append(head->text, sizeof head->text, 0, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":", category, name, pid);
    head->category = category;
    head->name = name;
    head->pid = pid;
}

struct cs_draft cs_slice_made(struct cs_draft e, const struct cs_slice_head *head, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_slice_made(e.at, head, tid, from_ns, to_ns)};
    char *at = cs_put_blocks(e.at, head->text, head->length);
    return args(put_times(cs_put_uint(at, tid), from_ns, to_ns));
}

struct cs_draft cs_args_end_bound(struct cs_draft e, enum cs_end end, cs_u64 id)
{
    if (cs_packets) {
        static const enum cs_pf_end ends[] = {[CS_END_FIRST] = CS_PF_FIRST, [CS_END_LAST] = CS_PF_LAST, [CS_END_ONLY_LAST] = CS_PF_ONLY_LAST};
        return (struct cs_draft){cs_packets_close_bound(e.at, ends[end], id)};
    }
    char *at = cs_put_literal(e.at - (e.at[-1] == ','), "},\"bind_id\":");
    at = cs_put_uint(at, id);
    return (struct cs_draft){end == CS_END_FIRST ? cs_put_literal(at, ",\"flow_out\":true}") : cs_put_literal(at, ",\"flow_in\":true}")};
}

struct cs_draft cs_instant(struct cs_draft e, enum cs_instant_of of, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_instant(e.at, of == CS_INSTANT_PROCESS, category, title, lane, ns)};
    char *at = of == CS_INSTANT_PROCESS ? PUT_KIND(e.at, "i\",\"s\":\"p\"", category, title) : PUT_KIND(e.at, "i\",\"s\":\"t\"", category, title);
    return args(put_time(put_lane(at, lane), ns));
}

struct cs_draft cs_counter(struct cs_draft e, struct cs_title title, struct cs_lane lane, cs_u64 ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_counter(e.at, title, lane, ns)};
    char *at = put_title(cs_put_literal(e.at, ",\n{\"ph\":\"C\",\"name\":"), title);
    return args(put_time(put_lane(at, lane), ns));
}

struct cs_draft cs_span_end(struct cs_draft e, enum cs_end end, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns, cs_u64 id)
{
    if (cs_packets) return (struct cs_draft){cs_packets_legacy(e.at, end == CS_END_FIRST ? 'b' : 'e', category, title, lane, ns, id)};
    char *at = end == CS_END_FIRST ? PUT_KIND(e.at, "b\"", category, title) : PUT_KIND(e.at, "e\"", category, title);
    at = put_time(put_lane(at, lane), ns);
    at = cs_put_literal(at, ",\"id2\":{\"local\":");
    at = cs_put_uint(at, id);
    return args(cs_put_literal(at, "}"));
}

struct cs_draft cs_arrow_end(struct cs_draft e, enum cs_end end, const char *category, cs_u64 id, struct cs_lane lane, cs_u64 ns)
{
    if (cs_packets) return (struct cs_draft){cs_packets_close(cs_packets_legacy(e.at, end == CS_END_FIRST ? 's' : 'f', category, cs_title(category), lane, ns, id))};
    char *at = end == CS_END_FIRST ? cs_put_literal(e.at, ",\n{\"ph\":\"s\",\"id\":") : cs_put_literal(e.at, ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":");
    at = put_time(put_lane(cs_put_uint(at, id), lane), ns);
    at = cs_put_literal(at, ",\"cat\":\"");
    at = cs_put_text(at, category);
    at = cs_put_literal(at, "\",\"name\":\"");
    at = cs_put_text(at, category);
    return (struct cs_draft){cs_put_literal(at, "\"}")};
}

/* --- what processes and threads are called --- */

/* {"ph":"M","name":"process_KIND" */
static struct cs_draft meta(char *at, const char *of, const char *kind, struct cs_lane lane)
{
    at = cs_put_literal(at, "{\"ph\":\"M\",\"name\":\"");
    at = cs_put_text(at, of);
    at = cs_put_text(at, kind);
    return args(put_lane(cs_put_literal(at, "\""), lane));
}

static const char *const meta_of[] = {[CS_META_PROCESS] = "process", [CS_META_THREAD] = "thread"};

struct cs_draft cs_meta_name(struct cs_draft e, enum cs_meta_of of, struct cs_lane lane, const char *name)
{
    if (cs_packets) return (struct cs_draft){cs_packets_name(e.at, of == CS_META_PROCESS, lane, name, 512)};
    e = meta(cs_put_literal(e.at, ",\n"), meta_of[of], "_name", lane);
    return cs_arg_text(e, "name", name, 512);
}

struct cs_draft cs_meta_order(struct cs_draft e, enum cs_meta_of of, struct cs_lane lane, cs_u32 order)
{
    if (cs_packets) return (struct cs_draft){cs_packets_order(e.at, of == CS_META_PROCESS, lane, order)};
    e = meta(cs_put_literal(e.at, ",\n"), meta_of[of], "_sort_index", lane);
    return cs_args_end(cs_arg_uint(e, "sort_index", order));
}

struct cs_draft cs_meta_label(struct cs_draft e, struct cs_lane lane, const char *label)
{
    if (cs_packets) return (struct cs_draft){cs_packets_label(e.at, lane, label, 512)};
    e = meta(cs_put_literal(e.at, ",\n"), meta_of[CS_META_PROCESS], "_labels", lane);
    return cs_args_end(cs_arg_text(e, "labels", label, 512));
}

/* --- arguments --- */

struct cs_draft cs_arg_named(struct cs_draft e, const char *key)
{
    if (cs_packets) return cs_packets_key(key, strlen(key), NULL), e;
    char *at = e.at;
    *at++ = '"';
    return (struct cs_draft){cs_put_literal(cs_put_text(at, key), "\":")};
}

void cs_key_make(struct cs_key *key, const char *name)
{
    key->length = (unsigned char)snprintf(key->text, sizeof key->text, "\"%s\":", name);
    key->name = name;
}

struct cs_draft cs_value_bool(struct cs_draft e, bool yes)
{
    if (cs_packets) return (struct cs_draft){cs_packets_bool(e.at, yes)};
    return cs_value_next(yes ? cs_put_literal(e.at, "true") : cs_put_literal(e.at, "false"));
}

struct cs_draft cs_value_text(struct cs_draft e, const char *text, size_t max)
{
    if (cs_packets) return (struct cs_draft){cs_packets_text(e.at, text, max)};
    return cs_value_next(cs_put_string(e.at, text, max));
}

struct cs_draft cs_value_kernel(struct cs_draft e, cs_name kernel)
{
    if (cs_packets) return (struct cs_draft){cs_packets_kernel(e.at, kernel, false)};
    return cs_value_next(cs_put_kernel(e.at, kernel));
}

struct cs_draft cs_value_kernel_brief(struct cs_draft e, cs_name kernel)
{
    if (cs_packets) return (struct cs_draft){cs_packets_kernel(e.at, kernel, true)};
    return cs_value_next(cs_put_kernel_brief(e.at, kernel));
}

/* A number from snprintf, whatever the program's locale puts for the decimal point. */
struct cs_draft cs_value_double(struct cs_draft e, double number)
{
    char text[64], *at = e.at;
    if (!__builtin_isfinite(number)) return cs_value_word(e, __builtin_isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
    if (cs_packets) return (struct cs_draft){cs_packets_double(e.at, number)};
    snprintf(text, sizeof text, "%.15g", number);
    if (strtod(text, NULL) != number) snprintf(text, sizeof text, "%.17g", number);
    bool in_point = false;
    for (const char *p = text; *p; p++) {
        bool is_point = !strchr("0123456789+-e", *p);
        if (is_point && !in_point) *at++ = '.';
        if (!is_point) *at++ = *p;
        in_point = is_point;
    }
    return cs_value_next(at);
}

/* --- the list --- */

char *cs_events_begin(char *header, char *at, cs_u32 pid)
{
    const struct cs_lane lane = cs_lane_at(pid, pid);
    if (cs_packets) return cs_packets_order(cs_packets_begin(header, at), true, lane, 0);
    struct cs_draft e = meta(cs_put_literal(at, "\"traceEvents\":[\n"), meta_of[CS_META_PROCESS], "_sort_index", lane);
    return cs_args_end(cs_arg_uint(e, "sort_index", 0)).at;
}

void cs_trailer_begins(void) { cs_packets_trailer(true); }

char *cs_events_end(char *at) { return cs_packets ? cs_packets_end(at) : cs_put_literal(at, "\n]"); }

void cs_trailer_ends(char *end)
{
    if (cs_packets) cs_packets_trailer_ends(end);
    cs_packets_trailer(false);
}
