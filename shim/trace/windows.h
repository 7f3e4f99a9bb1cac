/*
 * When calls were recorded and when not, in the timeline: slices of category cs_window where nothing was, with the cause, and the trailer's list.
 *
 * process/window.c tells of each step, one thread at a time; the steps wait in a short queue for the writer, which takes them over once a round, with or
 * without a file. Policies that came while the program ran are told the same way.
 */
#ifndef CS_TRACE_WINDOWS_H
#define CS_TRACE_WINDOWS_H

#include "shim/match/match.h"

enum cs_window_step { CS_WINDOW_CLOSED, CS_WINDOW_OPENED, CS_WINDOW_POLICY };

/* `text` lives as long as the process: why nothing is recorded from here on; who had recording begin; what the policy is. The first step says how the
 * process begins. Ticks rise from step to step. Waits for room if the writer is far behind, for a fifth of a second at most; then the step is left out, and counted. */
void cs_windows_tell(enum cs_window_step step, cs_u64 ticks, const char *text);

void cs_windows_after_fork_in_child(void); /* the child's calls have windows of their own */

/* --- the writer's --- */

void cs_windows_collect(bool file); /* takes over what has been told, and writes it where there is a file */
void cs_windows_part_ends(void);    /* what goes on is cut in two */
void cs_windows_end(void);

/* Whether nothing is recorded, was recorded then, and from then to then without a break. All of these may write to the file, but for ever_closed, which the
 * trailer asks while a write is under way: what came since the last round is not in it. */
bool cs_windows_closed(void);
bool cs_windows_ever_closed(void);
bool cs_windows_open(void); /* as of the last round; writes nothing */
cs_u64 cs_windows_open_since(void); /* ticks; 0: ever since, UINT64_MAX: it is closed */
bool cs_windows_covers(cs_u64 ticks);
bool cs_windows_within(cs_u64 from_ticks, cs_u64 to_ticks);

/* Of a call that a profiler saw then (match/match.h). */
enum cs_outside cs_windows_outside(cs_u64 ticks);

char *cs_windows_put_totals(char *at, bool brief); /* ,"windows":{...} for the trailer, at most 24 KiB; nothing where all was recorded */

#endif
