#include "shim/base/json.h"

const char cs_digits2[200] = "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
                             "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static const char hex_digits[] = "0123456789abcdef";

char *cs_put_hex(char *at, cs_u64 n)
{
    char digits[16], *p = digits + sizeof digits;
    do *--p = hex_digits[n & 15];
    while (n >>= 4);
    at = cs_put_literal(at, "\"0x");
    at = cs_put(at, p, (size_t)(digits + sizeof digits - p));
    *at++ = '"';
    return at;
}

int cs_utf8_length(const unsigned char *p, const unsigned char *end)
{
    unsigned c = p[0], low = 0x80, high = 0xbf;
    int n;
    if (c < 0x80) return 1;
    if (c >= 0xc2 && c <= 0xdf) n = 2;
    else if (c >= 0xe0 && c <= 0xef) n = 3;
    else if (c >= 0xf0 && c <= 0xf4) n = 4;
    else return 0;
    if (n > end - p) return 0; /* cut inside a character */
    if (c == 0xe0) low = 0xa0;
    if (c == 0xed) high = 0x9f;
    if (c == 0xf0) low = 0x90;
    if (c == 0xf4) high = 0x8f;
    for (int i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (p[i] < low || p[i] > high) return 0;
    return n;
}

char *cs_put_string(char *at, const char *text, size_t text_max)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strnlen(text, text_max);
    *at++ = '"';
    while (p < end) {
        int n = cs_utf8_length(p, end);
        if (n > 1) {
            at = cs_put(at, (const char *)p, (size_t)n);
        } else if (n == 0) {
            at = cs_put_literal(at, "\xef\xbf\xbd");
            n = 1;
        } else if (*p == '"' || *p == '\\') {
            *at++ = '\\';
            *at++ = (char)*p;
        } else if (*p < 0x20 || *p == 0x7f) {
            at = cs_put_literal(at, "\\u00");
            *at++ = hex_digits[*p >> 4];
            *at++ = hex_digits[*p & 15];
        } else {
            *at++ = (char)*p;
        }
        p += n;
    }
    *at++ = '"';
    return at;
}
