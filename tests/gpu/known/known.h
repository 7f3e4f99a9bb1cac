/*
 * A program that knows what it did: kernels of known length on several streams, copies, memsets and
 * a graph, with what comes before what.
 *
 * main.c does it and prints it, one JSON object a line; driver.c and runtime.cu are the two ways to
 * do it, the driver API and the CUDA runtime. A kernel is told from all others by its grid, a copy
 * or a memset by its bytes, so each can be found in a timeline. driver.c runs on the simulated GPU
 * too.
 */
#ifndef KNOWN_H
#define KNOWN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *known_stream, *known_event, *known_graph;
#define KNOWN_LEGACY     ((known_stream)0x1)
#define KNOWN_PER_THREAD ((known_stream)0x2)

enum known_way { KNOWN_HTOD, KNOWN_DTOH, KNOWN_DTOD };

/* Every call ends the program with a line on stderr where CUDA refuses it. */
void known_begin(void);
void known_thread(void); /* on a further thread */
known_stream known_stream_create(int nonblocking, int priority);
known_event known_event_create(int timing);
void known_record(known_event event, known_stream stream);
void known_wait(known_stream stream, known_event event);
double known_elapsed_ms(known_event from, known_event to);

/* Spins for so many microseconds in `grid` blocks of 32 threads; of two kernels with that effect.
 */
void known_launch(int which, unsigned grid, unsigned us, known_stream stream);
const char *known_kernel(int which); /* its name, or what it begins with */

void *known_device_memory(size_t bytes);
void *known_pinned_memory(size_t bytes);
void known_copy(enum known_way way, void *to, const void *from, size_t bytes, known_stream stream);
void known_copy_and_wait(enum known_way way, void *to, const void *from, size_t bytes);
void known_set(void *at, unsigned char value, size_t bytes, known_stream stream);

void known_capture(known_stream stream);
known_graph known_captured(known_stream stream);
void known_graph_launch(known_graph graph, known_stream stream);

void known_sync_stream(known_stream stream);
void known_sync_all(void);

#ifdef __cplusplus
}
#endif
#endif
