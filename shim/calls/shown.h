/*
 * Taking the tail of a row apart: its (label, format, value) tuples. For the includers of calls.def that care about shown values.
 *
 * CS_SHOWN(m, tuples...) applies m(label, format, value) to each tuple. The names below stand for the tuples that several rows share; the locals
 * that they mention are what the row's effect keeps (effect_, shim/wrap/effects.h).
 */
#ifndef CS_CALLS_SHOWN_H
#define CS_CALLS_SHOWN_H

#define CS_SHOWN(...)                            CS_SHOWN_EXPANDED_(__VA_ARGS__)
#define CS_SHOWN_EXPANDED_(...)                  CS_SHOWN_PICK_(__VA_ARGS__, 4, 3, 2, 1, 0)(__VA_ARGS__)
#define CS_SHOWN_PICK_(m, a, b, c, d, n, ...)    CS_SHOWN_##n##_
#define CS_SHOWN_0_(m)
#define CS_SHOWN_1_(m, a)                        m a
#define CS_SHOWN_2_(m, a, b)                     m a m b
#define CS_SHOWN_3_(m, a, b, c)                  m a m b m c
#define CS_SHOWN_4_(m, a, b, c, d)               m a m b m c m d

#define CS_PACK(low, high) ((cs_u64)(cs_u32)(low) | (cs_u64)(cs_u32)(high) << 32)

/* A kernel with its launch shape: CS_FORMAT_KERNEL, then CS_FORMAT_GRID over three values. */
#define LAUNCHED(f, gx, gy, gz, bx, by, bz, shared)                                                                                                  \
    (kernel, KERNEL, CS_PACK(KERNEL_ID(f), shared)), (grid, GRID, CS_PACK(gx, gy)), (, NONE, CS_PACK(gz, bx)), (, NONE, CS_PACK(by, bz))
#define LAUNCHED_CONFIG(f, c)                                                                                                                        \
    (kernel, KERNEL, CS_PACK(KERNEL_ID(f), GIVEN((c)->sharedMemBytes))), (grid, GRID, GIVEN(CS_PACK((c)->gridDimX, (c)->gridDimY))),                  \
        (, NONE, GIVEN(CS_PACK((c)->gridDimZ, (c)->blockDimX))), (, NONE, GIVEN(CS_PACK((c)->blockDimY, (c)->blockDimZ)))

/* A capture's mode, with how many share the stream that it begins on. */
#define CAPTURES(m) (mode, CAPTURE_MODE, CS_PACK(m, effect_.shares))

/* What a wait on an event waits for, and since when the capture ran that has ended. */
#define CAUSED   (cause, CAUSE, effect_.cause.ticks), (, NONE, effect_.cause.where)
#define CAPTURED (capture, CAPTURE, effect_.began)

/* The profiler's numbers of a graph, by which its nodes are told apart later; of its executable in the high half. */
#define GRAPH_IDS (graph_ids, GRAPH_IDS, CS_PACK(effect_.ids.graph, effect_.ids.exec)), (, NONE, effect_.ids.nodes)

#endif
