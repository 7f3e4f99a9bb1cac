/*
 * The exported symbols of the call table: each row, and its _ptds or _ptsz sibling, is checked on
 * entry and goes to its one body.
 *
 * Where there is a journal, the row's shown values go there: events before the call, which may
 * destroy them, all else behind it.
 */
#include "shim/calls/shown.h"
#include "tests/fakecuda/driver/fake.h"

typedef uint64_t cs_u64; /* in the rows' expressions */
#define GIVEN(expression) (!result_ ? (expression) : 0)
#define EVENT_ID(handle)  (handle)
#define DYING             hEvent
#define KERNEL_ID(f)      (f)
/* What several rows share, without what only the shim knows. */
#undef LAUNCHED
#undef LAUNCHED_CONFIG
#undef CAPTURES
#undef CAUSED
#undef CAPTURED
#undef CAPTURES
#undef GRAPH_IDS
#define LAUNCHED(f, gx, gy, gz, bx, by, bz, bytes) (kernel, KERNEL, f), (grid, UINT, gx), \
    (block, UINT, bx), (shared, UINT, bytes)
#define LAUNCHED_CONFIG(f, c) \
    (kernel, KERNEL, f), (grid, UINT, GIVEN((c)->gridDimX)), \
    (block, UINT, GIVEN((c)->blockDimX)), (shared, UINT, GIVEN((c)->sharedMemBytes))
#define CAPTURES(m) (mode, CAPTURE_MODE, m)
#define CAUSED      (, NONE, 0)
#define CAPTURED    (, NONE, 0)
#define CAPTURES(m) (mode, CAPTURE_MODE, m)
#define GRAPH_IDS   (, NONE, 0)

#define BEFORE(label, format, x) BEFORE_##format(label, x)
#define BEFORE_EVENT(label, x)   fake_journal_event(#label, x);
#define BEFORE_NONE(label, x)
#define BEFORE_PTR(label, x)
#define BEFORE_FUNCTION(label, x)
#define BEFORE_KERNEL(label, x)
#define BEFORE_INT(label, x)
#define BEFORE_UINT(label, x)
#define BEFORE_SIZE(label, x)
#define BEFORE_HEX(label, x)
#define BEFORE_RESERVED(label, x)
#define BEFORE_WORDS(set)        BEFORE_HEX
#define BEFORE_MEMTYPE(label, x)
#define BEFORE_CAPTURE_MODE(label, x)

#define AFTER(label, format, x)      AFTER_##format(label, x)
#define AFTER_EVENT(label, x)
#define AFTER_NONE(label, x)
#define AFTER_PTR(label, x) /* addresses differ from run to run */
#define AFTER_FUNCTION(label, x)
#define AFTER_KERNEL(label, x)       fake_journal_kernel(#label, x);
#define AFTER_INT(label, x)          fake_journal_add(" " #label "=%lld", (long long)(x));
#define AFTER_UINT(label, x)         AFTER_INT(label, x)
#define AFTER_SIZE(label, x)         AFTER_INT(label, x)
#define AFTER_HEX(label, x)          AFTER_INT(label, x)
#define AFTER_RESERVED(label, x)     AFTER_INT(label, x)
#define AFTER_WORDS(set)             AFTER_INT
#define AFTER_MEMTYPE(label, x)      AFTER_INT(label, x)
#define AFTER_CAPTURE_MODE(label, x) AFTER_INT(label, x)

#define LEGACY_(...)     (false, ##__VA_ARGS__)
#define PER_THREAD_(...) (true, ##__VA_ARGS__)

#define JOURNAL_BEFORE(symbol, ...) \
    struct fake_journal_line *line_ = fake_journaling ? \
    fake_journal_begin(#symbol, __builtin_return_address(0)) : NULL; \
    if (line_) { CS_SHOWN(BEFORE, ##__VA_ARGS__) }
#define JOURNAL_AFTER(...) \
    if (line_) { \
        CS_SHOWN(AFTER, ##__VA_ARGS__) \
        fake_journal_end(line_, result_); \
    }

#define SYMBOL_(symbol, name, parameters, arguments, ...) \
    EXPORT CUresult CUDAAPI symbol parameters { \
        FAKE_CALL(symbol, impl_##name arguments, false, JOURNAL_BEFORE(symbol, ##__VA_ARGS__), \
        JOURNAL_AFTER(__VA_ARGS__)); \
    }

#define EXPORT_ONE_(name, parameters, arguments, ...) \
    SYMBOL_(name, name, parameters, arguments, ##__VA_ARGS__)
#define EXPORT_PTDS_(name, parameters, arguments, ...) \
    SYMBOL_(name, name, parameters, LEGACY_ arguments, ##__VA_ARGS__) \
    SYMBOL_(name##_ptds, name, parameters, PER_THREAD_ arguments, ##__VA_ARGS__)
#define EXPORT_PTSZ_(name, parameters, arguments, ...) \
    SYMBOL_(name, name, parameters, LEGACY_ arguments, ##__VA_ARGS__) \
    SYMBOL_(name##_ptsz, name, parameters, PER_THREAD_ arguments, ##__VA_ARGS__)

#define CALL(name, sibling, kind, how, stream, effect, parameters, arguments, ...) \
    EXPORT_##sibling##_(name, parameters, arguments, ##__VA_ARGS__)
#include "shim/calls/calls.def"
#undef CALL
