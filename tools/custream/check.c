/*
 * custream check: applies the rules of the trace format to files and names the first line that breaks one.
 *
 * A trace is three parts: a header up to the line that ends in "traceEvents":[, one event a line, and a trailer from the line that begins with
 * ]. The parts are parsed apart, so that memory depends on the number of slices and flows and not on the size of the file.
 */
#include "tools/custream/check.h"
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/trace/reader.h"
#include "tools/custream/text.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Header and trailer each; a policy may stand in the header. */
enum { PART_MAX_BYTES = 32 * 1024 * 1024 };

/* Lines put together. */
struct part {
    char *text;
    size_t length, capacity;
};

static void part_add(struct part *part, const char *text, size_t length)
{
    while (part->length + length >= part->capacity) part->text = array_room(part->text, part->capacity, &part->capacity, 1);
    memcpy(part->text + part->length, text, length);
    part->length += length;
    part->text[part->length] = 0;
}

/* How reading a trace went on or ended. */
enum progress {
    GOING,
    BROKEN,  /* check->breach says which line */
    USELESS, /* unreadable: check->state says why */
    TORN,    /* it ends behind its last whole event, which is well */
    DONE,
};

void text_print(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text)) *text = '?';
}

bool check_breach(struct check *check, uint64_t line, int rule, const char *format, ...)
{
    if (check->breach.line && check->breach.line <= line) return false;
    check->breach.line = line;
    check->breach.rule = rule;
    va_list args;
    va_start(args, format);
    vsnprintf(check->breach.what, sizeof check->breach.what, format, args);
    va_end(args);
    text_print(check->breach.what);
    return false;
}

static enum progress useless(struct check *check, const char *what)
{
    snprintf(check->state, sizeof check->state, "%s", what);
    return USELESS;
}

/* The next line that holds more than blanks, its characters judged. The text is in reader->line, blanks around it cut off. */
static enum progress next_line(struct check *check, struct reader *reader, char **text, size_t *length)
{
    int got;
    do {
        got = reader_next(reader);
        if (got < 0) return useless(check, reader->error);
        if (!got) return DONE;
        *text = reader->line;
        *length = reader->length;
        while (*length && isspace((unsigned char)(*text)[*length - 1])) --*length;
        while (*length && isspace((unsigned char)**text)) ++*text, --*length;
    } while (!*length);
    (*text)[*length] = 0;
    return GOING;
}

static bool line_judge(struct check *check, const struct reader *reader, const char *text, size_t length)
{
    struct text_fault fault;
    if (text_check(text, length, &fault)) return true;
    return check_breach(check, reader->number, fault.rule, "%s (byte %zu)", fault.what, (size_t)(text - reader->line) + fault.at + 1);
}

/* "rank":1 is valid JSON, and HTA, which looks for "rank":\s+(\d+), does not find it. */
static bool rank_judge(struct check *check, uint64_t line, const char *text)
{
    const char *info = strstr(text, "\"distributedInfo\""), *rank = info ? strstr(info, "\"rank\":") : NULL;
    if (rank && !isspace((unsigned char)rank[7])) return check_breach(check, line, 7, "\"rank\": needs a space behind it, for HTA");
    return true;
}

static bool header_judge(struct check *check, uint64_t line, struct part *part)
{
    part_add(part, "]}", 2);
    cJSON *header = cJSON_ParseWithOpts(part->text, NULL, true);
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(header, "baseTimeNanoseconds"), *number = cJSON_GetObjectItemCaseSensitive(header, "part");
    bool good = true;
    if (!header) good = check_breach(check, line, 9, "not JSON: the header up to this line");
    else if (!cJSON_IsNumber(base) || base->valuedouble < 0) good = check_breach(check, line, 1, "the header has no baseTimeNanoseconds");
    const cJSON *merged = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(header, "metadata"), "merged");
    check->merged = cJSON_IsObject(merged);
    const cJSON *cut = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(header, "metadata"), "cut");
    check->is_cut_out = cJSON_IsObject(cut);
    check->windowed = check->is_cut_out || cJSON_GetObjectItemCaseSensitive(merged, "window_ns");
    check->cut_seconds = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(cut, "seconds"));
    check->part = cJSON_IsNumber(number) ? number->valuedouble : 0;
    check->header = header;
    return good;
}

/* An editor, jq or a script has written it anew. What breaks a rule on which line can be told of the lines as custream writes them. */
static enum progress other_lines(struct check *check)
{
    return useless(check, "a trace, but not line by line as custream writes it: each event has a line of its own there, "
                          "and here an indented or joined-up copy. Check the file that custream wrote; 'custream report' reads this one too");
}

/* Whether the line ends in "traceEvents":[, blanks allowed between the three. */
static bool opens_events(const char *text, size_t length)
{
    static const char key[] = "\"traceEvents\"";
    const char *tail = "[:";
    for (; *tail; tail++) {
        if (!length || text[length - 1] != *tail) return false;
        length--;
        while (length && isspace((unsigned char)text[length - 1])) length--;
    }
    return length >= sizeof key - 1 && !memcmp(text + length - (sizeof key - 1), key, sizeof key - 1);
}

static enum progress read_header(struct check *check, struct reader *reader)
{
    struct part part = {0};
    enum progress progress;
    char *text;
    size_t length;
    while ((progress = next_line(check, reader, &text, &length)) == GOING) {
        if (!part.length && *text != '{') {
            progress = useless(check, "not a trace: it does not begin with {");
            break;
        }
        /* A line cut short has a string that does not end: that is told as what it is. */
        if (reader->newline && !(line_judge(check, reader, text, length) && rank_judge(check, reader->number, text))) {
            progress = BROKEN;
            break;
        }
        part_add(&part, text, length);
        part_add(&part, "\n", 1);
        if (opens_events(text, length)) {
            progress = header_judge(check, reader->number, &part) ? GOING : BROKEN;
            break;
        }
        if (part.length > PART_MAX_BYTES) {
            progress = strstr(part.text, "\"traceEvents\"") ? other_lines(check) : useless(check, "not a trace: no line ends in \"traceEvents\":[");
            break;
        }
    }
    if (progress == DONE) {
        cJSON *whole = part.length ? cJSON_ParseWithOpts(part.text, NULL, true) : NULL;
        const bool is_trace = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(whole, "traceEvents"));
        if (is_trace) progress = other_lines(check);
        else progress = useless(check, !reader->number ? "empty"
                                       : !part.length  ? "nothing but blank lines"
                                       : whole         ? "not a trace: no line ends in \"traceEvents\":["
                                                       : "truncated, or not JSON: it ends before a line that ends in \"traceEvents\":[");
        cJSON_Delete(whole);
    }
    free(part.text);
    return progress;
}

/* Event lines. On GOING, *text is the first line of the trailer. */
static enum progress read_events(struct check *check, struct reader *reader, char **text, size_t *length)
{
    bool comma = true; /* the line before ends as an event that another follows; true before the first */
    uint64_t before = 0;
    enum progress progress;
    while ((progress = next_line(check, reader, text, length)) == GOING) {
        bool trailer = **text == ']';
        if (!before && !strcmp(*text, "{")) return other_lines(check);
        if (before && comma == trailer) {
            check_breach(check, before, 9, trailer ? "a comma behind the last event" : "no comma between this event and the next");
            return BROKEN;
        }
        if (trailer) return GOING;
        if (!line_judge(check, reader, *text, *length)) return BROKEN;
        comma = (*text)[*length - 1] == ',';
        if (comma) (*text)[--*length] = 0;
        if (!check_event(check, reader->number, *text)) return BROKEN;
        before = reader->number;
    }
    check->packets = reader_is_packets(reader);
    check->torn = check->packets ? "it has no end" : reader->cut && reader->torn.where ? reader->torn.where : "the list of events does not end";
    return progress == DONE ? TORN : progress;
}

static enum progress trailer_judge(struct check *check, uint64_t line, const struct part *part, bool newline)
{
    cJSON *trailer = cJSON_ParseWithOpts(part->text, NULL, true);
    check->cut = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(trailer, "totals"), "complete"));
    if (!trailer && !newline) return check->torn = "it ends inside the trailer", TORN;
    if (!trailer) check_breach(check, line, 9, "not JSON: the trailer that begins on this line");
    else if (totals_judge(check, line, trailer, part->length) && !check->merged && !check->is_cut_out) audit_judge(check, line, trailer);
    totals_state(check, trailer);
    cJSON_Delete(trailer);
    return trailer ? DONE : BROKEN; /* a lower line may break a rule that takes all events */
}

/* The last line needs no newline. Without one it may have been cut short, and then what is wrong with it is just that. */
static enum progress read_trailer(struct check *check, struct reader *reader, char *text, size_t length)
{
    static const char before[] = "{\"traceEvents\":[";
    uint64_t first = reader->number;
    struct part part = {0};
    enum progress progress = GOING;
    bool whole = true;
    part_add(&part, before, sizeof before - 1);
    while (progress == GOING) {
        part_add(&part, text, length);
        part_add(&part, "\n", 1);
        whole = reader->newline || text[length - 1] == '}';
        if (whole && !line_judge(check, reader, text, length)) progress = BROKEN;
        else if (part.length > PART_MAX_BYTES) progress = useless(check, "a trailer of more than 32 MiB");
        else whole = reader->newline, progress = next_line(check, reader, &text, &length);
    }
    if (progress == DONE) progress = trailer_judge(check, first, &part, whole);
    free(part.text);
    return progress;
}

static enum progress read_trace(struct check *check, struct reader *reader)
{
    char *text;
    size_t length;
    enum progress progress = read_header(check, reader);
    if (progress == GOING) progress = read_events(check, reader, &text, &length);
    if (progress == GOING) progress = read_trailer(check, reader, text, length);
    return progress;
}

static void summary(const struct check *check)
{
    uint64_t threads = 0, lanes = 0;
    for (const struct lane *lane = check->lanes; lane; lane = lane->next)
        if (lane->first_event) *(is_gpu_pid(check, lane->pid) ? &lanes : &threads) += 1;
    printf("%s: %s: events %llu, slices %llu, flows %llu, threads %llu, lanes %llu, %s\n", check->path, check->state,
           (unsigned long long)check->events, (unsigned long long)check->slices, (unsigned long long)flows_complete(check),
           (unsigned long long)threads, (unsigned long long)lanes, check->losses);
}

/* What takes all rows. Also after a breach: slices that overlap may lie on lower lines than the one that reading stopped at. */
static void judge_all(struct check *check, enum progress progress)
{
    const bool whole = progress == DONE && !check->cut, all = progress == DONE || progress == TORN;
    lanes_sort(check);
    lanes_judge(check, whole);
    flows_judge(check, all);
    if (all) asyncs_judge(check, whole);
}

static int say(const struct check *check, enum progress progress)
{
    if (progress == USELESS) return fprintf(stderr, "custream check: %s: %s\n", check->path, check->state), STATUS_UNUSABLE;
    if (check->breach.line) {
        printf("%s:%llu: rule %d: %s\n", check->path, (unsigned long long)check->breach.line, check->breach.rule, check->breach.what);
        return STATUS_BROKEN;
    }
    if (progress == DONE) return summary(check), STATUS_OK;
    fprintf(stderr, "custream check: %s: truncated: %s, as when a process is killed while it writes. The %llu event%s before that keep%s the rules; 'custream recover' makes a whole file of them\n", check->path,
            check->torn, (unsigned long long)check->events, check->events == 1 ? "" : "s", check->events == 1 ? "s" : "");
    return STATUS_UNUSABLE;
}

void check_init(struct check *check, const char *path)
{
    *check = (struct check){.path = strcmp(path, "-") ? path : "standard input"};
    check->lanes_end = &check->lanes;
    sums_init(&check->sums);
}

void check_free(struct check *check)
{
    lanes_free(check);
    free(check->flows);
    free(check->asyncs);
    sums_free(&check->sums);
    cJSON_Delete(check->header);
}

static int check_file(const char *path)
{
    struct check check;
    struct reader reader;
    check_init(&check, path);
    const enum progress progress = reader_open(&reader, path) ? read_trace(&check, &reader) : useless(&check, reader.error);
    reader_close(&reader);
    if (progress != USELESS) judge_all(&check, progress);
    const int status = say(&check, progress);
    check_free(&check);
    return status;
}

enum count_end check_count(struct check *check, struct reader *reader)
{
    switch (read_trace(check, reader)) {
    case TORN: return COUNT_TORN;
    case DONE: return COUNT_WHOLE;
    case USELESS: return COUNT_USELESS;
    default: return COUNT_BROKEN;
    }
}

int command_check(int argc, char **argv)
{
    int status = STATUS_OK;
    while (flags_next(argc, argv, 0) != -1) {}
    if (optind == argc) {
        fputs("custream check: which file? 'custream help check' says more\n", stderr);
        return STATUS_UNUSABLE;
    }
    for (int i = optind; i < argc; i++) {
        int one = check_file(argv[i]);
        if (one > status) status = one;
    }
    return status;
}
