/*
 * The audit's clocks (audit/audit_model.h) against orders that are worked out one by one, on random
 * programs.
 *
 * A program is a list of steps; what comes before what is a matrix, once as it is and once as it
 * would be with per-thread default streams. A pair that the audit tells of must be in order in the
 * first and not in the second; and once all pairs told are put in order in the second, nothing of
 * the first may be missing there that matters. With memory, not all does.
 */
#include "tests/unit/check.h"

#include "shim/audit/audit_model.h"
#include "shim/base/memory.h"

enum { STEPS = 48, CONTEXTS = 2, EVENTS = 4, KINDS = 4, STREAMS = 7 };

/* The streams of a context: three blocking ones, one that is not, two threads' own, the legacy one.
 */
enum { FIRST, SECOND, THIRD, APART, OWN, OWN_TOO, LEGACY };

struct step {
    enum { OPERATION, RECORD, WAIT, HOST_STREAM, HOST_EVENT, HOST_CONTEXT } what;
    int context, stream, lane; /* stream as it is, as it would be */
    int event;
    cs_u64 memory; /* where an operation writes 100 bytes; 0 unknown */
};

static cs_u64 seed;

static unsigned any(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static struct step step_any(bool memory)
{
    static const int whats[] = {OPERATION, OPERATION, OPERATION, OPERATION, RECORD, RECORD, WAIT,
        WAIT, HOST_STREAM, HOST_EVENT, HOST_CONTEXT};
    struct step s = {.what = (__typeof__(s.what))whats[any(CS_COUNT(whats))],
        .context = any(5) == 0,
        .event = (int)any(EVENTS)};
    unsigned where = any(STREAMS + 3);
    s.stream = s.lane = where < STREAMS ? (int)where : LEGACY;
    if (where >= STREAMS) s.lane = OWN + (int)any(2); /* handle 0 */
    if (s.what == HOST_CONTEXT && any(3)) s.what = OPERATION;
    if (memory && any(3)) s.memory = 1000 + 60 * any(40);
    return s;
}

/* --- worked out --- */

static bool blocks(int stream) { return stream != APART && stream != LEGACY; }

/* Whether the later one, on that stream, waits for the one before on that. */
static bool follows(int later, int before)
{
    return later == before || (later == LEGACY && blocks(before)) ||
           (blocks(later) && before == LEGACY);
}

/* Whether the host, which waits for the one, waits for the other. */
static bool waits_for(int stream, int other)
{
    return stream == other || (stream == LEGACY && blocks(other));
}

typedef bool orders[STEPS][STEPS];

/* Whatever comes before what comes before. */
static void inherit(orders before, int i)
{
    for (int j = 0; j < i; j++)
        for (int k = 0; before[j][i] && k < j; k++) before[k][i] = before[k][i] || before[k][j];
}

static void work_out(
    const struct step *steps, int n, bool would_be, bool told[STEPS][STEPS], orders before)
{
    memset(before, 0, sizeof(orders));
    for (int i = 0; i < n; i++) {
        const struct step *s = &steps[i];
        int on = would_be ? s->lane : s->stream, recorded = -1;
        for (int j = 0; j < i; j++) {
            const struct step *t = &steps[j];
            int from = would_be ? t->lane : t->stream;
            bool of_host = t->what >= HOST_STREAM, same = t->context == s->context;
            if (t->what == RECORD && t->event == s->event) recorded = j;
            if (of_host) before[j][i] = true; /* what the host does comes later */
            else if (s->what < HOST_STREAM) before[j][i] = same && follows(on, from);
            else if (s->what == HOST_STREAM) before[j][i] = same && waits_for(on, from);
            else if (s->what == HOST_CONTEXT) before[j][i] = same;
            if (told && told[j][i]) before[j][i] = true;
        }
        if (recorded >= 0 && (s->what == WAIT || s->what == HOST_EVENT)) before[recorded][i] = true;
        inherit(before, i);
    }
}

/* --- by the audit --- */

static cs_u16 lane_of(int context, int stream)
{
    struct cs_audit_lane what = {.key = {(cs_u64)stream + 1, (cs_u64)context},
        .context = cs_audit_context((cs_u64)context + 50),
        .number = (cs_u32)stream + 1};
    what.kind = stream == LEGACY ? CS_AUDIT_LEGACY
                : stream >= OWN  ? CS_AUDIT_THREAD
                                 : CS_AUDIT_CREATED;
    what.blocking = stream != APART;
    return cs_audit_lane(&what);
}

static void take(const struct step *s, int i)
{
    static const enum cs_audit_what whats[] = {
        CS_AUDIT_WORK, CS_AUDIT_RECORD, CS_AUDIT_WAIT, CS_AUDIT_HOST, CS_AUDIT_HOST, CS_AUDIT_HOST};
    struct cs_audit_step step = {.at = 100 + (cs_u64)i,
        .what = whats[s->what],
        .context = cs_audit_context((cs_u64)s->context + 50)};
    step.op = (struct cs_audit_op){
        .begin = step.at, .begin_ns = step.at, .tid = (cs_u32)i, .site = (cs_u64)i + 1};
    if (s->memory)
        step.op.memory =
            (struct cs_audit_memory){{s->memory, s->memory + 100}, {0, 0}, true, false};
    if (s->what == RECORD || s->what == WAIT || s->what == HOST_EVENT)
        step.event = (cs_ref)s->event + 1;
    if (s->what != HOST_EVENT && s->what != HOST_CONTEXT)
        step.op.stream = lane_of(s->context, s->stream), step.lane = lane_of(s->context, s->lane);
    cs_audit_take(&step);
}

static void audit(const struct step *steps, int n, bool told[STEPS][STEPS])
{
    memset(told, 0, sizeof(bool[STEPS][STEPS]));
    REQUIRE(cs_tables_make(CS_TABLES_AUDIT, "a test"));
    cs_audit_lanes_begin();
    cs_audit_events_begin();
    cs_audit_pairs_begin();
    cs_audit_waits_begin();
    cs_audit_model_begin();
    for (int context = 0; context < CONTEXTS; context++)
        for (int stream = 0; stream < STREAMS; stream++) lane_of(context, stream);
    for (int i = 0; i < n; i++) take(&steps[i], i);
    const struct cs_audit_pair *pair;
    for (cs_u32 i = 0; (pair = cs_audit_pair_at(i)); i++)
        told[pair->first.tid][pair->second.tid] = true;
    CHECK_IS(cs_audit_sums.unseen, 0);
}

static bool matters(const struct step *a, const struct step *b)
{
    if (b->what != OPERATION)
        return !a->memory; /* the host has nothing to do with the device's memory */
    return !a->memory || !b->memory || (a->memory < b->memory + 100 && b->memory < a->memory + 100);
}

static void show(
    const struct step *steps, int last, cs_u64 program, int first, bool told[STEPS][STEPS])
{
    static const char *const whats[] = {
        "operation", "record", "wait", "host: stream", "host: event", "host: context"};
    static const char *const streams[] = {
        "first", "second", "third", "apart", "own", "own too", "legacy"};
    fprintf(
        stderr, "program %llu: step %d before step %d\n", (unsigned long long)program, first, last);
    for (int i = 0; i <= last; i++) {
        const struct step *s = &steps[i];
        fprintf(stderr, "%3d %d %s event %d on %s as %s memory %llu;", i, s->context,
            whats[s->what], s->event, streams[s->stream], streams[s->lane],
            (unsigned long long)s->memory);
        for (int j = 0; j < i; j++)
            if (told[j][i]) fprintf(stderr, " told %d", j);
        fprintf(stderr, "\n");
    }
}

static void judge(const struct step *steps, int n, cs_u64 program)
{
    static orders is, would_be, mended;
    static bool told[STEPS][STEPS];
    int failures = check_failures;
    audit(steps, n, told);
    work_out(steps, n, false, NULL, is);
    work_out(steps, n, true, NULL, would_be);
    work_out(steps, n, true, told, mended);
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            bool observed = steps[a].what == OPERATION &&
                            (steps[b].what == OPERATION || steps[b].what >= HOST_STREAM);
            if (told[a][b]) CHECK(is[a][b] && !would_be[a][b]);
            if (told[a][b]) CHECK(matters(&steps[a], &steps[b]));
            if (observed && is[a][b] && !would_be[a][b])
                CHECK(cs_audit_sums.hazards ||
                      cs_audit_sums.doubt[CS_AUDIT_DOUBT_MEMORY]); /* never "safe" */
            if (observed && is[a][b] && !mended[a][b] && matters(&steps[a], &steps[b]))
                CHECK(!"an order is lost, and nobody was told");
            if (check_failures != failures) {
                show(steps, b, program, a, told);
                exit(1);
            }
        }
    }
}

static void programs(cs_u64 count, bool memory)
{
    struct step steps[STEPS];
    for (cs_u64 program = 0; program < count; program++) {
        seed = program * 0x9e3779b97f4a7c15u + 1;
        int n = 4 + (int)any(STEPS - 4);
        unsigned recorded = 0; /* bit an event */
        for (int i = 0; i < n; i++) {
            steps[i] = step_any(memory);
            if (steps[i].what == RECORD) recorded |= 1u << steps[i].event;
            if ((steps[i].what == WAIT || steps[i].what == HOST_EVENT) &&
                !(recorded >> steps[i].event & 1))
                steps[i].what = OPERATION; /* a wait for nothing */
        }
        judge(steps, n, program);
    }
}

TEST(random_programs) { programs(2000, false); }
TEST(random_programs_with_memory) { programs(2000, true); }
