/* TrackEvents as rows. */
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/pftrace_inside.h"

struct event {
    uint64_t type, uuid, flow;
    struct message category, name, all, legacy, value;
    enum { NO_FLOW, FLOW_OUT, FLOW_IN } flows;
    bool has_uuid, is_double, has_category;
    bool bare; /* no arguments are none, and not an empty list of them */
    uint64_t number;
};

/* A slice's end of an arrow that may have several last ends. */
static void legacy_bound(struct event *e)
{
    struct message all = e->legacy;
    struct field field;
    uint64_t id = 0, way = 0;
    while (field_next(&all, &field))
        if (field.number == CS_PF_BIND_ID) id = field.value;
        else if (field.number == CS_PF_BIND_WAY) way = field.value;
    if (way != CS_PF_BIND_IN && way != CS_PF_BIND_OUT) return;
    e->flow = id;
    e->flows = way == CS_PF_BIND_IN ? FLOW_IN : FLOW_OUT;
}

static void event_fields(const struct packet *packet, struct event *e)
{
    struct message all = e->all = packet->event;
    e->bare = packet->flags & CS_PF_SAYS_BARE;
    struct field field;
    while (field_next(&all, &field)) {
        switch (field.number) {
        case CS_PF_TYPE: e->type = field.value; break;
        case CS_PF_TRACK_UUID: e->uuid = field.value, e->has_uuid = true; break;
        case CS_PF_CATEGORY_IID:
            e->category =
                string_message(map_get(&packet->sequence->texts[TEXT_CATEGORY], field.value));
            break;
        case CS_PF_CATEGORY: e->category = field.message, e->has_category = true; break;
        case CS_PF_NAME_IID:
            e->name = string_message(map_get(&packet->sequence->texts[TEXT_NAME], field.value));
            break;
        case CS_PF_NAME: e->name = field.message; break;
        case CS_PF_LEGACY: e->legacy = field.message; break;
        case CS_PF_COUNTER_VALUE: e->number = field.value; break;
        case CS_PF_COUNTER_DOUBLE: e->number = field.value, e->is_double = true; break;
        case CS_PF_FLOW:
        case 47: e->flow = field.value, e->flows = FLOW_OUT; break;
        case CS_PF_FLOW_ENDS:
        case 48: e->flow = field.value, e->flows = FLOW_IN; break;
        default: break;
        }
    }
    if (!e->has_uuid) e->uuid = packet->sequence->track;
    legacy_bound(e);
}

/* --- pieces of a row --- */

static void put_text(struct pf_row *to, const char *name, const char *text)
{
    row_key(to, name, strlen(name));
    row_key(to, text, strlen(text));
}

static void put_number(struct pf_row *to, const char *name, uint64_t number)
{
    row_key(to, name, strlen(name));
    row_uint(to, number);
}

static void put_phase(struct pf_row *to, uint64_t phase)
{
    const unsigned char text = (unsigned char)phase;
    row_name(to, "ph");
    row_text(to, (struct message){&text, &text + 1});
}

static void put_called(struct pf_row *to, const struct event *e)
{
    if (e->category.at < e->category.end || e->has_category) {
        row_name(to, "cat");
        row_text(to, e->category);
    }
    if (!e->name.at) return;
    row_name(to, "name");
    row_text(to, e->name);
}

static void put_time(const struct pftrace *p, struct pf_row *to, const char *name, uint64_t ns)
{
    row_key(to, name, strlen(name));
    row_time(p, to, ns);
}

/* "args":{...} and what may follow, with the row's end. A slice without arguments says that too. */
static void put_args(
    struct pftrace *p, const struct packet *packet, const struct event *e, struct pf_row *to)
{
    struct message all = e->all;
    struct field field;
    const size_t before = to->count;
    row_name(to, "args");
    const size_t args = row_open(to);
    while (field_next(&all, &field)) {
        if (field.wire != CS_WIRE_BYTES) continue;
        if (field.number == CS_PF_ARGS) args_field(p, to, field.message);
        if (field.number == CS_PF_ANNOTATION) args_note(packet->sequence, to, field.message);
    }
    row_close(to, args, false);
    if (e->bare && to->count == args + 1) to->count = before;
    if (e->flows) put_number(to, "bind_id", e->flow);
    if (e->flows == FLOW_OUT) row_name(to, "flow_out"), row_bool(to, true);
    if (e->flows == FLOW_IN) row_name(to, "flow_in"), row_bool(to, true);
    row_close(to, 0, false);
}

/* --- kinds --- */

static void slice_begins(
    struct pftrace *p, const struct packet *packet, const struct event *e, struct track *track)
{
    if (track->open_count == track->open_capacity) {
        const size_t before = track->open_capacity;
        track->open =
            array_room(track->open, track->open_count, &track->open_capacity, sizeof *track->open);
        memset(track->open + before, 0, (track->open_capacity - before) * sizeof *track->open);
    }
    struct open *open = &track->open[track->open_count++];
    struct pf_row *row = &open->row;
    open->ns = packet->ns;
    row_clear(row);
    row_open(row);
    put_phase(row, 'X');
    put_called(row, e);
    row_lane(row, track);
    put_time(p, row, "ts", packet->ns);
    row_name(row, "dur");
    open->duration = row->count;
    row_null(row);
    put_args(p, packet, e, row);
}

static void slice_ends(struct pftrace *p, const struct packet *packet, struct track *track)
{
    if (!track->open_count) return; /* it began before the file */
    struct open *open = &track->open[--track->open_count];
    struct pf_row *told = row_new(p), made = open->row;
    open->row = *told;
    *told = made;
    made.count = open->duration;
    row_time(p, &made, packet->ns > open->ns ? packet->ns - open->ns : 0);
    made.count = told->count;
    *told = made;
}

static void instant(struct pftrace *p, const struct packet *packet, const struct event *e,
    const struct track *track, char scope)
{
    struct pf_row *row = row_new(p);
    put_phase(row, 'i');
    put_text(row, "s", scope == 'p' ? "p" : scope == 'g' ? "g" : "t");
    put_called(row, e);
    row_lane(row, track);
    put_time(p, row, "ts", packet->ns);
    put_args(p, packet, e, row);
}

/* The track is called by the counter and its unit. */
static void counter(struct pftrace *p, const struct packet *packet, const struct event *e,
    const struct track *track)
{
    static const char by_default[] = "value";
    struct message name = string_message(track->name), unit = string_message(track->unit);
    const size_t n = (size_t)(name.end - name.at), k = (size_t)(unit.end - unit.at);
    if (!track->unit)
        unit = (struct message){(const unsigned char *)by_default,
            (const unsigned char *)by_default + sizeof by_default - 1};
    else if (n > k && !memcmp(name.end - k, unit.at, k) && name.end[-(ptrdiff_t)k - 1] == ' ')
        name.end -= k + 1;
    const bool more = p->counter_open && e->category.end - e->category.at == 1 &&
                      *e->category.at == '+'; /* of the row before */
    struct pf_row *row = more ? &p->rows[p->made - 1] : row_new(p);
    if (!more) {
        put_phase(row, 'C');
        row_name(row, "name");
        row_text(row, name);
        row_lane(row, track);
        put_time(p, row, "ts", packet->ns);
        row_name(row, "args");
        p->counter_args = row_open(row);
        p->counter_open = true;
    }
    row_text(row, unit);
    if (e->is_double) row_double(row, field_double(&(struct field){.value = e->number}));
    else row_int(row, (int64_t)e->number);
}

static void arrow(struct pftrace *p, const struct packet *packet, const struct event *e,
    const struct track *track, char phase, uint64_t id)
{
    struct event told = *e;
    told.bare = !e->bare; /* an arrow has no arguments as a rule, so that it says so where it has an
                             empty list */
    struct pf_row *row = row_new(p);
    put_phase(row, (unsigned char)phase);
    if (phase == 'f') put_text(row, "bp", "e");
    put_number(row, "id", id);
    row_lane(row, track);
    put_time(p, row, "ts", packet->ns);
    put_called(row, e);
    put_args(p, packet, &told, row);
}

/* With the number of a span, where it is one's begin or end. */
static void half(struct pftrace *p, const struct packet *packet, const struct event *e,
    const struct track *track, char phase, const uint64_t *id)
{
    struct pf_row *row = row_new(p);
    put_phase(row, (unsigned char)phase);
    put_called(row, e);
    row_lane(row, track);
    put_time(p, row, "ts", packet->ns);
    if (id) {
        row_name(row, "id2");
        const size_t opened = row_open(row);
        put_number(row, "local", *id);
        row_close(row, opened, false);
    }
    put_args(p, packet, e, row);
}

static void legacy(
    struct pftrace *p, const struct packet *packet, const struct event *e, struct track *track)
{
    struct message all = e->legacy;
    struct field field;
    uint64_t phase = 0, id = 0, scope = 0;
    while (field_next(&all, &field)) {
        if (field.number == CS_PF_PHASE) phase = field.value;
        if (field.number == CS_PF_UNSCOPED_ID || field.number == CS_PF_LOCAL_ID ||
            field.number == 11)
            id = field.value;
        if (field.number == CS_PF_INSTANT_SCOPE) scope = field.value;
    }
    switch (phase) {
    case 's':
    case 'f': arrow(p, packet, e, track, (char)phase, id); break;
    case 'b':
    case 'e': half(p, packet, e, track, (char)phase, &id); break;
    case 'i':
    case 'I': instant(p, packet, e, track, scope == 1 ? 'g' : scope == 2 ? 'p' : 't'); break;
    case 'B':
    case 'E':
        if (p->ours) half(p, packet, e, track, (char)phase, NULL); /* the row was one already */
        else if (phase == 'B') slice_begins(p, packet, e, track);
        else slice_ends(p, packet, track);
        break;
    default: break;
    }
}

void event_read(struct pftrace *p, const struct packet *packet)
{
    struct event e = {0};
    event_fields(packet, &e);
    struct track *track = track_get(p, e.uuid);
    track_lane(p, track);
    switch (e.type) {
    case CS_PF_BEGIN: slice_begins(p, packet, &e, track); break;
    case CS_PF_END: slice_ends(p, packet, track); break;
    case CS_PF_INSTANT: instant(p, packet, &e, track, 't'); break;
    case CS_PF_COUNTER: counter(p, packet, &e, track); break;
    default:
        if (e.legacy.at) legacy(p, packet, &e, track);
        break;
    }
}
