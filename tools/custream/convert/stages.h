/*
 * GPU work as events of Perfetto's own kind for GPUs (GpuRenderStageEvent), beside its slices: process, GPU, context, stream, and what each waited for. Source:
 * Perfetto's gpu_render_stage_event.proto and gpu_event_parser.cc.
 *
 * A packet of these is no slice, so that readers of the trace leave it out, and nothing is there twice for them.
 */
#ifndef CS_CONVERT_STAGES_H
#define CS_CONVERT_STAGES_H

#include <stddef.h>

struct stages;

/* `put` gets what is written, a packet at a time. */
struct stages *stages_new(void (*put)(void *of, const char *bytes, size_t n), void *of);
void stages_free(struct stages *s);

/* One row, as merge/source.h gives it, and with the shape of its kernel (merge/shapes.h). What is no GPU work leaves no packet. The row is known to be one that
 * packets_row takes. */
void stages_row(struct stages *s, const char *text, size_t length);

#endif
