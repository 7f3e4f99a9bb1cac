/*
 * The files of CUSTREAM_TRACE_MAX=SIZE,rotate: their names, and which of them stay. The writer thread's alone.
 *
 * The part being written always stands at the path that CUSTREAM_TRACE names, and is the newest: trace.json. One that has ended gets its number,
 * trace.1.json, trace.2.json, and keeps it; the oldest go when there are more than wanted. The path is never without a whole file: a new part
 * has no name until its head is written, and then the two change places in one step, where the file system can do that.
 *
 * Files of others are left alone: a part is deleted only if it is, by device and inode, the file that we wrote, or if it says of itself that it is the
 * part of that number of a trace of an earlier run. Where a name is taken, "-PID" is put into ours.
 */
#ifndef CS_OUT_PART_H
#define CS_OUT_PART_H

#include <sys/types.h>

#include "shim/base/compiler.h"

/* Which file it is, whatever it is called. */
struct cs_file_id {
    dev_t device;
    ino_t inode;
};
bool cs_file_id_of(int fd, struct cs_file_id *id);

/* The first part is open at `path`. Parts of earlier runs of that name go. */
bool cs_parts_begin(const char *path);
const char *cs_parts_path(void);

/* A file for the next part, open and locked, that nobody sees yet; -1 with errno set. Then either: */
int cs_part_create(void);
void cs_part_drop(int fd); /* it is not wanted; closes it */

/* or: it takes the place of the one at the path, which was part `number` and holds so much; false with errno set: nothing has changed. */
bool cs_part_swap(int fd, struct cs_file_id old, cs_u32 number, cs_u64 recorded);

/* The oldest go, but for the newest `parts`, the one at the path counted; `deleted` is told what each held. */
void cs_parts_trim(cs_u32 parts, void (*deleted)(cs_u64 recorded));

/* What the first bytes of a part say of it: in a .gz the comment of its first member. */
void cs_part_comment(char text[32], cs_u32 number);

#endif
