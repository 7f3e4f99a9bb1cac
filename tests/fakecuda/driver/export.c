/* The exported symbols of the call table: each row, and its _ptds or _ptsz sibling, is checked on entry and goes to its one body. */
#include "tests/fakecuda/driver/fake.h"

#define LEGACY_(...)     (false, ##__VA_ARGS__)
#define PER_THREAD_(...) (true, ##__VA_ARGS__)

#define SYMBOL_(symbol, name, parameters, arguments)                                                                                                 \
    EXPORT CUresult CUDAAPI symbol parameters { FAKE_CALL(symbol, impl_##name arguments, false); }

#define EXPORT_ONE_(name, parameters, arguments) SYMBOL_(name, name, parameters, arguments)
#define EXPORT_PTDS_(name, parameters, arguments)                                                                                                    \
    SYMBOL_(name, name, parameters, LEGACY_ arguments) SYMBOL_(name##_ptds, name, parameters, PER_THREAD_ arguments)
#define EXPORT_PTSZ_(name, parameters, arguments)                                                                                                    \
    SYMBOL_(name, name, parameters, LEGACY_ arguments) SYMBOL_(name##_ptsz, name, parameters, PER_THREAD_ arguments)

#define CALL(name, sibling, kind, stream, effect, parameters, arguments, ...) EXPORT_##sibling##_(name, parameters, arguments)
#include "shim/calls/calls.def"
#undef CALL
