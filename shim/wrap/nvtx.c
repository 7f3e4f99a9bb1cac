/*
 * NVTX: what a program says of itself reaches us through NVTX's injection interface.
 *
 * Each copy of NVTX 3 in the process (it is header-only: there is one in each library that uses it), and libnvToolsExt.so.1 too, asks
 * getenv("NVTX_INJECTION64_PATH") once, at its first call, for a library to load and to hand its table of functions to. We export getenv and answer with
 * our own path where the variable is not set. So nothing is in the environment, children see nothing of it, and a tool that set the variable has
 * precedence. (NVTX's other way in, a weak symbol, is hidden in the library that has it and can't be reached from outside.)
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/module.h"
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/object/event.h"
#include "shim/object/given.h"
#include "shim/object/stream.h"
#include "shim/policy/steer.h"
#include "shim/wrap/inside.h"

#define NVTX_NO_IMPL /* its types, and no copy of it in here */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>

#define VARIABLE "NVTX_INJECTION64_PATH"
#define HANDLE(name) ((void *)(uintptr_t)(name)) /* handles of domains and strings are the numbers of their texts */
#define NAME(handle) ((cs_name)(uintptr_t)(handle) & 0xffff)

/* --- the way in --- */

CS_READ_MOSTLY static __typeof__(&getenv) real_getenv;

__attribute__((constructor)) static void find_getenv(void)
{
    if (!real_getenv) real_getenv = (__typeof__(real_getenv))cs_symbol_behind("getenv");
}

static char *from_environment(const char *name)
{
    if (CS_UNLIKELY(!real_getenv)) find_getenv();
    return real_getenv ? real_getenv(name) : NULL;
}

static bool is(const char *option, const char *word)
{
    const char *value = from_environment(option);
    return value && !strcmp(value, word);
}

static bool is_off(const char *option) { return is(option, "off"); }

static const char *own_path(void)
{
    struct cs_module module;
    return cs_module_of((const void *)&own_path, &module) ? cs_module_path(&module) : NULL;
}

static bool is_variable(const char *name)
{
    const char *p = VARIABLE;
    while (*p && *name == *p) name++, p++;
    return *name == *p;
}

/* The function that a resolver chooses may depend on the environment, and the loader calls resolvers of libraries behind us before it has bound our own
 * references. So no function of the C library's is called until the name is the one that we look for. (The C library has no environment yet, either.) */
CS_EXPORT char *getenv(const char *name)
{
    char *value = from_environment(name);
    if (CS_LIKELY(value || !is_variable(name))) return value;
    return (is_off("CUSTREAM_TRACE") && !is("CUSTREAM_CTL", "on")) || is_off("CUSTREAM_NVTX") ? NULL : (char *)own_path();
}

/* --- texts --- */

enum { TEXT_SIZE = 2048 + 5 }; /* of a wide text, on the stack of the program: as much as a trace shows, and room for one more character */

/* UTF-8 of a wide string. A text that is too long for the buffer is cut, and stays distinct. */
static void narrow(char *to, size_t size, const wchar_t *wide)
{
    const wchar_t *whole = wide;
    char *end = to + size - 5;
    for (; *wide && to < end; wide++) {
        cs_u32 c = (cs_u32)*wide;
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
        if (c < 0x80) *to++ = (char)c;
        else if (c < 0x800) *to++ = (char)(0xc0 | c >> 6);
        else if (c < 0x10000) *to++ = (char)(0xe0 | c >> 12);
        else *to++ = (char)(0xf0 | c >> 18), *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        if (c >= 0x800) *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        if (c >= 0x80) *to++ = (char)(0x80 | (c & 0x3f));
    }
    if (*wide) cs_name_mark(to, whole, wcslen(whole) * sizeof *whole);
    *to = 0;
}

static cs_name text_a(const char *text)
{
    CS_KEEP_ERRNO;
    return cs_name_add_guest(text);
}

static cs_name text_w(const wchar_t *wide)
{
    char text[TEXT_SIZE];
    if (!wide) return 0;
    narrow(text, sizeof text, wide);
    return text_a(text);
}

static cs_name text_of(int32_t type, nvtxMessageValue_t message)
{
    switch (type) {
    case NVTX_MESSAGE_TYPE_ASCII: return text_a(message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE: return text_w(message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED: return NAME(message.registered);
    default: return 0;
    }
}

static struct cs_annotation annotation(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    struct cs_annotation what = {.domain = NAME(domain), .nvtx = true};
    if (!a) return what;
    what.text = text_of(a->messageType, a->message);
    what.category = a->category;
    what.colored = a->colorType == NVTX_COLOR_ARGB;
    what.color = what.colored ? a->color : 0;
    if (a->payloadType >= NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 && a->payloadType <= NVTX_PAYLOAD_TYPE_FLOAT) { /* others point to the program's memory */
        what.payload_type = (unsigned char)a->payloadType;
        what.payload = a->payload.ullValue;
    }
    return what;
}

/* --- domains and options --- */

/* Domains that are left without a tool, unless CUSTREAM_NVTX=all: the library does something else once its domain has one, and what is merely traced
 * must not. XLA (JAX, TensorFlow) then writes its ranges to NVTX and no longer to the stack of its own from which its profiles read them
 * (tsl/profiler/lib/scoped_annotation.h). It asks once in the life of the process. */
static const char *const left_alone[] = {"TSL"};
static _Atomic bool all_domains;

static nvtxDomainHandle_t domain_named(const char *name)
{
    for (size_t i = 0; i < CS_COUNT(left_alone) && !cs_load(&all_domains); i++) {
        if (name && !strcmp(name, left_alone[i])) {
            cs_log_once(CS_LOG_INFO, "the NVTX ranges of domain %s are not recorded, since its library would work otherwise; CUSTREAM_NVTX=all records them", name);
            return NULL;
        }
    }
    return HANDLE(text_a(name));
}

void cs_nvtx_begin(void)
{
    if (cs_option_is(CS_OPTION_NVTX, "off")) cs_annotate_without_nvtx();
    if (cs_option_is(CS_OPTION_NVTX, "all") && !atomic_exchange(&all_domains, true) && !cs_option_given(CS_OPTION_NVTX))
        cs_log(CS_LOG_WARN, "nvtx=all in a policy file does not hold for domains made before the first CUDA call; CUSTREAM_NVTX=all does");
    const char *value = from_environment(VARIABLE), *own = own_path();
    if (value && !(own && !strcmp(value, own))) cs_log(CS_LOG_INFO, VARIABLE "=%.500s is set: NVTX ranges go there, and are not in the trace", value);
}

/* --- NVTX's functions, each under the name that it has there --- */

#define WHAT_A(text) (&(struct cs_annotation){.text = text_a(text), .nvtx = true})
#define WHAT_W(text) (&(struct cs_annotation){.text = text_w(text), .nvtx = true})

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    const struct cs_annotation what = annotation(domain, a);
    cs_annotate_mark(&what);
}
static void mark(const nvtxEventAttributes_t *a) { domain_mark(NULL, a); }
static void mark_a(const char *text) { cs_annotate_mark(WHAT_A(text)); }
static void mark_w(const wchar_t *text) { cs_annotate_mark(WHAT_W(text)); }

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    const struct cs_annotation what = annotation(domain, a);
    return cs_annotate_push(&what);
}
static int push(const nvtxEventAttributes_t *a) { return domain_push(NULL, a); }
static int push_a(const char *text) { return cs_annotate_push(WHAT_A(text)); }
static int push_w(const wchar_t *text) { return cs_annotate_push(WHAT_W(text)); }
static int domain_pop(nvtxDomainHandle_t domain) { return cs_annotate_pop(NAME(domain)); }
static int pop(void) { return cs_annotate_pop(0); }

static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    const struct cs_annotation what = annotation(domain, a);
    return cs_annotate_start(&what);
}
static nvtxRangeId_t start(const nvtxEventAttributes_t *a) { return domain_start(NULL, a); }
static nvtxRangeId_t start_a(const char *text) { return cs_annotate_start(WHAT_A(text)); }
static nvtxRangeId_t start_w(const wchar_t *text) { return cs_annotate_start(WHAT_W(text)); }
static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) { (void)domain, cs_annotate_end(id); }
static void end(nvtxRangeId_t id) { cs_annotate_end(id); }

static nvtxDomainHandle_t domain_a(const char *name) { return domain_named(name); }
static nvtxDomainHandle_t domain_w(const wchar_t *name)
{
    char text[TEXT_SIZE];
    if (!name) return NULL;
    narrow(text, sizeof text, name);
    return domain_named(text);
}
static void domain_destroy(nvtxDomainHandle_t domain) { (void)domain; }
static nvtxStringHandle_t string_a(nvtxDomainHandle_t domain, const char *text) { return (void)domain, HANDLE(text_a(text)); }
static nvtxStringHandle_t string_w(nvtxDomainHandle_t domain, const wchar_t *text) { return (void)domain, HANDLE(text_w(text)); }

static void domain_category_a(nvtxDomainHandle_t domain, uint32_t category, const char *name) { cs_given_category(NAME(domain), category, text_a(name)); }
static void domain_category_w(nvtxDomainHandle_t domain, uint32_t category, const wchar_t *name) { cs_given_category(NAME(domain), category, text_w(name)); }
static void category_a(uint32_t category, const char *name) { domain_category_a(NULL, category, name); }
static void category_w(uint32_t category, const wchar_t *name) { domain_category_w(NULL, category, name); }
static void thread_a(uint32_t tid, const char *name) { cs_given_thread(tid, text_a(name)); }
static void thread_w(uint32_t tid, const wchar_t *name) { cs_given_thread(tid, text_w(name)); }

static void stream_named(void *handle, cs_name name)
{
    CS_KEEP_ERRNO;
    const unsigned mode = cs_load_acq(&cs_mode);
    if (!(mode & CS_MODE_WATCH)) return;
    struct cs_thread *thread = cs_annotate_watched();
    if (thread) cs_store(&thread->inside, CS_INSIDE_OURS); /* for a default stream the driver may be asked for the context */
    cs_stream_named(thread, handle, name);
    if (mode & CS_MODE_OBJECTS) cs_steer_named(thread, handle, name);
    if (thread) cs_store(&thread->inside, 0);
}

static void event_named(void *handle, cs_name name)
{
    if (handle && cs_load_acq(&cs_mode) & CS_MODE_WATCH) cs_event_named(handle, name);
}

static void stream_a(void *stream, const char *name) { stream_named(stream, text_a(name)); }
static void stream_w(void *stream, const wchar_t *name) { stream_named(stream, text_w(name)); }
static void event_a(void *event, const char *name) { event_named(event, text_a(name)); }
static void event_w(void *event, const wchar_t *name) { event_named(event, text_w(name)); }

/* The runtime's resource types, from nvToolsExtCudaRt.h, which needs the runtime's headers. */
enum { RUNTIME_STREAM = 5 << 16 | 1, RUNTIME_EVENT = 5 << 16 | 2 };

static nvtxResourceHandle_t resource_create(nvtxDomainHandle_t domain, nvtxResourceAttributes_t *r)
{
    (void)domain;
    if (!r) return NULL;
    cs_name name = text_of(r->messageType, r->message);
    void *handle = (void *)(uintptr_t)r->identifier.ullValue;
    switch ((cs_u32)r->identifierType) {
    case NVTX_RESOURCE_TYPE_CUDA_STREAM:
    case RUNTIME_STREAM: stream_named(handle, name); break;
    case NVTX_RESOURCE_TYPE_CUDA_EVENT:
    case RUNTIME_EVENT: event_named(handle, name); break;
    case NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE: cs_given_thread((cs_u32)r->identifier.ullValue, name); break;
    }
    return HANDLE(name);
}

/* --- attaching --- */

static const struct function {
    NvtxCallbackModule module;
    unsigned id;
    void *address;
} functions[] = {
/* The condition has the compiler compare the types. */
#define FUNCTION(module, name, type, function) {NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##name, (void *)(1 ? function : (type)NULL)},
#define CORE(name, function)                   FUNCTION(CORE, name, nvtx##name##_impl_fntype, function)
#define CORE2(name, function)                  FUNCTION(CORE2, name, nvtx##name##_impl_fntype, function)
#define CUDA(name, function)                   FUNCTION(CUDA, name, nvtx##name##_fakeimpl_fntype, function)
#define CUDART(name, function)                 FUNCTION(CUDART, name, nvtx##name##_fakeimpl_fntype, function)
    CORE(MarkEx, mark) CORE(MarkA, mark_a) CORE(MarkW, mark_w)
    CORE(RangePushEx, push) CORE(RangePushA, push_a) CORE(RangePushW, push_w) CORE(RangePop, pop)
    CORE(RangeStartEx, start) CORE(RangeStartA, start_a) CORE(RangeStartW, start_w) CORE(RangeEnd, end)
    CORE(NameCategoryA, category_a) CORE(NameCategoryW, category_w) CORE(NameOsThreadA, thread_a) CORE(NameOsThreadW, thread_w)
    CORE2(DomainMarkEx, domain_mark) CORE2(DomainRangePushEx, domain_push) CORE2(DomainRangePop, domain_pop)
    CORE2(DomainRangeStartEx, domain_start) CORE2(DomainRangeEnd, domain_end)
    CORE2(DomainCreateA, domain_a) CORE2(DomainCreateW, domain_w) CORE2(DomainDestroy, domain_destroy)
    CORE2(DomainRegisterStringA, string_a) CORE2(DomainRegisterStringW, string_w)
    CORE2(DomainNameCategoryA, domain_category_a) CORE2(DomainNameCategoryW, domain_category_w)
    CORE2(DomainResourceCreate, resource_create)
    CUDA(NameCuStreamA, stream_a) CUDA(NameCuStreamW, stream_w) CUDA(NameCuEventA, event_a) CUDA(NameCuEventW, event_w)
    CUDART(NameCudaStreamA, stream_a) CUDART(NameCudaStreamW, stream_w) CUDART(NameCudaEventA, event_a) CUDART(NameCudaEventW, event_w)
#undef FUNCTION
#undef CORE
#undef CORE2
#undef CUDA
#undef CUDART
};

/* Called by each copy of NVTX that comes to us, on the thread of its first call, while other threads of that copy wait. What we leave alone in its
 * table becomes a no-op. 0: it stays without a tool. */
CS_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    CS_KEEP_ERRNO;
    const NvtxExportTableCallbacks *callbacks = get_table ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || !callbacks->GetModuleFunctionTable || !cs_annotate_init()) return 0;
    if (is("CUSTREAM_NVTX", "all")) cs_store(&all_domains, true);
    for (size_t i = 0; i < CS_COUNT(functions); i++) {
        NvtxFunctionTable table = NULL;
        unsigned size = 0;
        if (!callbacks->GetModuleFunctionTable(functions[i].module, &table, &size) || !table || functions[i].id >= size) continue;
        if (table[functions[i].id]) *table[functions[i].id] = (NvtxFunctionPointer)functions[i].address;
    }
    return 1;
}
