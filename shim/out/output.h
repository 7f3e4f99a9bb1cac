/*
 * The trace file: bytes of events in, a valid JSON file on disk after every flush. The writer thread's alone.
 *
 * What the bytes say is the business of whoever opens the file, and hands over a struct cs_output_teller for that.
 *
 * Events are gathered in a buffer. A flush writes them with the trailer behind them in one system call; the next one starts where the trailer stood. In
 * a .json.gz each flush is a gzip member of events and one of the trailer. When the disk is full or CUSTREAM_TRACE_MAX is reached the file keeps its last
 * valid end, cs_output_full() turns true, and what no longer fits is counted. The trailer is written with room to spare, so that one that tells of the
 * gap fits where it stood.
 *
 * With CUSTREAM_TRACE_MAX=SIZE,rotate nothing is counted: the file ends as a whole one, and the next part begins.
 */
#ifndef CS_OUT_OUTPUT_H
#define CS_OUT_OUTPUT_H

#include "shim/base/compiler.h"

enum { CS_EVENT_MAX = 32 << 10 }; /* bytes one event may take */

/* What a trailer is to be. LAST: nothing follows it. BRIEF: short, there is no room for lists in it. */
enum cs_output_trailer { CS_TRAILER_LAST = 1, CS_TRAILER_BRIEF = 2 };

/* Who knows what the file tells; all on the thread that writes. */
struct cs_output_teller {
    char *(*trailer)(char *at, size_t size, unsigned how); /* enum cs_output_trailer; its end, with a newline, at most so many bytes on */
    void (*sealed)(char *end); /* it goes to disk as it stands now, up to there: what was told of as its end, or blanks behind that */
    void (*flushed)(void);                                  /* all that was gathered is in the file */
    void (*unflushed)(void);                                /* it never will be: nothing more goes into the file */
    void (*part_deleted)(cs_u64 recorded);                  /* an old part, which held so much */
};

/* Opens the file that CUSTREAM_TRACE names. False after one line on stderr that says why not. */
bool cs_output_open(const struct cs_output_teller *teller);

/* Where the file is, "" before there is one; the text stays valid. Any thread. */
const char *cs_output_path(void);
struct cs_file_id cs_output_id(void); /* out/part.h; the thread's that writes */

/* How many of the file's bytes, from its start, are events, as of the last flush: they never change. Of a part, its own. Any thread. */
cs_u64 cs_output_events_end(void);
/* Which file stands at the path. Any thread; while one part takes the place of another the two numbers may be of different ones, so that no file has both. */
void cs_output_shown_id(cs_u64 *device, cs_u64 *inode);

/* Room for one event of at most CS_EVENT_MAX bytes, and what was used of it. */
char *cs_output_room(void);
void cs_output_commit(char *end);
void cs_output_commit_told(char *end); /* it stands for the record that the writer has in hand (base/rings.h) */
bool cs_output_full(void);
const char *cs_output_full_cause(void); /* for the timeline */

void cs_output_flush(void);

/* Parts. Whether the present one is due to end, `pending` more bytes of events being certain to come for it. Then, when all of it is flushed: a
 * file for the next, in which nothing stands and which nobody sees; what is flushed goes there. Then it takes the place of the present one, which holds
 * `recorded`. Both return false where that fails: the present one then goes on to be the file, and is full. */
bool cs_output_rotates(void);
bool cs_output_part_due(size_t pending);
bool cs_output_part_begin(void);
bool cs_output_part_take(cs_u64 recorded);
cs_u32 cs_output_part(void); /* the number of the one that is written to, from 1 */
bool cs_output_roomy(void);  /* the part is not filled by half: for what could be said of it but need not */

void cs_output_finish(void); /* the last flush, and the end */
void cs_output_close(void);  /* the end without it; a file that holds nothing is removed */
void cs_output_forget(void); /* in the child of a fork: the file is the parent's */

#endif
