#include "shim/trace/event_packets.h"

#include <stdio.h>

#include "shim/base/clock.h"
#include "shim/base/memory.h"
#include "shim/out/path.h"
#include "shim/trace/demangle.h"
#include "shim/trace/event.h"
#include "shim/trace/lanes.h"

bool cs_packets;

static struct cs_pf pf;
static char *trailer; /* where the text of the trailer begins, while it is made */
CS_TABLE_AT(TRACE, told, pf.entries, CS_PF_ENTRIES);

void cs_packets_choose(void) { cs_packets = cs_path_is_packets(cs_output_path()); }

char *cs_packets_begin(char *header, char *at)
{
    cs_pf_begin(&pf, CS_GPU_PIDS);
    return cs_pf_head(&pf, header, (size_t)(at - header), cs_clock_wall_base_ns());
}

void cs_packets_trailer(bool is) { pf.plain = is; }
char *cs_packets_end(char *at) { return trailer = cs_pf_tail(at), cs_put_literal(trailer, "]"); }
void cs_packets_trailer_ends(char *end) { cs_pf_tail_ends(trailer, end); }

/* --- texts --- */

static const char *kernel_text(cs_u64 name) { return cs_kernel_text((cs_name)name, false); }
static const char *kernel_brief(cs_u64 name) { return cs_kernel_text((cs_name)name, true); }

/* Categories and names of calls are constants: known by where they stand. */
#define PLACED(constant) (&(const struct cs_pf_text){.number = (uintptr_t)(constant), .text_of = cs_pf_text_at})

static struct cs_pf_text title_text(struct cs_title title)
{
    if (!title.text) return (struct cs_pf_text){.number = title.kernel, .text_of = kernel_text};
    return (struct cs_pf_text){.text = title.text, .length = title.max ? strnlen(title.text, title.max) : strlen(title.text)};
}

/* --- events --- */

char *cs_packets_slice(char *at, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 from_ns, cs_u64 to_ns)
{
    const struct cs_pf_text name = title_text(title);
    return cs_pf_slice(&pf, at, PLACED(category), &name, lane.pid, lane.tid, from_ns, to_ns > from_ns ? to_ns : from_ns + 1);
}

char *cs_packets_slice_made(char *at, const struct cs_slice_head *head, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns)
{
    return cs_pf_slice(&pf, at, PLACED(head->category), PLACED(head->name), head->pid, tid, from_ns, to_ns > from_ns ? to_ns : from_ns + 1);
}

char *cs_packets_instant(char *at, bool of_process, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns)
{
    const struct cs_pf_text name = title_text(title);
    return cs_pf_instant(&pf, at, of_process ? CS_PF_OF_PROCESS : CS_PF_OF_THREAD, PLACED(category), &name, lane.pid, lane.tid, ns);
}

char *cs_packets_counter(char *at, struct cs_title title, struct cs_lane lane, cs_u64 ns)
{
    const struct cs_pf_text name = title_text(title);
    return cs_pf_counter(&pf, at, &name, lane.pid, lane.tid, ns);
}

char *cs_packets_legacy(char *at, char phase, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns, cs_u64 id)
{
    const struct cs_pf_text name = title_text(title);
    return cs_pf_legacy(&pf, at, phase, PLACED(category), &name, lane.pid, lane.tid, ns, id);
}

/* A name, which may be followed by numbers that belong to it: written when it is closed. */
static struct {
    bool open, of_process;
    cs_u32 pid, tid;
    const char *name;
    size_t length, more_length;
    char more[256]; /* the numbers, as members of JSON */
} naming;

static char *naming_ends(char *at)
{
    naming.open = false;
    if (naming.of_process) return cs_pf_process(&pf, at, naming.pid, naming.tid, naming.name, naming.length, NULL, 0, NULL);
    return cs_pf_thread(&pf, at, naming.pid, naming.tid, naming.name, naming.length, naming.more, naming.more_length, NULL);
}

static void naming_adds(cs_u64 n)
{
    const size_t room = sizeof naming.more - naming.more_length;
    const int done = snprintf(naming.more + naming.more_length, room, "%s\"%.*s\":%llu", naming.more_length ? "," : "", (int)pf.key_length, pf.key,
                              (unsigned long long)n);
    if (done > 0 && (size_t)done < room) naming.more_length += (size_t)done;
}

char *cs_packets_close(char *at) { return naming.open ? naming_ends(at) : cs_pf_close(&pf, at); }
char *cs_packets_close_bound(char *at, enum cs_pf_end end, cs_u64 id) { return cs_pf_flow(&pf, id, end), cs_pf_close(&pf, at); }
char *cs_packets_close_bare(char *at) { return cs_pf_bare(&pf), cs_pf_close(&pf, at); }

/* --- names --- */

char *cs_packets_name(char *at, bool of_process, struct cs_lane lane, const char *name, size_t max)
{
    naming = (__typeof__(naming)){.open = true, .of_process = of_process, .pid = lane.pid, .tid = lane.tid, .name = name, .length = strnlen(name, max)};
    return at;
}

char *cs_packets_order(char *at, bool of_process, struct cs_lane lane, cs_u32 order)
{
    const cs_i64 place = order;
    return of_process ? cs_pf_process(&pf, at, lane.pid, lane.tid, NULL, 0, NULL, 0, &place) : cs_pf_thread(&pf, at, lane.pid, lane.tid, NULL, 0, NULL, 0, &place);
}

char *cs_packets_label(char *at, struct cs_lane lane, const char *label, size_t max)
{
    return cs_pf_process(&pf, at, lane.pid, lane.tid, NULL, 0, label, strnlen(label, max), NULL);
}

/* --- arguments --- */

/* Once the table is full all arguments wait in cs_pf.side (perfetto_event.c), where a byte of a text may become three. The most that one event has is the name of a
 * kernel, that of an event or a stream, and some numbers with keys of up to 24 bytes. */
_Static_assert(3 * (CS_PF_TEXT_MAX + 512) + 16 * (3 * 24 + 64 + 16) <= CS_PF_SIDE, "no argument is dropped");

void cs_packets_key(const char *key, size_t n, struct cs_pf_key *kept) { cs_pf_key(&pf, key, n, kept); }

char *cs_packets_uint(char *at, cs_u64 n)
{
    if (CS_LIKELY(!naming.open)) return cs_pf_value_uint(&pf, at, n);
    return naming_adds(n), at;
}

char *cs_packets_arg_uint(char *at, const char *key, size_t length, struct cs_pf_key *kept, cs_u64 n)
{
    char *end = cs_pf_kept_uint(&pf, at, kept, n);
    if (CS_LIKELY(end)) return end;
    cs_pf_key(&pf, key, length, kept);
    return cs_packets_uint(at, n);
}

char *cs_packets_int(char *at, cs_i64 n) { return cs_pf_value_int(&pf, at, n); }
char *cs_packets_hex(char *at, cs_u64 n) { return cs_pf_value_pointer(&pf, at, n); }
char *cs_packets_us(char *at, cs_u64 ns) { return cs_pf_value_double(&pf, at, (double)ns / 1000); }
char *cs_packets_double(char *at, double number) { return cs_pf_value_double(&pf, at, number); }
char *cs_packets_bool(char *at, bool yes) { return cs_pf_value_bool(&pf, at, yes); }
char *cs_packets_word(char *at, const char *word) { return cs_pf_value_word(&pf, at, &(const struct cs_pf_text){.text = word, .length = strlen(word)}); }
char *cs_packets_constant(char *at, const char *word) { return cs_pf_value_word(&pf, at, PLACED(word)); }
char *cs_packets_text(char *at, const char *text, size_t max) { return cs_pf_value_text(&pf, at, text, strnlen(text, max)); }
char *cs_packets_kernel(char *at, cs_name kernel, bool brief)
{
    return cs_pf_value_word(&pf, at, &(const struct cs_pf_text){.number = kernel, .text_of = brief ? kernel_brief : kernel_text});
}
char *cs_packets_uints(char *at, const cs_u32 *numbers, size_t n) { return cs_pf_value_uints(&pf, at, numbers, n); }
