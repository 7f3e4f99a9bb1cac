/*
 * JSON text, appended to a buffer. The caller has made room: each function says how many bytes it may take.
 */
#ifndef CS_BASE_JSON_H
#define CS_BASE_JSON_H

#include <string.h>

#include "shim/base/compiler.h"

extern const char cs_digits2[200]; /* "00" "01" ... "99" */

static inline char *cs_put(char *at, const char *text, size_t n) { return (char *)memcpy(at, text, n) + n; }
#define cs_put_literal(at, text) cs_put(at, text, sizeof(text) - 1)
static inline char *cs_put_text(char *at, const char *text) { return cs_put(at, text, strlen(text)); } /* no escapes */

/* A text that stands in a buffer of whole blocks, and its length. It is copied by blocks: there must be room for them. */
enum { CS_JSON_BLOCK = 32 };
static inline char *cs_put_blocks(char *at, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i += CS_JSON_BLOCK) memcpy(at + i, text + i, CS_JSON_BLOCK);
    return at + n;
}

static inline unsigned cs_digits_of(cs_u64 n)
{
    unsigned digits = 1;
    for (; n >= 10000; n /= 10000) digits += 4;
    return digits + (n >= 10) + (n >= 100) + (n >= 1000);
}

/* Decimal; at most 20 bytes. */
static inline char *cs_put_uint(char *at, cs_u64 n)
{
    char *end = at + cs_digits_of(n), *p = end;
    for (; n > UINT32_MAX; n /= 100) p -= 2, memcpy(p, cs_digits2 + n % 100 * 2, 2);
    cs_u32 low = (cs_u32)n; /* whose division takes less time */
    for (; low >= 100; low /= 100) p -= 2, memcpy(p, cs_digits2 + low % 100 * 2, 2);
    if (low >= 10) memcpy(p - 2, cs_digits2 + low * 2, 2);
    else p[-1] = (char)('0' + low);
    return end;
}

static inline char *cs_put_int(char *at, cs_i64 n) /* at most 20 bytes */
{
    if (n < 0) *at++ = '-';
    return cs_put_uint(at, n < 0 ? 0 - (cs_u64)n : (cs_u64)n);
}

/* Nanoseconds as microseconds, with as many decimals as it needs: "10.125", "2"; at most 22 bytes. */
static inline char *cs_put_us(char *at, cs_u64 ns)
{
    at = cs_put_uint(at, ns / 1000);
    const unsigned rest = (unsigned)(ns % 1000);
    if (!rest) return at;
    *at++ = '.';
    *at++ = (char)('0' + rest / 100);
    memcpy(at, cs_digits2 + rest % 100 * 2, 2);
    return at + 2 - (rest % 10 == 0) - (rest % 100 == 0);
}

char *cs_put_hex(char *at, cs_u64 n); /* "0x1f" with its quotes; at most 20 bytes */

/* A string with its quotes: control characters, quotes and backslashes escaped, bytes that are not UTF-8 replaced by U+FFFD, cut after
 * `text_max` bytes of input. At most 6 * text_max + 2 bytes. */
char *cs_put_string(char *at, const char *text, size_t text_max);

/* Length of the UTF-8 sequence at p (shortest form, no surrogates, at most U+10FFFF), 0 if it is not one or does not end before `end`. */
int cs_utf8_length(const unsigned char *p, const unsigned char *end);

#endif
