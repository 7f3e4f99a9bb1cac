/*
 * Weak bodies for every row of the call table, by its kind, for the calls that nobody has written
 * by hand.
 *
 * A call on a stream puts an empty operation there (or an empty node into the graph being
 * captured), a synchronous one also waits for it; what makes or changes objects is not guessed and
 * answers CUDA_ERROR_NOT_SUPPORTED.
 */
#include "tests/fakecuda/driver/fake.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static const CUstream nowhere = (CUstream)-1; /* of a call without a stream */

static CUresult empty_on(CUstream hstream, bool per_thread, bool wait)
{
    struct fake_stream *stream;
    struct fake_work work = {.type = WORK_EMPTY};

    FAKE_LOCKED;
    FAKE_TRY(fake_stream_get(hstream == nowhere ? NULL : hstream, per_thread, &stream));
    return fake_submit(stream, &work, wait);
}

static CUresult check(CUstream hstream, bool per_thread)
{
    struct fake_stream *stream;

    FAKE_LOCKED;
    return fake_stream_get(hstream, per_thread, &stream);
}

static CUresult unsupported(CUstream hstream, bool per_thread)
{
    CUresult result = hstream == nowhere ? CUDA_SUCCESS : check(hstream, per_thread);
    return result ? result : CUDA_ERROR_NOT_SUPPORTED;
}

#define ON(parameter)     (parameter)
#define ON_FIELD(field)   (field)
#define ON_DEFAULT        NULL
#define NO_STREAM         nowhere

#define KIND_LAUNCH(s, pt)   empty_on(s, pt, false)
#define KIND_COPY(s, pt)     empty_on(s, pt, false)
#define KIND_SET(s, pt)      empty_on(s, pt, false)
#define KIND_MEMOP(s, pt)    empty_on(s, pt, false)
#define KIND_EXTERNAL(s, pt) empty_on(s, pt, false)
#define KIND_HOSTFN(s, pt)   unsupported(s, pt)
#define KIND_EVENT(s, pt)    unsupported(s, pt)
#define KIND_WAIT(s, pt)     unsupported(s, pt)
#define KIND_SYNC(s, pt)     empty_on(s, pt, true)
#define KIND_QUERY(s, pt)    check(s, pt)
#define KIND_STREAM(s, pt)   unsupported(s, pt)
#define KIND_CAPTURE(s, pt)  unsupported(s, pt)
#define KIND_GRAPH(s, pt)    unsupported(s, pt)
#define KIND_MEMORY(s, pt)   empty_on(s, pt, false)
#define KIND_ALLOC(s, pt)    unsupported(s, pt)
#define KIND_CONTEXT(s, pt)  unsupported(s, pt)
#define KIND_MODULE(s, pt)   unsupported(s, pt)

#define WITH_FLAG_2_(...) (bool per_thread, __VA_ARGS__)
#define WEAK              __attribute__((weak))

#define DEFAULT_ONE_(name, kind, stream, parameters)  WEAK CUresult impl_##name parameters \
    { return KIND_##kind(stream, false); }
#define DEFAULT_PTDS_(name, kind, stream, parameters) WEAK CUresult impl_##name WITH_FLAG_2_ \
    parameters { return KIND_##kind(stream, per_thread); }
#define DEFAULT_PTSZ_(name, kind, stream, parameters) \
    DEFAULT_PTDS_(name, kind, stream, parameters)

#define CALL(name, sibling, kind, how, stream, effect, parameters, ...) \
    DEFAULT_##sibling##_(name, kind, stream, parameters)
#include "shim/calls/calls.def"
#undef CALL
