/* The draw of JITTER (policy/jitter.c): what it depends on, and that it stays within what was asked
 * for. */
#include "shim/policy/policies.h"
#include "tests/unit/driver.h"

static const struct cs_jitter jitter = {
    .on = true, .host = true, .stream = true, .us = 200, .percent = 10, .seed = 1};

/* A seed that once showed a race must show it with the next version too. */
TEST(seeds_stay_what_they_are)
{
    static const cs_u32 delays[3][10] = {{0, 0, 123, 112, 0, 0, 105, 108, 0, 113},
        {0, 0, 0, 0, 0, 2, 0, 184, 113, 98}, {98, 110, 0, 52, 40, 33, 15, 0, 0, 0}};
    struct cs_jitter half = jitter;
    half.percent = 50;
    for (cs_u32 who = 1; who <= 3; who++)
        for (cs_u32 n = 0; n < 10; n++)
            CHECK_IS(cs_jitter_draw(&half, who, n, n & 1), delays[who - 1][n]);
}

TEST(all_that_it_depends_on_changes_it)
{
    struct cs_jitter other = jitter;
    other.seed = 2;
    int by_seed = 0, by_who = 0, by_n = 0, by_side = 0;
    for (cs_u32 n = 0; n < 1000; n++) {
        const cs_u32 here = cs_jitter_draw(&jitter, 2, n, false);
        CHECK_IS(cs_jitter_draw(&jitter, 2, n, false), here);
        by_seed += here != cs_jitter_draw(&other, 2, n, false);
        by_who += here != cs_jitter_draw(&jitter, 4, n, false);
        by_n += here != cs_jitter_draw(&jitter, 2, n + 1000, false);
        by_side += here != cs_jitter_draw(&jitter, 2, n, true);
    }
    CHECK(by_seed > 100 && by_who > 100 && by_n > 100 && by_side > 100);
}

TEST(so_many_of_a_hundred_and_no_longer)
{
    for (cs_u32 percent = 1; percent <= 100; percent += 11) {
        struct cs_jitter j = jitter;
        j.percent = percent;
        cs_u32 delayed = 0, longest = 0, shortest = UINT32_MAX;
        for (cs_u32 n = 0; n < 100000; n++) {
            cs_u32 us = cs_jitter_draw(&j, 7, n, n & 1);
            if (!us) continue;
            delayed++;
            longest = us > longest ? us : longest;
            shortest = us < shortest ? us : shortest;
        }
        CHECK(delayed > percent * 950 && delayed < percent * 1050 + 100);
        CHECK_IS(longest, 200);
        CHECK_IS(shortest, 1);
    }
    struct cs_jitter always = jitter;
    always.percent = 100, always.us = 1;
    for (cs_u32 n = 0; n < 1000; n++) CHECK_IS(cs_jitter_draw(&always, 3, n, false), 1);
}

/* Of each operation, how long it was delayed on the host. */
static cs_u32 told;
static void tell(const struct cs_delayed *delayed) { told = delayed->us; }

static cs_u32 delay_of(
    struct cs_thread *thread, const struct cs_policy *policy, CUstream asked, enum cs_kind kind)
{
    const struct cs_steer steer = {.policy = policy, .asked = asked, .stream = asked};
    told = 0;
    cs_jitter_before(
        &steer, thread, &(struct cs_steered){.call = CS_CALL_cuLaunchKernel, .kind = kind});
    return told;
}

/* Default streams count for each thread, streams for themselves, in the order in which they were
 * created; what is not chosen counts, and other calls do not. */
TEST(which_operation_is_the_nth_of_whom)
{
    enum { LAUNCH = 1, COPY = 2 };
    const struct cs_policy policy = {
        .jitter = {.on = true, .host = true, .us = 20, .percent = 50, .seed = 7, .kinds = LAUNCH}};
    stub_driver();
    stub_current = stub_context(0, 1);
    cs_real.cuStreamGetGreenCtx = (__typeof__(cs_real.cuStreamGetGreenCtx))(void *)cs_real_missing;
    struct cs_thread *thread = cs_thread_start();
    REQUIRE(thread);
    cs_store(&cs_steer_delayed, tell);
    for (int i = 1; i <= 2; i++) {
        struct cs_stream *stream = stream_at(make_stream(thread, stub_stream(i)));
        REQUIRE(stream);
        cs_jitter_created(stream);
    }
    make_stream(thread, stub_stream(3)); /* its creation was not seen */
    const struct {
        CUstream stream;
        cs_u32 who;
    } whose[] = {{NULL, 1 << 1 | 1}, {stub_stream(1), 1 << 1}, {stub_stream(2), 2 << 1},
        {stub_stream(3), (1 | 1u << 30) << 1}};
    for (size_t w = 0; w < CS_COUNT(whose); w++)
        for (cs_u32 n = 0; n < 40; n++) {
            const bool chosen = n % 3;
            CHECK_IS(delay_of(thread, &policy, whose[w].stream, CS_KIND_SYNC), 0);
            CHECK_IS(
                delay_of(thread, &policy, whose[w].stream, chosen ? CS_KIND_LAUNCH : CS_KIND_COPY),
                chosen ? cs_jitter_draw(&policy.jitter, whose[w].who, n, false) : 0);
        }
    CHECK_IS(delay_of(thread, &policy, stub_stream(4), CS_KIND_LAUNCH), 0); /* never met */
}
