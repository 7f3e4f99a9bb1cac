/*
 * Events of the timeline in Perfetto's own format: what event.h says, in the terms of base/perfetto.h. For event.h alone. The writer thread's.
 */
#ifndef CS_TRACE_EVENT_PACKETS_H
#define CS_TRACE_EVENT_PACKETS_H

#include "shim/base/perfetto.h"
#include "shim/object/names.h"

struct cs_lane;
struct cs_title;
struct cs_slice_head;

extern bool cs_packets; /* whether the file that is being written has this format: as its name says (cs_packets_choose) */
void cs_packets_choose(void); /* for a new file */

/* The header's text moves behind its frame; then what a file begins with. */
char *cs_packets_begin(char *header, char *at);
void cs_packets_trailer(bool is);
char *cs_packets_end(char *at);
void cs_packets_trailer_ends(char *end);

char *cs_packets_slice(char *at, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 from_ns, cs_u64 to_ns);
char *cs_packets_slice_made(char *at, const struct cs_slice_head *head, cs_u32 tid, cs_u64 from_ns, cs_u64 to_ns);
char *cs_packets_instant(char *at, bool of_process, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns);
char *cs_packets_counter(char *at, struct cs_title title, struct cs_lane lane, cs_u64 ns);
char *cs_packets_legacy(char *at, char phase, const char *category, struct cs_title title, struct cs_lane lane, cs_u64 ns, cs_u64 id);
char *cs_packets_close(char *at);
char *cs_packets_close_bound(char *at, enum cs_pf_end end, cs_u64 id); /* a slice that is an end of that arrow */
char *cs_packets_close_bare(char *at); /* a slice, without arguments */
char *cs_packets_name(char *at, bool of_process, struct cs_lane lane, const char *name, size_t max); /* numbers may follow; then it is closed */
char *cs_packets_order(char *at, bool of_process, struct cs_lane lane, cs_u32 order);
char *cs_packets_label(char *at, struct cs_lane lane, const char *label, size_t max);

void cs_packets_key(const char *key, size_t n, struct cs_pf_key *kept); /* `kept`: the same text stands there while the file is written; else NULL */
char *cs_packets_uint(char *at, cs_u64 n);
char *cs_packets_arg_uint(char *at, const char *key, size_t length, struct cs_pf_key *kept, cs_u64 n); /* both in one */
char *cs_packets_int(char *at, cs_i64 n);
char *cs_packets_hex(char *at, cs_u64 n);
char *cs_packets_us(char *at, cs_u64 ns);
char *cs_packets_double(char *at, double number);
char *cs_packets_bool(char *at, bool yes);
char *cs_packets_word(char *at, const char *ours);
char *cs_packets_constant(char *at, const char *ours);
char *cs_packets_text(char *at, const char *text, size_t max);
char *cs_packets_kernel(char *at, cs_name kernel, bool brief);
char *cs_packets_uints(char *at, const cs_u32 *numbers, size_t n);

#endif
