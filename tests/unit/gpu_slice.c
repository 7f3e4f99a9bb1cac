/* Slices of GPU work (trace/gpu_work.c): what each is called, and its arguments. */
#include "shim/match/state.h"
#include "shim/trace/demangle.h"
#include "shim/trace/gpu_shown.h"
#include "shim/trace/lanes.h"
#include "tests/unit/trace_file.h"

static cs_u64 now; /* ns */
static struct cs_match_lane *lane;
static struct cs_op *op;

static void begin(void)
{
    static struct cs_match_lane of_stream = {.used = true,
        .number = 9,
        .serial = 9,
        .device = 2,
        .tid = 13,
        .gpu_id = 13,
        .priority = -5};
    static struct cs_op call = {.id = 77, .tid = 1};
    trace_file_begin();
    now = cs_clock_ns(cs_ticks());
    lane = &of_stream, op = &call;
    op->begin_ns = now;
    op->end = cs_ticks();
    op->file = cs_lanes_file();
}

/* The one slice that this work makes in the file, which lasts so long. */
static const char *slice_of(struct cs_gpu_work work, cs_u64 lasts)
{
    static cs_u64 made;
    char at[64];
    const cs_u64 start = cs_clock_ns(op->end) + 1000000 * ++made;
    struct cs_match_found found = {
        .work = &work, .lane = lane, .op = op, .start_ns = start, .end_ns = start + lasts};
    op->works = 1; /* a further one of its call, of which no wait is told */
    CHECK(cs_gpu_work_write(&found));
    snprintf(at, sizeof at, "\"ts\":%s,\"dur\"", us_text(start));
    return trace_file_event("\"priority\":", at);
}

static void check_slice(struct cs_gpu_work work, cs_u64 lasts, const char *category,
    const char *name, const char *arguments)
{
    char text[1024];
    const char *slice = slice_of(work, lasts);
    snprintf(text, sizeof text, "\"cat\":\"%s\",\"name\":\"%s\",", category, name);
    if (!strstr(slice, text)) CHECK_TEXT(slice, text);
    snprintf(text, sizeof text, "\"args\":{%s,\"bind_id\":77,\"flow_in\":true},", arguments);
    const char *is = strstr(slice, "\"args\"");
    if (!is || strncmp(is, text, strlen(text) - 1)) CHECK_TEXT(is, text);
}

#define ON "\"stream\":13,\"correlation\":77,\"priority\":-5"

TEST(a_kernels_slice)
{
    begin();
    struct cs_gpu_work w = {.kind = CS_GPU_KERNEL,
        .context = 3,
        .kernel = {.grid = {1, 20, 300},
            .block = {4, 50, 600},
            .registers = 32,
            .shared_static = 100,
            .shared_dynamic = 23,
            .local = 8}};
    check_slice(w, 500, "kernel", "kernel",
        "\"stream\":13,\"correlation\":77,\"context\":3,\"priority\":-5,\"grid\":[1,20,300],"
        "\"block\":[4,50,600],\"registers per thread\":32,"
        "\"shared memory\":123,\"local memory per thread\":8}");
    w.kernel.local = 0; /* the lane's first has said the context */
    check_slice(w, 500, "kernel", "kernel",
        ON ",\"grid\":[1,20,300],\"block\":[4,50,600],\"registers per thread\":32,\"shared "
           "memory\":123}");
    w.kernel.shared_static = w.kernel.shared_dynamic = 0;
    check_slice(w, 500, "kernel", "kernel",
        ON ",\"grid\":[1,20,300],\"block\":[4,50,600],\"registers per thread\":32}");
    w.context = 4;
    check_slice(w, 500, "kernel", "kernel",
        "\"stream\":13,\"correlation\":77,\"context\":4,\"priority\":-5}"); /* launched as the one
                                                                               before */
    w.by_events = true, w.error = 1500;
    check_slice(w, 500, "kernel", "kernel",
        ON ",\"grid\":[1,20,300],\"block\":[4,50,600],\"cs.time\":\"events\",\"cs.error_us\":1.5}");
}

/* A kernel of that name on that GPU; whether its slice says how it was launched. */
static bool says_shape(cs_u32 device, cs_name name, cs_u32 grid, bool by_events)
{
    lane->device = device;
    const struct cs_gpu_work w = {.kind = CS_GPU_KERNEL,
        .device = device,
        .by_events = by_events,
        .kernel = {.name = name, .grid = {grid, 1, 1}, .block = {32, 1, 1}, .registers = 16}};
    return strstr(slice_of(w, 500), "\"grid\":");
}

TEST(a_kernel_says_how_it_was_launched_where_the_one_before_was_another)
{
    begin();
    const cs_name one = cs_name_add("one"), other = cs_name_add("other"),
                  here = cs_name_add("_Z3twov"), there = cs_name_add("_ZL3twov");
    CHECK(
        says_shape(2, one, 7, false) && !says_shape(2, one, 7, false)); /* the first of the name */
    CHECK(says_shape(2, other, 7, false));
    CHECK(!says_shape(2, one, 7, false) && !says_shape(2, other, 7, false));
    CHECK(says_shape(2, one, 8, false) && !says_shape(2, one, 8, false)); /* another shape */
    CHECK(says_shape(2, one, 7, false));
    CHECK(says_shape(3, one, 7, false)); /* another GPU */
    CHECK(!says_shape(2, one, 7, false));
    CHECK(says_shape(2, one, 7, true) &&
          says_shape(2, one, 7, true)); /* times of events: there are few of those */
    CHECK(says_shape(2, here, 1, false) &&
          says_shape(2, there, 2, false)); /* two symbols that may read the same */
    char text[CS_KERNEL_TEXT];
    strcpy(text, cs_kernel_text(here, false));
    CHECK(says_shape(2, here, 1, false) == !strcmp(text, cs_kernel_text(there, false)));
}

TEST(a_kernel_without_a_name_is_called_kernel)
{
    begin();
    const cs_name named = cs_name_add("kernel");
    CHECK(says_shape(2, named, 7, false) && says_shape(2, 0, 8, false));
    CHECK(says_shape(2, named, 7, false) && !says_shape(2, 0, 7, false));
}

TEST(each_file_says_how_kernels_were_launched)
{
    begin();
    const cs_name one = cs_name_add("one");
    CHECK(says_shape(2, one, 7, false) && !says_shape(2, one, 7, false));
    cs_timeline_begin(CS_BEGIN_PART);
    op->file = cs_lanes_file();
    CHECK(says_shape(2, one, 7, false) && !says_shape(2, one, 7, false));
}

TEST(a_copys_slice)
{
    begin();
    struct cs_gpu_work w = {
        .kind = CS_GPU_COPY, .copy = {.bytes = 4096, .direction = 1, .from = 2, .to = 3}};
    check_slice(w, 500, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)",
        ON ",\"bytes\":4096,\"memory bandwidth (GB/s)\":8.192}");
    w.copy.direction = 10, w.copy.from = 7, w.copy.to = 8;
    check_slice(w, 500, "gpu_memcpy", "Memcpy PtoP (Managed Static -> Unknown)",
        ON ",\"bytes\":4096,\"memory bandwidth (GB/s)\":8.192}");
    w.copy.direction = 11, w.copy.bytes = 0;
    check_slice(w, 500, "gpu_memcpy", "Memcpy Unknown (Managed Static -> Unknown)",
        ON ",\"bytes\":0,\"memory bandwidth (GB/s)\":0}");
    w.by_events = true;
    check_slice(
        w, 500, "gpu_memcpy", "Memcpy Unknown", ON ",\"cs.time\":\"events\",\"cs.error_us\":0}");
    w.copy.bytes = 4096, w.error = 50; /* a tenth of the time */
    check_slice(w, 500, "gpu_memcpy", "Memcpy Unknown",
        ON ",\"bytes\":4096,\"memory bandwidth "
           "(GB/s)\":8.192,\"cs.time\":\"events\",\"cs.error_us\":0.05}");
    w.error = 51;
    check_slice(w, 500, "gpu_memcpy", "Memcpy Unknown",
        ON ",\"bytes\":4096,\"cs.time\":\"events\",\"cs.error_us\":0.051}");
}

TEST(a_copy_between_gpus)
{
    begin();
    const struct cs_gpu_work w = {.kind = CS_GPU_COPY,
        .device = 2,
        .copy = {.bytes = 4096, .peer = true, .from_device = 2, .to_device = 4}};
    const char *slice = slice_of(w, 500), *peer = trace_file_event("\"cs_peer\"", "");
    CHECK(strstr(slice, "\"memory bandwidth (GB/s)\":8.192,\"fromDevice\":2,\"toDevice\":4}"));
    CHECK_IS(number_of(peer, "pid"), 4);
    CHECK(strstr(peer,
        "\"args\":{\"device\":4,\"copied by device\":2,\"copied by "
        "stream\":13,\"correlation\":77,\"bytes\":4096,\"fromDevice\":2,\"toDevice\":4}"));
    const struct cs_gpu_work back = {.kind = CS_GPU_COPY,
        .device = 2,
        .copy = {.bytes = 4096, .peer = true, .from_device = 5, .to_device = 2}};
    slice_of(back, 500);
    CHECK(strstr(
        trace_file_event("\"cs_peer\"", "\"pid\":5"), "\"device\":5,\"copied by device\":2,"));
    const struct cs_gpu_work inside = {.kind = CS_GPU_COPY,
        .device = 2,
        .copy = {.bytes = 4096, .peer = true, .from_device = 2, .to_device = 2}};
    slice_of(inside, 500);
    const struct cs_gpu_work beyond = {.kind = CS_GPU_COPY,
        .device = 2,
        .copy = {.bytes = 4096, .peer = true, .from_device = 2, .to_device = CS_GPU_PIDS}};
    slice_of(beyond, 500);
    const struct cs_gpu_work plain = {.kind = CS_GPU_COPY,
        .device = 2,
        .copy = {.bytes = 4096, .from_device = 2, .to_device = 3}};
    slice_of(plain, 500);
    CHECK_IS(trace_file_count("\"cs_peer\"", ""), 2);
}

TEST(a_memset_and_what_has_no_arguments_of_its_own)
{
    begin();
    check_slice(
        (struct cs_gpu_work){.kind = CS_GPU_SET, .set = {.bytes = 100, .value = 9, .memory = 5}},
        1000, "gpu_memset", "Memset (Managed)",
        ON ",\"bytes\":100,\"value\":9,\"memory bandwidth (GB/s)\":0.1}");
    check_slice((struct cs_gpu_work){.kind = CS_GPU_GRAPH, .graph = 8}, 1000, "gpu_graph",
        "graph 8", ON ",\"graph\":8}");
    check_slice((struct cs_gpu_work){.kind = CS_GPU_GRAPH, .by_events = true}, 1000, "gpu_graph",
        "graph", ON ",\"cs.time\":\"events\",\"cs.error_us\":0}");
    check_slice((struct cs_gpu_work){.kind = CS_GPU_RANGE, .range.calls = 6}, 1000, "gpu_range",
        "6 calls", ON ",\"calls\":6}");
}

TEST(a_node_of_a_graph_says_where_it_ran)
{
    begin();
    struct cs_gpu_work w = {.kind = CS_GPU_GRAPH, .graph = 8, .node = (cs_u64)8 << 32 | 3};
    check_slice(w, 100, "gpu_graph", "graph 8", ON ",\"graph\":8,\"graph node\":3}");
    w.stream = 13; /* the profiler's number of the lane's own */
    check_slice(w, 100, "gpu_graph", "graph 8", ON ",\"graph\":8,\"graph node\":3}");
    w.stream = 14;
    check_slice(
        w, 100, "gpu_graph", "graph 8", ON ",\"graph\":8,\"graph node\":3,\"cs.ran_on\":14}");
    lane->gpu_id = 0;
    check_slice(w, 100, "gpu_graph", "graph 8", ON ",\"graph\":8,\"graph node\":3}");
    lane->gpu_id = 13, w.node = 0;
    check_slice(w, 100, "gpu_graph", "graph 8", ON ",\"graph\":8}");
}

/* --- where it stands --- */

static struct cs_match_found found_at(
    const struct cs_gpu_work *work, cs_u64 start_ns, cs_u64 end_ns)
{
    return (struct cs_match_found){
        .work = work, .lane = lane, .op = op, .start_ns = start_ns, .end_ns = end_ns};
}

TEST(work_is_never_before_its_call_and_lasts_a_nanosecond)
{
    begin();
    static const struct cs_gpu_work work = {.kind = CS_GPU_RANGE};
    const char *rows[4];
    struct cs_match_found before = found_at(&work, now - 300, now + 10),
                          none = found_at(&work, now + 500, now + 500),
                          early = found_at(&work, now - 300, now - 200);
    CHECK(cs_gpu_work_write(&before) && cs_gpu_work_write(&none) && cs_gpu_work_write(&early));
    REQUIRE(trace_file_events("\"gpu_range\"", "\"ph\":\"X\"", rows, 4) == 3);
    CHECK_IS(ns_of(rows[0], "ts"), now + 1); /* and not with it */
    CHECK_IS(end_of(rows[0]), now + 10);
    CHECK_IS(number_of(rows[0], "cs.raw_start_ns"), now - 300);
    CHECK_IS(ns_of(rows[1], "ts"), now + 500);
    CHECK_IS(ns_of(rows[1], "dur"), 1);
    CHECK(!strstr(rows[1], "cs.raw_start_ns"));
    CHECK_IS(ns_of(rows[2], "ts"), now + 1);
    CHECK_IS(ns_of(rows[2], "dur"), 1);
}

/* --- what it waited for --- */

/* Of work that began so long after its call. */
static void check_held(struct cs_gpu_work work, cs_u64 after, const char *waited)
{
    const cs_u64 start = cs_clock_ns(op->end) + after;
    char at[64], text[128];
    struct cs_match_found found = found_at(&work, start, start + 10);
    CHECK(cs_gpu_work_write(&found));
    snprintf(at, sizeof at, "\"ts\":%s,\"dur\"", us_text(start));
    const char *is = strstr(trace_file_event("\"ph\":\"X\"", at), "\"waited");
    snprintf(text, sizeof text, "%s", is ? is : "");
    if (strpbrk(text, "}")) *strpbrk(text, "}") = 0;
    CHECK_TEXT(text, waited);
}

TEST(work_says_how_long_it_waited_and_for_what)
{
    static const struct cs_gpu_work range = {.kind = CS_GPU_RANGE};
    begin();
    const cs_u64 called = cs_clock_ns(op->end);
    op->begin_ns = 0;
    check_held(range, 0, "");
    check_held(range, 1500, ""); /* its launch */
    check_held(range, 60001, "\"waited_us\":60.001,\"waited for\":\"not known\"");
    check_held((struct cs_gpu_work){.kind = CS_GPU_RANGE, .by_events = true}, 1600,
        ""); /* it began with the event before it */
    lane->worked_ns = called + 1000;
    check_held(range, 1700, ""); /* its stream */
    op->works = 1;               /* a further piece of its call */
    check_held(range, 1800, "");
    op->works = 0, op->begin = 10;
    const cs_u64 awaited = ++cs_match.ops.newest;
    *cs_op_place(awaited) = (struct cs_op){.id = awaited, .works = 1, .work_end_ns = called + 1900};
    cs_match.table.event_waits[0] = (struct cs_event_wait){.ticks = 5, .op = awaited, .stream = 14};
    cs_match.event_wait_count = op->event_wait = 1;
    check_held(range, 2000,
        "\"waited_us\":2,\"waited for\":\"event\",\"waited for "
        "stream\":14,\"event_wait_ids\":[32769]");
}

/* --- what is counted --- */

TEST(work_is_counted_by_its_kind_and_whether_its_call_is_known)
{
    begin();
    for (int kind = 0; kind < CS_GPU_OVERHEAD; kind++) {
        for (int i = 0; i <= kind; i++) {
            const struct cs_gpu_work work = {.kind = (enum cs_gpu_kind)kind};
            struct cs_match_found found = found_at(&work, now + 100, now + 200);
            if (i % 2) found.op = NULL;
            CHECK(cs_gpu_work_write(&found));
        }
    }
    for (int kind = 0; kind < CS_GPU_OVERHEAD; kind++)
        CHECK_IS(cs_totals.sum.gpu.count[kind], kind + 1);
    CHECK_IS(cs_totals.sum.gpu.unmatched, 0 + 1 + 1 + 2 + 2);
    CHECK_IS(trace_file_count("\"flow_in\"", ""), 15 - 6);
    CHECK(cs_totals.begin_ns == UINT64_MAX || cs_totals.begin_ns == now + 100);
}
