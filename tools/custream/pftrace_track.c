/* Tracks: threads and processes as the file tells of them, and rows "M" of that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/custream/command.h"
#include "tools/custream/pftrace_inside.h"

enum { NO_TRACK_PID = 0, DEPTH_MAX = 64 };

struct track *track_get(struct pftrace *p, uint64_t uuid)
{
    struct track *track = map_get(&p->tracks, uuid);
    if (track) return track;
    if (!(track = calloc(1, sizeof *track))) out_of_memory();
    track->uuid = uuid;
    return *map_put(&p->tracks, uuid) = track;
}

void row_lane(struct rope *to, const struct track *track) { rope_print(to, ",\"pid\":%llu,\"tid\":%llu", (unsigned long long)track->pid, (unsigned long long)track->tid); }

static void meta_begin(struct pftrace *p, const struct track *track, const char *name)
{
    row_begin(p);
    rope_print(&p->out, "{\"ph\":\"M\",\"name\":\"%s\"", name);
    row_lane(&p->out, track);
    rope_literal(&p->out, ",\"args\":{");
}

static void meta_text(struct pftrace *p, const struct track *track, const char *name, const char *key, struct message text)
{
    meta_begin(p, track, name);
    rope_print(&p->out, "\"%s\":", key);
    rope_quoted(&p->out, text);
    rope_literal(&p->out, "}}");
}

static void meta_order(struct pftrace *p, const struct track *track, const char *name, int64_t order)
{
    meta_begin(p, track, name);
    rope_print(&p->out, "\"sort_index\":%lld}}", (long long)order);
}

/* The name, and what the JSON form says besides. */
static void thread_named(struct pftrace *p, const struct track *track, struct message name, struct message description)
{
    const size_t mark = sizeof CS_PF_MORE_MARK - 1;
    const bool more = (size_t)(description.end - description.at) > mark && !memcmp(description.at, CS_PF_MORE_MARK, mark);
    meta_begin(p, track, "thread_name");
    rope_literal(&p->out, "\"name\":");
    rope_quoted(&p->out, name);
    if (more) rope_literal(&p->out, ",");
    if (more) rope_put(&p->out, (const char *)description.at + mark, (size_t)(description.end - description.at) - mark);
    rope_literal(&p->out, "}}");
}

static void thread_read(struct pftrace *p, struct track *track, struct message thread, struct message description)
{
    struct message all = thread;
    struct field field;
    track->kind = TRACK_THREAD;
    while (field_next(&all, &field))
        if (field.number == CS_PF_PID) track->pid = field.value;
        else if (field.number == CS_PF_TID) track->tid = field.value;
    while (field_next(&thread, &field))
        if (field.number == CS_PF_THREAD_NAME) thread_named(p, track, field.message, description);
        else if (field.number == CS_PF_SORT) meta_order(p, track, "thread_sort_index", (int64_t)field.value);
}

static void process_read(struct pftrace *p, struct track *track, struct message process, const char *description)
{
    struct message all = process;
    struct field field;
    track->kind = TRACK_PROCESS;
    while (field_next(&all, &field))
        if (field.number == CS_PF_PID) track->pid = field.value;
    if (sscanf(description, "tid %" SCNu64, &track->tid) != 1) track->tid = track->pid;
    while (field_next(&process, &field))
        if (field.number == CS_PF_PROCESS_NAME) meta_text(p, track, "process_name", "name", field.message);
        else if (field.number == CS_PF_LABEL) meta_text(p, track, "process_labels", "labels", field.message);
        else if (field.number == CS_PF_SORT) meta_order(p, track, "process_sort_index", (int64_t)field.value);
}

static void counter_read(struct pftrace *p, struct track *track, struct message counter, const char *description)
{
    struct field field;
    track->kind = TRACK_COUNTER;
    while (field_next(&counter, &field))
        if (field.number == CS_PF_UNIT_NAME && !track->unit) track->unit = string_new(field.message);
    track->pid = track_get(p, track->parent)->pid;
    if (sscanf(description, "tid %" SCNu64, &track->tid) != 1) track->tid = track_get(p, track->parent)->tid;
}

void track_read(struct pftrace *p, struct message message)
{
    struct message process = {0}, thread = {0}, counter = {0}, name = {0}, described = {0};
    uint64_t uuid = 0, parent = 0;
    char description[64] = "";
    struct field field;
    while (field_next(&message, &field)) {
        const bool bytes = field.wire == CS_WIRE_BYTES;
        if (field.number == CS_PF_UUID) uuid = field.value;
        if (field.number == CS_PF_PARENT) parent = field.value;
        if (field.number == CS_PF_PROCESS && bytes) process = field.message;
        if (field.number == CS_PF_THREAD && bytes) thread = field.message;
        if (field.number == CS_PF_COUNTER_TRACK && bytes) counter = field.message;
        if ((field.number == CS_PF_TRACK_NAME || field.number == 10 || field.number == 13) && bytes) name = field.message;
        if (field.number == CS_PF_DESCRIPTION && bytes) described = field.message, snprintf(description, sizeof description, "%.*s", (int)(field.message.end - field.message.at), field.message.at);
    }
    if (!uuid) return; /* of all */
    struct track *track = track_get(p, uuid);
    track->parent = parent;
    if (name.at && !track->name) track->name = string_new(name);
    if (thread.at) thread_read(p, track, thread, described);
    else if (process.at) process_read(p, track, process, description);
    else if (counter.at) counter_read(p, track, counter, description);
    else track->kind = TRACK_OTHER;
}

/* Another tool's track: a row of the process or thread that it belongs to, by a number that no thread has. */
static void other_lane(struct pftrace *p, struct track *track)
{
    const struct track *up = track;
    for (int depth = 0; up->parent && up->kind != TRACK_PROCESS && up->kind != TRACK_THREAD && depth < DEPTH_MAX; depth++) up = track_get(p, up->parent);
    track->pid = up == track ? NO_TRACK_PID : up->pid;
    track->tid = (track->uuid ^ track->uuid >> 32) % 1000000000 + 1000000000;
    if (track->name) meta_text(p, track, "thread_name", "name", string_message(track->name));
}

void track_lane(struct pftrace *p, struct track *track)
{
    if (track->announced || track->kind == TRACK_THREAD || track->kind == TRACK_PROCESS || track->kind == TRACK_COUNTER) return;
    track->announced = true;
    other_lane(p, track);
}
