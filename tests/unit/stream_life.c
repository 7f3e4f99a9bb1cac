/* Lives of streams in the file (trace/stream_life.c): names of lanes, what the marks say, and what
 * went through. */
#include "shim/trace/stream_life.h"

#include "shim/match/state.h"
#include "shim/object/names.h"
#include "shim/object/stream.h"
#include "shim/trace/lanes.h"
#include "tests/unit/trace_file.h"

static void begin(void)
{
    REQUIRE(cs_contexts_init() && cs_streams_init());
    trace_file_begin();
}

static struct cs_stream *new_stream(cs_u32 lane)
{
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    REQUIRE(stream);
    stream->lane = lane, stream->device = 2;
    cs_store(&stream->origin, CS_STREAM_ADOPTED); /* without the name of its maker */
    stream->created = cs_ticks();
    cs_store(&stream->filled, true);
    return stream;
}

static cs_name library(const char *name) { return cs_name_add(name); }

/* The last name of its lane. */
static const char *name_of_lane(const struct cs_stream *stream)
{
    static char name[600];
    char at[64];
    const char *rows[16];
    snprintf(at, sizeof at, "\"pid\":2,\"tid\":%u,", cs_lane_tid(stream->lane, CS_LANE_WORK, 0));
    const int count = trace_file_events("\"thread_name\"", at, rows, 16);
    REQUIRE(count > 0 && count <= 16);
    REQUIRE(
        sscanf(strstr(rows[count - 1], "\"args\""), "\"args\":{\"name\":\"%599[^\"]", name) == 1);
    return name;
}

static const char *named(struct cs_stream stream_like)
{
    static cs_u32 lane = 100;
    struct cs_stream *stream = new_stream(++lane);
    static char name[600];
    char prefix[32];
    cs_store(&stream->origin, cs_load(&stream_like.origin));
    stream->flags = stream_like.flags, stream->green = stream_like.green;
    cs_store(&stream->priority, cs_load(&stream_like.priority));
    stream->library = stream_like.library;
    memcpy(stream->owner, stream_like.owner, sizeof stream->owner);
    cs_store(&stream->name, cs_load(&stream_like.name));
    cs_lane_stream(stream);
    snprintf(prefix, sizeof prefix, "stream %u", lane);
    snprintf(name, sizeof name, "%s", name_of_lane(stream));
    CHECK(!strncmp(name, prefix, strlen(prefix)));
    return name + strlen(prefix);
}

TEST(a_lane_is_named_by_what_its_stream_is)
{
    begin();
    CHECK_TEXT(named((struct cs_stream){.origin = CS_STREAM_CREATED}), "");
    CHECK_TEXT(named((struct cs_stream){
                   .origin = CS_STREAM_CREATED, .priority = -5, .flags = CU_STREAM_NON_BLOCKING}),
        " p-5 nb");
    CHECK_TEXT(named((struct cs_stream){.origin = CS_STREAM_ADOPTED,
                   .priority = 1,
                   .flags = CU_STREAM_NON_BLOCKING,
                   .green = 7}),
        " p1 nb green adopted");
    CHECK_TEXT(named((struct cs_stream){
                   .origin = CS_STREAM_LEGACY, .priority = -5, .flags = CU_STREAM_NON_BLOCKING}),
        " legacy default");
    CHECK_TEXT(named((struct cs_stream){.origin = CS_STREAM_PER_THREAD,
                   .priority = -5,
                   .flags = CU_STREAM_NON_BLOCKING,
                   .owner = "worker"}),
        " per-thread default · worker");
    CHECK_TEXT(named((struct cs_stream){
                   .origin = CS_STREAM_PER_THREAD, .owner = "worker", .name = library("mine")}),
        " per-thread default · mine");
}

TEST(of_a_given_name_128_bytes_are_shown)
{
    char text[201], expected[200];
    begin();
    memset(text, 'n', 200);
    text[200] = 0;
    snprintf(expected, sizeof expected, " adopted · %.128s", text);
    CHECK_TEXT(
        named((struct cs_stream){.origin = CS_STREAM_ADOPTED, .name = library(text)}), expected);
}

TEST(libraries_are_named_once_there_are_two)
{
    begin();
    struct cs_stream *first = new_stream(20), *second = new_stream(21), *none = new_stream(22),
                     *third = new_stream(23);
    first->library = second->library = library("libc10_cuda.so.2");
    third->library = library("driver.cpython-312-x86_64-linux-gnu.so");
    cs_lane_stream(none);
    cs_lane_stream(first);
    cs_lane_stream(second);
    CHECK_TEXT(name_of_lane(second), "stream 21 adopted");
    cs_lane_stream(third);
    CHECK_TEXT(name_of_lane(third), "stream 23 adopted (driver)");
    CHECK_TEXT(name_of_lane(first), "stream 20 adopted");
    cs_stream_life_begins(first); /* at its next call */
    cs_stream_life_begins(none);
    CHECK_TEXT(name_of_lane(first), "stream 20 adopted (libc10_cuda)");
    CHECK_TEXT(name_of_lane(none), "stream 22 adopted");
    CHECK_IS(trace_file_count("\"thread_sort_index\"", "\"pid\":2,\"tid\":2000,"), 1);
    CHECK_IS(trace_file_count("\"thread_name\"", "\"pid\":2,\"tid\":2000,"), 2);
    cs_stream_life_begins(first); /* once is enough */
    CHECK_IS(trace_file_count("\"thread_name\"", "\"pid\":2,\"tid\":2000,"), 2);
    static const char *const rows[][2] = {
        {"a.abi3.so", "a"}, {"a.so", "a"}, {".so", ".so"}, {"app", "app"}, {"x.cpython-3.so", "x"}};
    for (size_t i = 0; i < CS_COUNT(rows); i++) {
        char expected[64];
        snprintf(expected, sizeof expected, " adopted (%s)", rows[i][1]);
        CHECK_TEXT(
            named((struct cs_stream){.origin = CS_STREAM_ADOPTED, .library = library(rows[i][0])}),
            expected);
    }
}

/* --- marks --- */

static const char *mark_of(const struct cs_stream *stream, const char *what)
{
    char title[64];
    snprintf(title, sizeof title, "\"stream %u %s\"", stream->lane, what);
    return trace_file_event("\"cs_stream\"", title);
}

static void check_holds(const char *text, const char *piece)
{
    if (!strstr(text, piece)) CHECK_TEXT(text, piece);
}

TEST(a_life_begins_with_all_that_is_known)
{
    begin();
    struct cs_stream *plain = new_stream(20), *ruled = new_stream(21), *legacy = new_stream(22),
                     *unasked = new_stream(23), *odd = new_stream(24);
    cs_store(&plain->key, 0x1234);
    cs_store(&plain->priority, -2);
    plain->priority_asked = -7, plain->call = CS_CALL_cuStreamCreate,
    plain->library = library("app"), plain->tid = 99;
    cs_stream_life_begins(plain);
    check_holds(mark_of(plain, "begins"),
        "\"args\":{\"name\":\"stream 20 p-2 adopted\",\"cs.stream\":20,\"origin\":\"adopted: first "
        "seen in use\",\"handle\":\"0x1234\","
        "\"flags\":\"blocking\",\"priority\":-2,\"requested priority\":-7,\"created "
        "by\":\"cuStreamCreate\",\"library\":\"app\",\"thread\":99}");
    ruled->flags = CU_STREAM_NON_BLOCKING, ruled->share_place = 3,
    ruled->serial = ruled->steered = ruled->redirected = ruled->ours = true, ruled->green = 0xab;
    cs_store(&ruled->rule, 1);
    cs_store(&ruled->muted, true);
    cs_stream_life_begins(ruled);
    check_holds(mark_of(ruled, "begins"),
        "\"flags\":\"non-blocking\",\"priority\":0,\"requested priority\":0,\"requested "
        "flags\":\"blocking\",\"rule\":\"rules[0]\","
        "\"changed by policy\":true,\"pool place\":3,\"serial\":\"its work is the "
        "carrier's\",\"serial\":\"carrier\",\"redirected\":true,"
        "\"recorded\":false,\"green context\":\"0xab\",\"thread\":0}");
    legacy->origin = CS_STREAM_LEGACY;
    cs_stream_life_begins(legacy);
    check_holds(
        mark_of(legacy, "begins"), "\"cs.stream\":22,\"origin\":\"legacy default\",\"thread\":0}");
    cs_store(&unasked->unasked, true);
    cs_stream_life_begins(unasked);
    check_holds(mark_of(unasked, "begins"), "\"handle\":\"0x0\",\"priority\":0,");
    odd->flags = odd->flags_asked = 5;
    cs_stream_life_begins(odd);
    check_holds(mark_of(odd, "begins"),
        "\"flags\":\"0x5\",\"priority\":0,\"requested priority\":0,\"thread\":0}");
    CHECK_IS(cs_stream_lives_shown(), 5);
    struct cs_stream *beyond = new_stream(25), *none = new_stream(26);
    beyond->device = CS_GPU_PIDS, none->device = -1;
    cs_stream_life_begins(beyond), cs_stream_life_begins(none);
    cs_stream_life_ended(beyond, cs_ticks()), cs_stream_life_ended(none, cs_ticks());
    CHECK_IS(trace_file_count("\"cs_stream\"", "\"stream 25 ") +
                 trace_file_count("\"cs_stream\"", "\"stream 26 "),
        0);
    CHECK_IS(cs_stream_lives_shown(), 5);
}

static void works(struct cs_stream *stream, cs_u16 call, cs_u64 value, int result)
{
    const struct cs_record r = {.call = call,
        .stream = cs_load(&stream->object.ref),
        .value = {value},
        .result = (int16_t)result};
    cs_stream_life_works(stream, &r);
}

TEST(a_life_ends_with_what_went_through)
{
    begin();
    struct cs_stream *stream = new_stream(20);
    cs_stream_life_begins(stream);
    for (int i = 0; i < 3; i++) works(stream, CS_CALL_cuLaunchKernel, 0, CUDA_SUCCESS);
    works(stream, CS_CALL_cuLaunchKernel, 0, CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 2; i++) works(stream, CS_CALL_cuMemcpyHtoDAsync_v2, 1000, CUDA_SUCCESS);
    works(stream, CS_CALL_cuMemsetD8Async, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuEventRecord, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuStreamWaitEvent, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuStreamSynchronize, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuGraphLaunch, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuStreamQuery, 1, CUDA_SUCCESS);
    works(stream, CS_CALL_cuLaunchHostFunc, 1, CUDA_SUCCESS);
    cs_u64 work[CS_WORK_KINDS], bytes;
    cs_stream_life_history(cs_load(&stream->object.ref), work, &bytes);
    CHECK(work[CS_WORK_LAUNCHES] == 3 && work[CS_WORK_COPIES] == 2 && work[CS_WORK_OTHER] == 2 &&
          bytes == 2000);
    cs_stream_life_history(cs_load(&stream->object.ref) + (1u << CS_REF_INDEX_BITS), work,
        &bytes); /* another stream in its place */
    CHECK(!work[CS_WORK_LAUNCHES] && !work[CS_WORK_COPIES] && !bytes);
    stream->share_place = 1;
    cs_store(&stream->priority, -3);
    cs_store(&stream->shares_most, 4);
    cs_store(&stream->rule, 2); /* by the name that it got since */
    cs_store(&stream->ended, cs_ticks());
    cs_stream_life_ended(stream, cs_load(&stream->ended));
    check_holds(mark_of(stream, "ends"),
        "\"cs.stream\":20,\"launches\":3,\"copies\":2,\"memsets\":1,\"event "
        "records\":1,\"waits\":1,\"synchronisations\":1,\"graphs\":1,"
        "\"other calls\":2,\"bytes copied\":2000,\"shared "
        "by\":4,\"rule\":\"rules[1]\",\"priority\":-3,\"destroyed\":true}");
    CHECK_IS(cs_stream_lives_shown(), 0);
}

TEST(a_life_that_nobody_ended_or_has_seen)
{
    begin();
    struct cs_stream *alive = new_stream(20), *unseen = new_stream(21), *idle = new_stream(22);
    unseen->unseen = true;
    cs_stream_life_begins(alive);
    cs_store(&alive->name, library("mine"));
    for (int i = 0; i < 2; i++)
        cs_stream_life_ended(alive, cs_ticks()), cs_stream_life_ended(unseen, cs_ticks());
    check_holds(mark_of(alive, "ends"),
        "\"args\":{\"name\":\"stream 20 adopted · mine\",\"cs.stream\":20,\"application "
        "name\":\"mine\",\"destroyed\":false}");
    cs_stream_life_ended(
        idle, idle->created); /* it was never used, and has a life all the same: of a nanosecond */
    CHECK_IS(ns_of(mark_of(idle, "ends"), "ts"), ns_of(mark_of(idle, "begins"), "ts") + 1);
    CHECK_IS(trace_file_count("\"stream 21", ""), 0);
}

TEST(streams_without_work_are_summed_up)
{
    begin();
    cs_stream_lives_summed_up();
    CHECK_IS(trace_file_count("idle", ""), 0);
    struct cs_stream *idle = new_stream(20), *busy = new_stream(21), *last = new_stream(22);
    cs_stream_life_begins(idle);
    cs_stream_life_ended(idle, cs_ticks());
    cs_stream_lives_summed_up();
    check_holds(trace_file_event("idle", ""), "\"name\":\"1 stream, 1 idle\"");
    cs_lane_stream(busy);
    cs_stream_life_ended(busy, cs_ticks());
    cs_stream_life_begins(last);
    cs_stream_life_ended(last, cs_ticks());
    cs_stream_lives_summed_up();
    check_holds(trace_file_event("\"3 streams, 2 idle\"", ""), "\"pid\":2,");
}
