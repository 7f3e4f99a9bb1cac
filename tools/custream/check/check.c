/* custream check: names the first line of a trace that breaks a rule of the format. */
#include "tools/custream/check/check.h"
#include "tools/custream/flags.h"
#include "tools/custream/trace/newest.h"
#include "tools/custream/verdict.h"
#include "tools/custream/trace/json.h"

#include <ctype.h>
#include <stdarg.h>
#include <yyjson.h>

bool check_breach(struct check *check, uint64_t line, int rule, const char *format, ...)
{
    if (check->breach.line && check->breach.line <= line) return false;
    check->breach.line = line;
    check->breach.rule = rule;
    va_list args;
    va_start(args, format);
    vsnprintf(check->breach.what, sizeof check->breach.what, format, args);
    va_end(args);
    text_clean(check->breach.what);
    return false;
}

/* --- reading --- */

static enum check_end useless(struct check *check, const char *why)
{
    snprintf(check->state, sizeof check->state, "%s", why);
    return CHECK_USELESS;
}

/* Takes a member of the header or the trailer into check->whole. */
static bool member_take(struct check *check, struct json *json)
{
    size_t length;
    const char *at = json_text(json, &length);
    char *text = strndup(at, length);
    if (!text) out_of_memory();
    cJSON *value = cJSON_Parse(text);
    bool good = value || check_breach(check, json->line, 9, "%s is nested too deep", json->name);
    /* HTA searches for "rank":\s+(\d+) */
    const char *rank =
        check->packets || strcmp(json->name, "distributedInfo") ? NULL : strstr(text, "\"rank\":");
    if (good && rank && !isspace((unsigned char)rank[7]))
        good = check_breach(check, json->line, 7, "\"rank\": needs a space behind it, for HTA");
    if (!good) cJSON_Delete(value);
    else cJSON_AddItemToObject(check->whole, json->name, value);
    free(text);
    if (json->rows_end_line) check->trailer_bytes += length;
    return good;
}

/* Judges the header. False: the header has a breach, or check->state says why it is no trace of
 * ours. */
static bool header_judge(struct check *check, const struct json *json)
{
    const char *tool = cJSON_GetStringValue(member_of(member_of(check->whole, "metadata"), "tool"));
    const cJSON *base = member_of(check->whole, "baseTimeNanoseconds"),
                *metadata = member_of(check->whole, "metadata");
    const cJSON *merged = member_of(metadata, "merged"), *cut = member_of(metadata, "cut"),
                *part = member_of(check->whole, "part");
    check->merged = cJSON_IsObject(merged);
    check->is_cut_out = cJSON_IsObject(cut);
    check->windowed = check->is_cut_out || member_of(merged, "window_ns");
    check->cut_seconds = cJSON_GetNumberValue(member_of(cut, "seconds"));
    check->part = cJSON_IsNumber(part) ? part->valuedouble : 0;
    check->format = json->format;
    if (!tool || strncmp(tool, "custream ", 9))
        return useless(check, "another tool's trace, and the rules are of custream's; 'custream "
                              "report' reads it"),
               false;
    return (cJSON_IsNumber(base) && base->valuedouble >= 0) ||
           check_breach(check, json->rows_line + !json->rows_line, 1,
               "the header has no baseTimeNanoseconds");
}

static enum check_end torn(struct check *check, const struct json *json)
{
    const char *where = json->reader.torn.where;
    if (!check->events && !header_judge(check, json))
        return *check->state ? CHECK_USELESS : CHECK_BROKEN;
    check->recoverable = check->packets || where;
    check->torn = check->packets              ? "it has no end"
                  : json->rows_end_line       ? "it ends inside the trailer"
                  : json->reader.cut && where ? where
                                              : "the list of events does not end";
    return CHECK_TORN;
}

static enum check_end trailer_judge(struct check *check, const struct json *json)
{
    const uint64_t line = json->rows_end_line + !json->rows_end_line;
    if (!check->events && !header_judge(check, json))
        return *check->state ? CHECK_USELESS : CHECK_BROKEN;
    check->cut = cJSON_IsFalse(member_of(member_of(check->whole, "totals"), "complete"));
    if (totals_judge(check, line) && !check->merged && !check->is_cut_out)
        audit_judge(check, line, check->whole);
    totals_state(check);
    return CHECK_WHOLE; /* judge_all() may find a breach on a lower line */
}

enum check_end check_read(struct check *check, struct json *json)
{
    enum json_step step;
    json->strict = true;
    check->packets = reader_is_packets(&json->reader);
    if (!(check->whole = cJSON_CreateObject())) out_of_memory();
    while ((step = json_next(json)) == JSON_ROW || step == JSON_MEMBER) {
        const bool good = json_has_null(json)   ? check_breach(check, json->line, 1, "null")
                          : step == JSON_MEMBER ? member_take(check, json)
                                                : (check->events || header_judge(check, json)) &&
                                                      check_event(check, json->line, json->value);
        if (!good) return *check->state ? CHECK_USELESS : CHECK_BROKEN;
    }
    if (step == JSON_END) return trailer_judge(check, json);
    if (step == JSON_CUT) return torn(check, json);
    if (!json->fault_line) return useless(check, json->error);
    check_breach(check, json->fault_line, json->fault_in_number ? 1 : 9, "%s", json->fault);
    return CHECK_BROKEN;
}

/* --- the verdict in words --- */

/* Judges the rules on several events, also after a breach: lower lines may break them. */
static void judge_all(struct check *check, enum check_end end)
{
    const bool whole = end == CHECK_WHOLE && !check->cut && !check->is_cut_out,
               all = end == CHECK_WHOLE || end == CHECK_TORN;
    lanes_sort(check);
    lanes_judge(check);
    flows_judge(check, all);
    if (all) asyncs_judge(check, whole);
}

static int say(const struct check *check, enum check_end end)
{
    if (end == CHECK_USELESS)
        return complain("custream check", "%s: %s", check->path, check->state);
    if (check->breach.line) {
        printf("%s:%llu: rule %d: %s\n", check->path, (unsigned long long)check->breach.line,
            check->breach.rule, check->breach.what);
        return STATUS_BROKEN;
    }
    if (end == CHECK_WHOLE) {
        uint64_t threads = 0, lanes = 0, flows = 0; /* each end of a flow has a start */
        for (size_t i = 0; i < check->flow_count; i++) flows += check->flows[i].phase == 'f';
        for (size_t i = 0; i < check->lane_count; i++)
            if (check->lanes[i]->first_event)
                ++*(check->lanes[i]->gpu != TRACE_NO_GPU ? &lanes : &threads);
        printf("%s: %s: events %llu, slices %llu, flows %llu, threads %llu, lanes %llu, %s\n",
            check->path, check->state, (unsigned long long)check->events,
            (unsigned long long)check->slices, (unsigned long long)flows,
            (unsigned long long)threads, (unsigned long long)lanes, check->losses);
        return STATUS_OK;
    }
    const bool one = check->events == 1;
    return complain("custream check",
        "%s: truncated: %s, as when a process is killed while it writes. The %llu event%s before "
        "that keep%s the rules%s",
        check->path, check->torn, (unsigned long long)check->events, one ? "" : "s", one ? "s" : "",
        check->recoverable ? "; 'custream recover' makes a whole file of them" : "");
}

void check_init(struct check *check, const char *path)
{
    *check = (struct check){.path = strcmp(path, "-") ? path : "standard input"};
    check->sums.host_from = INT64_MAX;
}

void check_free(struct check *check)
{
    for (size_t i = 0; i < check->lane_count; i++)
        free_all(check->lanes[i]->slices, check->lanes[i]->readings, check->lanes[i]);
    free_all(check->lanes, check->flows, check->asyncs, check->sums.works, check->sums.calls,
        check->sums.gaps);
    numbers_free(&check->lane_places);
    cJSON_Delete(check->whole);
}

int command_check(int argc, char **argv)
{
    int status = STATUS_OK;
    while (flags_next(argc, argv, 0) != -1) {}
    char **files = argv + optind;
    int count = argc - optind;
    if (!files_or_newest("custream check", &files, &count)) return STATUS_UNUSABLE;
    for (int i = 0; i < count; i++) {
        struct check check;
        struct json json;
        check_init(&check, files[i]);
        const enum check_end end = json_open(&json, files[i], false) ? check_read(&check, &json)
                                                                     : useless(&check, json.error);
        json_close(&json);
        if (end != CHECK_USELESS) judge_all(&check, end);
        const int one = say(&check, end);
        check_free(&check);
        if (one > status) status = one;
    }
    return status;
}
