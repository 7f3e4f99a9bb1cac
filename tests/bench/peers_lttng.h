/* A call as an event of LTTng-UST: its stream and result. Read by lttng/tracepoint.h more than
 * once. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER peers
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/peers_lttng.h"

#if !defined(PEERS_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEERS_LTTNG_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(peers, begin, LTTNG_UST_TP_ARGS(void *, stream),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(unsigned long, stream, (unsigned long)stream)))
LTTNG_UST_TRACEPOINT_EVENT(peers, end, LTTNG_UST_TP_ARGS(int, result),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, result, result)))

#endif
#include <lttng/tracepoint-event.h>
