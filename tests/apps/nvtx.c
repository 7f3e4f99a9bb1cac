/*
 * nvtx HOW: ranges, marks and names through NVTX's header-only library, around driver calls. */
#include "tests/apps/app.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <locale.h>
#include <math.h>
#include <wchar.h>

static CUfunction empty;
static CUstream stream;

static void open_up(void)
{
    app_start(0);
    empty = app_kernel("empty_kernel");
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
}

static nvtxEventAttributes_t attributes(void)
{
    return (nvtxEventAttributes_t){.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
}

static nvtxEventAttributes_t with_text(const char *text)
{
    nvtxEventAttributes_t a = attributes();
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    return a;
}

/* What NVTX answers depends on whether there is a tool: to standard error. */
#define LEVEL(key, ...) NOTE(key, "%d", (int)(__VA_ARGS__))

static void nested(void)
{
    LEVEL("outer", nvtxRangePushA("outer"));
    LAUNCH(empty, stream);
    for (int i = 0; i < 3; i++) {
        LEVEL("inner", nvtxRangePushA("inner"));
        LAUNCH(empty, stream);
        OK(cuStreamSynchronize, stream);
        LEVEL("inner_ends", nvtxRangePop());
    }
    nvtxMarkA("a mark");
    LEVEL("outer_ends", nvtxRangePop());
    LEVEL("nothing_ends", nvtxRangePop());
    LAUNCH(empty, stream);
    nvtxRangePushA("empty");
    nvtxRangePop();
}

static void described(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("my \"domain\""),
                       wide = nvtxDomainCreateW(L"my \"domain\"");
    NOTE("same_domain", "%d", domain == wide);
    nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered"),
                       unicode =
                           nvtxDomainRegisterStringW(domain, L"registriert \u00e9\u4e2d\U0001f600");
    nvtxNameCategoryA(3, "input");
    nvtxDomainNameCategoryW(domain, 4, L"\u00e4usserlich");

    nvtxEventAttributes_t a = with_text("colored");
    a.category = 3;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xff880000;
    nvtxRangePushEx(&a);
    nvtxRangePop();

    a = attributes();
    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"wide \u00e9\u4e2d\U0001f600 \x110000";
    a.category = 5; /* without a name */
    nvtxMarkEx(&a);

    a = attributes();
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = registered;
    a.category = 4;
    LEVEL("domain_level", nvtxDomainRangePushEx(domain, &a));
    a.message.registered = unicode;
    LEVEL("domain_level_2", nvtxDomainRangePushEx(domain, &a));
    LEVEL("other_level", nvtxRangePushW(L"in no domain"));
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(domain);
    nvtxDomainDestroy(domain);
    nvtxRangePushA(NULL);
    nvtxRangePop();
    nvtxRangePushEx(NULL);
    nvtxRangePop();
    nvtxMarkA("odd\"\\\x01\t\xc3\xa9\xff");
}

static void payloads(void)
{
    static const double doubles[] = {0.1, 1e300, -2.5, 0, 3};
    nvtxEventAttributes_t a = with_text("payload");
    setlocale(LC_ALL, ""); /* one may have a comma for the decimal point */
    for (int type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64; type <= NVTX_PAYLOAD_TYPE_FLOAT; type++) {
        a.payloadType = type;
        a.payload.llValue = -1;
        if (type == NVTX_PAYLOAD_TYPE_DOUBLE) a.payload.dValue = 0.5;
        if (type == NVTX_PAYLOAD_TYPE_FLOAT) a.payload.fValue = 0.25f;
        nvtxMarkEx(&a);
    }
    a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        a.payload.dValue = doubles[i], nvtxMarkEx(&a);
    a.payload.dValue = NAN, nvtxMarkEx(&a);
    a.payload.dValue = -INFINITY, nvtxMarkEx(&a);
    a.payloadType = 99; /* an extension's: its value is an address */
    nvtxMarkEx(&a);
}

/* Ranges of two domains that overlap partly on one thread. */
static void crossing(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("crossing");
    nvtxEventAttributes_t a = with_text("second");
    nvtxRangePushA("around");
    nvtxRangePushA("first");
    LAUNCH(empty, stream);
    nvtxDomainRangePushEx(domain, &a);
    LAUNCH(empty, stream);
    nvtxRangePop(); /* first, while second goes on */
    LAUNCH(empty, stream);
    nvtxRangePushA("in second");
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    nvtxRangePop();
}

static volatile nvtxRangeId_t from_other;

static void *other_thread(void *unused)
{
    pthread_setname_np(pthread_self(), "other");
    NOTE("other", "%ld", app_tid());
    nvtxNameOsThreadA((uint32_t)app_tid(), "the loader");
    nvtxRangePushA("other thread"); /* a thread without CUDA */
    from_other = nvtxRangeStartA("handed over");
    app_sleep_ms(5); /* the range takes some time */
    nvtxRangePop();
    return unused;
}

static void threads(void)
{
    pthread_t thread;
    NOTE("main", "%ld", app_tid());
    nvtxRangePushA("main thread");
    LAUNCH(empty, stream);
    THREAD(&thread, other_thread, NULL);
    pthread_join(thread, NULL);
    nvtxRangeEnd(from_other);
    nvtxRangePop();
    nvtxNameOsThreadW((uint32_t)app_tid(), L"the trainer");
}

/* Process ranges, so many; the last hundred end. */
static void open_many(int n)
{
    static nvtxRangeId_t ids[100];
    for (int i = 0; i < n; i++) ids[i % 100] = nvtxRangeStartA(i < n - 100 ? "stays" : "ends");
    LAUNCH(empty, stream);
    for (int i = 0; i < 100; i++) nvtxRangeEnd(ids[i]);
}

static void process_ranges(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("processes");
    nvtxEventAttributes_t a = with_text("b");
    nvtxRangeId_t first = nvtxRangeStartA("a");
    app_sleep_ms(1); /* so that no two times are one */
    nvtxRangeId_t second = nvtxDomainRangeStartEx(domain, &a), third = nvtxRangeStartW(L"c");
    LAUNCH(empty, stream);
    nvtxRangeEnd(first);
    app_sleep_ms(1);
    nvtxRangeEnd(third);
    nvtxDomainRangeEnd(domain, second);
    nvtxRangeEnd(second); /* once more, and ids that were never given */
    nvtxRangeEnd(0);
    nvtxRangeEnd(0x123456789abcdef);
    nvtxRangeEnd((nvtxRangeId_t)-1);
    NOTE("ids_differ", "%d",
        first && second && third && first != second && second != third && first != third);
    nvtxRangeStartA("never ended");
}

static void names(void)
{
    CUstream late;
    CUevent event;
    OK(cuStreamCreateWithPriority, &late, CU_STREAM_DEFAULT, -2);
    OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
    NOTE("early_stream", "%p", (void *)stream);
    NOTE("late_stream", "%p", (void *)late);
    nvtxNameCuStreamA(stream, "copies");
    nvtxNameCuStreamA(NULL, "the default");
    nvtxNameCuStreamA((CUstream)(size_t)0xdeadbeef0, "nobody's");
    nvtxNameCuEventW(event, L"barrier");
    LAUNCH(empty, stream);
    LAUNCH(empty, late);
    LAUNCH(empty, NULL);
    OK(cuEventRecord, event, stream);
    app_flush(); /* the writer has announced the lane */
    nvtxResourceAttributes_t r = {.version = NVTX_VERSION,
        .size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE,
        .identifierType = NVTX_RESOURCE_TYPE_CUDA_STREAM};
    r.identifier.pValue = late;
    r.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    r.message.unicode = L"l\u00e4te";
    nvtxDomainResourceCreate(NULL, &r);
    OK(cuStreamSynchronize, NULL);
    OK(cuEventDestroy_v2, event);
    OK(cuStreamDestroy_v2, late);
}

static void *leaves_open(void *unused)
{
    nvtxRangePushA("open in a thread");
    return unused;
}

static _Atomic int is_open;

static void *waits(void *unused)
{
    OK(cuCtxSetCurrent, app_context);
    nvtxRangePushA("open in a waiting thread");
    LAUNCH(empty, stream);
    for (is_open = 1;;) app_sleep_ms(1000);
    return unused;
}

static void left_open(const char *how)
{
    pthread_t thread;
    THREAD(&thread, leaves_open, NULL);
    pthread_join(thread, NULL);
    if (!strcmp(how, "running")) {
        THREAD(&thread, waits, NULL);
        while (!is_open) app_sleep_ms(1);
    }
    nvtxRangeStartA("open process range");
    nvtxRangePushA("open outer");
    nvtxRangePushA("open inner");
    LAUNCH(empty, stream);
}

/* Ranges from before the first CUDA call: what is open by then is seen. */
static void before_cuda(void)
{
    nvtxRangePushA("over before");
    nvtxRangePop();
    nvtxMarkA("mark before");
    nvtxRangeId_t id = nvtxRangeStartA("started before");
    LEVEL("first", nvtxRangePushA("open before"));
    LEVEL("second", nvtxRangePushA("open before too"));
    app_sleep_ms(2);
    open_up();
    LAUNCH(empty, stream);
    nvtxRangePop();
    LAUNCH(empty, stream);
    nvtxRangePop();
    nvtxRangeEnd(id);
}

static void *callback_thread(void *unused)
{
    static int depth;
    /* One begins in a callback and ends in the next, one lies inside of each. */
    if (depth++ % 2) nvtxRangePop();
    nvtxRangePushA("in a callback");
    nvtxRangePop();
    if (depth % 2) nvtxRangePushA("across callbacks");
    return unused;
}
static void CUDA_CB host_function(void *data) { callback_thread(data); }

/* The driver is there and looked at, and no call is made. */
static void looks(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || !dlsym(driver, "cuStreamCreate")) exit(3);
    nvtxRangePushA("never seen");
    nvtxMarkA("nor this");
    nvtxRangePop();
}

static void callbacks(void)
{
    for (int i = 0; i < 5; i++)
        OK(cuLaunchHostFunc, stream, host_function, NULL); /* the last leaves one open */
    OK(cuStreamSynchronize, stream);
}

/* Texts are cut at 2048 bytes, names at 512. */
static void longer(void)
{
    static char text[3000];
    static wchar_t wide[5001];
    memset(text, 'x', 2047);
    nvtxMarkA(text);
    memset(text, 'y', 2048);
    nvtxMarkA(text);
    memset(text, 'z', sizeof text - 1);
    nvtxMarkA(text);
    text[2998] = '!';
    nvtxMarkA(text);
    text[2998] = 'z';
    nvtxMarkA(text);
    for (int i = 0; i < 2; i++) {
        wmemset(wide, L'w', 5000);
        wide[4999] = i ? L'!' : L'w';
        nvtxRangePushW(wide);
        nvtxRangePop();
    }
    CUevent event;
    OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
    nvtxNameCuStreamA(stream, text);
    nvtxNameCuEventA(event, text);
    nvtxNameCategoryA(3, text);
    nvtxEventAttributes_t mark = with_text("described");
    mark.category = 3;
    nvtxDomainMarkEx(nvtxDomainCreateA(text), &mark);
    nvtxMarkEx(&mark);
    OK(cuEventRecord, event, stream);
}

static void many(long n, int different)
{
    char text[64];
    for (long i = 0; i < n; i++) {
        snprintf(text, sizeof text, "step %ld", different ? i : i % 10);
        nvtxRangePushA(text);
        if (i % 1000 == 0) LAUNCH(empty, stream);
        nvtxRangePop();
    }
}

/* Ranges that cross, one pair after another. */
static void spans(long n)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("of the spans");
    nvtxEventAttributes_t a = with_text("second");
    LAUNCH(empty, stream);
    for (long i = 0; i < n; i++) {
        nvtxRangePushA("first");
        nvtxDomainRangePushEx(domain, &a);
        nvtxRangePop();
        nvtxDomainRangePop(domain);
    }
}

/* Ranges of two domains in every order, marks and calls, from several threads: what the trace makes
 * of them must nest, whatever is lost. */
static void *storms(void *steps)
{
    static unsigned seed;
    unsigned dice = __atomic_add_fetch(&seed, 12345, __ATOMIC_RELAXED), open[2] = {0, 0};
    nvtxDomainHandle_t domain = nvtxDomainCreateA("storm");
    nvtxEventAttributes_t a = with_text("of the domain");
    OK(cuCtxSetCurrent, app_context);
    for (long i = 0; i < (long)(size_t)steps; i++) {
        dice = dice * 1664525 + 1013904223;
        switch (dice >> 28) {
        case 0 ... 2:
            if (open[0] < 8) open[0]++, nvtxRangePushA("of no domain");
            break;
        case 3 ... 4:
            if (open[1] < 8) open[1]++, nvtxDomainRangePushEx(domain, &a);
            break;
        case 5 ... 8:
            if (open[0]) open[0]--, nvtxRangePop();
            break;
        case 9 ... 11:
            if (open[1]) open[1]--, nvtxDomainRangePop(domain);
            break;
        case 12: nvtxMarkA("storm mark"); break;
        case 13: nvtxRangeEnd(nvtxRangeStartA("storm span")); break;
        default: LAUNCH(empty, stream);
        }
    }
    while (open[0]--) nvtxRangePop();
    while (open[1]--) nvtxDomainRangePop(domain);
    return NULL;
}

static void storm(long steps)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) THREAD(&thread[i], storms, (void *)(size_t)steps);
    storms((void *)(size_t)steps);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

static void deep(int n)
{
    for (int i = 0; i < n; i++)
        if (nvtxRangePushA("deep") == i) continue;
        else NOTE("wrong_level", "%d", i);
    LAUNCH(empty, stream);
    for (int i = n - 1; i >= 0; i--)
        if (nvtxRangePop() != i) NOTE("wrong_level", "%d", i);
}

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);

static void deep_before(int n)
{
    OK(cuProfilerStart);
    OK(cuProfilerStop);
    for (int i = 0; i < n; i++) nvtxRangePushA("deep");
    for (int i = 0; i < 200; i++) nvtxRangePop();
    OK(cuProfilerStart);
    LAUNCH(empty, stream);
    for (int i = 200; i < n; i++) nvtxRangePop();
}

static void forked(void)
{
    nvtxRangePushA("around the fork");
    pid_t child = fork();
    if (!child) {
        NOTE("child", "%d", (int)getpid());
        nvtxRangePushA("unseen in the child"); /* which has not called CUDA yet */
        nvtxRangePop();
        nvtxRangePushA("in the child");
        (void)!CU(cuStreamQuery, stream);
        nvtxRangePop();
        exit(0);
    }
    waitpid(child, NULL, 0);
    nvtxRangePop();
}

static void module(const char *path)
{
    for (int i = 0; i < 2; i++) {
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*function)(void) = handle ? (int (*)(void))dlsym(handle, "nvtx_module") : NULL;
        if (!function) printf("%s\n", dlerror()), exit(7);
        nvtxRangePushA("of the program");
        LEVEL("module", function());
        nvtxRangePop();
        dlclose(handle);
    }
}

/* A library that tells NVTX of its ranges instead of keeping them itself, if its domain has a tool
 * (XLA: tsl/profiler/lib/scoped_annotation.h). */
static void one_stack(void)
{
    int kept = 0;
    nvtxDomainHandle_t own = nvtxDomainCreateA("TSL"), wide = nvtxDomainCreateW(L"TSL"),
                       another = nvtxDomainCreateA("TSL of others");
    nvtxEventAttributes_t a = with_text("of the library");
    for (int i = 0; i < 3; i++) {
        if (own) nvtxDomainRangePushEx(own, &a);
        else kept++;
        LAUNCH(empty, stream);
        if (own) nvtxDomainRangePop(own);
    }
    printf("ranges kept: %d\n", kept);
    NOTE("domains", "%d %d %d", own != NULL, wide != NULL, another != NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "nested", *more = argc > 2 ? argv[2] : "";
    const char *set = getenv("NVTX_INJECTION64_PATH");
    setvbuf(stdout, NULL, _IONBF, 0);
    NOTE("variable", "%s", set ? set : "(none)");
    if (!strcmp(how, "before")) return before_cuda(), app_report(), 0;
    if (!strcmp(how, "never"))
        return nvtxRangePushA("never seen"), nvtxMarkA("nor this"), nvtxRangeStartA("nor that"),
               nvtxRangePop(), 0;
    if (!strcmp(how, "looks")) return looks(), 0;
    if (!strcmp(how, "environment"))
        return system(
                   "env | grep -c NVTX; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c NVTX"),
               0;
    open_up();
    if (!strcmp(how, "nested")) nested();
    else if (!strcmp(how, "described")) described();
    else if (!strcmp(how, "payloads")) payloads();
    else if (!strcmp(how, "crossing")) crossing();
    else if (!strcmp(how, "threads")) threads();
    else if (!strcmp(how, "process")) process_ranges();
    else if (!strcmp(how, "open_many")) open_many(atoi(more));
    else if (!strcmp(how, "names")) names();
    else if (!strcmp(how, "open")) left_open(more);
    else if (!strcmp(how, "callbacks")) callbacks();
    else if (!strcmp(how, "longer")) longer();
    else if (!strcmp(how, "many")) many(atol(more), argc > 3);
    else if (!strcmp(how, "deep")) deep(atoi(more));
    else if (!strcmp(how, "deep_before")) deep_before(atoi(more));
    else if (!strcmp(how, "spans")) spans(atol(more));
    else if (!strcmp(how, "storm")) storm(atol(more));
    else if (!strcmp(how, "fork")) forked();
    else if (!strcmp(how, "module")) module(more);
    else if (!strcmp(how, "one_stack")) one_stack();
    app_report();
    if (!strcmp(more, "_exit")) _exit(0);
    if (!strcmp(more, "kill")) app_flush(), raise(9);
    return 0;
}
