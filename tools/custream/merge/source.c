#include "tools/custream/merge/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "tools/custream/command.h"
#include "tools/custream/trace/json.h"

struct packed {
    char *text;
    size_t length, capacity;
};

/* The value without blanks between its tokens. */
static void pack(struct packed *packed, struct json *json)
{
    bool string = false;
    size_t length;
    const char *at = json_text(json, &length), *const end = at + length;
    while (packed->capacity <= length) packed->text = array_room(packed->text, packed->capacity, &packed->capacity, 1);
    char *to = packed->text;
    for (; at < end; at++) {
        if (!string && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) continue;
        *to++ = *at;
        if (*at == '"') string = !string;
        else if (*at == '\\') *to++ = *++at; /* the value is known to be JSON */
    }
    *to = 0;
    packed->length = (size_t)(to - packed->text);
}

enum source_end source_rows(struct json *json, const struct source_sink *sink, char error[256])
{
    struct packed packed = {0};
    enum json_step step = JSON_ROW;
    bool good = true;
    *error = 0;
    while (good && (step == JSON_ROW || step == JSON_MEMBER)) {
        step = json_next(json);
        if (step == JSON_ROW && !yyjson_is_obj(json->value)) step = JSON_BROKEN, snprintf(json->error, sizeof json->error, "line %llu: no trace: a row that is no object", (unsigned long long)json->lines + 1);
        if (step == JSON_ROW && !yyjson_obj_size(json->value)) continue; /* XLA's last one */
        if (step == JSON_ROW || (step == JSON_MEMBER && sink->member)) pack(&packed, json);
        if (step == JSON_ROW) good = sink->row(sink->of, packed.text, packed.length, error);
        else if (step == JSON_MEMBER && sink->member) good = sink->member(sink->of, json->name, packed.text, packed.length, error);
    }
    if (step == JSON_BROKEN) snprintf(error, 256, "%s", json->error);
    free(packed.text);
    return !good || step == JSON_BROKEN ? SOURCE_BROKEN : step == JSON_CUT ? SOURCE_CUT : SOURCE_WHOLE;
}

enum source_end source_read(const char *path, const struct source_sink *sink, char error[256])
{
    struct json json;
    enum source_end end = SOURCE_BROKEN;
    if (json_open(&json, path, false)) end = source_rows(&json, sink, error);
    else snprintf(error, 256, "%s", json.error);
    json_close(&json);
    return end;
}
