/*
 * The writer: the thread of the shim which turns records into the timeline, and gives objects back that have ended.
 *
 * It starts with the first call that is recorded, or watched for a policy's sake: then it has no file until one is asked for. It wakes every few milliseconds, drains every thread's ring, and at least every half second brings
 * the file to a valid end. It holds no lock that an application thread takes on a recorded call, and calls nothing of CUDA.
 */
#ifndef CS_TRACE_WRITER_H
#define CS_TRACE_WRITER_H

#include "shim/base/compiler.h"

/* Starts the thread unless it runs, with a file if calls are to be recorded. From any application thread; keeps errno. False where it can't be
 * started, or can't have a file and has nothing else to do. */
bool cs_writer_start(bool records, bool watches);

/* Has it open a file if it has none, and waits. Whether it has one. */
bool cs_writer_file(unsigned timeout_ms);

/* A healthy write may take half of it: of a flush, 576 KiB, Linux lets the writer wait up to 0.2 s for each page where others fill the disk, and the disk's journal
 * comes on top: one took 50 s. */
enum { CS_WRITER_STANDSTILL_S = 60 };

/* Has everything recorded so far written and the file ended. Waits for the writer with a futex, takes no lock and allocates nothing, so that it may be called while
 * the process exits, from a signal handler too. As long as the writer gets on, and CS_WRITER_STANDSTILL_S at most in which it does not. False: it is still at it. */
bool cs_writer_finish(void);

/* Has everything recorded so far written, and goes on. Waits like cs_writer_finish. */
bool cs_writer_bring(void);

/* The same; waits `timeout_ms` at most. */
bool cs_writer_flush(unsigned timeout_ms);

/* Called once a file, on the writer's thread, when the file takes no more: nothing that is recorded from then on is kept. NULL: nobody wants to know. */
extern void (*cs_writer_full)(void);

bool cs_writer_alive(void);
bool cs_writer_failed(void);  /* it could not be started */
bool cs_writer_was_killed(void); /* its thread alone, by a filter of the kernel's: nothing more is written */
bool cs_writer_at_work(void); /* past its start, which may have to wait for the loader, and not asked to end */
bool cs_writer_blocks(void); /* CUSTREAM_FULL=block */

void cs_writer_after_fork_in_child(void); /* nothing of the parent's trace is touched; the child starts a writer of its own when it records */

#endif
