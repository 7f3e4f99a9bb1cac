#include "tools/custream/convert/rows.h"

#include <errno.h>
#include <stdarg.h>
#include <yyjson.h>

#include "shim/base/append.h"
#include "shim/base/lane.h"
#include "shim/base/perfetto.h"
#include "tools/custream/command.h"
#include "tools/custream/lanes.h"
#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/value.h"

struct packets {
    struct cs_pf pf;
    void (*put)(void *of, const char *bytes, size_t n);
    void *of;
    struct rope room; /* the packets of a row */
    /* the event's arguments that do not fit in pf.side (the library's buffer) */
    struct rope notes;
    struct rope text;    /* a value as JSON */
    struct numbers made; /* the made-up number of a pid or tid that is a text, by a hash of it */
    /* why: what Perfetto's format has no place for; allowed: what the trace may have instead, or
     * "" */
    char why[160], allowed[80];
    yyjson_val *row; /* the row that is being read */
    bool half;
};

struct packets *packets_new(void (*put)(void *of, const char *bytes, size_t n), void *of)
{
    struct packets *p = array_zeros(1, sizeof *p);
    p->put = put;
    p->of = of;
    p->pf.entries = array_zeros(CS_PF_ENTRIES, sizeof *p->pf.entries);
    cs_pf_begin(&p->pf, CS_GPU_PIDS);
    return p;
}

void packets_free(struct packets *p)
{
    free(p->pf.entries);
    free(p->room.at);
    free(p->notes.at);
    free(p->text.at);
    numbers_free(&p->made);
    free(p);
}

static void written(struct packets *p, const char *end)
{
    p->put(p->of, p->room.at, (size_t)(end - p->room.at));
}

void packets_head(struct packets *p, const char *text, size_t n, uint64_t wall_ns)
{
    char *at = rope_room(&p->room, n + CS_PF_EVENT_MAX);
    memcpy(at, text, n);
    written(p, cs_pf_head(&p->pf, at, n, wall_ns));
}

void packets_tail(struct packets *p, const char *text, size_t n)
{
    char *start = cs_pf_tail(rope_room(&p->room, n + CS_PF_EVENT_MAX)), *end = start + n;
    memcpy(start, text, n);
    cs_pf_tail_ends(start, end);
    written(p, end);
}

/* --- members of a row --- */

static bool __attribute__((format(printf, 3, 4))) fail(
    struct packets *p, const char *allowed, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->why, sizeof p->why, format, args);
    va_end(args);
    snprintf(p->allowed, sizeof p->allowed, "%s", allowed);
    return false;
}

static yyjson_val *member(const struct packets *p, const char *name)
{
    return yyjson_obj_get(p->row, name);
}

/* text_of() returns the value as JSON, valid until the next call. shown() does the same, but cuts
 * the text short for a complaint. */
static const char *text_of(struct packets *p, yyjson_val *value)
{
    p->text.length = 0;
    if (value) row_print(&p->text, value);
    rope_put(&p->text, "", 1);
    p->text.length--;
    return p->text.at;
}
static const char *shown(struct packets *p, yyjson_val *value)
{
    enum { MOST = 60 };
    text_of(p, value);
    if (p->text.length > MOST) p->text.at[MOST] = 0;
    return p->text.at;
}

static struct cs_pf_text text_in(yyjson_val *string)
{
    return (struct cs_pf_text){.text = yyjson_is_str(string) ? yyjson_get_str(string) : "",
        .length = yyjson_is_str(string) ? yyjson_get_len(string) : 0};
}

static bool is_number(yyjson_val *value)
{
    return yyjson_is_int(value) ||
           (yyjson_is_raw(value) && strchr("-0123456789", *yyjson_get_raw(value)));
}

/* Reads a pid or tid. If it is no natural number up to `most`, a number is made up for it; `made`:
 * this row is the first with that number. */
static bool number_of(struct packets *p, const char *name, uint64_t scope, uint64_t most,
    uint64_t *number, bool *made)
{
    yyjson_val *value = member(p, name);
    if (value_natural(value, number) && *number <= most) return true;
    if (!value) return fail(p, "a number or a text", "an event without %s", name);
    if (!yyjson_is_str(value) && !is_number(value))
        return fail(p, "a number or a text", "%s is %s", name, shown(p, value));
    uint32_t *at = numbers_at(&p->made, value_hash(scope, value), 0);
    *made = !*at;
    if (*made) *at = (uint32_t)(MERGED_OTHERS + p->made.count);
    *number = *at;
    return true;
}

static bool time_of(struct packets *p, const char *name, uint64_t *ns)
{
    int64_t read;
    yyjson_val *value = member(p, name);
    if (!value_ns(value, &read))
        return fail(
            p, "up to 73 years", "a time that is no number, or too great: %s", shown(p, value));
    if (read < 0)
        return fail(p, "from 0 on", "a time before the trace's begin: %s", shown(p, value));
    *ns = (uint64_t)read;
    return true;
}

static bool is_text(struct packets *p, yyjson_val *value)
{
    if (!yyjson_is_str(value))
        return fail(p, "a text", "no text where one belongs: %s", shown(p, value));
    const bool good = !p->half && strlen(yyjson_get_str(value)) == yyjson_get_len(value);
    return good ||
           fail(p, "a text without these",
               "a text with \\u0000 or half a pair of surrogates in it: %s", shown(p, value));
}

/* --- arguments --- */

static bool is_hex(const struct cs_pf_text *text)
{
    const char *digits = text->text + 2;
    const size_t n = text->length - 2;
    if (text->length < 3 || n > 16 || memcmp(text->text, "0x", 2) || (*digits == '0' && n > 1))
        return false;
    return strspn(digits, "0123456789abcdef") == n;
}

/* Makes room in pf.side for an argument that the library may keep there until the event's end. If
 * needed, moves the content of pf.side to `notes`. Returns false if the argument is too long for
 * pf.side. */
static bool is_kept(struct packets *p, size_t length)
{
    enum { NUMBERS = 512 }; /* bytes of the longest list of numbers */
    const size_t most = 3 * length + NUMBERS;
    if (most > sizeof p->pf.side) return false;
    if (p->pf.side_used + most <= sizeof p->pf.side) return true;
    rope_put(&p->notes, p->pf.side, p->pf.side_used);
    p->pf.side_used = 0;
    return true;
}

/* Puts an argument that is too long for pf.side: a text as it is, anything else as JSON. */
static void note_put(struct packets *p, const struct cs_pf_text *key, yyjson_val *value)
{
    enum { TAGS = 64 };
    const bool is_text = yyjson_is_str(value);
    const struct cs_pf_text told =
        is_text ? text_in(value)
                : (struct cs_pf_text){.text = p->text.at, .length = p->text.length};
    char *start =
        cs_pf_nest(rope_room(&p->notes, 3 * (key->length + told.length) + TAGS), CS_PF_ANNOTATION);
    char *end = cs_pf_put_text(start, CS_PF_NOTE_NAME, key->text, key->length);
    end =
        cs_pf_put_text(end, is_text ? CS_PF_NOTE_STRING : CS_PF_NOTE_JSON, told.text, told.length);
    rope_used(&p->notes, cs_pf_nested(start, end));
}

/* Appends `notes` to the event, behind the arguments that were put into the event directly. */
static char *notes_out(struct packets *p, char *at)
{
    if (!p->notes.length) return at;
    if (p->pf.args) at = cs_pf_nested(p->pf.args, at);
    p->pf.args = NULL;
    memcpy(at, p->notes.at, p->notes.length);
    return at + p->notes.length;
}

static char *string_put(struct packets *p, char *at, yyjson_val *value)
{
    enum { WORD_MAX = 512 };
    const struct cs_pf_text text = text_in(value);
    if (is_hex(&text)) return cs_pf_value_pointer(&p->pf, at, strtoull(text.text, NULL, 16));
    if (text.length <= WORD_MAX) return cs_pf_value_word(&p->pf, at, &text);
    return cs_pf_value_text(&p->pf, at, text.text, text.length);
}

/* A number without a fraction. */
struct integer {
    bool is, fits; /* is: the value is an integer; fits: `negative` or `natural` holds it */
    cs_i64 negative;
    uint64_t natural;
};

static struct integer integer_of(yyjson_val *value, uint64_t most)
{
    char digits[24];
    const char *text = yyjson_is_raw(value) ? yyjson_get_raw(value) : digits;
    snprintf(digits, sizeof digits, yyjson_is_uint(value) ? "%llu" : "%lld",
        (long long)yyjson_get_sint(value));
    const bool minus = *text == '-';
    struct integer integer = {
        .is = is_number(value) && !text[minus + strspn(text + minus, "0123456789")]};
    if (!integer.is) return integer;
    errno = 0;
    integer.natural = strtoull(text + minus, NULL, 10);
    integer.fits = !errno && (minus ? integer.natural && integer.natural <= (uint64_t)1 << 63
                                    : integer.natural <= most);
    integer.negative = minus ? (cs_i64)(0 - integer.natural) : 0;
    return integer;
}

/* Puts a number. -0 and integers beyond 64 bits go as JSON; a counter cannot have these. */
static bool number_put(struct packets *p, char **at, yyjson_val *value, bool counter)
{
    const struct integer integer = integer_of(value, counter ? INT64_MAX : UINT64_MAX);
    const double real = integer.is ? 0 : strtod(yyjson_get_raw(value), NULL);
    if (integer.is && !integer.fits && counter)
        return fail(p, "from -2^63 to 2^63 - 1", "a counter's integer that 64 bits do not hold: %s",
            shown(p, value));
    if (!__builtin_isfinite(real))
        return fail(p, "up to 1.79e308", "a number that is too great: %s", shown(p, value));
    if (!integer.is) *at = cs_pf_value_double(&p->pf, *at, real);
    else if (!integer.fits)
        *at = cs_pf_value_json(&p->pf, *at, yyjson_get_raw(value), yyjson_get_len(value));
    else if (integer.negative) *at = cs_pf_value_int(&p->pf, *at, integer.negative);
    else *at = cs_pf_value_uint(&p->pf, *at, integer.natural);
    return true;
}

struct event {
    uint32_t pid, tid;
    uint64_t ns;
    struct cs_pf_text category, name;
    char *at;
};

/* The longest names, in bytes: a value's track is called "COUNTER VALUE". */
enum { COUNTER_NAME = 512, VALUE_NAME = 127 };

/* Puts a counter's value as an event of its own, perhaps with a packet for its track. Each event is
 * written at once, so that the next one has all of p->room. */
static bool count_put(
    struct packets *p, struct event *e, const struct cs_pf_text *key, yyjson_val *value)
{
    if (!is_number(value))
        return fail(p, "numbers", "a counter whose value is no number: %s", shown(p, value));
    if (key->length > VALUE_NAME)
        return fail(
            p, "", "a counter's value with a name of more than 127 bytes: %.60s", key->text);
    if (!number_put(p, &e->at, value, true)) return false;
    written(p, e->at);
    e->at = p->room.at;
    return true;
}

static bool value_put(
    struct packets *p, struct event *e, const struct cs_pf_text *key, yyjson_val *value)
{
    uint32_t numbers[VALUE_LIST];
    size_t n;
    const bool json = !yyjson_is_str(value) && !is_number(value) && !yyjson_is_bool(value);
    if (!yyjson_is_str(value)) text_of(p, value);
    if (!is_kept(
            p, key->length + (yyjson_is_str(value) ? yyjson_get_len(value) + 2 : p->text.length)))
        note_put(p, key, value);
    else if (yyjson_is_str(value)) e->at = string_put(p, e->at, value);
    else if (yyjson_is_bool(value)) e->at = cs_pf_value_bool(&p->pf, e->at, yyjson_is_true(value));
    else if (!json) return number_put(p, &e->at, value, false);
    else if ((n = value_list(value, numbers))) e->at = cs_pf_value_uints(&p->pf, e->at, numbers, n);
    else e->at = cs_pf_value_json(&p->pf, e->at, p->text.at, p->text.length);
    return true;
}

static bool args_put(struct packets *p, struct event *e, bool counter)
{
    yyjson_val *const args = member(p, "args"), *name, *value;
    size_t i, count;
    if (args && !yyjson_is_obj(args))
        return fail(p, "an object", "args that are no object: %s", shown(p, args));
    if (counter && !yyjson_obj_size(args))
        return fail(
            p, "one and more", "a counter without a value: %s", shown(p, member(p, "name")));
    if (args)
        yyjson_obj_foreach(args, i, count, name, value) {
            const struct cs_pf_text key = text_in(name);
            if (!is_text(p, name) || (yyjson_is_str(value) && !is_text(p, value))) return false;
            cs_pf_key(&p->pf, key.text, key.length, NULL);
            if (!(counter ? count_put : value_put)(p, e, &key, value)) return false;
        }
    e->at = notes_out(p, e->at);
    return true;
}

/* --- rows --- */

/* Puts the category and the args of a row that is no counter. cs_pf_bare() marks a row without
 * args, or an arrow with empty args, so that the same JSON can be made of it again. */
static bool more_put(struct packets *p, struct event *e, bool of_arrow)
{
    yyjson_val *args = member(p, "args");
    if (member(p, "cat") && !e->category.length)
        e->at = cs_pf_put_text(e->at, CS_PF_CATEGORY, "", 0);
    if (of_arrow ? args && !yyjson_obj_size(args) : !args) cs_pf_bare(&p->pf);
    return args_put(p, e, false);
}

static bool slice(struct packets *p, struct event *e)
{
    static const char allowed[] = "a number with \"flow_in\":true or \"flow_out\":true";
    yyjson_val *bind = member(p, "bind_id"), *in = member(p, "flow_in"),
               *out = member(p, "flow_out");
    uint64_t ns, id;
    if (!time_of(p, "dur", &ns)) return false;
    e->at = cs_pf_slice(&p->pf, e->at, &e->category, &e->name, e->pid, e->tid, e->ns, e->ns + ns);
    if (!bind && !in && !out) return more_put(p, e, false);
    if (!bind)
        return fail(
            p, allowed, "an end of an arrow without bind_id: %s", shown(p, member(p, "name")));
    if (!value_natural(bind, &id) || !in == !out || !yyjson_is_true(in ? in : out))
        return fail(p, allowed, "a bind_id that is no arrow's one end: %s", shown(p, bind));
    cs_pf_flow(&p->pf, id, in ? CS_PF_LAST : CS_PF_FIRST);
    return more_put(p, e, false);
}

static bool instant(struct packets *p, struct event *e)
{
    static const char *const scopes[] = {
        [CS_PF_OF_THREAD] = "t", [CS_PF_OF_ALL] = "g", [CS_PF_OF_PROCESS] = "p"};
    yyjson_val *said = member(p, "s");
    size_t scope = 0;
    while (said && scope < CS_COUNT(scopes) && !yyjson_equals_str(said, scopes[scope])) scope++;
    if (scope == CS_COUNT(scopes))
        return fail(p, "t, p and g", "an instant of the scope %s", shown(p, said));
    e->at = cs_pf_instant(
        &p->pf, e->at, (enum cs_pf_scope)scope, &e->category, &e->name, e->pid, e->tid, e->ns);
    return more_put(p, e, false);
}

static bool counter(struct packets *p, struct event *e)
{
    if (!e->name.text)
        return fail(p, "", "a counter without a name: %s", shown(p, member(p, "args")));
    if (e->name.length > COUNTER_NAME)
        return fail(
            p, "", "a counter with a name of more than 512 bytes: %s", shown(p, member(p, "name")));
    e->at = cs_pf_counter(&p->pf, e->at, &e->name, e->pid, e->tid, e->ns);
    return args_put(p, e, true);
}

static bool legacy(struct packets *p, struct event *e, char phase, uint64_t id)
{
    e->at = cs_pf_legacy(&p->pf, e->at, phase, &e->category, &e->name, e->pid, e->tid, e->ns, id);
    return more_put(p, e, phase == 's' || phase == 'f');
}

static bool arrow(struct packets *p, struct event *e, char phase)
{
    yyjson_val *id = member(p, "id"), *binds = member(p, "bp"), *name = member(p, "name");
    uint64_t number;
    if (!id) return fail(p, "", "an arrow without an id: %s", shown(p, name));
    if (!value_natural(id, &number))
        return fail(p, "numbers below 2^53", "an arrow whose id is %s", shown(p, id));
    if (phase == 'f' && !binds)
        return fail(p, "\"bp\":\"e\"", "the end of an arrow without bp: %s", shown(p, name));
    if (phase == 'f' && !yyjson_equals_str(binds, "e"))
        return fail(p, "\"bp\":\"e\"", "the end of an arrow whose bp is %s", shown(p, binds));
    return legacy(p, e, phase, number);
}

static bool span(struct packets *p, struct event *e, char phase)
{
    static const char allowed[] = "\"id2\":{\"local\":NUMBER}";
    yyjson_val *id = member(p, "id2"), *local = yyjson_obj_get(id, "local");
    uint64_t number;
    if (!local)
        return fail(p, allowed, "a span without a local id2: %s", shown(p, member(p, "name")));
    if (yyjson_obj_size(id) > 1 || member(p, "id"))
        return fail(p, allowed, "a span with more than a local id2: %s", shown(p, id));
    if (!value_natural(local, &number))
        return fail(p, "numbers below 2^53", "a span whose id is %s", shown(p, local));
    return legacy(p, e, phase, number);
}

static bool event_put(struct packets *p, struct event *e, char phase)
{
    yyjson_val *category = member(p, "cat"), *name = member(p, "name");
    bool good;
    if ((category && !is_text(p, category)) || (name && !is_text(p, name))) return false;
    e->category = text_in(category);
    e->name = text_in(name);
    if (!name) e->name.text = NULL;
    switch (phase) {
    case 'X': good = slice(p, e); break;
    case 'i':
    case 'I': good = instant(p, e); break;
    case 'C': good = counter(p, e); break;
    case 'B':
    case 'E': good = legacy(p, e, phase, 0); break; /* begin or end of a slice, from other tools */
    case 's':
    case 'f': good = arrow(p, e, phase); break;
    default: good = span(p, e, phase); break;
    }
    if (good) e->at = cs_pf_close(&p->pf, e->at);
    return good;
}

/* Puts an M row: a name, labels or a sort index. The value has to be the first member of args. */
static bool meta(struct packets *p, struct event *e)
{
    static const struct {
        const char *what, *key;
        bool process;
    } kinds[] = {{"process_name", "name", true}, {"process_labels", "labels", true},
        {"process_sort_index", "sort_index", true}, {"thread_name", "name", false},
        {"thread_sort_index", "sort_index", false}};
    yyjson_val *const what = member(p, "name"), *const args = member(p, "args");
    size_t k = 0;
    while (k < CS_COUNT(kinds) && !yyjson_equals_str(what, kinds[k].what)) k++;
    yyjson_val *const value = k < CS_COUNT(kinds) ? yyjson_obj_get(args, kinds[k].key) : NULL;
    if (!value)
        return fail(p, "names, labels and sort indices of processes and threads",
            "a row of names of the kind %s", shown(p, what));
    const bool process = kinds[k].process, order = !strcmp(kinds[k].key, "sort_index"),
               label = !strcmp(kinds[k].key, "labels");
    const struct integer integer = integer_of(value, INT64_MAX);
    const cs_i64 place = integer.negative ? integer.negative : (cs_i64)integer.natural;
    if (order && !integer.fits)
        return fail(p, "from -2^63 to 2^63 - 1", "a sort_index that is no integer of 64 bits: %s",
            shown(p, value));
    if (!order && !is_text(p, value)) return false;
    text_of(p, value);
    const size_t before = p->text.length + strlen(kinds[k].key) + 4; /* {"name":VALUE */
    const bool is_first = unsafe_yyjson_get_first(args) + 1 == value;
    text_of(p, args);
    const size_t more = p->text.length > before + 1 ? p->text.length - before - 2 : 0;
    if (!is_first || more > (process || order ? 0 : CS_PF_MORE))
        return fail(p, process || order ? "one member" : "1024 bytes behind the name",
            "a name with more beside it: %s", shown(p, args));
    const struct cs_pf_text name = text_in(order || label ? NULL : value),
                            labels = text_in(label ? value : NULL);
    if (name.length + labels.length > CS_PF_TEXT_MAX)
        return fail(p, "", "a name of more than 4096 bytes: %s", shown(p, value));
    const char *called = order || label ? NULL : name.text;
    if (process)
        e->at = cs_pf_process(&p->pf, e->at, e->pid, e->tid, called, name.length,
            label ? labels.text : NULL, labels.length, order ? &place : NULL);
    else
        e->at = cs_pf_thread(&p->pf, e->at, e->pid, e->tid, called, name.length,
            p->text.at + before + 1, more, order ? &place : NULL);
    return true;
}

/* Members that a row may have, with the phases of such rows. `ts` and `cat` of M rows, and `cat` of
 * C rows, are accepted but lost. */
#define ALL "MXBEiICsfbe"
static const struct {
    const char *name, *kinds;
} members[] = {{"ph", ALL}, {"name", ALL}, {"pid", ALL}, {"tid", ALL}, {"args", ALL}, {"cat", ALL},
    {"ts", ALL}, {"dur", "X"}, {"s", "iI"}, {"id", "sfbe"}, {"bp", "f"}, {"id2", "be"},
    {"bind_id", "X"}, {"flow_in", "X"}, {"flow_out", "X"}};

static bool members_known(struct packets *p, char phase)
{
    yyjson_val *name, *value;
    size_t i, count;
    yyjson_obj_foreach(p->row, i, count, name, value) {
        char allowed[sizeof p->allowed] = "";
        size_t k = 0;
        while (k < CS_COUNT(members) &&
               !(yyjson_equals_str(name, members[k].name) && strchr(members[k].kinds, phase)))
            k++;
        const bool known = k < CS_COUNT(members);
        if (known && member(p, members[k].name) == value) continue;
        for (size_t m = 0, n = 0; m < CS_COUNT(members); m++)
            if (strchr(members[m].kinds, phase))
                n = cs_append(allowed, sizeof allowed, n, n ? ", %s" : "%s", members[m].name);
        return fail(p, allowed, "an event of the kind %c with the member \"%.60s\"%s", phase,
            yyjson_get_str(name), known ? " twice" : "");
    }
    return true;
}

/* Returns an upper bound for the bytes of the row's packets. */
static size_t most_of(yyjson_val *row)
{
    enum { AS_ESCAPES = 6, OTHERWISE = 64 };
    size_t most = 2 * CS_PF_EVENT_MAX;
    for (yyjson_val *value = row; value < row + row->uni.ofs / sizeof *row; value++) {
        const bool text = yyjson_is_str(value) || yyjson_is_raw(value);
        most += OTHERWISE + (text ? 2 * AS_ESCAPES * yyjson_get_len(value) : 0);
    }
    return most;
}

/* Returns a pid or tid as the row has it, to name the number that was made up for it. */
static struct cs_pf_text said(struct packets *p, const char *name)
{
    struct cs_pf_text text = text_in(member(p, name));
    if (!yyjson_is_str(member(p, name)))
        text.text = text_of(p, member(p, name)), text.length = p->text.length;
    if (text.length > CS_PF_TEXT_MAX) text.length = CS_PF_TEXT_MAX;
    return text;
}

static bool put_row(struct packets *p)
{
    struct event e = {0};
    uint64_t pid, tid;
    bool process = false, thread = false;
    yyjson_val *const ph = member(p, "ph");
    const char phase = yyjson_is_str(ph) && yyjson_get_len(ph) == 1 ? *yyjson_get_str(ph) : 0;
    if (!phase || !strchr(ALL, phase))
        return fail(
            p, "M, X, B, E, i, I, C, s, f, b and e", "an event of the kind %s", shown(p, ph));
    if (!members_known(p, phase) || !number_of(p, "pid", 0, INT32_MAX, &pid, &process) ||
        !number_of(p, "tid", pid + 1, UINT32_MAX, &tid, &thread))
        return false;
    if (phase != 'M' && !time_of(p, "ts", &e.ns)) return false;
    e.pid = (uint32_t)pid;
    e.tid = (uint32_t)tid;
    e.at = rope_room(&p->room, most_of(p->row));
    struct cs_pf_text text = said(p, "pid");
    if (process)
        e.at = cs_pf_process(&p->pf, e.at, e.pid, e.tid, text.text, text.length, NULL, 0, NULL);
    text = said(p, "tid");
    if (thread)
        e.at = cs_pf_thread(&p->pf, e.at, e.pid, e.tid, text.text, text.length, NULL, 0, NULL);
    if (!(phase == 'M' ? meta(p, &e) : event_put(p, &e, phase))) return false;
    written(p, e.at);
    return true;
}

bool packets_row(struct packets *p, yyjson_val *row, bool half, char error[256])
{
    p->row = row;
    p->half = half;
    p->notes.length = 0;
    if (put_row(p)) return true;
    snprintf(error, 256, "%.100s, which Perfetto's format has no place for%s%.72s", p->why,
        *p->allowed ? "; allowed: " : "", p->allowed);
    return false;
}
