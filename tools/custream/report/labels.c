#include "tools/custream/report/labels.h"

const char *stream_label(struct report *report, const struct run *run, uint32_t stream)
{
    const struct stream *s = &run->streams[stream];
    return s->name ? text_in(run, s->name) : report_text(report, "stream %u", s->lane);
}

const char *thread_label(struct report *report, const struct run *run, uint32_t thread)
{
    const struct thread *t = &run->threads[thread];
    return report_text(report, "%s %u", t->name ? text_in(run, t->name) : "thread", t->tid);
}
