/* Compiler vocabulary shared by all layers: short integer names, branch hints, exported symbols, relaxed atomics. */
#ifndef CS_BASE_COMPILER_H
#define CS_BASE_COMPILER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t cs_u64;
typedef int64_t cs_i64;
typedef uint32_t cs_u32;
typedef uint16_t cs_u16;

#define CS_CACHE_LINE    64
/* The largest page of a system for this processor: a kernel for aarch64 chooses 4, 16 or 64 KiB. What needs pages of its own begins and ends at one; so does what the
 * linker lays out. */
#if defined(__aarch64__)
#define CS_PAGE_MOST     65536
#else
#define CS_PAGE_MOST     4096
#endif
#define CS_LIKELY(x)     __builtin_expect(!!(x), 1)
#define CS_UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define CS_EXPORT        __attribute__((visibility("default")))
#define CS_HOT           static inline __attribute__((always_inline))
/* For what every recorded call reads and next to nothing writes: a section of its own, so that no line of it holds what the writer counts up. */
#define CS_HIDDEN        __attribute__((visibility("hidden"))) /* on declarations of data: reached without the GOT */
#define CS_READ_MOSTLY   __attribute__((section(".cs_read_mostly"), aligned(CS_CACHE_LINE)))
#define CS_COLD          __attribute__((cold, noinline))
#define CS_PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define CS_COUNT(array)  (sizeof(array) / sizeof((array)[0]))

/* Initial-exec TLS: one load from the thread register, and no call that could allocate. It takes its bytes from the static TLS block, which is
 * small where the library is dlopened, so all of the shim together takes at most 64 of them (tests/cases/test_product.py). */
#define CS_TLS           __thread __attribute__((tls_model("initial-exec")))

/* GCC has the instruction only where it is told of a newer processor; older ones take it for a no-op. */
CS_HOT void cs_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

#define cs_load(p)         atomic_load_explicit(p, memory_order_relaxed)
#define cs_load_acq(p)     atomic_load_explicit(p, memory_order_acquire)
#define cs_store(p, v)     atomic_store_explicit(p, v, memory_order_relaxed)
#define cs_store_rel(p, v) atomic_store_explicit(p, v, memory_order_release)
#define cs_add(p, v)       atomic_fetch_add_explicit(p, v, memory_order_relaxed)

#endif
