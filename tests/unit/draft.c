/* Events as the file has them (trace/event.h), and the rows that the writer keeps
 * (trace/thread_row.h, trace/stream_life.h). */
#include "shim/base/memory.h"
#include "shim/trace/event.h"
#include "shim/trace/stream_life.h"
#include "shim/trace/thread_row.h"
#include "tests/unit/check.h"

static char text[4096];
static struct cs_draft here(void) { return (struct cs_draft){text}; }
static const char *written(struct cs_draft e) { return *e.at = 0, text; }

TEST(a_slice_of_each_sort)
{
    const struct cs_lane lane = cs_lane_at(3, 14);
    struct cs_slice_head head;
    CHECK_TEXT(written(cs_args_end(cs_slice(here(), "cat", cs_title("name"), lane, 1500, 4002))),
        ",\n{\"ph\":\"X\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,\"ts\":1.5,"
        "\"dur\":2.502,\"args\":{}}");
    CHECK_TEXT(written(cs_slice_bare(here(), "cat", cs_title_given("a\"b", 2), lane, 1, 1)),
        ",\n{\"ph\":\"X\",\"cat\":\"cat\",\"name\":\"a\\\"\",\"pid\":3,\"tid\":14,\"ts\":0.001,"
        "\"dur\":0.001}");
    cs_slice_head_make(&head, "cat", "name", 3);
    CHECK_TEXT(
        written(cs_args_end(cs_arg_uint(cs_slice_made(here(), &head, 14, 1500, 4002), "n", 7))),
        ",\n{\"ph\":\"X\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,\"ts\":1.5,"
        "\"dur\":2.502,\"args\":{\"n\":7}}");
}

TEST(slices_that_are_ends_of_an_arrow)
{
    const struct cs_lane lane = cs_lane_at(3, 14);
    CHECK_TEXT(written(cs_args_end_bound(
                   cs_slice(here(), "cat", cs_title("name"), lane, 5, 6), CS_END_FIRST, 9)),
        ",\n{\"ph\":\"X\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,\"ts\":0.005,"
        "\"dur\":0.001,\"args\":{},\"bind_id\":9,\"flow_out\":true}");
    CHECK_TEXT(written(cs_args_end_bound(
                   cs_arg_uint(cs_slice(here(), "cat", cs_title("name"), lane, 5, 6), "n", 7),
                   CS_END_LAST, 9)),
        ",\n{\"ph\":\"X\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,\"ts\":0.005,"
        "\"dur\":0.001,\"args\":{\"n\":7},\"bind_id\":9,\"flow_in\":true}");
}

TEST(what_is_no_slice)
{
    const struct cs_lane lane = cs_lane_at(3, 14);
    CHECK_TEXT(written(cs_args_end(
                   cs_instant(here(), CS_INSTANT_THREAD, "cat", cs_title("name"), lane, 5))),
        ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,"
        "\"ts\":0.005,\"args\":{}}");
    CHECK_TEXT(
        written(cs_args_end(cs_arg_uint(cs_counter(here(), cs_title("depth"), lane, 5), "n", 2))),
        ",\n{\"ph\":\"C\",\"name\":\"depth\",\"pid\":3,\"tid\":14,\"ts\":0.005,\"args\":{\"n\":2}"
        "}");
    CHECK_TEXT(
        written(cs_args_end(cs_span_end(here(), CS_END_LAST, "cat", cs_title("name"), lane, 5, 9))),
        ",\n{\"ph\":\"e\",\"cat\":\"cat\",\"name\":\"name\",\"pid\":3,\"tid\":14,\"ts\":0.005,"
        "\"id2\":{\"local\":9},\"args\":{}}");
    CHECK_TEXT(written(cs_arrow(here(), "dep", 8, lane, 5, cs_lane_at(0, 7), 6)),
        ",\n{\"ph\":\"s\",\"id\":8,\"pid\":3,\"tid\":14,\"ts\":0.005,\"cat\":\"dep\",\"name\":"
        "\"dep\"}"
        ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":8,\"pid\":0,\"tid\":7,\"ts\":0.006,\"cat\":\"dep\","
        "\"name\":\"dep\"}");
    CHECK_TEXT(written(cs_meta_order(here(), CS_META_THREAD, lane, 20)),
        ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":3,\"tid\":14,\"args\":{\"sort_"
        "index\":20}}");
    CHECK_TEXT(written(cs_meta_label(here(), lane, "pid 1")),
        ",\n{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":3,\"tid\":14,\"args\":{\"labels\":"
        "\"pid 1\"}}");
}

TEST(each_sort_of_argument)
{
    struct cs_key key;
    struct cs_draft e = here();
    cs_key_make(&key, "made");
    e = cs_value_uint(cs_arg_made(e, &key), 1);
    e = cs_value_int(cs_arg_named(e, "named"), -2);
    e = cs_arg_hex(e, "hex", 255);
    e = cs_arg_us(e, "us", 1002);
    e = cs_arg_bool(e, "yes", true);
    e = cs_arg_word(e, "word", "ours");
    e = cs_arg_text(e, "text", "a\nbc", 3);
    e = cs_arg_uints(e, "list", ((const cs_u32[]){1, 20, 300}), 3);
    e = cs_value_double(cs_arg_key(e, "double"), 0.1);
    e = cs_value_double(cs_arg_key(e, "none"), __builtin_nan(""));
    CHECK_TEXT(written(cs_args_end(e)),
        "\"made\":1,\"named\":-2,\"hex\":\"0xff\",\"us\":1.002,\"yes\":true,\"word\":\"ours\","
        "\"text\":\"a\\u000ab\",\"list\":[1,20,300],"
        "\"double\":0.1,\"none\":\"NaN\"}}");
}

/* --- rows --- */

static cs_u64 launches_of(cs_ref ref)
{
    cs_u64 work[CS_WORK_KINDS], bytes;
    cs_stream_life_history(ref, work, &bytes);
    return work[CS_WORK_LAUNCHES];
}

TEST(a_row_is_of_one_stream)
{
    const struct cs_record launch = {.call = CS_CALL_cuLaunchKernel};
    REQUIRE(cs_streams_init());
    struct cs_stream *stream = cs_pool_new(&cs_streams);
    cs_ref first = cs_load(&stream->object.ref);
    CHECK_IS(launches_of(first), 0); /* there is no trace */
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    cs_stream_lives_begin(false);
    for (int i = 0; i < 3; i++) cs_stream_life_works(stream, &launch);
    CHECK_IS(launches_of(first), 3);
    cs_pool_end(&cs_streams, &stream->object);
    CHECK_IS(cs_pool_take_ended(&cs_streams), 1);
    cs_pool_release(&cs_streams, &stream->object);
    struct cs_stream *next = cs_pool_new(&cs_streams);
    cs_ref second = cs_load(&next->object.ref);
    CHECK(next == stream && second != first);
    CHECK_IS(launches_of(second), 0);
    cs_stream_life_works(next, &launch);
    CHECK_IS(launches_of(second), 1);
    CHECK_IS(launches_of(first), 0);
    cs_stream_lives_begin(true);
    CHECK_IS(launches_of(second), 1);
    cs_stream_lives_begin(false); /* as in a fork's child */
    CHECK_IS(launches_of(second), 0);
}

TEST(a_row_is_as_new_for_the_next_thread)
{
    struct cs_thread *thread = cs_thread_start();
    REQUIRE(thread && cs_tables_make(CS_TABLES_TRACE, "a test"));
    struct cs_thread_row *row = cs_thread_row(thread);
    row->last_end_ns = row->place = row->filled_ns[5] = 9;
    row->announced = row->populated = true;
    row->open = (struct cs_open_ranges *)text;
    cs_thread_row_empty(thread);
    CHECK(!row->last_end_ns && !row->place && !row->filled_ns[5] && !row->announced &&
          !row->populated);
    CHECK(row->open == (struct cs_open_ranges *)text); /* its memory stays */
    cs_thread_rows_begin();
    CHECK(!row->open);
}
