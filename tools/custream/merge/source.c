#include "tools/custream/merge/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/reader.h"

enum { VALUE_MAX = 32 * 1024 * 1024, DEPTH_MAX = 100, END = -1 };

struct source {
    struct reader reader;
    const char *at, *end;
    char *text; /* the value that is being read */
    size_t length, capacity;
    unsigned long long line;
    bool cut, failed;
    char *error;
};

static bool fail(struct source *source, const char *why)
{
    if (!source->failed) snprintf(source->error, 256, "line %llu: %s", source->line, why);
    source->failed = true;
    return false;
}

/* --- bytes --- */

/* The next byte, which stays; END where there is none: then the file is cut, or could not be read. */
static int peek(struct source *source)
{
    size_t length = 0;
    while (source->at == source->end) {
        if (source->failed || source->cut) return END;
        const int got = reader_bytes(&source->reader, &source->at, &length);
        if (got < 0 && !source->reader.cut) return fail(source, source->reader.error), END;
        if (got <= 0) return source->cut = true, END;
        source->end = source->at + length;
    }
    return (unsigned char)*source->at;
}

static int peek_token(struct source *source)
{
    int c;
    while ((c = peek(source)) == ' ' || c == '\n' || c == '\t' || c == '\r') {
        source->line += c == '\n';
        source->at++;
    }
    return c;
}

static bool keep(struct source *source, int c)
{
    source->text = array_room(source->text, source->length + 1, &source->capacity, 1);
    source->text[source->length++] = (char)c;
    source->text[source->length] = 0;
    return source->length < VALUE_MAX || fail(source, "an event, or a part of the header, of more than 32 MiB");
}

static bool keep_next(struct source *source)
{
    const bool kept = keep(source, (unsigned char)*source->at);
    source->at++;
    return kept;
}

static bool expect(struct source *source, int wanted, const char *otherwise)
{
    const int c = peek_token(source);
    if (c == END) return false;
    if (c != wanted) return fail(source, otherwise);
    source->at++;
    return true;
}

/* --- values: each is kept as it is read --- */

static bool read_escape(struct source *source)
{
    int c = peek(source);
    if (c == END) return false;
    if (!strchr("\"\\/bfnrtu", c) || !c) return fail(source, "no JSON: an unknown escape in a string");
    if (!keep_next(source)) return false;
    for (int i = 0; c == 'u' && i < 4; i++) {
        const int digit = peek(source);
        if (digit == END) return false;
        if (!digit || !strchr("0123456789abcdefABCDEF", digit)) return fail(source, "no JSON: an unknown escape in a string");
        if (!keep_next(source)) return false;
    }
    return true;
}

static bool read_string(struct source *source)
{
    if (!keep_next(source)) return false;
    for (int c; (c = peek(source)) != END;) {
        if (c < ' ') return fail(source, "no JSON: a control character in a string");
        if (!keep_next(source)) return false;
        if (c == '"') return true;
        if (c == '\\' && !read_escape(source)) return false;
    }
    return false;
}

static bool is_number(const char *text)
{
    if (*text == '-') text++;
    if (*text == '0') text++;
    else if (*text < '1' || *text > '9') return false;
    else text += strspn(text, "0123456789");
    if (*text == '.') {
        const size_t digits = strspn(++text, "0123456789");
        if (!digits) return false;
        text += digits;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        if (*text == '+' || *text == '-') text++;
        const size_t digits = strspn(text, "0123456789");
        if (!digits) return false;
        text += digits;
    }
    return !*text;
}

static bool read_word(struct source *source)
{
    const size_t from = source->length;
    int c;
    while ((c = peek(source)) != END && c && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", c))
        if (!keep_next(source)) return false;
    if (c == END) return false;
    const char *word = source->length > from ? source->text + from : "";
    if (is_number(word) || !strcmp(word, "true") || !strcmp(word, "false") || !strcmp(word, "null")) return true;
    return fail(source, "no JSON: neither a value nor the end of one");
}

static bool read_value(struct source *source, int depth);

/* Members of an object, or elements of an array. */
static bool read_list(struct source *source, int depth, char closes)
{
    if (depth > DEPTH_MAX) return fail(source, "values in values, more than 100 deep");
    if (!keep_next(source)) return false;
    int c = peek_token(source);
    if (c == closes) return keep_next(source);
    for (;;) {
        if (closes == '}') {
            if (c == END) return false;
            if (c != '"') return fail(source, "no JSON: a member without a name");
            if (!read_string(source) || !expect(source, ':', "no JSON: no colon behind a name") || !keep(source, ':')) return false;
        }
        if (!read_value(source, depth + 1)) return false;
        c = peek_token(source);
        if (c == END) return false;
        if (c != ',' && c != closes) return fail(source, "no JSON: no comma between two values");
        if (!keep_next(source)) return false;
        if (c == closes) return true;
        c = peek_token(source);
    }
}

static bool read_value(struct source *source, int depth)
{
    switch (peek_token(source)) {
    case END: return false;
    case '"': return read_string(source);
    case '{': return read_list(source, depth, '}');
    case '[': return read_list(source, depth, ']');
    }
    return read_word(source);
}

/* --- the file --- */

static bool read_rows(struct source *source, const struct source_sink *sink)
{
    if (!expect(source, '[', "no trace: its traceEvents are no list")) return false;
    int c = peek_token(source);
    if (c == ']') return source->at++, true;
    for (;;) {
        source->length = 0;
        if (peek_token(source) != '{') return peek_token(source) != END && fail(source, "no JSON, or no trace: a row that is no object");
        if (!read_value(source, 0)) return false;
        if (!sink->row(sink->of, source->text, source->length, source->error)) return source->failed = true, false;
        c = peek_token(source);
        if (c == END) return false;
        if (c != ',' && c != ']') return fail(source, "no JSON: no comma between two rows");
        source->at++;
        if (c == ']') return true;
    }
}

static bool read_member(struct source *source, const struct source_sink *sink, bool *rows)
{
    char name[64];
    source->length = 0;
    if (peek_token(source) == END) return false;
    if (*source->at != '"') return fail(source, "no JSON: a member without a name");
    if (!read_string(source)) return false;
    snprintf(name, sizeof name, "%.*s", (int)(source->length - 2 < 63 ? source->length - 2 : 63), source->text + 1);
    if (!expect(source, ':', "no JSON: no colon behind a name")) return false;
    if (!strcmp(name, "traceEvents")) {
        if (*rows) return fail(source, "traceEvents twice");
        *rows = true;
        return read_rows(source, sink);
    }
    source->length = 0;
    if (!read_value(source, 0)) return false;
    if (!sink->member || sink->member(sink->of, name, source->text, source->length, source->error)) return true;
    return source->failed = true, false;
}

static bool read_whole(struct source *source, const struct source_sink *sink, bool *rows)
{
    int c = peek_token(source);
    if (c == END && !source->failed) return fail(source, "empty");
    if (c == '[') { /* a list of events and nothing else, as some tools write */
        *rows = true;
        if (!read_rows(source, sink)) return false;
    } else if (!expect(source, '{', "no trace: it begins with neither { nor [")) return false;
    else if (peek_token(source) == '}') return fail(source, "no trace: it has no traceEvents");
    while (c != '[') {
        if (!read_member(source, sink, rows)) return false;
        c = peek_token(source);
        if (c == END) return false;
        if (c != ',' && c != '}') return fail(source, "no JSON: no comma between two members");
        source->at++;
        if (c == '}') break;
    }
    if (peek_token(source) != END) return fail(source, "no JSON: something stands behind the end");
    source->cut = source->reader.cut; /* at the end of the file there is nothing more, as it should be */
    if (!*rows) return fail(source, "no trace: it has no traceEvents");
    return !source->failed && !source->cut;
}

enum source_end source_read(const char *path, const struct source_sink *sink, char error[256])
{
    struct source source = {.line = 1, .error = error};
    bool rows = false, whole = false;
    *error = 0;
    if (!reader_open(&source.reader, path)) {
        source.failed = true;
        snprintf(error, 256, "%s", source.reader.error);
    } else {
        whole = read_whole(&source, sink, &rows);
    }
    if (!whole && !source.failed && !rows) fail(&source, "cut off before its first event");
    reader_close(&source.reader);
    free(source.text);
    return whole ? SOURCE_WHOLE : source.failed ? SOURCE_BROKEN : SOURCE_CUT;
}
