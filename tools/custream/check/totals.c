/* Judges rules 10 and 12: the trailer's totals agree with what the rows add up to. */
#include "tools/custream/check/check.h"
#include "tools/custream/trace/format.h"
#include "tools/custream/verdict.h"

#include <math.h>
#include <yyjson.h>

#define LINE(n) ((unsigned long long)(n))

/* The recorder remembers this many calls that wait for their work. Correlations count up, so a
 * trace with a higher correlation may have work whose call was forgotten. */
#define CALLS_KEPT (UINT64_C(1) << 18)
/* The recorder lists at most WINDOWS_LISTED windows. It lists all groups of objects never destroyed
 * if they are fewer than GROUPS_SURE and the trailer is shorter than TRAILER_SURE bytes. */
enum { WINDOWS_LISTED = 64, GROUPS_SURE = 100, TRAILER_SURE = 48 * 1024 };

/* The totals that are judged, and what they have to agree with. */
struct judged {
    struct check *check;
    struct sums *sums;
    uint64_t line;
    const cJSON *whole, *totals;
    bool complete;
    double part; /* 0: the trace has no parts */
};

#define BREACH(judged, rule, ...) check_breach((judged)->check, (judged)->line, rule, __VA_ARGS__)

/* Judges that the total object.NAME is `count`. `path`: the object's path, for the message. */
static bool agrees(const struct judged *j, const cJSON *object, const char *path, const char *name,
    uint64_t count, const char *what)
{
    double said = number_in(object, name);
    if (said < 0) return BREACH(j, 12, "the trailer has no %s%s", path, name);
    if (said != (double)count)
        return BREACH(
            j, 12, "%s%s is %.15g, and there are %llu %s", path, name, said, LINE(count), what);
    return true;
}

/* --- losses --- */

static bool losses_agree(const struct judged *j)
{
    const cJSON *lost = member_of(j->totals, "lost_records"), *gpu = member_of(j->totals, "gpu"),
                *not_written = member_of(j->totals, "not_written");
    const double work = number_or_0(gpu, "lost"), cut_work = number_or_0(not_written, "gpu_work"),
                 cut_calls = number_or_0(not_written, "calls");
    if (!cJSON_IsNumber(lost)) return BREACH(j, 10, "the trailer has no totals.lost_records");
    if (lost->valuedouble != (double)j->sums->lost_calls)
        return BREACH(j, 10, "totals.lost_records is %.15g, and the cs_loss slices have %llu",
            lost->valuedouble, LINE(j->sums->lost_calls));
    if (cut_calls > lost->valuedouble)
        return BREACH(j, 12, "totals.not_written.calls is %.15g, and totals.lost_records %.15g",
            cut_calls, lost->valuedouble);
    if (work + cut_work != (double)j->sums->lost_work)
        return BREACH(j, 12,
            "totals.gpu.lost is %.15g, and the cs_loss slices have %llu pieces of GPU work, of "
            "which %.15g are not_written",
            work, LINE(j->sums->lost_work), cut_work);
    return true;
}

/* --- GPU work --- */

static bool work_agrees(const struct judged *j)
{
    const cJSON *gpu = member_of(j->totals, "gpu");
    for (int i = 0; i < WORK_KINDS; i++) {
        const uint64_t count = j->sums->kinds[i];
        char what[32];
        snprintf(what, sizeof what, "%s slices", work_kinds[i].category);
        if (!gpu && count)
            return BREACH(
                j, 12, "the trailer has no totals.gpu, and there are %llu %s", LINE(count), what);
        if (gpu && !agrees(j, gpu, "totals.gpu.", work_kinds[i].total, count, what)) return false;
    }
    return !gpu || agrees(j, gpu, "totals.gpu.", "without_call", j->sums->without_call,
                       "pieces of GPU work without a correlation");
}

COMPARES(call_by_correlation, struct call, ORDER(a->correlation, b->correlation))

/* Orders calls by device, stream and thread, then by time. */
COMPARES(call_by_place, struct call,
    ORDER(a->device, b->device) ?: ORDER(a->stream, b->stream) ?: ORDER(a->tid, b->tid)
        ?: ORDER(a->ts, b->ts))

/* Finds the call of each piece of work. Returns how many pieces have no call in this file. */
static uint64_t works_match(struct sums *sums)
{
    uint64_t foreign = 0;
    if (sums->call_count)
        qsort(sums->calls, sums->call_count, sizeof *sums->calls, call_by_correlation);
    for (size_t i = 0; i < sums->work_count; i++) {
        const struct work *work = &sums->works[i];
        const struct call key = {.correlation = work->correlation};
        struct call *call = sums->call_count ? bsearch(&key, sums->calls, sums->call_count,
                                                   sizeof key, call_by_correlation)
                                             : NULL;
        foreign += !call;
        if (!call) continue;
        call->works = true;
        call->at_home |= work->lane == ((uint64_t)call->device << 32 | call->stream);
    }
    return foreign;
}

/* Judges that an arrow leads to each piece of work whose call is in the file. After a sudden end an
 * arrow may be missing. */
static bool arrows_agree(const struct judged *j, uint64_t foreign)
{
    const uint64_t here = j->sums->work_count - foreign, arrows = j->sums->arrows;
    const double between = number_or_0(j->totals, "arrows_between_parts");
    if (j->part < 2 && foreign)
        return BREACH(
            j, 12, "%llu pieces of GPU work have a correlation that no call has", LINE(foreign));
    if (j->part >= 2 && (double)foreign > between)
        return BREACH(j, 12,
            "totals.arrows_between_parts is %.15g, and %llu pieces of GPU work have their call in "
            "no row",
            between, LINE(foreign));
    if (arrows == here || (!j->complete && arrows + 1 == here)) return true;
    return BREACH(j, 12,
        "%llu arrows lead to GPU work, and %llu pieces of it have their call in the file",
        LINE(arrows), LINE(here));
}

/* Counts the launches on one stream that have no work although a later call has work. *least: the
 * later call is of the same thread, so the recorder met the two in this order. *most: the later
 * call is of any thread, and times tell the order only about. */
static void passed_on_stream(
    const struct call *from, const struct call *end, uint64_t *least, uint64_t *most)
{
    enum { UNSURE_NS = 1000000 };
    /* When the last call with work began: of any thread, and of the current thread. */
    int64_t last = INT64_MIN, last_of_thread = INT64_MIN;
    for (const struct call *call = from; call < end; call++)
        if (call->works && call->ts > last) last = call->ts;
    for (const struct call *call = end; call-- > from;) {
        if (call + 1 == end || call->tid != call[1].tid) last_of_thread = INT64_MIN;
        if (call->at_home && last_of_thread == INT64_MIN) last_of_thread = call->ts;
        if (!call->launches || call->works) continue;
        *least += call->end <= last_of_thread;
        *most += last != INT64_MIN && call->ts <= last + UNSURE_NS;
    }
}

static void launches_passed(struct sums *sums, uint64_t *least, uint64_t *most)
{
    struct call *call = sums->calls, *const end = call + sums->call_count, *next;
    if (sums->call_count) qsort(call, sums->call_count, sizeof *call, call_by_place);
    for (*least = *most = 0; call < end; call = next) {
        for (next = call + 1;
            next < end && call->device == next->device && call->stream == next->stream;)
            next++;
        if (call->stream) passed_on_stream(call, next, least, most);
    }
}

static bool missing_launches_agree(const struct judged *j)
{
    static const char name[] = "totals.gpu.launches_without_kernel";
    const cJSON *gpu = member_of(j->totals, "gpu");
    const double said = number_in(gpu, "launches_without_kernel");
    uint64_t least, most;
    if (!gpu || j->part >= 2) return true; /* this total counts launches of earlier parts too */
    if (said < 0 && member_of(j->totals, "recovered"))
        return true; /* custream recover cannot tell this total from the rows */
    if (said < 0) return BREACH(j, 12, "the trailer has no %s", name);
    launches_passed(j->sums, &least, &most);
    if (!j->complete) { /* the launches, or the later work, may be missing from the file */
        most = j->sums->lost_calls;
        for (size_t i = 0; i < j->sums->call_count; i++)
            most += j->sums->calls[i].launches && !j->sums->calls[i].works;
    }
    if (said > (double)most)
        return BREACH(j, 12,
            "%s is %.15g, and there are %llu launches without work behind which other work may "
            "have come",
            name, said, LINE(most));
    /* Whether something that no row shows may hide a launch, or keep it from making work. */
    const char *source = text_member(gpu, "source");
    const bool hidden = !j->complete || j->sums->captures || j->sums->no_lane ||
                        j->sums->correlation_max >= CALLS_KEPT || member_of(j->totals, "windows") ||
                        member_of(j->totals, "left_out_by_rule") ||
                        number_in(gpu, "without_times") > 0 || !source || strcmp(source, "cupti");
    if (said < (double)least && !hidden)
        return BREACH(j, 12,
            "%s is %.15g, and there are %llu launches without work behind which work of their "
            "stream came",
            name, said, LINE(least));
    return true;
}

/* --- windows --- */

struct window {
    int64_t from, to; /* to: INT64_MAX while the window is open */
};

static int64_t ns_of(double us) { return llrint(us * 1000); }

/* Whether a time in the trailer and a time in a row are the same. After hours the recorder keeps
 * old times more coarsely than the rows that it has written. */
static bool is_same_time(int64_t a, int64_t b, const struct window *window)
{
    const int64_t hour = INT64_C(3600000000000), coarse = 1000000;
    return a == b || (window->to > hour && llabs(a - b) <= coarse);
}

/* Reads the listed windows. Returns how many; -1: a window is malformed. */
static int windows_read(const cJSON *list, struct window *windows)
{
    int n = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, list) {
        double from = number_in(one, "from_us"), to = number_in(one, "to_us");
        if (n == WINDOWS_LISTED || from < 0) return -1;
        windows[n++] = (struct window){ns_of(from), to < 0 ? INT64_MAX : ns_of(to)};
    }
    return n;
}

/* Judges that no gap lies in a window: nothing was recorded in a gap. */
static bool gaps_agree(const struct judged *j, const struct window *windows, int n)
{
    for (size_t i = 0; i < j->sums->gap_count; i++)
        for (int w = 0; w < n; w++) {
            const struct gap *gap = &j->sums->gaps[i];
            const struct window *window = &windows[w];
            /* a gap without a length is written as one nanosecond */
            if (gap->end - gap->ts > 1 && gap->ts < window->to && gap->end > window->from &&
                !is_same_time(gap->ts, window->to, window) &&
                !is_same_time(gap->end, window->from, window))
                return BREACH(j, 12,
                    "totals.windows: the cs_window slice on line %llu lies in a window, from %.3f "
                    "us on",
                    LINE(gap->line), (double)windows[w].from / 1000);
        }
    return true;
}

/* Judges that a cs_window slice begins where each window ends, if that is after the first call. */
static bool windows_part(const struct judged *j, const struct window *windows, int n)
{
    for (int w = 0; w < n; w++) {
        bool found = windows[w].to == INT64_MAX || windows[w].to < j->sums->host_from;
        for (size_t i = 0; i < j->sums->gap_count && !found; i++)
            found = is_same_time(j->sums->gaps[i].ts, windows[w].to, &windows[w]);
        if (!found)
            return BREACH(j, 12,
                "totals.windows: no cs_window slice begins where a window ends, at %.3f us",
                (double)windows[w].to / 1000);
    }
    return true;
}

/* Judges recorded_us: the length of all closed windows, and of the open window until the trailer
 * was written. */
static bool recorded_time_agrees(
    const struct judged *j, const cJSON *said, const struct window *windows, int n)
{
    int64_t sum = 0, recorded = ns_of(number_in(said, "recorded_us"));
    bool open = n && windows[n - 1].to == INT64_MAX;
    for (int w = 0; w < n; w++)
        sum += windows[w].to == INT64_MAX ? 0 : windows[w].to - windows[w].from;
    if (open || !n ? recorded >= sum : is_same_time(recorded, sum, &windows[n - 1])) return true;
    return BREACH(j, 12, "totals.windows.recorded_us is %.3f, and the windows listed have %.3f",
        (double)recorded / 1000, (double)sum / 1000);
}

static bool windows_agree(const struct judged *j)
{
    struct window windows[WINDOWS_LISTED];
    const cJSON *said = member_of(j->totals, "windows"), *last = member_of(said, "last");
    const double opened = number_in(said, "opened");
    const int n = windows_read(last, windows);
    if (!said)
        return !j->sums->gap_count ||
               BREACH(j, 12, "there are %llu cs_window slices, and no totals.windows",
                   LINE(j->sums->gap_count));
    if (opened < 0 || n < 0 || !cJSON_IsArray(last))
        return BREACH(j, 12, "totals.windows: opened, and a list of the last with from_us each");
    if (member_of(said, "untold") || (!n && !j->complete))
        return true; /* some windows were not told, or the list was left out so that the trailer
                        fits */
    if (n != (opened < WINDOWS_LISTED ? opened : WINDOWS_LISTED))
        return BREACH(
            j, 12, "totals.windows.opened is %.15g, and %d windows are listed", opened, n);
    if (n && cJSON_IsTrue(member_of(said, "open")) != (windows[n - 1].to == INT64_MAX))
        return BREACH(j, 12, "totals.windows.open is not what the last of them says");
    if (!gaps_agree(j, windows, n) || (opened == n && !recorded_time_agrees(j, said, windows, n)))
        return false;
    return !j->complete || j->part || windows_part(j, windows, n);
}

/* The totals of all parts so far. own: the number of this part. what: the name of that number;
 * NULL: the total is not judged. */
enum { IN_ALL_PARTS = 7 };
struct in_all_parts {
    const char *name, *what;
    double own;
};

/* Fills the rows. Returns how many traces of the format have. */
static size_t in_all_parts(const struct check *check, struct in_all_parts rows[IN_ALL_PARTS])
{
    const struct sums *sums = &check->sums;
    const cJSON *gpu = member_of(member_of(check->whole, "totals"), "gpu");
    const struct in_all_parts all[IN_ALL_PARTS] = {
        {"recorded_in_all_parts", "recorded", (double)sums->recorded},
        {"calls_in_all_parts", "calls", (double)sums->driver_calls},
        {"lost_in_all_parts", "lost_records", (double)sums->lost_calls},
        {"gpu_work_in_all_parts", NULL, (double)(sums->without_call + sums->work_count)},
        {"gpu_work_without_times_in_all_parts", "launches_without_kernel and without_times",
            number_or_0(gpu, "launches_without_kernel") + number_or_0(gpu, "without_times")},
        {"gpu_work_lost_in_all_parts", NULL, (double)sums->lost_work},
        {"gpu_work_without_call_in_all_parts", "without_call", (double)sums->without_call},
    };
    memcpy(rows, all, sizeof all);
    return IN_ALL_PARTS - !format_says(check->format, FORMAT_WITHOUT_CALL_IN_ALL);
}

/* Judges totals of all parts. In a later part such a total is at least the part's own number, and
 * that of the deleted parts. */
static bool parts_agree(const struct judged *j)
{
    struct in_all_parts rows[IN_ALL_PARTS];
    const size_t count = in_all_parts(j->check, rows);
    if (!j->part && j->check->part)
        return BREACH(j, 12, "the header says part %.15g, and the trailer has no totals.part",
            j->check->part);
    if (!j->part) return true;
    if (j->check->part != j->part)
        return BREACH(
            j, 12, "totals.part is %.15g, and the header's %.15g", j->part, j->check->part);
    for (size_t i = 0; i < count; i++) {
        const double said = number_in(j->totals, rows[i].name), own = rows[i].own,
                     earlier = i ? 0 : number_or_0(j->totals, "recorded_in_deleted_parts");
        if (rows[i].what && (j->part == 1 ? said != own : said < own + earlier))
            return BREACH(j, 12, "totals.%s is %.15g, and %s in part %.15g %.15g%s", rows[i].name,
                said, rows[i].what, j->part, own,
                earlier > 0 ? ", and deleted ones have more" : "");
    }
    return number_or_0(j->totals, "parts_deleted") < j->part ||
           BREACH(j, 12, "totals.parts_deleted is %.15g in part %.15g",
               number_in(j->totals, "parts_deleted"), j->part);
}

/* Judges that each total of leaked objects is the sum of its groups, or more if the list is cut. */
static bool leaks_agree(const struct judged *j)
{
    static const char *const kinds[][2] = {
        {"leaked_streams", "stream"}, {"leaked_events", "event"}};
    const cJSON *groups = member_of(j->whole, "neverDestroyed"), *group;
    const bool all =
        cJSON_GetArraySize(groups) < GROUPS_SURE && j->check->trailer_bytes < TRAILER_SURE;
    for (int kind = 0; kind < 2; kind++) {
        double sum = 0, said = number_in(j->totals, kinds[kind][0]);
        cJSON_ArrayForEach(group, groups) {
            const char *object = text_member(group, "object");
            if (object && !strcmp(object, kinds[kind][1])) sum += number_or_0(group, "count");
        }
        if (said < 0 && !groups) continue;
        if (all ? said != sum : said < sum)
            return BREACH(j, 12, "totals.%s is %.15g, and neverDestroyed has %.15g", kinds[kind][0],
                said < 0 ? 0 : said, sum);
    }
    return true;
}

bool totals_judge(struct check *check, uint64_t line)
{
    const cJSON *totals = member_of(check->whole, "totals");
    const struct judged j = {.check = check,
        .sums = &check->sums,
        .line = line,
        .whole = check->whole,
        .totals = totals,
        .complete = !check->cut && !member_of(totals, "ended"),
        .part = number_or_0(totals, "part")};
    /* merge and cut write no `recorded` if they made a window, or if one of their files had no
     * totals; then nothing is compared */
    if ((check->merged || check->is_cut_out) && !member_of(totals, "recorded")) return true;
    if (!losses_agree(&j)) return false;
    if (!agrees(&j, totals, "totals.", "recorded", check->sums.recorded,
            "rows of calls, callbacks, delays, ranges and marks"))
        return false;
    if (check->merged)
        return work_agrees(&j); /* the other totals are given for each process alone */
    if (!agrees(&j, totals, "totals.", "calls", check->sums.driver_calls, "rows of driver calls"))
        return false;
    const cJSON *gpu = member_of(totals, "gpu");
    const double said = number_or_0(gpu, "sample"),
                 began = number_or_0(member_of(check->whole, "metadata"), "gpu_sample");
    if (!work_agrees(&j)) return false;
    if (gpu && said != began) /* sampling never changes in a file */
        return BREACH(
            &j, 12, "totals.gpu.sample is %.15g, and the header's gpu_sample %.15g", said, began);
    if (!arrows_agree(&j, works_match(&check->sums)) || !missing_launches_agree(&j)) return false;
    return parts_agree(&j) && windows_agree(&j) && leaks_agree(&j);
}

static void gpu_make(cJSON *totals, const struct check *check)
{
    const char *source =
        cJSON_GetStringValue(member_of(member_of(check->whole, "metadata"), "gpu_time_source"));
    const double sample = number_in(member_of(check->whole, "metadata"), "gpu_sample");
    cJSON *gpu = json_add(totals, "gpu", cJSON_CreateObject());
    json_add(gpu, "source", cJSON_CreateString(source ? source : "none"));
    if (sample > 0) json_add_number(gpu, "sample", sample);
    for (int i = 0; i < WORK_KINDS; i++)
        json_add_number(gpu, work_kinds[i].total, (double)check->sums.kinds[i]);
    json_add_number(gpu, "without_call", (double)check->sums.without_call);
    json_add_number(gpu, "lost", (double)check->sums.lost_work);
}

/* Adds the totals of a part. `before`: the totals of the part before this one, or NULL; `last`: the
 * totals that this part's last flush wrote, or NULL. `before` does not count the part that was
 * deleted when this part began; `last` does. */
static void part_make(cJSON *totals, struct check *check, const cJSON *before, const cJSON *last)
{
    static const char *const of_deleted[] = {"parts_deleted", "recorded_in_deleted_parts"};
    struct in_all_parts rows[IN_ALL_PARTS];
    const size_t count = in_all_parts(check, rows);
    json_add_number(totals, "arrows_between_parts", (double)works_match(&check->sums));
    json_add_number(totals, "part", check->part);
    for (size_t i = 0; i < CS_COUNT(of_deleted); i++)
        json_add_number(totals, of_deleted[i],
            fmax(number_or_0(before, of_deleted[i]), number_or_0(last, of_deleted[i])));
    for (size_t i = 0; i < count; i++)
        json_add_number(totals, rows[i].name, number_or_0(before, rows[i].name) + rows[i].own);
}

cJSON *totals_make(struct check *check, uint64_t cut_bytes, const cJSON *before, const cJSON *last)
{
    cJSON *totals = cJSON_CreateObject();
    if (!totals) out_of_memory();
    json_add_number(totals, "recorded", (double)check->sums.recorded);
    json_add_number(totals, "calls", (double)check->sums.driver_calls);
    json_add_number(totals, "lost_records", (double)check->sums.lost_calls);
    json_add(totals, "complete", cJSON_CreateFalse());
    json_add_number(
        json_add(totals, "recovered", cJSON_CreateObject()), "cut_bytes", (double)cut_bytes);
    gpu_make(totals, check);
    if (check->sums.gap_count) {
        cJSON *windows = json_add(totals, "windows", cJSON_CreateObject());
        json_add_number(windows, "opened", (double)check->sums.gap_count);
        json_add(windows, "last", cJSON_CreateArray());
    }
    if (check->part) part_make(totals, check, before, last);
    return totals;
}

/* --- the summary's words --- */

void totals_state(struct check *check)
{
    struct cs_verdict verdict;
    char list[512];
    verdict_read(&verdict, check->whole, list, sizeof list);
    verdict.lost_calls = check->sums.lost_calls; /* of this part alone */
    verdict.lost_work = check->sums.lost_work;
    verdict.without_call =
        (cs_u64)number_or_0(member_of(member_of(check->whole, "totals"), "gpu"), "without_call");
    if (check->merged) verdict.cause = "one of the merged traces is", verdict.no_gpu_times = false;
    if (check->is_cut_out) verdict.complete = true; /* a cut need not have the end of the process */
    const size_t n = cs_verdict_state(check->state, sizeof check->state, 0, &verdict);
    if (check->is_cut_out)
        cs_verdict_put(check->state, sizeof check->state, n, ", a cut of %.3f s out of a trace",
            check->cut_seconds);
    const char *unknown = format_unknown(check->format);
    const size_t all = cs_verdict_losses(check->losses, sizeof check->losses, 0, &verdict);
    if (unknown && !check->is_cut_out)
        cs_verdict_put(check->losses, sizeof check->losses, all, ", %s", unknown);
    text_clean(check->state);
    text_clean(check->losses);
}

/* --- the audit of the default stream --- */

/* Returns how often the listed pairs were met; negative: a pair is malformed. */
static double listed(const cJSON *hazards)
{
    double sum = 0;
    const cJSON *hazard;
    cJSON_ArrayForEach(hazard, hazards) {
        bool named = cJSON_IsString(member_of(member_of(hazard, "first"), "operation")) &&
                     cJSON_IsString(member_of(member_of(hazard, "second"), "operation"));
        if (!named || number_in(hazard, "count") < 1) return -1;
        sum += number_in(hazard, "count");
    }
    return sum;
}

bool audit_judge(struct check *check, uint64_t line, const cJSON *trailer)
{
    const cJSON *audit = member_of(trailer, "defaultStreamAudit"),
                *hazards = member_of(audit, "hazards");
    const char *verdict = text_member(audit, "verdict");
    double lost = number_in(audit, "lost_orders"), sum = listed(hazards);
    if (!audit)
        return !check->hazards || check_breach(check, line, 10,
                                      "cs_audit rows, and no defaultStreamAudit in the trailer");
    const char *wrong = !verdict || (strcmp(verdict, "safe") && strcmp(verdict, "not safe") &&
                                        strcmp(verdict, "cannot tell") &&
                                        strcmp(verdict, "nothing on the default stream"))
                            ? " has no known verdict"
                        : !strcmp(verdict, "cannot tell") &&
                                !cJSON_IsString(cJSON_GetArrayItem(member_of(audit, "doubts"), 0))
                            ? " cannot tell, and does not say why"
                        : !cJSON_IsArray(hazards) || sum < 0
                            ? ": a hazard has two named operations and a count"
                            : NULL;
    if (wrong) return check_breach(check, line, 10, "defaultStreamAudit%s", wrong);
    if ((lost > 0) != !strcmp(verdict, "not safe"))
        return check_breach(check, line, 10,
            "defaultStreamAudit: lost_orders is %.15g, and the verdict \"%s\"", lost, verdict);
    if (sum > lost || (double)check->hazards > lost)
        return check_breach(check, line, 10,
            "defaultStreamAudit: lost_orders is %.15g; its hazards have %.15g, the cs_audit rows "
            "%llu",
            lost, sum, (unsigned long long)check->hazards);
    return true;
}
