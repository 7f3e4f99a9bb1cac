/* The library itself: statuses, beginning and ending it; NULL and closed objects in every function
 * that takes one. */
#include "tests/api/rows.h"

#include <sys/wait.h>

static const struct {
    custream_status_t status;
    const char *name;
} statuses[] = {
#define STATUS(name) {CUSTREAM_##name, "CUSTREAM_" #name}
    STATUS(SUCCESS),
    STATUS(NOT_READY),
    STATUS(INVALID_VALUE),
    STATUS(INVALID_HANDLE),
    STATUS(CLOSED),
    STATUS(DEVICE_MISMATCH),
    STATUS(PRIORITY_OUT_OF_RANGE),
    STATUS(CAPTURE_STATE),
    STATUS(CAPTURE_INVALIDATED),
    STATUS(CAPTURE_UNSUPPORTED),
    STATUS(TIMING_DISABLED),
    STATUS(NOT_RECORDED),
    STATUS(IPC),
    STATUS(NO_CONTEXT),
    STATUS(NOT_SUPPORTED),
    STATUS(NO_MEMORY),
    STATUS(DRIVER),
#undef STATUS
};

ROW(0_status, "names and texts of statuses")
{
    for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const char *text = custream_status_string(statuses[i].status);

        CHECK_IS(statuses[i].status, i);
        CHECK(strcmp(custream_status_name(statuses[i].status), statuses[i].name) == 0);
        CHECK(text && strlen(text) > 3 && !strchr(text, '\n'));
        for (unsigned k = 0; k < i; k++)
            CHECK(strcmp(text, custream_status_string(statuses[k].status)) != 0);
    }
    CHECK(strcmp(custream_status_name((custream_status_t)17), "CUSTREAM_UNKNOWN") == 0);
    CHECK(strcmp(custream_status_name((custream_status_t)-1), "CUSTREAM_UNKNOWN") == 0);
    CHECK(custream_status_string((custream_status_t)12345) != NULL);
}

ROW(0_version, "the version, as number and text")
{
    int version = 0;
    char text[32];

    WORKS(custream_version(&version));
    snprintf(text, sizeof text, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
    CHECK(strcmp(custream_version_string(), text) == 0);
    GIVES(custream_version(NULL), INVALID_VALUE);
}

ROW(0_init, "init: the first counts")
{
    custream_init_options_t options;
    custream_t s = NULL;

    WORKS(custream_init_options_init(&options));
    CHECK_IS(options.size, sizeof options);
    CHECK(!options.driver);
    CHECK_IS(options.make_context, 1);
    GIVES(custream_init_options_init(NULL), INVALID_VALUE);
    options.size = 0;
    GIVES(custream_init(&options), INVALID_VALUE);
    WORKS(custream_init_options_init(&options));
    WORKS(custream_init(&options));
    WORKS(custream_init(&options));
    WORKS(custream_init(NULL));
    options.make_context = 0;
    GIVES(custream_init(&options), INVALID_VALUE);
    start();
    WORKS(custream_create(&s, NULL));
    WORKS(custream_release(s));
}

ROW(0_init_driver, "init with the driver's path")
{
    custream_init_options_t options;
    custream_t s = NULL;

    WORKS(custream_init_options_init(&options));
    options.driver = "libcuda.so.1";
    WORKS(custream_init(&options));
    WORKS(custream_create(&s, NULL));
    WORKS(custream_query(s));
    WORKS(custream_release(s));
}

ROW(0_init_no_driver, "a path where no driver is")
{
    custream_init_options_t options;
    custream_t s = NULL;

    WORKS(custream_init_options_init(&options));
    options.driver = "/nowhere/libcuda.so.1";
    GIVES(custream_init(&options), NOT_SUPPORTED);
    CHECK(strlen(custream_status_string(CUSTREAM_NOT_SUPPORTED)) > 0);
    WORKS(custream_init(NULL)); /* which did not count */
    WORKS(custream_create(&s, NULL));
    WORKS(custream_release(s));
}

ROW_WITH(0_no_device, "a driver without a device", "CUSTREAM_FAKE_NO_DEVICE=1")
{
    custream_t s;
    custream_event_t e;

    GIVES(custream_init(NULL), NOT_SUPPORTED);
    CHECK_IS(driver_error(), CUDA_ERROR_NO_DEVICE); /* which tells why */
    FAILS(custream_create(&s, NULL), NOT_SUPPORTED, s);
    FAILS(custream_event_create(&e, NULL), NOT_SUPPORTED, e);
    CHECK(strlen(custream_version_string()) > 0);
}

ROW(0_shutdown, "what the library holds goes, what the program holds stays")
{
    custream_t own, pooled, again, device_default;
    custream_event_t cached;
    CUstream raw;

    start();
    own = new_stream();
    WORKS(custream_create_from_pool(&pooled, -1, 0, 0));
    WORKS(custream_create_from_pool(&again, -1, 0, 0));
    raw = handle_of(again);
    WORKS(custream_release(again));
    WORKS(custream_cached_event(own, &cached));
    WORKS(custream_set_default_mode(CUSTREAM_DEFAULT_DEVICE));
    WORKS(custream_default(-1, &device_default));
    WORKS(custream_shutdown());
    WORKS(custream_query(own));
    WORKS(custream_query(pooled));
    WORKS(custream_query(device_default));
    WORKS(custream_event_query(cached));
    GONE(cuStreamQuery(raw)); /* the pool's alone */
    WORKS(custream_release(pooled));
    WORKS(custream_release(device_default));
    WORKS(custream_event_release(cached));
    WORKS(custream_create_from_pool(&again, -1, 0, 0)); /* anew */
    WORKS(custream_query(again));
    WORKS(custream_wait_stream(again, own, NULL, 0));
    WORKS(custream_release(own));
    WORKS(custream_shutdown());
    WORKS(custream_shutdown());
}

/* Nobody but the library has asked for the primary context. */
ROW(0_shutdown_context, "a stream on a context that the library made")
{
    custream_t s = NULL;

    WORKS(custream_create(&s, NULL));
    WORKS(custream_shutdown());
    WORKS(custream_query(s));
    WORKS(custream_release(s));
    WORKS(custream_create(&s, NULL));
    WORKS(custream_query(s));
    WORKS(custream_release(s));
}

static void make_elsewhere(void) { WORKS(custream_release(new_stream())); }

/* The library retains the primary context where a thread has none; the program has references of
 * its own. */
ROW(0_shutdown_current, "shutdown leaves the program's own context current")
{
    CUcontext now = NULL;
    CUstream raw;

    start();
    OK(cuStreamCreate(&raw, 0));
    in_thread(make_elsewhere);
    WORKS(custream_shutdown());
    OK(cuCtxGetCurrent(&now));
    CHECK(now == context);
    OK(cuStreamQuery(raw));
    OK(cuDevicePrimaryCtxRelease(0));
    make_elsewhere();
    WORKS(custream_shutdown());
    OK(cuCtxGetCurrent(&now));
    CHECK(!now); /* nobody has it */
}

ROW(0_shutdown_cached, "the cached events of default streams go")
{
    custream_stats_t stats = {.size = sizeof stats};
    custream_t s[2];
    custream_event_t e;
    unsigned flags;
    int active = -1;

    for (int round = 0; round < 2; round++) {
        WORKS(custream_legacy_default(&s[0]));
        WORKS(custream_per_thread_default(&s[1]));
        for (int i = 0; i < 2; i++) {
            WORKS(custream_cached_event(s[i], &e));
            WORKS(custream_record(s[i], e, 0));
            WORKS(custream_event_release(e));
        }
        WORKS(custream_shutdown());
        WORKS(custream_stats(-1, &stats));
        CHECK_IS(stats.events, 0);
        OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
        CHECK_IS(active, 0);
    }
}

static int driver_error_here = -1;
static void read_error(void) { driver_error_here = driver_error(); }

ROW_WITH(0_error_thread, "the driver's error is the calling thread's",
    "CUSTREAM_FAKE_FAIL=cuEventCreate*=2")
{
    custream_event_t e;

    start();
    FAILS(custream_event_create(&e, NULL), DRIVER, e);
    in_thread(read_error);
    CHECK_IS(driver_error_here, 0);
    CHECK_IS(driver_error(), 2);
}

/* ---- Every function that takes a stream ---- */

static custream_event_t any_event;
static void nothing(void *arg) { (void)arg; }
static void nothing_3(custream_t s, custream_status_t status, void *arg)
{
    (void)s, (void)status, (void)arg;
}

static void getters_give(custream_t s, custream_status_t expected)
{
    void *pointer = UNTOUCHED;
    int number = UNTOUCHED_INT;
    unsigned flags = 77;
    uintptr_t handle = 77;
    size_t length = 77;
    char text[8] = "x";

    CHECK_IS(custream_get_handle(s, &pointer), expected);
    CHECK_IS(custream_get_context(s, &pointer), expected);
    CHECK(pointer == UNTOUCHED);
    CHECK_IS(custream_get_device(s, &number), expected);
    CHECK_IS(custream_is_nonblocking(s, &number), expected);
    CHECK_IS(custream_is_owned(s, &number), expected);
    CHECK_IS(custream_get_priority(s, &number), expected);
    CHECK_IS(custream_get_requested_priority(s, &number), expected);
    CHECK_IS(custream_protocol(s, &number, &handle), expected);
    CHECK_IS(custream_is_capturing(s, &number), expected);
    CHECK_IS(number, UNTOUCHED_INT);
    CHECK_IS(custream_get_flags(s, &flags), expected);
    CHECK(flags == 77 && handle == 77);
    CHECK_IS(custream_set_name(s, "name"), expected);
    CHECK_IS(custream_get_name(s, text, sizeof text, &length), expected);
    CHECK(length == 77 && *text == 'x');
}

static void work_gives(custream_t s, custream_status_t expected)
{
    custream_event_t e = UNTOUCHED;
    custream_t out = UNTOUCHED, other = new_stream();

    CHECK_IS(custream_query(s), expected);
    CHECK_IS(custream_synchronize(s), expected);
    CHECK_IS(custream_record(s, any_event, 0), expected);
    CHECK_IS(custream_record_new(s, NULL, &e), expected);
    CHECK_IS(custream_wait_event(s, any_event, 0), expected);
    CHECK_IS(custream_wait_stream(s, other, NULL, 0), expected);
    CHECK_IS(custream_wait_stream(other, s, NULL, 0), expected);
    CHECK_IS(custream_wait_handle(s, NULL), expected);
    CHECK_IS(custream_cached_event(s, &e), expected);
    CHECK_IS(custream_add_callback(s, nothing_3, NULL), expected);
    CHECK_IS(custream_launch_host_func(s, nothing, NULL, nothing), expected);
    CHECK_IS(custream_set_current(s, 0), expected);
    CHECK_IS(custream_push(s, 0), expected);
    CHECK_IS(custream_fork(s, 1, &out), expected);
    CHECK_IS(custream_join(s, 1, &other), expected);
    CHECK(e == UNTOUCHED && out == UNTOUCHED);
    WORKS(custream_query(other));
    WORKS(custream_release(other));
}

static void capture_gives(custream_t s, custream_status_t expected)
{
    custream_capture_status_t status = (custream_capture_status_t)77;
    custream_graph_t graph = UNTOUCHED;
    uint64_t id = 77;

    CHECK_IS(custream_begin_capture(s, CUSTREAM_CAPTURE_RELAXED), expected);
    CHECK_IS(custream_end_capture(s, &graph), expected);
    CHECK_IS(custream_capture_status(s, &status, &id), expected);
    CHECK_IS(custream_adopt_capture(s), expected);
    CHECK_IS(custream_pause_capture(s), expected);
    CHECK_IS(custream_resume_capture(s), expected);
    CHECK(graph == UNTOUCHED && status == 77 && id == 77);
}

ROW(0_null, "NULL in place of a stream")
{
    start();
    any_event = new_event();
    getters_give(NULL, CUSTREAM_INVALID_VALUE);
    work_gives(NULL, CUSTREAM_INVALID_VALUE);
    capture_gives(NULL, CUSTREAM_INVALID_VALUE);
}

ROW(0_closed, "a closed stream")
{
    custream_t s;
    uint64_t id = 0, before = 0;
    uint64_t hash;

    start();
    any_event = new_event();
    s = new_stream();
    WORKS(custream_get_id(s, &before));
    hash = custream_hash(s);
    WORKS(custream_close(s));
    getters_give(s, CUSTREAM_CLOSED);
    work_gives(s, CUSTREAM_CLOSED);
    capture_gives(s, CUSTREAM_CLOSED);
    GIVES(custream_event_record(any_event, s), CLOSED);
    GIVES(custream_event_wait(any_event, s), CLOSED);
    WORKS(custream_get_id(s, &id));
    CHECK_IS(id, before);
    CHECK(custream_hash(s) == hash);
    CHECK_IS(custream_equal(s, s), 1);
    WORKS(custream_retain(s));
    WORKS(custream_release(s));
    WORKS(custream_close(s));
    WORKS(custream_release(s));
}

/* Not in the header, but kind: what is no stream, any more or at all, is told where that can be
 * seen. */
ROW(0_foreign, "what is no stream object")
{
    custream_event_t e;
    custream_t s;
    int number;

    start();
    e = new_event();
    s = new_stream();
    GIVES(custream_query((custream_t)CU_STREAM_LEGACY), INVALID_HANDLE);
    GIVES(custream_query((custream_t)e), INVALID_HANDLE);
    GIVES(custream_event_query((custream_event_t)s), INVALID_HANDLE);
    GIVES(custream_graph_launch((custream_graph_t)e, s), INVALID_HANDLE);
    WORKS(custream_release(s));
    GIVES(custream_query(s), INVALID_HANDLE);
    GIVES(custream_release(s), INVALID_HANDLE);
    GIVES(custream_retain(s), INVALID_HANDLE);
    FAILS_INT(custream_get_device(s, &number), INVALID_HANDLE, number);
    WORKS(custream_event_release(e));
    GIVES(custream_event_release(e), INVALID_HANDLE);
}

/* What needs no CUDA works, with the preload library too. */
ROW(0_fork_properties, "the child of a fork: what is known of a stream, and the stack")
{
    char text[64];
    custream_t s;
    int status = -1, number;
    void *handle;
    pid_t child;

    start();
    s = new_stream();
    WORKS(custream_set_current(s, 0));
    WORKS(custream_push(s, 0));
    CHECK_IS(driver_error(), 0);
    child = fork();
    if (child == 0) {
        alarm(patience(20));
        WORKS(custream_get_handle(s, &handle));
        WORKS(custream_is_owned(s, &number));
        CHECK_IS(number, 1);
        GIVES(custream_get_device(s, &number), NOT_SUPPORTED);
        WORKS(custream_set_name(s, "child"));
        WORKS(custream_get_name(s, text, sizeof text, NULL));
        CHECK(strcmp(text, "child") == 0);
        GIVES(custream_query(s), NOT_SUPPORTED);
        GIVES(custream_synchronize(s), NOT_SUPPORTED);
        GIVES(custream_history(s, &(custream_history_t){.size = sizeof(custream_history_t)}),
            NOT_SUPPORTED);
        WORKS(custream_pop(CUSTREAM_SYNC_EXIT));
        CHECK_IS(driver_error(), 0); /* CUDA was not called */
        GIVES(custream_pop(0), INVALID_VALUE);
        WORKS(custream_close(s));
        WORKS(custream_shutdown());
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    CHECK_IS(status, 0);
    WORKS(custream_pop(CUSTREAM_SYNC_EXIT));
    WORKS(custream_query(s));
    WORKS(custream_release(s));
}

/* CUDA does not work in there, and says so: statuses, no deadlock. */
ROW(0_fork, "the child of a fork")
{
    custream_t s, out;
    int status = -1;
    pid_t child;

    start();
    s = new_stream();
    child = fork();
    if (child == 0) {
        alarm(patience(20));
        CHECK(custream_query(s) != CUSTREAM_SUCCESS);
        out = UNTOUCHED;
        CHECK(custream_create(&out, NULL) != CUSTREAM_SUCCESS);
        CHECK(out == UNTOUCHED);
        CHECK(custream_synchronize(s) != CUSTREAM_SUCCESS);
        WORKS(custream_release(s));
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    CHECK_IS(status, 0);
    WORKS(custream_query(s));
    WORKS(custream_release(s));
}
