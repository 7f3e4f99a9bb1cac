/* Which rule a stream matches (policy/rule.c), over a stub of the driver: each condition against
 * each stream, when it is made, when it gets a name, and for default streams. What rules then
 * change: tests/cases/test_policies.py. */
#include <sys/prctl.h>

#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

/* Of a rule's conditions those that any stream fulfils; more of them may follow. */
#define ANY .device = CS_ANY, .nonblocking = CS_ANY, .priority = CS_ANY, .nth = CS_ANY, .context \
    = CS_ANY
#define SETS {.priority = CS_ANY, .nonblocking = CS_ANY, .record = 0}

static struct cs_thread *thread;

static void start(void)
{
    stub_driver();
    prctl(PR_SET_NAME, "worker-1");
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    REQUIRE((thread = cs_thread_start()));
}

/* A context of that device and kind, current from then on. */
static void enter(int device, enum cs_context_kind kind)
{
    stub_current = stub_context(device, 1 + (int)kind);
    cs_context_forget(thread);
    if (kind == CS_CONTEXT_PRIMARY) cs_context_is_primary(stub_current, device);
}

static struct cs_rule rule_for(int device, int context)
{
    struct cs_rule rule = {.match = {ANY}, .set = SETS};
    rule.match.device = device;
    rule.match.context = context;
    return rule;
}

TEST(devices_and_kinds_of_contexts)
{
    start();
    for (int device = 0; device < 4; device++)
        for (int kind = CS_CONTEXT_PRIMARY; kind <= CS_CONTEXT_GREEN; kind++) {
            enter(
                device, kind == CS_CONTEXT_GREEN ? CS_CONTEXT_CREATED : (enum cs_context_kind)kind);
            const CUgreenCtx green = kind == CS_CONTEXT_GREEN ? (CUgreenCtx)&thread : NULL;
            for (int wanted = -1; wanted < 4; wanted++)
                for (int wanted_kind = -1; wanted_kind <= CS_CONTEXT_GREEN; wanted_kind++) {
                    struct cs_rule rule = rule_for(
                        wanted < 0 ? CS_ANY : wanted, wanted_kind < 0 ? CS_ANY : wanted_kind);
                    const struct cs_policy policy = {.rules = &rule, .rule_count = 1};
                    const bool there = wanted < 0 || wanted == device,
                               fits = there && (wanted_kind < 0 || wanted_kind == kind);
                    struct cs_creation made = {.policy = &policy,
                        .thread = thread,
                        .call = CS_CALL_cuStreamCreate,
                        .green = green};
                    CHECK_IS(cs_rules_create(&made), CUDA_SUCCESS);
                    CHECK_IS(made.rule, fits);
                    CHECK_IS(rule.used, fits);
                    if (!green) CHECK_IS(cs_rule_of_default(&policy, thread, NULL), fits);

                    struct cs_stream *stream = stream_at(make_stream(thread, stub_stream(1)));
                    REQUIRE(stream);
                    stream->green = (uintptr_t)green;
                    rule.match.name = "named";
                    made.rule = 0;
                    CHECK_IS(cs_rules_create(&made), CUDA_SUCCESS);
                    CHECK(!made.rule); /* it has no name yet */
                    cs_store_rel(&cs_policy_now, &policy);
                    cs_steer_named(thread, stub_stream(1), cs_name_add("other"));
                    CHECK_IS(stream->rule, 0);
                    cs_steer_named(thread, stub_stream(1), cs_name_add("named"));
                    CHECK_IS(stream->rule, fits);
                    CHECK_IS(cs_load(&stream->muted), fits);
                    cs_store_rel(&cs_policy_now, NULL);
                    release_all(&cs_streams);
                }
        }
}

#define REST .device = CS_ANY, .context = CS_ANY
/* Each condition that only a creation has, and names of threads, against streams that differ in one
 * thing. */
TEST(each_condition)
{
    static const struct cs_match conditions[] = {
        {ANY, .call = "cuStreamCreate"},
        {ANY, .call = "cuStreamCreate?*"},
        {ANY, .thread = "worker-?"},
        {ANY, .thread = "worker-2"},
        {REST, .nth = CS_ANY, .priority = CS_ANY, .nonblocking = 0},
        {REST, .nth = CS_ANY, .priority = CS_ANY, .nonblocking = 1},
        {REST, .nth = CS_ANY, .priority = 0, .nonblocking = CS_ANY},
        {REST, .nth = CS_ANY, .priority = -3, .nonblocking = CS_ANY},
        {REST, .nth = 1, .priority = CS_ANY, .nonblocking = CS_ANY},
        {REST, .nth = 2, .priority = CS_ANY, .nonblocking = CS_ANY},
    };
    static const struct {
        enum cs_call call;
        unsigned flags;
        int priority;
        const char *matched; /* by condition */
    } streams[] = {
        {CS_CALL_cuStreamCreate, 0, 0, "1010101010"},
        {CS_CALL_cuStreamCreate, CU_STREAM_NON_BLOCKING, 0, "1010011010"},
        {CS_CALL_cuStreamCreateWithPriority, 0, -3, "0110100110"},
        {CS_CALL_cuStreamCreateWithPriority, CU_STREAM_NON_BLOCKING, -2, "0110010010"},
        {CS_CALL_cuStreamCreateWithPriority, 0, 3, "0110100010"},
    };
    start();
    enter(0, CS_CONTEXT_PRIMARY);
    for (size_t s = 0; s < CS_COUNT(streams); s++)
        for (size_t c = 0; c < CS_COUNT(conditions); c++) {
            struct cs_rule rule = {.match = conditions[c], .set = SETS};
            const struct cs_policy policy = {.rules = &rule, .rule_count = 1};
            struct cs_creation made = {
                .policy = &policy, .thread = thread, .call = streams[s].call};
            made.flags = made.flags_asked = streams[s].flags;
            made.priority = made.priority_asked = streams[s].priority;
            CHECK_IS(cs_rules_create(&made), CUDA_SUCCESS);
            if (made.rule != streams[s].matched[c] - '0')
                fprintf(stderr, "stream %zu, condition %zu: %d\n", s, c, made.rule),
                    check_failures++;
            rule.match.name = "*";
            rule.matched = 0;
            struct cs_stream *stream =
                stream_at(cs_stream_created(thread, stub_stream(1), streams[s].flags,
                    streams[s].priority, streams[s].call, (const void *)&start, cs_ticks()));
            REQUIRE(stream);
            cs_store_rel(&cs_policy_now, &policy);
            cs_steer_named(thread, stub_stream(1), cs_name_add("n"));
            cs_store_rel(&cs_policy_now, NULL);
            if (stream->rule != streams[s].matched[c] - '0')
                fprintf(stderr, "stream %zu, condition %zu, named: %d\n", s, c, stream->rule),
                    check_failures++;
            rule.match.name = NULL;
            rule.matched = 0;
            const bool of_creation = rule.match.call || rule.match.nonblocking != CS_ANY ||
                                     rule.match.priority != CS_ANY || rule.match.nth != CS_ANY;
            CHECK_IS(cs_rule_of_default(&policy, thread, NULL),
                !of_creation && streams[s].matched[c] == '1');
            release_all(&cs_streams);
        }
}

/* The first that matches wins; those behind it count all the same, where they ask for the n-th. */
TEST(the_first_wins_and_the_others_count)
{
    struct cs_rule rules[] = {
        {.match = {REST, .nonblocking = CS_ANY, .priority = -1, .nth = CS_ANY}, .set = SETS},
        {.match = {REST, .nonblocking = CS_ANY, .priority = CS_ANY, .nth = 3}, .set = SETS},
        {.match = {REST, .nonblocking = CS_ANY, .priority = CS_ANY, .nth = 5}, .set = SETS},
        {.match = {ANY}, .set = SETS}};
    static const struct {
        int priority;
        cs_u16 rule;
    } made_in_turn[] = {{-1, 1}, {0, 4}, {-1, 1}, {0, 4}, {0, 3}, {0, 4}, {-1, 1}};
    const struct cs_policy policy = {.rules = rules, .rule_count = CS_COUNT(rules)};
    start();
    enter(0, CS_CONTEXT_CREATED);
    for (size_t i = 0; i < CS_COUNT(made_in_turn); i++) {
        struct cs_creation made = {
            .policy = &policy, .thread = thread, .call = CS_CALL_cuStreamCreateWithPriority};
        made.priority = made.priority_asked = made_in_turn[i].priority;
        CHECK_IS(cs_rules_create(&made), CUDA_SUCCESS);
        CHECK_IS(made.rule, made_in_turn[i].rule);
    }
    CHECK(rules[0].used && !rules[1].used && rules[2].used && rules[3].used);
}

static int attributes_set;
static CUresult count_attribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    (void)stream, (void)id, (void)value;
    return attributes_set++, CUDA_SUCCESS;
}

/* Also one that has only joined a capture, which began on another stream. */
TEST(a_stream_that_captures_keeps_its_priority)
{
    struct cs_rule rule = rule_for(CS_ANY, CS_ANY);
    const struct cs_policy policy = {.rules = &rule, .rule_count = 1};
    start();
    cs_real.cuStreamSetAttribute = count_attribute;
    enter(0, CS_CONTEXT_PRIMARY);
    rule.match.name = "named";
    rule.set.priority = -3;
    for (stub_captures = 1; stub_captures >= 0; stub_captures--) {
        struct cs_stream *stream = stream_at(make_stream(thread, stub_stream(1)));
        REQUIRE(stream);
        cs_store_rel(&cs_policy_now, &policy);
        cs_steer_named(thread, stub_stream(1), cs_name_add("named"));
        cs_store_rel(&cs_policy_now, NULL);
        CHECK_IS(stream->rule, 1);
        CHECK_IS(stream->priority_ruled, !stub_captures);
        CHECK_IS(attributes_set, !stub_captures);
        release_all(&cs_streams);
    }
}
