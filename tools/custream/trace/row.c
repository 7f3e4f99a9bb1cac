#include "tools/custream/trace/row.h"

#include <yyjson.h>

#include "shim/base/lane.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/foreign.h"
#include "tools/custream/trace/json.h"
#include "tools/custream/trace/numbers.h"

enum kind { KIND_WORD, KIND_NUMBER, KIND_TIME, KIND_LIST };
enum level { LEVEL_TOP, LEVEL_ARGS };

static const struct {
    const char *name;
    size_t length;
    enum kind kind;
    enum level level;
} keys[TRACE_KEY_COUNT] = {
#define TOP(key, name, kind) [KEY_##key] = {name, sizeof name - 1, KIND_##kind, LEVEL_TOP},
#define ARG(key, name, kind) [KEY_##key] = {name, sizeof name - 1, KIND_##kind, LEVEL_ARGS},
    TRACE_KEYS(TOP, ARG)
#undef TOP
#undef ARG
};
_Static_assert(TRACE_KEY_COUNT <= 64, "a bit a key");

enum {
    PATH_MAX_BYTES =
        240, /* the longest path of a fact; facts with longer or deeper paths are left out */
    DEPTH_MAX = 16,
    KEY_NONE = 255,
    RECENT = 256,
};

struct reading {
    struct texts *texts;
    struct foreign foreign;
    struct trace_left left;
    bool ours;
    const struct trace_sink *sink;
    struct trace_row row;
    struct numbers keys; /* enum trace_key, by key_hash() */
    /* Recent texts with PFTRACE_STAYS, by address. `names` has the key of a name, `words` the
     * number of a word. */
    struct name {
        const char *at;
        enum level level;
        unsigned key;
    } names[RECENT];
    struct word {
        const char *at;
        text number;
    } words[RECENT];
    char path[PATH_MAX_BYTES];
    text kernel;          /* the text of the category "kernel" */
    struct shape *shapes; /* all different shapes */
    size_t shape_count, shape_capacity;
    struct numbers shape_of,
        shapes_by_text; /* places in `shapes`, by kernel and by a shape's bytes */
};

/* --- keys --- */

static uint64_t key_hash(enum level level, const char *at, size_t length)
{
    return text_few(at, length) + ((uint64_t)length << 1 | level) * UINT64_C(0x9e3779b97f4a7c15);
}

static void keys_init(struct reading *r)
{
    for (unsigned key = 0; key < TRACE_KEY_COUNT; key++)
        *numbers_at(&r->keys, key_hash(keys[key].level, keys[key].name, keys[key].length), 0) = key;
}

static unsigned key_of(const struct reading *r, enum level level, const char *at, size_t length)
{
    const unsigned key = numbers_get(&r->keys, key_hash(level, at, length), KEY_NONE);
    return key != KEY_NONE && keys[key].level == level && keys[key].length == length &&
                   (length <= 8 || !memcmp(keys[key].name, at, length)) /* text_few() has up to 8 */
               ? key
               : KEY_NONE;
}

static unsigned recent_of(const char *at)
{
    return (unsigned)((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static bool stays(yyjson_val *string)
{
    return unsafe_yyjson_get_tag(string) == (YYJSON_TYPE_STR | PFTRACE_STAYS);
}

static unsigned key_in(struct reading *r, enum level level, yyjson_val *string)
{
    const char *const at = unsafe_yyjson_get_str(string);
    struct name *const name = stays(string) ? &r->names[recent_of(at)] : NULL;
    if (name && name->at == at && name->level == level) return name->key;
    const unsigned key = key_of(r, level, at, unsafe_yyjson_get_len(string));
    if (name) *name = (struct name){at, level, key};
    return key;
}

static text word_in(struct reading *r, unsigned key, yyjson_val *string)
{
    const char *const at = unsafe_yyjson_get_str(string);
    struct word *const word = stays(string) ? &r->words[recent_of(at)] : NULL;
    if (word && word->at == at) return word->number;
    const text number =
        text_number_or(r->texts, r->row.word[key], at, unsafe_yyjson_get_len(string));
    if (word) *word = (struct word){at, number};
    return number;
}

/* --- numbers --- */

/* The largest number that is kept; the least is its negative. No trace of ours has a number beyond
 * these limits. The sum of two kept numbers does not overflow. */
static const int64_t number_max = INT64_MAX / 4;

static bool is_far(double number)
{
    return !(number < (double)number_max && number > (double)-number_max);
}
/* Returns the number, limited to the range; NaN becomes number_max. */
static int64_t clamped(double number)
{
    return !(number < (double)number_max)  ? number_max
           : number <= (double)-number_max ? -number_max
                                           : (int64_t)number;
}

static int64_t whole_of(const char *at, size_t length)
{
    const bool negative = length && *at == '-';
    int64_t n = 0;
    for (size_t i = negative; i < length; i++) {
        if (at[i] < '0' || at[i] > '9') return clamped(strtod(at, NULL));
        n = n * 10 + (at[i] - '0');
        if (n > number_max / 10)
            return i + 1 == length ? (negative ? -n : n) : clamped(strtod(at, NULL));
    }
    return negative ? -n : n;
}

/* --- events --- */

static int64_t whole_in(yyjson_val *value)
{
    if (yyjson_is_uint(value))
        return unsafe_yyjson_get_uint(value) > (uint64_t)number_max
                   ? number_max
                   : (int64_t)unsafe_yyjson_get_uint(value);
    if (yyjson_is_raw(value))
        return whole_of(unsafe_yyjson_get_raw(value), unsafe_yyjson_get_len(value));
    return clamped(yyjson_is_real(value) ? unsafe_yyjson_get_real(value)
                                         : (double)unsafe_yyjson_get_sint(value));
}

/* Whether a value is a number: in a row of JSON it is a raw text, which may also be other JSON. */
static bool is_number(yyjson_val *value)
{
    if (unsafe_yyjson_get_type(value) != YYJSON_TYPE_RAW)
        return unsafe_yyjson_get_type(value) == YYJSON_TYPE_NUM;
    const char first = *unsafe_yyjson_get_raw(value);
    return first == '-' || (first >= '0' && first <= '9');
}

static void list_take(struct trace_row *row, enum trace_key key, yyjson_val *list)
{
    uint32_t *const three = key == KEY_GRID ? row->said.grid : row->said.block;
    yyjson_val *element;
    size_t i, count;
    unsigned listed = 0;
    if (key == KEY_WAIT_IDS) row->id_count = 0;
    else memset(three, 0, sizeof row->said.grid);
    yyjson_arr_foreach(list, i, count, element) {
        if (!is_number(element)) continue;
        if (key != KEY_WAIT_IDS && listed < 3) three[listed++] = (uint32_t)whole_in(element);
        if (key == KEY_WAIT_IDS && row->id_count < TRACE_IDS_MOST)
            row->ids[row->id_count++] = whole_in(element);
    }
    row->has |= UINT64_C(1) << key;
}

/* Reads a number that another tool wrote as a text ("0x1"). False: it is no number ("stream 7"). */
static bool number_in(const char *word, int64_t *number)
{
    char *end;
    *number = strtoll(word, &end, 0);
    return end != word && !*end;
}

/* Returns a double as the raw text that it has in JSON; any other value as it is. */
static yyjson_val *undoubled(yyjson_val *value, yyjson_val *raw, char digits[VALUE_DIGITS])
{
    if (!yyjson_is_real(value)) return value;
    unsafe_yyjson_set_raw(raw, digits, value_digits(digits, unsafe_yyjson_get_real(value)));
    return raw;
}

/* Takes a time: microseconds, which some tools write as a text; in rows of packets ts and dur are
 * whole nanoseconds. */
static void time_take(struct trace_row *row, unsigned key, yyjson_val *value)
{
    const bool top = keys[key].level == LEVEL_TOP;
    char digits[VALUE_DIGITS];
    yyjson_val raw;
    int64_t ns = 0;
    if (yyjson_is_int(value)) ns = top ? whole_in(value) : clamped((double)whole_in(value) * 1000);
    else if (!value_ns(undoubled(value, &raw, digits), &ns)) {
        row->bad_time |= top;
        return;
    }
    row->bad_time |= top && is_far((double)ns);
    row->number[key] = ns;
    row->has |= UINT64_C(1) << key;
}

static void raw_take(struct reading *r, unsigned key, yyjson_val *raw);

/* Keeps a number as its digits. */
static text word_of_number(struct reading *r, unsigned key, yyjson_val *number)
{
    char digits[VALUE_DIGITS];
    yyjson_val raw;
    if (!yyjson_is_int(number)) return word_in(r, key, undoubled(number, &raw, digits));
    const int n = snprintf(digits, sizeof digits, "%lld", (long long)whole_in(number));
    return text_number_or(r->texts, r->row.word[key], digits, (size_t)n);
}

/* Takes a value that is not of its key's kind: a number as a word, a word as a number. */
static __attribute__((noinline)) void other_take(struct reading *r, unsigned key, yyjson_val *value)
{
    struct trace_row *row = &r->row;
    const bool number = is_number(value), word = yyjson_is_str(value);
    if (!number && yyjson_is_raw(value)) return raw_take(r, key, value);
    switch (keys[key].kind) {
    case KIND_TIME: return time_take(row, key, value);
    case KIND_LIST:
        if (yyjson_is_arr(value)) list_take(row, key, value);
        return;
    case KIND_WORD:
        if (!number) return;
        row->word[key] = word_of_number(r, key, value);
        break;
    case KIND_NUMBER:
        if (yyjson_is_bool(value)) row->number[key] = yyjson_is_true(value);
        else if (!word) return;
        else if (!number_in(unsafe_yyjson_get_str(value), &row->number[key])) {
            if (key == KEY_PID || key == KEY_TID)
                row->word[key] = word_in(r, key, value); /* in other tools' traces "GPU 0" */
            return;
        }
    }
    row->has |= UINT64_C(1) << key;
}

static void value_take(struct reading *r, unsigned key, yyjson_val *value)
{
    struct trace_row *row = &r->row;
    const enum kind kind = keys[key].kind;
    if (kind == KIND_WORD && unsafe_yyjson_is_str(value)) row->word[key] = word_in(r, key, value);
    else if (kind == KIND_NUMBER && is_number(value)) row->number[key] = whole_in(value);
    else if (kind == KIND_TIME && is_number(value)) return time_take(row, key, value);
    else return other_take(r, key, value);
    row->has |= UINT64_C(1) << key;
}

static void object_take(struct reading *r, yyjson_val *object, enum level level);

/* Parses JSON that packets hold as text: a value, or whole members, around which the caller puts
 * braces. */
static yyjson_doc *raw_read(const char *before, yyjson_val *raw, const char *behind)
{
    struct rope text = {0};
    rope_put(&text, before, strlen(before));
    rope_put(&text, unsafe_yyjson_get_raw(raw), unsafe_yyjson_get_len(raw));
    rope_put(&text, behind, strlen(behind));
    yyjson_doc *doc = value_parse(text.at, text.length);
    free(text.at);
    return doc;
}

static void raw_take(struct reading *r, unsigned key, yyjson_val *raw)
{
    yyjson_doc *doc = raw_read("", raw, "");
    if (doc) value_take(r, key, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
}

static void members_take(struct reading *r, yyjson_val *raw)
{
    yyjson_doc *doc = raw_read("{", raw, "}");
    if (doc) object_take(r, yyjson_doc_get_root(doc), LEVEL_ARGS);
    yyjson_doc_free(doc);
}

static bool opens_args(yyjson_val *name)
{
    return unsafe_yyjson_equals_strn(name, "args", 4) || unsafe_yyjson_equals_strn(name, "id2", 3);
}

static void object_take(struct reading *r, yyjson_val *object, enum level level)
{
    yyjson_val *const end = unsafe_yyjson_get_next(object);
    for (yyjson_val *name = object + 1; name < end; name = unsafe_yyjson_get_next(name + 1)) {
        const unsigned key = unsafe_yyjson_is_str(name) ? key_in(r, level, name) : KEY_NONE;
        if (key != KEY_NONE) value_take(r, key, name + 1);
        else if (unsafe_yyjson_is_raw(name)) members_take(r, name);
        else if (level == LEVEL_TOP && unsafe_yyjson_is_obj(name + 1) && opens_args(name))
            object_take(r, name + 1, LEVEL_ARGS);
    }
}

/* --- facts --- */

static void fact_tell(struct reading *r, yyjson_val *value)
{
    struct trace_fact fact = {.path = r->path};
    if (yyjson_is_str(value))
        fact.value = text_number(r->texts, yyjson_get_str(value), yyjson_get_len(value));
    else if (yyjson_is_bool(value)) fact.number = fact.whole = yyjson_is_true(value);
    else if (yyjson_is_raw(value))
        fact.number = strtod(yyjson_get_raw(value), NULL),
        fact.whole = whole_of(yyjson_get_raw(value), yyjson_get_len(value));
    else return;
    if (fact.value && !strcmp(r->path, "metadata.tool"))
        r->ours = !strncmp(text_of(r->texts, fact.value), "custream ", 9);
    if (r->sink->fact) r->sink->fact(r->sink->of, &fact);
}

static void facts_take(struct reading *r, size_t length, yyjson_val *value, unsigned depth);

static void fact_below(struct reading *r, size_t length, const char *name, size_t name_length,
    yyjson_val *value, unsigned depth)
{
    if (length + name_length + 2 > sizeof r->path) return;
    if (length) r->path[length++] = '.';
    memcpy(r->path + length, name, name_length);
    r->path[length + name_length] = 0;
    facts_take(r, length + name_length, value, depth + 1);
}

/* Tells the facts below path[0..length). An element of a list is named by its number. */
static void facts_take(struct reading *r, size_t length, yyjson_val *value, unsigned depth)
{
    yyjson_val *name, *below;
    size_t i, count;
    char number[24];
    if (depth >= DEPTH_MAX) return;
    if (!yyjson_is_ctn(value)) fact_tell(r, value);
    if (yyjson_is_obj(value))
        yyjson_obj_foreach(value, i, count, name, below)
            fact_below(r, length, yyjson_get_str(name), yyjson_get_len(name), below, depth);
    if (yyjson_is_arr(value))
        yyjson_arr_foreach(value, i, count, below)
            fact_below(
                r, length, number, (size_t)snprintf(number, sizeof number, "%zu", i), below, depth);
}

/* --- shapes, which a row may take from an earlier row --- */

/* Finds the shape of the row. A kernel of ours that names no shape has the shape of the last kernel
 * of that name on that GPU. */
static void shape_take(struct reading *r)
{
    struct trace_row *row = &r->row;
    const bool says = row_has(row, KEY_GRID) && row_has(row, KEY_BLOCK),
               kernel = r->ours && row_word(row, KEY_CAT) == r->kernel;
    row->shape_number = UINT32_MAX;
    if (!says && !kernel) return;
    uint32_t *last = !kernel ? &row->shape_number
                             : last_shape(&r->shape_of, (uint64_t)row_number(row, KEY_PID, 0),
                                   row_word(row, KEY_NAME));
    if (says) {
        struct shape shape = row->said;
        shape.registers = (int32_t)row_number(row, KEY_REGISTERS, -1);
        shape.shared_memory = (uint32_t)row_number(row, KEY_SHARED_MEMORY, 0);
        *last = *numbers_at(&r->shapes_by_text,
            text_number(r->texts, (const char *)&shape, sizeof shape), (uint32_t)r->shape_count);
        if (*last == r->shape_count) array_add(r->shapes, r->shape_count, r->shape_capacity, shape);
    }
    row->shape_number = *last;
}

uint32_t row_stream(const struct trace_row *row)
{
    return (uint32_t)row_number(
        row, KEY_STREAM, row_number(row, KEY_CS_STREAM, row_number(row, KEY_TID, 0)));
}

/* --- the file --- */

static void row_tell(struct reading *r)
{
    r->row.shape = r->row.shape_number == UINT32_MAX ? NULL : &r->shapes[r->row.shape_number];
    r->sink->row(r->sink->of, &r->row);
}

static void row_take(struct reading *r, yyjson_val *value)
{
    struct trace_row *row = &r->row;
    if (yyjson_is_obj(value) && !yyjson_obj_size(value))
        return; /* XLA ends its rows with an empty object, which is no event */
    row->has = 0;
    row->word[KEY_PID] = row->word[KEY_TID] = 0;
    row->bad_time = false;
    if (yyjson_is_obj(value)) object_take(r, value, LEVEL_TOP);
    r->ours |= row_has(row, KEY_CS_STREAM); /* "cs.stream" tells that custream wrote the trace, even
                                               if metadata.tool stands behind the rows */
    shape_take(r);
    if (r->ours && row->bad_time) {
        r->left.times++;
        return;
    }
    if (r->ours) row->gpu = gpu_of_process(true, row_number(row, KEY_PID, CS_GPU_PIDS), "");
    else if (!foreign_row(&r->foreign, row)) return;
    row_tell(r);
}

static void rows_end(struct reading *r)
{
    while (foreign_held(&r->foreign, &r->row)) r->row.shape_number = UINT32_MAX, row_tell(r);
    if (!r->sink->left) return;
    r->sink->left->times += r->left.times;
    r->sink->left->others += r->left.others;
}

static void member_take(struct reading *r, struct json *json)
{
    fact_below(r, 0, json->name, strlen(json->name), json->value, 0);
}

/* Reads the members behind the rows first: they may say which tool wrote the rows, and from when
 * times count. False: the file cannot be opened again. */
static bool members_behind(struct reading *r, const char *path)
{
    struct json json;
    enum json_step step = JSON_BROKEN;
    const bool good = json_open(&json, path, true);
    for (bool open = good; open; open = step == JSON_ROW || step == JSON_MEMBER)
        if ((step = json_next(&json)) == JSON_MEMBER && json.rows_seen) member_take(r, &json);
    json_close(&json);
    return good;
}

static enum trace_end read_all(struct reading *r, struct json *json, const char *path)
{
    const struct trace_sink *sink = r->sink;
    uint64_t offset = 0;
    bool headed = json->reader.torn.from < 0, told = false; /* a pipe cannot be read twice */
    for (;;) {
        const enum json_step step = json_next(json);
        if (step == JSON_BROKEN) return TRACE_UNREADABLE;
        headed |= reader_is_packets(&json->reader) ||
                  (step == JSON_MEMBER && !strcmp(json->name, "baseTimeNanoseconds"));
        if (step == JSON_ROW && !headed) headed = true, told = members_behind(r, path);
        if (step == JSON_ROW) row_take(r, json->value);
        if (step == JSON_MEMBER && !(told && json->rows_seen)) member_take(r, json);
        if (step == JSON_END || step == JSON_CUT) {
            rows_end(r);
            return step == JSON_END ? TRACE_WHOLE : TRACE_CUT;
        }
        if (reader_offset(&json->reader) == offset) continue;
        offset = reader_offset(&json->reader);
        if (sink->progress) sink->progress(sink->of, offset);
        if (sink->enough && sink->enough(sink->of)) return TRACE_WHOLE;
    }
}

enum trace_end trace_read(
    const char *path, struct texts *texts, const struct trace_sink *sink, char error[256])
{
    struct json json;
    struct reading r = {.texts = texts, .sink = sink};
    enum trace_end end = TRACE_UNREADABLE;
    keys_init(&r);
    r.kernel = text_number(texts, "kernel", 6);
    foreign_begin(&r.foreign, texts, &r.left);
    if (json_open(&json, path, true)) {
        json.reader.torn.last = sink->last;
        end = read_all(&r, &json, path);
        if (sink->partly) *sink->partly |= json.reader.torn.partly;
    }
    if (end == TRACE_UNREADABLE) snprintf(error, 256, "%s", json.error);
    foreign_end(&r.foreign);
    numbers_free(&r.keys);
    free(r.shapes);
    numbers_free(&r.shape_of);
    numbers_free(&r.shapes_by_text);
    json_close(&json);
    return end;
}
