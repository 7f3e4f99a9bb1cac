#include "tools/custream/report/section_parts.h"

const char *stream_label(struct report *report, const struct run *run, uint32_t stream)
{
    const struct stream *s = &run->streams[stream];
    return s->name ? text_in(run, s->name) : report_text(report, "stream %u", s->lane);
}

const char *thread_label(struct report *report, const struct run *run, uint32_t thread)
{
    const struct thread *t = &run->threads[thread];
    size_t same = 0;
    if (!t->name) return report_text(report, "thread %u", t->tid);
    for (size_t i = 0; i < run->thread_count; i++) same += run->threads[i].name == t->name;
    return same == 1 ? text_in(run, t->name) : report_text(report, "%s (%u)", text_in(run, t->name), t->tid);
}

void section_tables(struct report *report, const struct analysis *of)
{
    section_host(report, of);
    section_streams(report, of);
    section_work(report, of);
    section_calls(report, of);
    section_ranges(report, of);
    section_steps(report, of);
}
