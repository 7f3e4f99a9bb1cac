/* TrackEvents as rows. */
#include <stdlib.h>

#include "tools/custream/command.h"
#include "tools/custream/pftrace_inside.h"

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
        case CS_PF_CATEGORY_IID: e->category = string_message(map_get(&packet->sequence->texts[TEXT_CATEGORY], field.value)); break;
        case CS_PF_CATEGORY: e->category = field.message, e->has_category = true; break;
        case CS_PF_NAME_IID: e->name = string_message(map_get(&packet->sequence->texts[TEXT_NAME], field.value)); break;
        case CS_PF_NAME: e->name = field.message; break;
        case CS_PF_LEGACY: e->legacy = field.message; break;
        case CS_PF_COUNTER_VALUE: e->number = field.value; break;
        case CS_PF_COUNTER_DOUBLE: e->number = field.value, e->is_double = true; break;
        case CS_PF_FLOW: case 47: e->flow = field.value, e->flows = FLOW_OUT; break;
        case CS_PF_FLOW_ENDS: case 48: e->flow = field.value, e->flows = FLOW_IN; break;
        default: break;
        }
    }
    if (!e->has_uuid) e->uuid = packet->sequence->track;
    legacy_bound(e);
}

/* --- pieces of a row --- */

static void put_called(struct rope *to, const struct event *e)
{
    if (e->category.at < e->category.end || e->has_category) {
        rope_literal(to, ",\"cat\":");
        rope_quoted(to, e->category);
    }
    if (!e->name.at) return;
    rope_literal(to, ",\"name\":");
    rope_quoted(to, e->name);
}

static void put_names(struct rope *to, char phase, const char *more, const struct event *e)
{
    rope_print(to, "{\"ph\":\"%c\"%s", phase, more);
    put_called(to, e);
}

static void put_time(struct rope *to, uint64_t ns)
{
    rope_literal(to, ",\"ts\":");
    rope_us(to, ns);
}

/* "args":{...} and what may follow, with the row's end. A slice without arguments says that too. */
static void put_args(struct pftrace *p, const struct packet *packet, const struct event *e, struct rope *to)
{
    struct message all = e->all;
    struct field field;
    const size_t before = to->length;
    rope_literal(to, ",\"args\":{");
    const size_t empty = to->length;
    while (field_next(&all, &field)) {
        if (field.wire != CS_WIRE_BYTES) continue;
        if (field.number == CS_PF_ARGS) args_field(p, to, field.message);
        if (field.number == CS_PF_ANNOTATION) args_note(p, packet->sequence, to, field.message);
    }
    if (to->length > empty) to->length--; /* the comma */
    rope_literal(to, "}");
    if (e->bare && to->length == empty + 1) to->length = before;
    if (e->flows) rope_print(to, ",\"bind_id\":%llu,\"%s\":true", (unsigned long long)e->flow, e->flows == FLOW_OUT ? "flow_out" : "flow_in");
    rope_literal(to, "}");
}

/* --- kinds --- */

static void slice_begins(struct pftrace *p, const struct packet *packet, const struct event *e, struct track *track)
{
    if (track->open_count == track->open_capacity) {
        const size_t before = track->open_capacity;
        track->open = array_room(track->open, track->open_count, &track->open_capacity, sizeof *track->open);
        memset(track->open + before, 0, (track->open_capacity - before) * sizeof *track->open);
    }
    struct open *open = &track->open[track->open_count++];
    open->head.length = open->tail.length = 0;
    open->ns = packet->ns;
    put_names(&open->head, 'X', "", e);
    row_lane(&open->head, track);
    put_time(&open->head, packet->ns);
    put_args(p, packet, e, &open->tail);
}

static void slice_ends(struct pftrace *p, const struct packet *packet, struct track *track)
{
    if (!track->open_count) return; /* it began before the file */
    const struct open *open = &track->open[--track->open_count];
    row_begin(p);
    rope_put(&p->out, open->head.at, open->head.length);
    rope_literal(&p->out, ",\"dur\":");
    rope_us(&p->out, packet->ns > open->ns ? packet->ns - open->ns : 0);
    rope_put(&p->out, open->tail.at, open->tail.length);
}

static void instant(struct pftrace *p, const struct packet *packet, const struct event *e, const struct track *track, char scope)
{
    row_begin(p);
    put_names(&p->out, 'i', scope == 'p' ? ",\"s\":\"p\"" : scope == 'g' ? ",\"s\":\"g\"" : ",\"s\":\"t\"", e);
    row_lane(&p->out, track);
    put_time(&p->out, packet->ns);
    put_args(p, packet, e, &p->out);
}

/* The track is called by the counter and its unit. */
static void counter(struct pftrace *p, const struct packet *packet, const struct event *e, const struct track *track)
{
    static const char by_default[] = "value";
    struct message name = string_message(track->name), unit = string_message(track->unit);
    const size_t n = (size_t)(name.end - name.at), k = (size_t)(unit.end - unit.at);
    if (!track->unit) unit = (struct message){(const unsigned char *)by_default, (const unsigned char *)by_default + sizeof by_default - 1};
    else if (n > k && !memcmp(name.end - k, unit.at, k) && name.end[-(ptrdiff_t)k - 1] == ' ') name.end -= k + 1;
    if (p->counter_open && e->category.end - e->category.at == 1 && *e->category.at == '+') { /* another of the row before */
        rope_literal(&p->out, ",");
    } else {
        row_begin(p);
        rope_literal(&p->out, "{\"ph\":\"C\",\"name\":");
        rope_quoted(&p->out, name);
        row_lane(&p->out, track);
        put_time(&p->out, packet->ns);
        rope_literal(&p->out, ",\"args\":{");
    }
    rope_quoted(&p->out, unit);
    rope_literal(&p->out, ":");
    if (e->is_double) rope_double(&p->out, field_double(&(struct field){.value = e->number}));
    else rope_int(&p->out, (int64_t)e->number);
    p->counter_open = true; /* row_begin closes it */
}

static void arrow(struct pftrace *p, const struct packet *packet, const struct event *e, const struct track *track, char phase, uint64_t id)
{
    struct event told = *e;
    told.bare = !e->bare; /* an arrow has no arguments as a rule, so that it says so where it has an empty list */
    row_begin(p);
    rope_print(&p->out, phase == 's' ? "{\"ph\":\"s\",\"id\":%llu" : "{\"ph\":\"f\",\"bp\":\"e\",\"id\":%llu", (unsigned long long)id);
    row_lane(&p->out, track);
    put_time(&p->out, packet->ns);
    put_called(&p->out, e);
    put_args(p, packet, &told, &p->out);
}

static void span(struct pftrace *p, const struct packet *packet, const struct event *e, const struct track *track, char phase, uint64_t id)
{
    row_begin(p);
    put_names(&p->out, phase, "", e);
    row_lane(&p->out, track);
    put_time(&p->out, packet->ns);
    rope_print(&p->out, ",\"id2\":{\"local\":%llu}", (unsigned long long)id);
    put_args(p, packet, e, &p->out);
}

/* The row was one already. */
static void half(struct pftrace *p, const struct packet *packet, const struct event *e, const struct track *track, char phase)
{
    row_begin(p);
    put_names(&p->out, phase, "", e);
    row_lane(&p->out, track);
    put_time(&p->out, packet->ns);
    put_args(p, packet, e, &p->out);
}

static void legacy(struct pftrace *p, const struct packet *packet, const struct event *e, struct track *track)
{
    struct message all = e->legacy;
    struct field field;
    uint64_t phase = 0, id = 0, scope = 0;
    while (field_next(&all, &field)) {
        if (field.number == CS_PF_PHASE) phase = field.value;
        if (field.number == CS_PF_UNSCOPED_ID || field.number == CS_PF_LOCAL_ID || field.number == 11) id = field.value;
        if (field.number == CS_PF_INSTANT_SCOPE) scope = field.value;
    }
    switch (phase) {
    case 's': case 'f': arrow(p, packet, e, track, (char)phase, id); break;
    case 'b': case 'e': span(p, packet, e, track, (char)phase, id); break;
    case 'i': case 'I': instant(p, packet, e, track, scope == 1 ? 'g' : scope == 2 ? 'p' : 't'); break;
    case 'B': case 'E':
        if (p->ours) half(p, packet, e, track, (char)phase);
        else if (phase == 'B') slice_begins(p, packet, e, track);
        else slice_ends(p, packet, track);
        break;
    default: p->left_out++; break;
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
        else p->left_out++;
        break;
    }
}
