#include "tools/custream/model/labels.h"

#include <string.h>

/* Bytes of a name: a template's arguments can be thousands. */
enum { NAME_MOST = 96, NAME_HEAD = 64, NAME_TAIL = 24 };

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

/* The same place, or the next one where no character of UTF-8 is cut. */
static const char *whole_characters(const char *at)
{
    while ((*at & 0xc0) == 0x80) at++;
    return at;
}

const char *work_label(struct report *report, const struct run *run, const struct work *work)
{
    const char *name = text_in(run, work->name);
    const size_t length = strlen(name);
    if (length <= NAME_MOST) return name;
    const char *head = whole_characters(name + NAME_HEAD), *tail = whole_characters(name + length - NAME_TAIL);
    return report_text(report, "%.*s…%s", (int)(head - name), name, tail);
}
