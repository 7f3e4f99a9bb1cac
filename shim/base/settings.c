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

/* "2", "0.25", "60s": seconds, to the microsecond. */
static bool take_seconds(const char **at, cs_u64 *ns)
{
    long long whole, part = 0;
    if (!take_number(at, 0, 1000000, &whole)) return false;
    if (take(at, ".")) {
        const char *digits = *at;
        if (!take_number(at, 0, 999999, &part) || *at - digits > 6) return false;
        for (long n = *at - digits; n < 6; n++) part *= 10;
    }
    *ns = (cs_u64)whole * 1000000000 + (cs_u64)part * 1000;
    take(at, "s");
    return true;
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
