#include "tools/custream/convert/packets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/append.h"
#include "shim/base/lane.h"
#include "shim/base/perfetto.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/value.h"
#include "tools/custream/trace/numbers.h"

struct packets {
    struct cs_pf pf;
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    char *room, *at;
    size_t size;
    char *notes; /* arguments of the event that the library's own room for them has no place for */
    size_t notes_length, notes_size;
    struct numbers counters;   /* by what its track is called: the length of the value's name in that, and 1 */
    char why[160], allowed[80]; /* there is no place for something; allowed: nothing to say */
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
    numbers_free(&p->counters);
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

static bool fail(struct packets *p, const char *format, struct piece piece, const char *allowed)
{
    const int n = piece.length < 60 ? (int)piece.length : 60;
    snprintf(p->why, sizeof p->why, format, n, piece.at ? piece.at : "");
    snprintf(p->allowed, sizeof p->allowed, "%s", allowed);
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
    char format[64], allowed[64];
    if (piece.at && *piece.at != '"' && piece_natural(piece, number) && *number <= most) return true;
    snprintf(allowed, sizeof allowed, "numbers from 0 to %llu", (unsigned long long)most);
    snprintf(format, sizeof format, piece.at ? "%s is %%.*s" : "an event without %s%%.*s", name);
    return fail(p, format, piece, allowed);
}

static bool time_of(struct packets *p, const char *name, uint64_t *ns)
{
    int64_t read;
    if (!piece_ns(member(p, name), &read)) return fail(p, "a time that is no number, or too great: %.*s", member(p, name), "up to 73 years");
    if (read < 0) return fail(p, "a time before the trace's begin: %.*s", member(p, name), "from 0 on");
    *ns = (uint64_t)read;
    return true;
}

static bool is_text(struct packets *p, struct piece piece)
{
    if (*piece.at != '"') return fail(p, "no text where one belongs: %.*s", piece, "a text");
    return quotes_text(piece) || fail(p, "a text with \\u0000 or half a pair of surrogates in it: %.*s", piece, "a text without these");
}

/* A member that need not be there. */
static bool is_text_or_none(struct packets *p, const char *name) { return !member(p, name).at || is_text(p, member(p, name)); }

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

/* The library keeps some arguments until the event is closed. Those that are there go where there is more room, before it has no place for
 * the next. False: for this one it has none at all. */
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

/* A number without a fraction, as JSON has it. What follows it in the text is no digit. */
struct integer {
    bool is, fits; /* fits: it is less than 0, or `natural` says it */
    cs_i64 negative;
    uint64_t natural;
};

static struct integer integer_of(struct piece value, uint64_t most)
{
    const bool minus = *value.at == '-';
    struct integer integer = {.is = value.length > minus && strspn(value.at + minus, "0123456789") == value.length - minus};
    if (!integer.is) return integer;
    errno = 0;
    integer.natural = strtoull(value.at + minus, NULL, 10);
    integer.fits = !errno && (minus ? integer.natural && integer.natural <= (uint64_t)1 << 63 : integer.natural <= most);
    integer.negative = minus ? (cs_i64)(0 - integer.natural) : 0;
    return integer;
}

/* An integer that no number of 64 bits is, as -0 is none, is told as JSON; a counter cannot. */
static bool number_put(struct packets *p, char **at, struct piece value, bool counter)
{
    const struct integer integer = integer_of(value, counter ? INT64_MAX : UINT64_MAX);
    const double real = integer.is ? 0 : strtod(value.at, NULL);
    if (integer.is && !integer.fits && counter) return fail(p, "a counter's integer that 64 bits do not hold: %.*s", value, "from -2^63 to 2^63 - 1");
    if (!__builtin_isfinite(real)) return fail(p, "a number that is too great: %.*s", value, "up to 1.79e308");
    if (!integer.is) *at = cs_pf_value_double(&p->pf, *at, real);
    else if (!integer.fits) *at = cs_pf_value_json(&p->pf, *at, value.at, value.length);
    else if (integer.negative) *at = cs_pf_value_int(&p->pf, *at, integer.negative);
    else *at = cs_pf_value_uint(&p->pf, *at, integer.natural);
    return true;
}

struct event {
    uint64_t pid, tid, ns;
    struct unquoted category, name;
    char *at;
};

struct arguments {
    struct packets *p;
    struct event *e;
    bool counter, good;
    size_t count;
};

/* The track is called by the counter and the value. Two that are called the same would be one. */
enum { COUNTER_NAME = 512, VALUE_NAME = 127 };

static bool is_of_another(struct packets *p, const struct event *e, const struct unquoted *key)
{
    char called[COUNTER_NAME + 1 + VALUE_NAME];
    memcpy(called, e->name.at, e->name.length);
    called[e->name.length] = ' ';
    memcpy(called + e->name.length + 1, key->at, key->length);
    const uint64_t hash = piece_hash(e->pid << 32 | e->tid, (struct piece){called, e->name.length + 1 + key->length});
    return *numbers_at(&p->counters, hash, (uint32_t)key->length + 1) != key->length + 1;
}

/* Each value of a counter is an event, and may bring a track along. So each has all of the room. */
static bool count_put(struct packets *p, struct event *e, struct piece name, const struct unquoted *key, struct piece value)
{
    if (*value.at != '-' && (*value.at < '0' || *value.at > '9')) return fail(p, "a counter whose value is no number: %.*s", value, "numbers");
    if (key->length > VALUE_NAME) return fail(p, "a counter's value with a name of more than 127 bytes: %.*s", name, "");
    if (is_of_another(p, e, key))
        return fail(p, "a value whose track, called by counter and value, is another one's: %.*s", name, "names that differ together");
    if (!number_put(p, &e->at, value, true)) return false;
    written(p, e->at);
    e->at = p->room;
    return true;
}

static bool value_put(struct packets *p, char **at, struct piece value)
{
    uint32_t numbers[VALUE_LIST];
    size_t n;
    switch (*value.at) {
    case '"': *at = string_put(p, *at, value); return true;
    case 't': case 'f': *at = cs_pf_value_bool(&p->pf, *at, *value.at == 't'); return true;
    case '[':
        if ((n = value_list(value, numbers))) *at = cs_pf_value_uints(&p->pf, *at, numbers, n);
        else *at = cs_pf_value_json(&p->pf, *at, value.at, value.length);
        return true;
    case '{': case 'n': *at = cs_pf_value_json(&p->pf, *at, value.at, value.length); return true;
    default: return number_put(p, at, value, false);
    }
}

static void argument_found(void *of, struct piece name, struct piece value)
{
    struct arguments *arguments = of;
    struct packets *p = arguments->p;
    struct event *e = arguments->e;
    const struct piece quoted = {name.at - 1, name.length + 2};
    if (!arguments->good || !(arguments->good = is_text(p, quoted) && (*value.at != '"' || is_text(p, value)))) return;
    struct unquoted key = unquote(quoted);
    cs_pf_key(&p->pf, key.at, key.length, NULL);
    arguments->count++;
    if (arguments->counter) arguments->good = count_put(p, e, name, &key, value);
    else if (is_kept(p, name, value)) arguments->good = value_put(p, &e->at, value);
    else note_put(p, &key, value);
    unquoted_free(&key);
}

static bool args_put(struct packets *p, struct event *e, bool counter)
{
    const struct piece args = member(p, "args");
    struct arguments arguments = {p, e, counter, true, 0};
    if (args.at && *args.at != '{') return fail(p, "args that are no object: %.*s", args, "an object");
    if (args.at) members_each(args.at, argument_found, &arguments);
    if (counter && arguments.good && !arguments.count) return fail(p, "a counter without a value: %.*s", member(p, "name"), "one and more");
    e->at = notes_out(p, e->at);
    return arguments.good;
}

/* --- rows --- */

/* All of a row that is no counter's, besides what it is. The category may be empty, which is told too, and so is what is rare: args that are
 * missing, or of an arrow an empty list of them. */
static bool more_put(struct packets *p, struct event *e, bool of_arrow)
{
    const struct piece args = member(p, "args");
    if (member(p, "cat").at && !e->category.length) e->at = cs_pf_put_text(e->at, CS_PF_CATEGORY, "", 0);
    if (of_arrow ? piece_named(args, "{}") : !args.at) cs_pf_bare(&p->pf);
    return args_put(p, e, false);
}

static bool is_true(struct piece value) { return value.at && *value.at == 't'; }

static bool slice(struct packets *p, struct event *e)
{
    const struct piece bind = member(p, "bind_id"), in = member(p, "flow_in"), out = member(p, "flow_out");
    uint64_t ns, id;
    if (!time_of(p, "dur", &ns)) return false;
    e->at = cs_pf_slice(&p->pf, e->at, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns, e->ns + ns);
    if (bind.at || in.at || out.at) {
        static const char allowed[] = "a number with \"flow_in\":true or \"flow_out\":true";
        if (!bind.at) return fail(p, "an end of an arrow without bind_id: %.*s", member(p, "name"), allowed);
        if (!piece_natural(bind, &id) || !in.at == !out.at || !is_true(in.at ? in : out))
            return fail(p, "a bind_id that is no arrow's one end: %.*s", bind, allowed);
        cs_pf_flow(&p->pf, id, in.at ? CS_PF_LAST : CS_PF_FIRST);
    }
    return more_put(p, e, false);
}

static bool instant(struct packets *p, struct event *e)
{
    const struct piece scope = member(p, "s");
    const bool process = piece_is(scope, "p");
    if (!process && scope.at && !piece_is(scope, "t")) return fail(p, "an instant of the scope %.*s", scope, "t and p");
    e->at = cs_pf_instant(&p->pf, e->at, process, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns);
    return more_put(p, e, false);
}

static bool counter(struct packets *p, struct event *e)
{
    if (!e->name.at) return fail(p, "a counter without a name: %.*s", member(p, "args"), "");
    if (e->name.length > COUNTER_NAME) return fail(p, "a counter with a name of more than 512 bytes: %.*s", member(p, "name"), "");
    e->at = cs_pf_counter(&p->pf, e->at, TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns);
    return args_put(p, e, true);
}

static bool legacy(struct packets *p, struct event *e, char phase, uint64_t id)
{
    e->at = cs_pf_legacy(&p->pf, e->at, phase, TEXT(e->category), TEXT(e->name), (uint32_t)e->pid, (uint32_t)e->tid, e->ns, id);
    return more_put(p, e, phase == 's' || phase == 'f');
}

static bool arrow(struct packets *p, struct event *e, char phase)
{
    const struct piece id = member(p, "id"), binds = member(p, "bp");
    uint64_t number;
    if (!id.at) return fail(p, "an arrow without an id: %.*s", member(p, "name"), "");
    if (!piece_natural(id, &number)) return fail(p, "an arrow whose id is %.*s", id, "numbers below 2^53");
    if (phase == 'f' && !binds.at) return fail(p, "the end of an arrow without bp: %.*s", member(p, "name"), "\"bp\":\"e\"");
    if (phase == 'f' && !piece_is(binds, "e")) return fail(p, "the end of an arrow whose bp is %.*s", binds, "\"bp\":\"e\"");
    return legacy(p, e, phase, number);
}

static bool span(struct packets *p, struct event *e, char phase)
{
    static const char *const path[] = {"local", NULL};
    static const char allowed[] = "\"id2\":{\"local\":NUMBER}";
    const struct piece id = member(p, "id2"), local = id.at ? member_at(id.at, path) : id;
    uint64_t number;
    if (!local.at) return fail(p, "a span without a local id2: %.*s", member(p, "name"), allowed);
    if (local.length + sizeof "{\"local\":}" - 1 != id.length || member(p, "id").at)
        return fail(p, "a span with more than a local id2: %.*s", id, allowed);
    if (!piece_natural(local, &number)) return fail(p, "a span whose id is %.*s", local, "numbers below 2^53");
    return legacy(p, e, phase, number);
}

static bool event_put(struct packets *p, struct event *e, char phase)
{
    bool good;
    if (!is_text_or_none(p, "cat") || !is_text_or_none(p, "name")) return false;
    e->category = unquote(member(p, "cat"));
    e->name = unquote(member(p, "name"));
    if (!member(p, "name").at) e->name.at = NULL;
    switch (phase) {
    case 'X': good = slice(p, e); break;
    case 'i': case 'I': good = instant(p, e); break;
    case 'C': good = counter(p, e); break;
    case 'B': case 'E': good = legacy(p, e, phase, 0); break; /* half a slice: earlier traces have such */
    case 's': case 'f': good = arrow(p, e, phase); break;
    default: good = span(p, e, phase); break;
    }
    unquoted_free(&e->category);
    unquoted_free(&e->name);
    if (good) e->at = cs_pf_close(&p->pf, e->at);
    return good;
}

/* What a row says besides the name, which is the first member: of threads, what is behind it goes along. */
static bool more_of(struct packets *p, bool process, const char *first, struct piece args, struct piece name, struct piece *more)
{
    const char *end = name.at + name.length, *last = args.at + args.length - 1;
    *more = (struct piece){end + 1, end < last ? (size_t)(last - end - 1) : 0};
    const bool is_first = name.at == args.at + 1 + strlen(first) && !memcmp(args.at + 1, first, strlen(first));
    if (is_first && (!more->length || (!process && more->length <= CS_PF_MORE))) return true;
    return fail(p, "a name with more beside it: %.*s", args, process ? "one member" : "1024 bytes behind the name");
}

/* Where a process or a thread stands. */
static bool order(struct packets *p, struct event *e, bool process, struct piece args, struct piece value)
{
    const uint32_t pid = (uint32_t)e->pid, tid = (uint32_t)e->tid;
    const struct integer integer = integer_of(value, INT64_MAX);
    const cs_i64 at = integer.negative ? integer.negative : (cs_i64)integer.natural;
    struct piece more;
    if (!integer.fits) return fail(p, "a sort_index that is no integer of 64 bits: %.*s", value, "from -2^63 to 2^63 - 1");
    if (!more_of(p, true, "\"sort_index\":", args, value, &more)) return false;
    e->at = process ? cs_pf_process(&p->pf, e->at, pid, tid, NULL, 0, NULL, 0, &at) : cs_pf_thread(&p->pf, e->at, pid, tid, NULL, 0, NULL, 0, &at);
    return true;
}

/* What a thread or a process is called, or a process's label. */
static bool name_or_label(struct packets *p, struct event *e, bool process, bool label, struct piece args, struct piece value)
{
    const uint32_t pid = (uint32_t)e->pid, tid = (uint32_t)e->tid;
    struct piece more;
    if (!is_text(p, value) || !more_of(p, process, label ? "\"labels\":" : "\"name\":", args, value, &more)) return false;
    struct unquoted text = unquote(value);
    const bool good = text.length <= CS_PF_TEXT_MAX || fail(p, "a name of more than 4096 bytes: %.*s", value, "");
    if (!good) e->at = NULL;
    else if (!process) e->at = cs_pf_thread(&p->pf, e->at, pid, tid, text.at, text.length, more.at, more.length, NULL);
    else if (label) e->at = cs_pf_process(&p->pf, e->at, pid, tid, NULL, 0, text.at, text.length, NULL);
    else e->at = cs_pf_process(&p->pf, e->at, pid, tid, text.at, text.length, NULL, 0, NULL);
    unquoted_free(&text);
    return good;
}

/* What processes and threads are called, and where they stand. */
static bool meta(struct packets *p, struct event *e)
{
    static const struct {
        const char *what;
        const char *path[2];
        bool process;
    } kinds[] = {{"process_name", {"name"}, true}, {"process_labels", {"labels"}, true}, {"process_sort_index", {"sort_index"}, true},
                 {"thread_name", {"name"}, false}, {"thread_sort_index", {"sort_index"}, false}};
    const struct piece what = member(p, "name"), args = member(p, "args");
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && !piece_is(what, kinds[k].what)) k++;
    const struct piece value = k < sizeof kinds / sizeof *kinds && args.at && *args.at == '{' ? member_at(args.at, kinds[k].path) : (struct piece){0};
    if (!value.at) return fail(p, "a row of names of the kind %.*s", what, "names, labels and sort indices of processes and threads");
    if (*kinds[k].path[0] == 's') return order(p, e, kinds[k].process, args, value);
    return name_or_label(p, e, kinds[k].process, *kinds[k].path[0] == 'l', args, value);
}

/* Members that a row of a kind may have. Browsers and Kineto write `ts` and `cat` into rows of names, and a category into counters: these mean nothing there, and
 * are left out. */
#define ALL "MXBEiICsfbe"
static const struct {
    const char *name, *kinds;
} members[] = {{"ph", ALL},    {"name", ALL}, {"pid", ALL}, {"tid", ALL},  {"args", ALL},    {"cat", ALL},     {"ts", ALL},    {"dur", "X"},
               {"s", "iI"}, {"id", "sfbe"}, {"bp", "f"},  {"id2", "be"}, {"bind_id", "X"}, {"flow_in", "X"}, {"flow_out", "X"}};
enum { MEMBERS = sizeof members / sizeof *members };

static bool member_refused(struct packets *p, char phase, struct piece name, const char *how)
{
    char format[64], allowed[sizeof p->allowed] = "";
    for (size_t k = 0, n = 0; k < MEMBERS; k++)
        if (strchr(members[k].kinds, phase)) n = cs_append(allowed, sizeof allowed, n, n ? ", %s" : "%s", members[k].name);
    snprintf(format, sizeof format, "an event of the kind %c with the member \"%%.*s\"%s", phase, how);
    return fail(p, format, name, allowed);
}

static bool members_known(struct packets *p, char phase)
{
    for (size_t i = 0; i < p->count; i++) {
        size_t k = 0;
        const struct piece name = p->members[i].name;
        while (k < MEMBERS && !(piece_named(name, members[k].name) && strchr(members[k].kinds, phase))) k++;
        if (k == MEMBERS) return member_refused(p, phase, name, "");
        if (member(p, members[k].name).at != p->members[i].value.at) return member_refused(p, phase, name, " twice");
    }
    return true;
}

static bool put_row(struct packets *p, const char *text, size_t length)
{
    struct event e = {0};
    members_each(text, member_found, p);
    const struct piece ph = member(p, "ph");
    const char phase = ph.length == 3 ? ph.at[1] : 0;
    if (!phase || !strchr(ALL, phase)) return fail(p, "an event of the kind %.*s", ph, "M, X, B, E, i, I, C, s, f, b and e");
    if (!members_known(p, phase) || !natural(p, "pid", &e.pid, INT32_MAX) || !natural(p, "tid", &e.tid, UINT32_MAX)) return false;
    if (phase != 'M' && !time_of(p, "ts", &e.ns)) return false;
    e.at = room(p, 4 * length + 2 * CS_PF_EVENT_MAX);
    if (!(phase == 'M' ? meta(p, &e) : event_put(p, &e, phase))) return false;
    written(p, e.at);
    return true;
}

bool packets_row(struct packets *p, const char *text, size_t length, char error[256])
{
    p->count = p->notes_length = 0;
    if (put_row(p, text, length)) return true;
    snprintf(error, 256, "%.100s, which Perfetto's format has no place for%s%.72s", p->why, *p->allowed ? "; allowed: " : "", p->allowed);
    return false;
}
