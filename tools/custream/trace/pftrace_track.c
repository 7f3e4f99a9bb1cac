/* Tracks: threads and processes as the file tells of them, and rows "M" of that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

enum { NO_TRACK_PID = 0, DEPTH_MAX = 64 };

struct track *track_get(struct pftrace *p, uint64_t uuid)
{
    struct track *track = map_get(&p->tracks, uuid);
    if (track) return track;
    if (!(track = calloc(1, sizeof *track))) out_of_memory();
    track->uuid = uuid;
    return *map_put(&p->tracks, uuid) = track;
}

void row_lane(struct pf_row *to, const struct track *track)
{
    row_name(to, "pid");
    row_uint(to, track->pid);
    row_name(to, "tid");
    row_uint(to, track->tid);
}

/* Up to its arguments, which are open. */
static struct pf_row *meta_begin(
    struct pftrace *p, const struct track *track, const char *name, size_t *args)
{
    struct pf_row *row = row_new(p);
    row_name(row, "ph");
    row_name(row, "M");
    row_name(row, "name");
    row_key(row, name, strlen(name));
    row_lane(row, track);
    row_name(row, "args");
    *args = row_open(row);
    return row;
}

static void meta_end(struct pf_row *row, size_t args)
{
    row_close(row, args, false);
    row_close(row, 0, false);
}

static void meta_text(struct pftrace *p, const struct track *track, const char *name,
    const char *key, struct message text)
{
    size_t args;
    struct pf_row *row = meta_begin(p, track, name, &args);
    row_key(row, key, strlen(key));
    row_text(row, text);
    meta_end(row, args);
}

static void meta_order(
    struct pftrace *p, const struct track *track, const char *name, int64_t order)
{
    size_t args;
    struct pf_row *row = meta_begin(p, track, name, &args);
    row_name(row, "sort_index");
    row_int(row, order);
    meta_end(row, args);
}

/* The name, and what the JSON form says besides. */
static void thread_named(
    struct pftrace *p, const struct track *track, struct message name, struct message description)
{
    const size_t mark = sizeof CS_PF_MORE_MARK - 1;
    const bool more = (size_t)(description.end - description.at) > mark &&
                      !memcmp(description.at, CS_PF_MORE_MARK, mark);
    size_t args;
    struct pf_row *row = meta_begin(p, track, "thread_name", &args);
    row_name(row, "name");
    row_text(row, name);
    if (more) row_raw(row, (struct message){description.at + mark, description.end}), row_null(row);
    meta_end(row, args);
}

static void thread_read(
    struct pftrace *p, struct track *track, struct message thread, struct message description)
{
    struct message all = thread;
    struct field field;
    track->kind = TRACK_THREAD;
    while (field_next(&all, &field))
        if (field.number == CS_PF_PID) track->pid = field.value;
        else if (field.number == CS_PF_TID) track->tid = field.value;
    while (field_next(&thread, &field))
        if (field.number == CS_PF_THREAD_NAME) thread_named(p, track, field.message, description);
        else if (field.number == CS_PF_SORT)
            meta_order(p, track, "thread_sort_index", (int64_t)field.value);
}

static void process_read(
    struct pftrace *p, struct track *track, struct message process, const char *description)
{
    struct message all = process;
    struct field field;
    track->kind = TRACK_PROCESS;
    while (field_next(&all, &field))
        if (field.number == CS_PF_PID) track->pid = field.value;
    if (sscanf(description, "tid %" SCNu64, &track->tid) != 1) track->tid = track->pid;
    while (field_next(&process, &field))
        if (field.number == CS_PF_PROCESS_NAME)
            meta_text(p, track, "process_name", "name", field.message);
        else if (field.number == CS_PF_LABEL)
            meta_text(p, track, "process_labels", "labels", field.message);
        else if (field.number == CS_PF_SORT)
            meta_order(p, track, "process_sort_index", (int64_t)field.value);
}

static void counter_read(
    struct pftrace *p, struct track *track, struct message counter, const char *description)
{
    struct field field;
    track->kind = TRACK_COUNTER;
    while (field_next(&counter, &field))
        if (field.number == CS_PF_UNIT_NAME && !track->unit)
            track->unit = string_new(field.message);
    track->pid = track_get(p, track->parent)->pid;
    if (sscanf(description, "tid %" SCNu64, &track->tid) != 1)
        track->tid = track_get(p, track->parent)->tid;
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
        if ((field.number == CS_PF_TRACK_NAME || field.number == 10 || field.number == 13) && bytes)
            name = field.message;
        if (field.number == CS_PF_DESCRIPTION && bytes)
            described = field.message,
            snprintf(description, sizeof description, "%.*s",
                (int)(field.message.end - field.message.at), field.message.at);
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

/* Another tool's track: a row of the process or thread that it belongs to, by a number that no
 * thread has. */
static void other_lane(struct pftrace *p, struct track *track)
{
    const struct track *up = track;
    for (int depth = 0;
        up->parent && up->kind != TRACK_PROCESS && up->kind != TRACK_THREAD && depth < DEPTH_MAX;
        depth++)
        up = track_get(p, up->parent);
    track->pid = up == track ? NO_TRACK_PID : up->pid;
    track->tid = (track->uuid ^ track->uuid >> 32) % 1000000000 + 1000000000;
    if (track->name) meta_text(p, track, "thread_name", "name", string_message(track->name));
}

void track_lane(struct pftrace *p, struct track *track)
{
    if (track->announced || track->kind == TRACK_THREAD || track->kind == TRACK_PROCESS ||
        track->kind == TRACK_COUNTER)
        return;
    track->announced = true;
    other_lane(p, track);
}
