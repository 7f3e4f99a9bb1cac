/* Copies a trace with one more lane for each GPU, which shows when the GPU was idle, and why. The
 * lane's rows are made from the model, and stand behind the rows of the trace. */
#include <inttypes.h>
#include <string.h>
#include <yyjson.h>

#include "shim/base/lane.h"
#include "shim/base/options.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/lanes.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/model/model.h"
#include "tools/custream/open/open.h"

enum { IDLE_LANE = CS_LANE_STEP / 5 /* the lanes of streams are multiples of the step */ };

static bool row_put(struct conversion *c, struct rope *text, char error[256])
{
    yyjson_doc *doc = value_parse(text->at, text->length);
    if (!doc) out_of_memory();
    const bool good = conversion_put(c, yyjson_doc_get_root(doc), false, error);
    yyjson_doc_free(doc);
    text->length = 0;
    return good;
}

static void member_add(struct rope *text, const char *name, const char *value)
{
    rope_print(text, ",\"%s\":", name);
    rope_string(text, value, strlen(value));
}

/* Makes the row of one piece of idle time, on the GPU with this pid. */
static void idle_row(
    struct rope *text, const struct run *run, const struct idle *idle, uint32_t pid)
{
    const int64_t ns = idle->end - idle->begin;
    rope_print(text,
        "{\"ph\":\"X\",\"cat\":\"cs_idle\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRId64
        ".%03d,\"dur\":%" PRId64 ".%03d,\"args\":{\"cause\":\"%s\"",
        cause_info[idle->cause].title, pid, IDLE_LANE, idle->begin / 1000,
        (int)(idle->begin % 1000), ns / 1000, (int)(ns % 1000), cause_info[idle->cause].key);
    member_add(text, "before", text_in(run, run->works[idle->next].name));
    if (idle->cause == CAUSE_HOST) member_add(text, "the host was", doing_word[idle->doing]);
    if (idle->call != NONE) member_add(text, "call", text_in(run, run->calls[idle->call].name));
    if (idle->range != NONE) member_add(text, "range", text_in(run, run->ranges[idle->range].name));
    rope_literal(text, "}}");
}

static bool lanes_put(struct conversion *c, const struct idle_files *files, char error[256])
{
    struct model model;
    struct rope text = {0};
    bool good = true, loaded = files->count > 0;
    model_init(&model);
    for (int i = 0; loaded && i < files->count; i++)
        loaded = run_load(&model.run, files->paths[i], NULL, NULL, error);
    if (loaded) {
        model_settle(&model);
        for (size_t i = 0; good && i < model.idles.count; i++) {
            const struct idle *idle = &model.idles.rows[i];
            const uint32_t ordinal = model.run.devices[idle->device].ordinal,
                           pid = files->merged ? merged_gpu_pid(0, ordinal) : ordinal;
            if (!i || idle[-1].device != idle->device) {
                rope_print(&text,
                    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{"
                    "\"name\":\"" IDLE_LANE_NAME "\"}}",
                    pid, IDLE_LANE);
                good = row_put(c, &text, error);
            }
            idle_row(&text, &model.run, idle, pid);
            good = good && row_put(c, &text, error);
        }
    }
    model_free(&model);
    free(text.at);
    return good;
}

bool whole_write(
    const char *command, const char *from, const char *to, const struct idle_files *idle)
{
    struct out out;
    char error[256];
    const char *extension = cs_trace_extension(to);
    const bool packets = extension && cs_trace_extension_is_packets(extension);
    if (!out_open(&out, command, to, OUT_OF_TEXT, NULL, 0)) return false;
    struct conversion *c = conversion_new((packets ? ROWS_PACKETS : 0) | ROWS_WHOLE, out_put, &out);
    const struct source_sink sink = {c, conversion_row, conversion_member};
    const bool good =
        source_read(from, 0, &sink, error) != JSON_BROKEN && lanes_put(c, idle, error);
    if (good) conversion_end(c, NULL);
    else complain(command, "%s", error);
    conversion_free(c);
    return out_close(&out, good);
}
