#include "tools/custream/convert/packets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/lane.h"
#include "shim/base/perfetto.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/value.h"

struct packets {
    struct cs_pf pf;
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    char *room, *at;
    size_t size;
    char *notes; /* arguments of the event that the library's own room for them has no place for */
    size_t notes_length, notes_size;
    char *error;
    /* of the row that is being read */
    struct member {
        struct piece name, value;
    } *members;
    size_t count, capacity;
};

struct packets *packets_new(void (*put)(void *of, const char *bytes, size_t n), void *of)
{
    struct packets *p = calloc(1, sizeof *p);
    struct cs_pf_entry *entries = calloc(CS_PF_ENTRIES, sizeof *entries);
    if (!p || !entries) out_of_memory();
    p->pf.entries = entries;
    p->put = put;
    p->of = of;
    cs_pf_begin(&p->pf, CS_GPU_PIDS);
    return p;
}

void packets_free(struct packets *p)
{
    free(p->pf.entries);
    free(p->members);
    free(p->notes);
    free(p->room);
    free(p);
}

static char *room(struct packets *p, size_t n)
{
    if (p->size >= n) return p->room;
    free(p->room);
    if (!(p->room = malloc(n))) out_of_memory();
    p->size = n;
    return p->room;
}

static void written(struct packets *p, const char *end) { p->put(p->of, p->room, (size_t)(end - p->room)); }

void packets_head(struct packets *p, const char *text, size_t n, uint64_t wall_ns)
{
    char *at = room(p, n + CS_PF_EVENT_MAX);
    memcpy(at, text, n);
    written(p, cs_pf_head(&p->pf, at, n, wall_ns));
}

void packets_tail(struct packets *p, const char *text, size_t n)
{
    char *start = cs_pf_tail(room(p, n + CS_PF_EVENT_MAX)), *end = start + n;
    memcpy(start, text, n);
    cs_pf_tail_ends(start, end);
    written(p, end);
}

/* --- members of a row --- */

static bool fail(struct packets *p, const char *format, struct piece piece)
{
    const int n = piece.length < 60 ? (int)piece.length : 60;
    snprintf(p->error, 256, format, n, piece.at ? piece.at : "");
    return false;
}

static void member_found(void *of, struct piece name, struct piece value)
{
    struct packets *p = of;
    p->members = array_room(p->members, p->count, &p->capacity, sizeof *p->members);
    p->members[p->count++] = (struct member){name, value};
}

static struct piece member(const struct packets *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (piece_named(p->members[i].name, name)) return p->members[i].value;
    return (struct piece){NULL, 0};
}

#define TEXT(unquoted) (&(const struct cs_pf_text){.text = (unquoted).at, .length = (unquoted).length})

static bool natural(struct packets *p, const char *name, uint64_t *number, uint64_t most)
{
    struct piece piece = member(p, name);
    if (piece.at && *piece.at != '"' && piece_natural(piece, number) && *number <= most) return true;
    if (!piece.at) return snprintf(p->error, 256, "an event without %s", name), false;
    char format[64];
    snprintf(format, sizeof format, "%s is %%.*s; this form has numbers up to %llu there", name, (unsigned long long)most);
    return fail(p, format, piece);
}

static bool time_of(struct packets *p, const char *name, uint64_t *ns)
{
    int64_t read;
    if (!piece_ns(member(p, name), &read)) return fail(p, "a time that is no number, or too great: %.*s", member(p, name));
    if (read < 0) return fail(p, "a time before the trace's begin: %.*s", member(p, name));
    *ns = (uint64_t)read;
    return true;
}

/* --- arguments --- */

static bool is_hex(const struct unquoted *text)
{
    const char *digits = text->at + 2;
    const size_t n = text->length - 2;
    if (text->length < 3 || n > 16 || memcmp(text->at, "0x", 2) || (*digits == '0' && n > 1)) return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdef", digits[i])) return false;
    return true;
}

static char *notes_room(struct packets *p, size_t n)
{
    while (p->notes_size < p->notes_length + n) p->notes = array_room(p->notes, p->notes_size, &p->notes_size, 1);
    return p->notes + p->notes_length;
}

/* The library keeps some arguments until the event is closed. Those that are there go where there is more room, before it has no place for the next. False: for
 * this one it has none at all. */
static bool is_kept(struct packets *p, struct piece name, struct piece value)
{
    enum { NUMBERS = 512 }; /* what the longest list of numbers takes */
    const size_t most = 3 * (name.length + value.length) + NUMBERS;
    if (most > sizeof p->pf.side) return false;
    if (p->pf.side_used + most <= sizeof p->pf.side) return true;
    memcpy(notes_room(p, p->pf.side_used), p->pf.side, p->pf.side_used);
    p->notes_length += p->pf.side_used;
    p->pf.side_used = 0;
    return true;
}

/* One that is too long for that: a text, or anything else as JSON. */
static void note_put(struct packets *p, const struct unquoted *key, struct piece value)
{
    enum { TAGS = 64 };
    struct unquoted text = unquote(value);
    const bool is_text = *value.at == '"';
    const struct piece told = is_text ? (struct piece){text.at, text.length} : value;
    char *start = cs_pf_nest(notes_room(p, 3 * (key->length + told.length) + TAGS), CS_PF_ANNOTATION);
    char *end = cs_pf_put_text(start, CS_PF_NOTE_NAME, key->at, key->length);
    end = cs_pf_put_text(end, is_text ? CS_PF_NOTE_STRING : CS_PF_NOTE_JSON, told.at, told.length);
    p->notes_length = (size_t)(cs_pf_nested(start, end) - p->notes);
    unquoted_free(&text);
}

/* They stand behind the others, as those do that the library has kept. */
static char *notes_out(struct packets *p, char *at)
{
    if (!p->notes_length) return at;
    if (p->pf.args) at = cs_pf_nested(p->pf.args, at);
    p->pf.args = NULL;
    memcpy(at, p->notes, p->notes_length);
    return at + p->notes_length;
}

static char *string_put(struct packets *p, char *at, struct piece value)
{
    enum { WORD_MAX = 512 };
    struct unquoted text = unquote(value);
    if (is_hex(&text)) at = cs_pf_value_pointer(&p->pf, at, strtoull(text.at, NULL, 16));
    else if (text.length <= WORD_MAX) at = cs_pf_value_word(&p->pf, at, TEXT(text));
    else at = cs_pf_value_text(&p->pf, at, text.at, text.length);
    unquoted_free(&text);
    return at;
}

/* A natural number that the text says exactly. */
static bool whole(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    return *text >= '0' && *text <= '9' && !*end && !errno && *number <= most;
}

static char *number_put(struct packets *p, char *at, struct piece value)
{
    char digits[64];
    uint64_t number;
    snprintf(digits, sizeof digits, "%.*s", (int)value.length, value.at);
    if (whole(digits, UINT64_MAX, &number)) return cs_pf_value_uint(&p->pf, at, number);
    if (*digits == '-' && whole(digits + 1, INT64_MAX, &number) && number) return cs_pf_value_int(&p->pf, at, -(int64_t)number);
    return cs_pf_value_double(&p->pf, at, strtod(digits, NULL));
}

struct arguments {
    struct packets *p;
    char *at;
    bool counter, good;
};

/* Each value of a counter is an event, and may bring a track along. So each has all of the room. */
static char *counted(struct packets *p, const char *end)
{
    written(p, end);
    return p->room;
}

static void argument_found(void *of, struct piece name, struct piece value)
{
    struct arguments *arguments = of;
    struct packets *p = arguments->p;
    uint32_t numbers[VALUE_LIST];
    size_t n;
    struct unquoted key;
    if (!arguments->good) return;
    key = unquote((struct piece){name.at - 1, name.length + 2});
    cs_pf_key(&p->pf, key.at, key.length, NULL);
    const char kind = *value.at;
    if (arguments->counter && (kind < '-' || kind > '9')) arguments->good = fail(p, "a counter whose value is no number: %.*s", value);
    else if (!arguments->counter && !is_kept(p, name, value)) note_put(p, &key, value);
    else if (kind == '"') arguments->at = string_put(p, arguments->at, value);
    else if (kind == 't' || kind == 'f') arguments->at = cs_pf_value_bool(&p->pf, arguments->at, kind == 't');
    else if (kind == '[' && (n = value_list(value, numbers))) arguments->at = cs_pf_value_uints(&p->pf, arguments->at, numbers, n);
    else if (kind != '[' && kind != '{' && kind != 'n') arguments->at = number_put(p, arguments->at, value);
    else arguments->at = cs_pf_value_json(&p->pf, arguments->at, value.at, value.length);
    if (arguments->counter) arguments->at = counted(p, arguments->at);
    unquoted_free(&key);
}

static bool args_put(struct packets *p, char **at, bool counter)
{
    const struct piece args = member(p, "args");
    struct arguments arguments = {p, *at, counter, true};
    if (args.at && *args.at != '{') return fail(p, "args that are no object: %.*s", args);
    if (args.at) members_each(args.at, argument_found, &arguments);
    *at = notes_out(p, arguments.at);
    return arguments.good;
}

/* --- rows --- */

struct event {
    uint64_t pid, tid, ns;
    struct unquoted category, name;
    char *at;
};

static bool slice(struct packets *p, struct event *e)
{
    uint64_t ns, id;
    if (!time_of(p, "dur", &ns)) return false;
    e->at = cs_pf_slice(&p->pf, e->at, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns, e->ns + ns);
    if (member(p, "bind_id").at) {
        const struct piece in = member(p, "flow_in"), out = member(p, "flow_out");
        if (!piece_natural(member(p, "bind_id"), &id) || !in.at == !out.at) return fail(p, "a bind_id that is no arrow's one end: %.*s", member(p, "bind_id"));
        cs_pf_flow(&p->pf, id, in.at ? CS_PF_LAST : CS_PF_FIRST);
    }
    if (!member(p, "args").at) cs_pf_bare(&p->pf);
    return args_put(p, &e->at, false);
}

static bool instant(struct packets *p, struct event *e)
{
    const struct piece scope = member(p, "s");
    const bool process = piece_is(scope, "p");
    if (!process && scope.at && !piece_is(scope, "t")) return fail(p, "an instant of the scope %.*s", scope);
    e->at = cs_pf_instant(&p->pf, e->at, process, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns);
    return args_put(p, &e->at, false);
}

static bool counter(struct packets *p, struct event *e)
{
    if (e->category.length) return fail(p, "a counter with a category: %.*s", member(p, "cat"));
    e->at = cs_pf_counter(&p->pf, e->at, TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns);
    return args_put(p, &e->at, true);
}

static bool arrow_or_span(struct packets *p, struct event *e, char phase)
{
    static const char *const local[] = {"local", NULL};
    const bool arrow = phase == 's' || phase == 'f';
    struct piece id = arrow ? member(p, "id") : member(p, "id2");
    uint64_t number;
    if (!arrow && id.at) id = member_at(id.at, local);
    if (!id.at) return fail(p, arrow ? "an arrow without an id: %.*s" : "a span without a local id2: %.*s", member(p, "name"));
    if (!piece_natural(id, &number)) return fail(p, "an arrow or a span whose number is %.*s", id);
    e->at = cs_pf_legacy(&p->pf, e->at, phase, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns, number);
    return args_put(p, &e->at, false);
}

/* Half a slice: earlier traces have such. */
static bool half(struct packets *p, struct event *e, char phase)
{
    if (!member(p, "name").at) e->name.at = NULL;
    e->at = cs_pf_legacy(&p->pf, e->at, phase, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns, 0);
    if (!member(p, "args").at) cs_pf_bare(&p->pf);
    return args_put(p, &e->at, false);
}

static bool event_put(struct packets *p, struct event *e, char phase)
{
    bool good;
    e->category = unquote(member(p, "cat"));
    e->name = unquote(member(p, "name"));
    switch (phase) {
    case 'X': good = slice(p, e); break;
    case 'i': case 'I': good = instant(p, e); break;
    case 'C': good = counter(p, e); break;
    case 'B': case 'E': good = half(p, e, phase); break;
    default: good = arrow_or_span(p, e, phase); break;
    }
    unquoted_free(&e->category);
    unquoted_free(&e->name);
    if (good) e->at = cs_pf_close(&p->pf, e->at);
    return good;
}

/* What a row says besides the name: the first member is the name, and what is behind it goes along. */
static bool more_of(struct packets *p, bool process, struct piece args, struct piece name, struct piece *more)
{
    const char *end = name.at + name.length, *last = args.at + args.length - 1;
    *more = (struct piece){end + 1, end < last ? (size_t)(last - end - 1) : 0};
    if (!more->length || (!process && more->length <= CS_PF_MORE && !memcmp(args.at, "{\"name\":", 8))) return true;
    return fail(p, "a name with more behind it: %.*s", args);
}

/* What processes and threads are called, and where they stand. */
static bool meta(struct packets *p, struct event *e)
{
    static const char *const paths[][2] = {{"name", NULL}, {"labels", NULL}, {"sort_index", NULL}};
    const struct piece what = member(p, "name"), args = member(p, "args");
    const bool process = what.length > 9 && !memcmp(what.at, "\"process_", 9), thread = what.length > 8 && !memcmp(what.at, "\"thread_", 8);
    const char *kind = process ? what.at + 9 : thread ? what.at + 8 : "";
    struct piece value = args.at && *args.at == '{' ? member_at(args.at, paths[!strncmp(kind, "labels\"", 7) ? 1 : !strncmp(kind, "sort_index\"", 11) ? 2 : 0]) : (struct piece){0};
    const uint32_t pid = (uint32_t)e->pid, tid = (uint32_t)e->tid;
    if (value.at && !strncmp(kind, "sort_index\"", 11) && *value.at != '"') {
        const cs_i64 order = strtoll(value.at, NULL, 10);
        e->at = process ? cs_pf_process(&p->pf, e->at, pid, tid, NULL, 0, NULL, 0, &order) : cs_pf_thread(&p->pf, e->at, pid, tid, NULL, 0, NULL, 0, &order);
        return true;
    }
    const bool label = process && !strncmp(kind, "labels\"", 7);
    if (!value.at || *value.at != '"' || (!label && strncmp(kind, "name\"", 5))) return fail(p, "a row of names of the kind %.*s", what);
    struct unquoted text = unquote(value);
    struct piece more = args;
    bool good = more_of(p, process, args, value, &more);
    if (text.length > CS_PF_TEXT_MAX) good = fail(p, "a name of more than 4096 bytes: %.*s", value);
    if (!good) e->at = NULL;
    else if (thread) e->at = cs_pf_thread(&p->pf, e->at, pid, tid, text.at, text.length, more.at, more.length, NULL);
    else if (label) e->at = cs_pf_process(&p->pf, e->at, pid, tid, NULL, 0, text.at, text.length, NULL);
    else e->at = cs_pf_process(&p->pf, e->at, pid, tid, text.at, text.length, NULL, 0, NULL);
    unquoted_free(&text);
    return good;
}

/* Members that a row may have. */
static bool members_known(struct packets *p)
{
    static const char *const known[] = {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "s", "id", "bp", "id2", "bind_id", "flow_in", "flow_out"};
    for (size_t i = 0; i < p->count; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof *known && !piece_named(p->members[i].name, known[k])) k++;
        if (k == sizeof known / sizeof *known) return fail(p, "an event with the member \"%.*s\"", p->members[i].name);
    }
    return true;
}

bool packets_row(struct packets *p, const char *text, size_t length, char error[256])
{
    static const char kinds[] = "XBEiICsfbe";
    struct event e = {0};
    p->error = error;
    p->count = p->notes_length = 0;
    members_each(text, member_found, p);
    const struct piece ph = member(p, "ph");
    const char phase = ph.length == 3 ? ph.at[1] : 0;
    if (!phase || (phase != 'M' && !strchr(kinds, phase))) return fail(p, "an event of the kind %.*s", ph);
    if (!members_known(p) || !natural(p, "pid", &e.pid, INT32_MAX) || !natural(p, "tid", &e.tid, UINT32_MAX)) return false;
    if (phase != 'M' && !time_of(p, "ts", &e.ns)) return false;
    e.at = room(p, 4 * length + 2 * CS_PF_EVENT_MAX);
    if (!(phase == 'M' ? meta(p, &e) : event_put(p, &e, phase))) return false;
    written(p, e.at);
    return true;
}
