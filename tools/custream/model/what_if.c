#include "tools/custream/model/what_if.h"

#include "shim/base/append.h"
#include "shim/base/glob.h"
#include "tools/custream/model/views.h"

/* --- words --- */

/* Words that stand for one change. */
static const struct fixed {
    const char *words;
    struct change change;
    enum split split;
} fixed[] = {
    {"no events", {.without = 1 << TIE_EVENT}, SPLIT_NONE},
    {"no legacy", {.without = 1 << TIE_LEGACY}, SPLIT_NONE},
    {"no copies", {0}, SPLIT_COPIES},
    {"no stream waits", {.without = 1 << TIE_WAIT_STREAM}, SPLIT_NONE},
    {"copies do not block", {.without = 1 << TIE_WAIT_COPY}, SPLIT_NONE},
    {"allocations=0", {.free_calls = true}, SPLIT_NONE},
    {"per-thread", {0}, SPLIT_THREADS},
    {"side by side", {0}, SPLIT_WORKS},
    {"two at once", {.at_once = 2}, SPLIT_WORKS},
    {"no locks", {.without = 1 << TIE_WAKE}, SPLIT_NONE},
    {"no waits", {.without = 1 << TIE_WAIT_STREAM | 1 << TIE_WAIT_DEVICE | 1 << TIE_WAIT_COPY},
        SPLIT_NONE},
    {"pinned", {.pinned = true}, SPLIT_NONE},
    {"pinned and ahead",
        {.pinned = true, .one_copy = true, .without = 1 << TIE_WAIT_STREAM | 1 << TIE_WAIT_COPY},
        SPLIT_COPIES},
    {"no queues", {.queues = true}, SPLIT_NONE},
    {"graph", {.one_launch = true}, SPLIT_NONE},
    {"own code=0", {.own_code = true}, SPLIT_NONE},
    {"no waits outside CUDA", {.outside = true}, SPLIT_NONE},
    {"no silence", {.silence = true}, SPLIT_NONE},
    {"host=0", {.host = true}, SPLIT_NONE},
    {"host functions=0", {.host_functions = true}, SPLIT_NONE},
};

bool call_is_named(const char *name, const char *call)
{
    char plain[128];
    snprintf(plain, sizeof plain, "%s", call);
    char *end = strrchr(plain, '_');
    if (cs_glob(name, call)) return true;
    if (end && (!strcmp(end, "_ptsz") || !strcmp(end, "_ptds"))) {
        *end = 0;
        end = strrchr(plain, '_');
    }
    if (end && end[1] == 'v' && end[2] >= '2' && end[2] <= '9' && !end[3]) *end = 0;
    return cs_glob(name, plain);
}

static bool calls_read(struct what_if *what, const struct run *run, const char *name, char *error)
{
    bool any = false;
    what->calls = array_zeros(run->texts.count, sizeof *what->calls);
    for (size_t i = 0; i < run->call_count; i++) {
        const struct call *call = &run->calls[i];
        if (!what->calls[call->name] && !call_is_named(name, text_in(run, call->name))) continue;
        any = what->calls[call->name] = true;
        if (call_kind(call) == CS_KIND_WAIT) what->change.without |= 1 << TIE_EVENT;
    }
    what->change.calls = what->calls;
    if (!any) snprintf(error, 512, "the trace has no call %.200s", name);
    return any;
}

static bool kernels_read(
    struct what_if *what, const struct run *run, const char *words, char *error)
{
    char name[256], *end;
    const char *equals = strrchr(words, '=');
    const size_t n = equals ? (size_t)(equals - words) : 0;
    const double factor = equals ? strtod(equals + 1, &end) : -1;
    bool any = false;
    if (!n || n >= sizeof name || end == equals + 1 || *end || !(factor >= 0 && factor <= 1000)) {
        snprintf(error, 512, "allowed: 'kernel NAME=FACTOR', with a factor from 0 to 1000");
        return false;
    }
    memcpy(name, words, n);
    name[n] = 0;
    what->scale = array_zeros(run->texts.count, sizeof *what->scale);
    for (size_t i = 0; i < run->texts.count; i++) what->scale[i] = 1;
    for (size_t i = 0; i < run->work_count; i++) {
        const struct work *work = &run->works[i];
        if (work->kind != WORK_KERNEL || !cs_glob(name, text_in(run, work->name))) continue;
        what->scale[work->name] = (float)factor;
        any = true;
    }
    what->change.scale = what->scale;
    if (!any) snprintf(error, 512, "the trace has no kernel %.200s", name);
    return any;
}

/* Whether the time lies in a range of this name on the thread, on whatever level. */
static bool in_range(const struct run *run, uint32_t thread, int64_t at, const char *name)
{
    const struct thread_ranges *ranges = &run->thread_ranges;
    for (uint32_t place = thread_place_at(run, thread, at); place != NONE;
        place = ranges->parent[place])
        if (cs_glob(name, text_in(run, run->ranges[ranges->by_thread.members[place]].name)))
            return true;
    return false;
}

static bool range_read(struct what_if *what, const struct run *run, const char *words, char *error)
{
    char name[256];
    const size_t length = strlen(words);
    bool any = false;
    if (length < 3 || length - 2 >= sizeof name || strcmp(words + length - 2, "=0") != 0) {
        snprintf(error, 512, "allowed: 'own code in range NAME=0'");
        return false;
    }
    memcpy(name, words, length - 2);
    name[length - 2] = 0;
    what->gaps = array_zeros(run->call_count, sizeof *what->gaps);
    for (uint32_t i = 0; i < run->call_count; i++)
        any |= what->gaps[i] = in_range(run, run->calls[i].thread, run->calls[i].begin - 1, name);
    what->change.gaps = what->gaps;
    if (!any) snprintf(error, 512, "no call of the trace is in a range %.200s", name);
    return any;
}

bool what_if_read(struct what_if *what, const struct run *run, const char *words, char error[512])
{
    *what = (struct what_if){0};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (!strcmp(words, fixed[i].words)) {
            what->change = fixed[i].change;
            what->split = fixed[i].split;
            return true;
        }
    if (!strncmp(words, "own code in range ", 18)) return range_read(what, run, words + 18, error);
    if (!strncmp(words, "kernel ", 7)) return kernels_read(what, run, words + 7, error);
    if (!strncmp(words, "no ", 3)) return calls_read(what, run, words + 3, error);
    size_t n = cs_append(error, 512, 0,
        "allowed: 'no CALL', 'kernel NAME=FACTOR', 'own code in range NAME=0' (NAME and CALL may "
        "have * and ?)");
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        n = cs_append(error, 512, n, ", '%s'", fixed[i].words);
    return false;
}

void what_if_free(struct what_if *what) { free_all(what->calls, what->gaps, what->scale); }

/* --- gains --- */

void change_add(struct change *to, const struct change *change)
{
    to->without |= change->without;
    to->own_code |= change->own_code;
    to->outside |= change->outside;
    to->silence |= change->silence;
    to->pinned |= change->pinned;
    to->free_calls |= change->free_calls;
    to->one_launch |= change->one_launch;
    to->queues |= change->queues;
    to->host_functions |= change->host_functions;
    to->host |= change->host;
    to->one_copy |= change->one_copy;
    if (change->calls) to->without |= 1 << TIE_WAIT_DEVICE;
}

int64_t unchanged_length(struct replay *replay)
{
    const int64_t recorded = replay_recorded(replay), fill = replay_unchanged(replay, false),
                  fit = replay_has_unknown(replay) ? replay_unchanged(replay, true) : fill;
    return llabs(fit - recorded) < llabs(fill - recorded) ? fit : fill;
}

bool gain_of(
    struct gain *gain, struct replay *replay, const struct change *change, enum split split)
{
    struct replay *own = split == SPLIT_NONE ? NULL : replay_split(replay, split);
    if (split != SPLIT_NONE && !own) return false;
    struct change now = *change;
    gain->low = replay_unchanged(replay, false) - replay_length(own ?: replay, &now);
    gain->high = gain->low;
    if (replay_has_unknown(replay)) {
        now.unknown_fits = true;
        gain->high = replay_unchanged(replay, true) - replay_length(own ?: replay, &now);
    }
    if (gain->high < gain->low) *gain = (struct gain){gain->high, gain->low};
    replay_free(own);
    gain->low = (int64_t)((double)gain->low * replay_scale(replay));
    gain->high = (int64_t)((double)gain->high * replay_scale(replay));
    return true;
}
