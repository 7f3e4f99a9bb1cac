/* Turns tracks and TrackEvents into rows. */
#include <inttypes.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

/* --- pieces of a row --- */

static void put_text(struct pf_row *to, const char *name, const char *text)
{
    row_word(to, name);
    row_word(to, text);
}

static void put_number(struct pf_row *to, const char *name, uint64_t number)
{
    row_word(to, name);
    row_uint(to, number);
}

static void put_lane(struct pf_row *to, const struct track *track)
{
    put_number(to, "pid", track->pid);
    put_number(to, "tid", track->tid);
}

static size_t put_object(struct pf_row *to, const char *name)
{
    row_word(to, name);
    return row_open(to);
}

/* --- tracks: threads and processes, and their metadata (rows "M") --- */

static struct track *track_get(struct pftrace *p, uint64_t uuid)
{
    struct track *track = record_of(&p->tracks, uuid, sizeof *track);
    track->uuid = uuid;
    return track;
}

/* Makes a row of metadata. `more`: further members of its args, as JSON. */
static void named(struct pftrace *p, const struct track *track, const char *name, const char *key,
    const struct field *value, struct message more)
{
    struct pf_row *row = row_new(p);
    put_text(row, "ph", "M");
    put_text(row, "name", name);
    put_lane(row, track);
    const size_t args = put_object(row, "args");
    row_word(row, key);
    if (value->message.at) row_text(row, value->message);
    else row_int(row, (int64_t)value->value);
    if (more.at) row_raw(row, more), row_null(row);
    row_close(row, args, false);
    row_close(row, 0, false);
}

/* The fields of a track's descriptor that each become a row of metadata. */
static const struct named {
    unsigned field;
    const char *name, *key;
} of_thread[] = {{CS_PF_THREAD_NAME, "thread_name", "name"},
    {CS_PF_SORT, "thread_sort_index", "sort_index"}, {0, NULL, NULL}},
  of_process[] = {{CS_PF_PROCESS_NAME, "process_name", "name"},
      {CS_PF_LABEL, "process_labels", "labels"}, {CS_PF_SORT, "process_sort_index", "sort_index"},
      {0, NULL, NULL}};

static void rows_told(struct pftrace *p, const struct track *track, struct message lane,
    const struct named *rows, struct message description)
{
    const size_t mark = sizeof CS_PF_MORE_MARK - 1;
    struct field field;
    struct message more = {0};
    if (message_size(description) > mark && !memcmp(description.at, CS_PF_MORE_MARK, mark))
        more = (struct message){description.at + mark, description.end};
    while (field_next(&lane, &field))
        for (const struct named *row = rows; row->field; row++)
            if (row->field == field.number)
                named(p, track, row->name, row->key, &field,
                    field.number == CS_PF_THREAD_NAME ? more : (struct message){0});
}

/* Returns the tid that the JSON form has for a process or counter. A descriptor has no field for
 * that, so its description says "tid N". Returns `otherwise` if the description says no tid. */
static uint64_t tid_in(struct message description, uint64_t otherwise)
{
    char text[64];
    snprintf(
        text, sizeof text, "%.*s", (int)message_size(description), (const char *)description.at);
    sscanf(text, "tid %" SCNu64, &otherwise);
    return otherwise;
}

void track_read(struct pftrace *p, struct message message)
{
    enum { STATIC_NAME = 10, SYSTEM_NAME = 13, LANE_FIELDS = CS_PF_UNIT_NAME + 1 };
    struct field in[CS_PF_DESCRIPTION + 1], lane[LANE_FIELDS];
    fields_read(message, in, CS_PF_DESCRIPTION + 1);
    const struct message process = in[CS_PF_PROCESS].message, thread = in[CS_PF_THREAD].message,
                         counter = in[CS_PF_COUNTER_TRACK].message,
                         description = in[CS_PF_DESCRIPTION].message;
    const unsigned named_by = in[CS_PF_TRACK_NAME].number ?: in[STATIC_NAME].number ?: in[SYSTEM_NAME].number;
    if (!in[CS_PF_UUID].value) return; /* uuid 0: the track that stands for the whole trace */
    struct track *track = track_get(p, in[CS_PF_UUID].value);
    track->parent = in[CS_PF_PARENT].value;
    if (named_by && !track->name) track->name = told_number(p, in[named_by].message);
    fields_read(thread.at ? thread : process.at ? process : counter, lane, LANE_FIELDS);
    track->kind = TRACK_OTHER;
    if (thread.at) {
        track->kind = TRACK_THREAD;
        track->pid = lane[CS_PF_PID].value;
        track->tid = lane[CS_PF_TID].value;
        rows_told(p, track, thread, of_thread, description);
    } else if (process.at) {
        track->kind = TRACK_PROCESS;
        track->pid = lane[CS_PF_PID].value;
        track->tid = tid_in(description, track->pid);
        rows_told(p, track, process, of_process, description);
    } else if (counter.at) {
        const struct track *parent = track_get(p, track->parent);
        track->kind = TRACK_COUNTER;
        track->pid = parent->pid;
        track->tid = tid_in(description, parent->tid);
        if (lane[CS_PF_UNIT_NAME].number && !track->unit)
            track->unit = told_number(p, lane[CS_PF_UNIT_NAME].message);
    }
}

/* Gives another tool's track the pid of the process or thread that it belongs to, a tid that no
 * thread has, and a row with its name. */
static void other_lane(struct pftrace *p, struct track *track)
{
    enum { DEPTH_MAX = 64 };
    const struct track *up = track;
    for (int depth = 0;
        up->parent && up->kind != TRACK_PROCESS && up->kind != TRACK_THREAD && depth < DEPTH_MAX;
        depth++)
        up = track_get(p, up->parent);
    track->announced = true;
    track->pid = up == track ? 0 : up->pid;
    track->tid = (track->uuid ^ track->uuid >> 32) % 1000000000 + 1000000000;
    const struct field name = {.message = told(p, track->name)};
    if (track->name) named(p, track, "thread_name", "name", &name, (struct message){0});
}

/* --- events --- */

struct event {
    const struct sequence *sequence;
    uint64_t ns;
    uint64_t type, track;
    uint64_t number; /* a counter's value; is_real: the bits of a double */
    uint64_t flow;
    /* The kind of field that has the flow. Of several such fields, the kind that stands last in
     * this list counts. */
    enum { NO_FLOW, FLOW_OUT, OLD_FLOW_OUT, FLOW_IN, OLD_FLOW_IN } way;
    bool is_real;
    bool bare;                       /* the packet's flag: a slice that has it has no "args" */
    bool category_stays, name_stays; /* as row_staying() says */
    struct message category, name;   /* `at` is NULL: the event has none */
    struct message args;   /* from the first field with arguments to the end of the last */
    struct message legacy; /* a LegacyEvent */
};

static void flow_take(struct event *e, unsigned way, uint64_t flow)
{
    if (way < e->way) return;
    e->way = way;
    e->flow = flow;
}

/* Reads the fields. A category or name in the event itself counts before an interned one,
 * whichever comes first. */
static void event_fields(const struct pftrace *p, struct event *e, struct message all)
{
    enum { OLD_FLOW = 47, OLD_FLOW_ENDS = 48 };
    struct field field;
    struct message told;
    for (const unsigned char *from = all.at; field_next(&all, &field); from = all.at) {
        switch (field.number) {
        case CS_PF_TYPE: e->type = field.value; break;
        case CS_PF_TRACK_UUID: e->track = field.value; break;
        case CS_PF_CATEGORY: e->category = field.message, e->category_stays = false; break;
        case CS_PF_CATEGORY_IID:
            if (e->category.at && !e->category_stays) break;
            told = interned(p, e->sequence, CS_PF_INTERNED_CATEGORY, field.value);
            if (message_size(told)) e->category = told, e->category_stays = true;
            break;
        case CS_PF_NAME: e->name = field.message, e->name_stays = false; break;
        case CS_PF_NAME_IID:
            if (e->name.at && !e->name_stays) break;
            e->name = interned(p, e->sequence, CS_PF_INTERNED_NAME, field.value);
            e->name_stays = true;
            break;
        case CS_PF_ARGS:
        case CS_PF_ANNOTATION:
            if (!e->args.at) e->args.at = from;
            e->args.end = all.at;
            break;
        case CS_PF_COUNTER_VALUE:
            if (!e->is_real) e->number = field.value;
            break;
        case CS_PF_COUNTER_DOUBLE: e->is_real = true, e->number = field.value; break;
        case CS_PF_LEGACY: e->legacy = field.message; break;
        case CS_PF_FLOW: flow_take(e, FLOW_OUT, field.value); break;
        case OLD_FLOW: flow_take(e, OLD_FLOW_OUT, field.value); break;
        case CS_PF_FLOW_ENDS: flow_take(e, FLOW_IN, field.value); break;
        case OLD_FLOW_ENDS: flow_take(e, OLD_FLOW_IN, field.value); break;
        default: break;
        }
    }
}

static void put_given(struct pf_row *to, const char *name, struct message text, bool stays)
{
    if (!text.at) return;
    row_word(to, name);
    if (stays) row_staying(to, text);
    else row_text(to, text);
}

static void put_called(struct pf_row *to, const struct event *e)
{
    put_given(to, "cat", e->category, e->category_stays);
    put_given(to, "name", e->name, e->name_stays);
}

static void put_moment(
    const struct pftrace *p, struct pf_row *to, const struct event *e, const struct track *track)
{
    put_lane(to, track);
    row_word(to, "ts");
    row_time(p, to, e->ns);
}

/* Adds "args":{...} and the flow, and ends the row. `bare`: no "args" if it would be empty. */
static void put_args(struct pftrace *p, struct pf_row *to, const struct event *e, bool bare)
{
    struct message all = e->args;
    struct field field;
    const size_t before = to->count, args = put_object(to, "args");
    while (field_next(&all, &field)) {
        if (field.number == CS_PF_ARGS) args_field(p, to, field.message);
        if (field.number == CS_PF_ANNOTATION && field.message.at)
            args_note(p, e->sequence, to, field.message, 0);
    }
    row_close(to, args, false);
    if (bare && to->count == args + 1) to->count = before;
    if (e->way) {
        put_number(to, "bind_id", e->flow);
        row_word(to, e->way >= FLOW_IN ? "flow_in" : "flow_out");
        row_bool(to, true);
    }
    row_close(to, 0, false);
}

static void slice_begins(struct pftrace *p, const struct event *e, struct track *track)
{
    if (track->open_count == track->open_capacity) {
        const size_t before = track->open_capacity;
        track->open =
            array_room(track->open, track->open_count, &track->open_capacity, sizeof *track->open);
        memset(track->open + before, 0, (track->open_capacity - before) * sizeof *track->open);
    }
    struct open *open = &track->open[track->open_count++];
    struct pf_row *row = row_begin(&open->row);
    open->ns = e->ns;
    put_text(row, "ph", "X");
    put_called(row, e);
    put_moment(p, row, e, track);
    row_word(row, "dur");
    open->duration = row->count;
    row_null(row);
    put_args(p, row, e, e->bare);
}

static void slice_ends(struct pftrace *p, const struct event *e, struct track *track)
{
    if (!track->open_count) return; /* the slice began before the file */
    struct open *open = &track->open[--track->open_count];
    struct pf_row *const made = open->row, **const row = row_place(p);
    const uint64_t ns = e->ns > open->ns ? e->ns - open->ns : 0;
    if (p->texts) {
        row_time(p, made, ns);
        made->values[open->duration] = made->values[--made->count];
    } else unsafe_yyjson_set_uint(&made->values[open->duration], ns);
    open->row = *row;
    *row = made;
}

/* Makes a row without a duration. `scope` is given for an instant, `id` for a span; else they are
 * NULL. */
static void moment(struct pftrace *p, const struct event *e, const struct track *track,
    const char *phase, const char *scope, const uint64_t *id)
{
    struct pf_row *row = row_new(p);
    put_text(row, "ph", phase);
    if (scope) put_text(row, "s", scope);
    put_called(row, e);
    put_moment(p, row, e, track);
    if (id) {
        const size_t opened = put_object(row, "id2");
        put_number(row, "local", *id);
        row_close(row, opened, false);
    }
    put_args(p, row, e, e->bare);
}

/* Adds a counter's value. The name of its track is "COUNTER UNIT". */
static void counter(struct pftrace *p, const struct event *e, const struct track *track)
{
    struct message name = told(p, track->name), unit = told(p, track->unit);
    const size_t n = message_size(name), k = message_size(unit);
    const bool more =
        p->counter_open && message_is(e->category, "+"); /* the value belongs to the row before */
    if (!track->unit) unit = message_of("value", 5);
    else if (n > k && !memcmp(name.end - k, unit.at, k) && name.end[-(ptrdiff_t)k - 1] == ' ')
        name.end -= k + 1;
    struct pf_row *row = more ? p->rows[p->made - 1] : row_new(p);
    if (!more) {
        put_text(row, "ph", "C");
        row_word(row, "name");
        row_text(row, name);
        put_moment(p, row, e, track);
        p->counter_args = put_object(row, "args");
        p->counter_open = true;
    }
    row_text(row, unit);
    if (e->is_real) row_double(p, row, e->number);
    else row_int(row, (int64_t)e->number);
}

/* Makes an arrow's end. As a rule an arrow's end has no "args". If e->bare is set, it has an empty
 * "args". */
static void arrow(struct pftrace *p, const struct event *e, const struct track *track,
    const char *phase, uint64_t id)
{
    struct pf_row *row = row_new(p);
    put_text(row, "ph", phase);
    if (*phase == 'f') put_text(row, "bp", "e");
    put_number(row, "id", id);
    put_moment(p, row, e, track);
    put_called(row, e);
    put_args(p, row, e, !e->bare);
}

enum { LEGACY_FIELDS = CS_PF_INSTANT_SCOPE + 1 };

/* Takes the older fields of a flow. Our traces use these fields because an arrow may have several
 * ends. A flow of the newer fields has only one end. */
static void legacy_flow(struct event *e)
{
    struct field in[LEGACY_FIELDS];
    fields_read(e->legacy, in, LEGACY_FIELDS);
    const uint64_t way = in[CS_PF_BIND_WAY].value;
    if (way != CS_PF_BIND_IN && way != CS_PF_BIND_OUT) return;
    e->way = way == CS_PF_BIND_IN ? FLOW_IN : FLOW_OUT;
    e->flow = in[CS_PF_BIND_ID].value;
}

static void legacy(struct pftrace *p, const struct event *e, struct track *track)
{
    enum { GLOBAL_ID = 11, SCOPES = 3 };
    static const char *const scopes[SCOPES] = {"t", "g", "p"};
    struct field in[LEGACY_FIELDS];
    fields_read(e->legacy, in, LEGACY_FIELDS);
    const uint64_t scope = in[CS_PF_INSTANT_SCOPE].value;
    const unsigned by = in[CS_PF_UNSCOPED_ID].number ?: in[CS_PF_LOCAL_ID].number ?: GLOBAL_ID;
    const uint64_t *id = &in[by].value;
    /* In our traces, 'B' and 'E' stay two rows, as in the JSON form. In other tools' traces, they
     * become a slice. */
    switch ((char)in[CS_PF_PHASE].value) {
    case 's': return arrow(p, e, track, "s", *id);
    case 'f': return arrow(p, e, track, "f", *id);
    case 'b': return moment(p, e, track, "b", NULL, id);
    case 'e': return moment(p, e, track, "e", NULL, id);
    case 'i':
    case 'I': return moment(p, e, track, "i", scopes[scope < SCOPES ? scope : 0], NULL);
    case 'B':
        if (p->ours) moment(p, e, track, "B", NULL, NULL);
        else slice_begins(p, e, track);
        return;
    case 'E':
        if (p->ours) moment(p, e, track, "E", NULL, NULL);
        else slice_ends(p, e, track);
        return;
    default: return;
    }
}

void event_read(struct pftrace *p, const struct sequence *sequence, uint64_t ns, bool bare,
    struct message event)
{
    struct event one, *const e = &one;
    e->sequence = sequence;
    e->ns = ns;
    e->bare = bare;
    e->track = sequence->track;
    /* Not by an initializer: GCC would clear the struct by an instruction that takes a third of the
     * function's time. */
    e->type = e->number = e->flow = e->way = 0;
    e->is_real = e->category_stays = e->name_stays = false;
    e->category = e->name = e->args = e->legacy = (struct message){0};
    event_fields(p, e, event);
    struct track *track = track_get(p, e->track);
    if (track->kind == TRACK_OTHER && !track->announced) other_lane(p, track);
    if (e->type == CS_PF_END) return slice_ends(p, e, track);
    if (e->legacy.at) legacy_flow(e);
    switch (e->type) {
    case CS_PF_BEGIN: return slice_begins(p, e, track);
    case CS_PF_INSTANT: return moment(p, e, track, "i", "t", NULL);
    case CS_PF_COUNTER: return counter(p, e, track);
    default: return legacy(p, e, track);
    }
}
