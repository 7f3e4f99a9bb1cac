#include "shim/base/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/keep.h"

/* Takes `word` off the front of the text. */
static bool take(const char **at, const char *word)
{
    size_t n = strlen(word);
    bool ok = !strncmp(*at, word, n);
    if (ok) *at += n;
    return ok;
}

/* Takes a whole number between two bounds; a sign is allowed where the least is below 0. */
static bool take_number(const char **at, long long least, long long most, long long *out)
{
    CS_KEEP_ERRNO;
    const char *digits = *at + (least < 0 && (**at == '-' || **at == '+'));
    if (*digits < '0' || *digits > '9') return false;
    char *end;
    errno = 0;
    long long n = strtoll(*at, &end, 10);
    if (errno || n < least || n > most) return false;
    *at = end;
    *out = n;
    return true;
}

static bool take_int(const char **at, int least, int most, int *out)
{
    long long n;
    bool ok = take_number(at, least, most, &n);
    if (ok) *out = (int)n;
    return ok;
}

enum { LOWEST = -100, HIGHEST = 100 }; /* no GPU has so many priorities: what is beyond is a slip of the pen */

static bool take_map(const char **at, struct cs_priority *p)
{
    do {
        if (p->mapped == (int)CS_COUNT(p->map)) return false;
        int *from = &p->map[p->mapped].from;
        if (!take_int(at, LOWEST, HIGHEST, from) || !take(at, "=") || !take_int(at, LOWEST, 0, &p->map[p->mapped].to)) return false;
        for (int i = 0; i < p->mapped; i++)
            if (p->map[i].from == *from) return false;
        p->mapped++;
    } while (**at == ',' && strcmp(*at, ",strict") && take(at, ","));
    return true;
}

bool cs_priority_read(const char *text, struct cs_priority *out)
{
    struct cs_priority p = {0};
    const char *at = text;
    int least = 0;
    bool ok;
    if (take(&at, "keep")) ok = true;
    else if (take(&at, "set:")) p.kind = CS_PRIORITY_SET, ok = take_int(&at, LOWEST, 0, &p.value);
    else if (take(&at, "shift:")) p.kind = CS_PRIORITY_SHIFT, ok = take_int(&at, LOWEST, HIGHEST, &p.value);
    else if (take(&at, "map:")) p.kind = CS_PRIORITY_MAP, ok = take_map(&at, &p);
    else p.kind = CS_PRIORITY_CLAMP, ok = take_int(&at, 0, 0, &least) && take(&at, ":") && take_int(&at, LOWEST, 0, &p.value);
    p.strict = ok && take(&at, ",strict");
    if (!ok || *at) return false;
    *out = p;
    return true;
}

bool cs_sharing_read(const char *text, struct cs_sharing *out)
{
    struct cs_sharing s = {0};
    const char *at = text;
    bool ok = true;
    if (take(&at, "keep")) s.kind = CS_SHARING_KEEP;
    else if (take(&at, "serial")) s.kind = CS_SHARING_SERIAL;
    else if (take(&at, "sync")) s.kind = CS_SHARING_SYNC;
    else s.kind = CS_SHARING_POOL, ok = take(&at, "pool:") && take_int(&at, 1, 1024, &s.pool);
    if (!ok || *at) return false;
    *out = s;
    return true;
}

const char *const cs_jitter_kinds[] = {"launch", "copy", "set", "event", "wait", "graph", NULL};

static bool take_kinds(const char **at, cs_u32 *kinds)
{
    *kinds = 0;
    do {
        int k = 0;
        while (cs_jitter_kinds[k] && !take(at, cs_jitter_kinds[k])) k++;
        if (!cs_jitter_kinds[k]) return false;
        *kinds |= 1u << k;
    } while (take(at, "+"));
    return true;
}

static bool take_jitter(const char **at, struct cs_jitter *j)
{
    long long n;
    if (take(at, "seed=")) {
        bool ok = take_number(at, 0, INT64_MAX, &n);
        j->seed = (cs_u64)n;
        return ok;
    }
    if (take(at, "us=")) {
        bool ok = take_number(at, 1, 1000000, &n);
        j->us = (cs_u32)n;
        return ok;
    }
    if (take(at, "percent=")) {
        bool ok = take_number(at, 1, 100, &n);
        j->percent = (cs_u32)n;
        return ok;
    }
    if (take(at, "on=")) return take_kinds(at, &j->kinds);
    if (!take(at, "at=")) return false;
    bool both = take(at, "both");
    j->host = both || take(at, "host");
    j->stream = both || (!j->host && take(at, "stream"));
    return j->host || j->stream;
}

bool cs_jitter_read(const char *text, struct cs_jitter *out)
{
    struct cs_jitter j = {.on = true, .host = true, .stream = true, .us = 200, .percent = 10, .kinds = ~0u};
    const char *at = text;
    bool ok = true;
    if (!strcmp(text, "off")) {
        *out = (struct cs_jitter){0};
        return true;
    }
    if (strncmp(text, "seed=", 5)) return false; /* a run that can't be repeated shows a race once and never again */
    do ok = take_jitter(&at, &j);
    while (ok && take(&at, ","));
    if (!ok || *at) return false;
    *out = j;
    return true;
}

/* A fraction of a second, to the microsecond, where there is one: it is added. */
static bool take_fraction(const char **at, cs_u64 *ns)
{
    long long part;
    if (!take(at, ".")) return true;
    const char *digits = *at;
    if (!take_number(at, 0, 999999, &part) || *at - digits > 6) return false;
    for (long n = *at - digits; n < 6; n++) part *= 10;
    *ns += (cs_u64)part * 1000;
    return true;
}

/* "2", "0.25" */
static bool take_time(const char **at, long long most, cs_u64 *ns)
{
    long long whole;
    if (!take_number(at, 0, most, &whole)) return false;
    *ns = (cs_u64)whole * 1000000000;
    return take_fraction(at, ns);
}

enum { SECONDS_MOST = 1000000 };

/* "2", "0.25", "60s" */
static bool take_seconds(const char **at, cs_u64 *ns)
{
    bool ok = take_time(at, SECONDS_MOST, ns);
    take(at, "s");
    return ok;
}

/* Each name at most once, in any order; a time of no length is for a delay alone. */
static bool take_times(const char **at, struct cs_window *w)
{
    const struct {
        const char *name;
        cs_u64 *ns;
        bool zero;
    } times[] = {{"delay=", &w->delay_ns, true}, {"duration=", &w->duration_ns, false}, {"every=", &w->every_ns, false}, {"for=", &w->for_ns, false}};
    unsigned seen = 0;
    do {
        size_t i = 0;
        while (i < CS_COUNT(times) && !take(at, times[i].name)) i++;
        if (i == CS_COUNT(times) || seen & 1u << i || !take_seconds(at, times[i].ns)) return false;
        if (!times[i].zero && !*times[i].ns) return false;
        seen |= 1u << i;
    } while (take(at, ","));
    w->kind = w->every_ns || w->for_ns ? CS_WINDOW_EVERY : CS_WINDOW_TIME;
    return w->kind == CS_WINDOW_TIME || (!(seen & 3) && w->for_ns && w->for_ns < w->every_ns);
}

bool cs_window_read(const char *text, struct cs_window *out)
{
    static const struct {
        const char *word;
        enum cs_window_kind kind;
    } words[] = {{"all", CS_WINDOW_ALL}, {"profiler", CS_WINDOW_PROFILER}, {"ctl", CS_WINDOW_CTL}};
    struct cs_window w = {0};
    size_t i = 0;
    while (i < CS_COUNT(words) && strcmp(text, words[i].word)) i++;
    if (i < CS_COUNT(words)) w.kind = words[i].kind;
    else if (!take_times(&text, &w) || *text) return false;
    *out = w;
    return true;
}

bool cs_gpu_times_read(const char *text, struct cs_gpu_times *out)
{
    enum { SAMPLE_MOST = 1000000 };
    static const char *const words[] = {
        [CS_GPU_TIMES_AUTO] = "auto", [CS_GPU_TIMES_CUPTI] = "cupti", [CS_GPU_TIMES_EVENTS] = "events", [CS_GPU_TIMES_OFF] = "off"};
    const char *at = text;
    int sample = 1;
    size_t kind = 0;
    while (kind < CS_COUNT(words) && strcmp(text, words[kind])) kind++;
    if (kind == CS_COUNT(words)) {
        if (!take(&at, "sample:") || !take_int(&at, 1, SAMPLE_MOST, &sample) || *at) return false;
        kind = CS_GPU_TIMES_EVENTS;
    }
    *out = (struct cs_gpu_times){(enum cs_gpu_times_kind)kind, (cs_u32)sample};
    return true;
}

/* --- trigger files --- */

static bool take_digits(const char **at, int digits, int least, int most, int *out)
{
    const char *from = *at;
    return take_int(at, least, most, out) && *at - from == digits;
}

static int days_of(int year, int month)
{
    static const char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* "2026-11-25T22:10:00Z". Not by timegm(), which may open files. */
static bool take_date(const char **at, cs_u64 *ns)
{
    int year, month, day, hour, minute, second;
    bool ok = take_digits(at, 4, 1970, 2200, &year) && take(at, "-") && take_digits(at, 2, 1, 12, &month) && take(at, "-") &&
              take_digits(at, 2, 1, days_of(year, month), &day) && take(at, "T") && take_digits(at, 2, 0, 23, &hour) && take(at, ":") &&
              take_digits(at, 2, 0, 59, &minute) && take(at, ":") && take_digits(at, 2, 0, 59, &second);
    if (!ok) return false;
    cs_u64 days = (cs_u64)day - 1;
    for (int y = 1970; y < year; y++) days += (cs_u64)(337 + days_of(y, 2));
    for (int m = 1; m < month; m++) days += (cs_u64)days_of(year, m);
    *ns = (((days * 24 + (cs_u64)hour) * 60 + (cs_u64)minute) * 60 + (cs_u64)second) * 1000000000;
    return take_fraction(at, ns) && take(at, "Z");
}

static bool take_start(const char **at, struct cs_trigger *t)
{
    static const long long YEAR_2200 = 7258118400;
    const bool is_date = strspn(*at, "0123456789") == 4 && (*at)[4] == '-';
    return is_date ? take_date(at, &t->start_ns) : take_time(at, YEAR_2200, &t->start_ns);
}

static bool take_duration(const char **at, struct cs_trigger *t) { return take_seconds(at, &t->duration_ns) && t->duration_ns; }

static bool take_ranks(const char **at, struct cs_trigger *t)
{
    if (take(at, "all")) return true;
    do {
        if (t->range_count == (int)CS_COUNT(t->ranges)) return false;
        struct cs_rank_range *range = &t->ranges[t->range_count++];
        if (!take_int(at, 0, INT32_MAX, &range->from)) return false;
        range->to = range->from;
        if (take(at, "-") && !take_int(at, range->from, INT32_MAX, &range->to)) return false;
    } while (take(at, ","));
    return true;
}

/* What is in it is read by the policy layer. */
static bool take_policy(const char **at, struct cs_trigger *t)
{
    t->policy = *at;
    *at += strcspn(*at, "\n");
    while (*at > t->policy && strchr(" \t\r", (*at)[-1])) --*at;
    t->policy_length = (size_t)(*at - t->policy);
    return t->policy_length > 1 && *t->policy == '{' && (*at)[-1] == '}';
}

static bool line_is_over(const char **at)
{
    *at += strspn(*at, " \t\r");
    bool is = !**at || **at == '\n';
    *at += **at == '\n';
    return is;
}

const char *cs_trigger_read(const char *text, struct cs_trigger *out, int *line)
{
    static const struct {
        const char *name;
        bool (*take)(const char **at, struct cs_trigger *t);
        const char *allowed;
    } keys[] = {{"start=", take_start, "start=2026-11-25T22:10:00Z, or start= with seconds since 1970; both may have a fraction"},
                {"duration=", take_duration, "duration= with seconds above 0: 5s, 0.5s, at most 1000000s"},
                {"ranks=", take_ranks, "ranks=all, or at most 64 numbers and ranges: ranks=0-7,12"},
                {"policy=", take_policy, "policy={...}: a JSON object on one line"}};
    struct cs_trigger t = {0};
    unsigned seen = 0;
    *line = 0;
    for (const char *at = text; *at;) {
        ++*line;
        at += strspn(at, " \t");
        if (*at == '#') at += strcspn(at, "\n");
        if (line_is_over(&at)) continue;
        size_t i = 0;
        while (i < CS_COUNT(keys) && !take(&at, keys[i].name)) i++;
        if (i == CS_COUNT(keys) || seen & 1u << i) return "start=, duration=, ranks= and policy=, each once; and lines that begin with #";
        if (!keys[i].take(&at, &t) || !line_is_over(&at)) return keys[i].allowed;
        seen |= 1u << i;
    }
    if ((seen & 3) != 3) return "a file with start= and duration=";
    *out = t;
    return NULL;
}

bool cs_trigger_names(const struct cs_trigger *trigger, int rank)
{
    bool is = !trigger->range_count;
    for (int i = 0; i < trigger->range_count; i++) is |= rank >= trigger->ranges[i].from && rank <= trigger->ranges[i].to;
    return is;
}
