/* JSON text (base/json.h). */
#include "shim/base/json.h"
#include "tests/unit/check.h"

/* The text as cs_put_string writes it, in a buffer of the size it promises to keep to. */
static const char *quoted(const char *text, size_t text_max)
{
    static char *last;
    size_t room = 6 * strnlen(text, text_max) + 2;
    free(last);
    last = malloc(room + 1); /* the address sanitizer watches its end */
    char *end = cs_put_string(last, text, text_max);
    CHECK((size_t)(end - last) <= room);
    *end = 0;
    return last;
}

#define BAD "\xef\xbf\xbd"

TEST(plain_text_is_kept)
{
    CHECK_TEXT(quoted("", 10), "\"\"");
    CHECK_TEXT(quoted("cuLaunchKernel(a, b)", 100), "\"cuLaunchKernel(a, b)\"");
    CHECK_TEXT(quoted("/ ~ ' & <", 100), "\"/ ~ ' & <\"");
}

TEST(quotes_and_controls_are_escaped)
{
    CHECK_TEXT(quoted("a\"b\\c", 100), "\"a\\\"b\\\\c\"");
    for (int c = 1; c < 0x80; c++) {
        char text[2] = {(char)c, 0}, expected[16];
        if (c < 0x20 || c == 0x7f) snprintf(expected, sizeof expected, "\"\\u%04x\"", c);
        else if (c == '"' || c == '\\') snprintf(expected, sizeof expected, "\"\\%c\"", c);
        else snprintf(expected, sizeof expected, "\"%c\"", c);
        CHECK_TEXT(quoted(text, 1), expected);
    }
}

static size_t encode(unsigned code, char *out)
{
    if (code < 0x80) return out[0] = (char)code, 1;
    if (code < 0x800)
        return out[0] = (char)(0xc0 | code >> 6), out[1] = (char)(0x80 | (code & 63)), 2;
    if (code < 0x10000)
        return out[0] = (char)(0xe0 | code >> 12), out[1] = (char)(0x80 | (code >> 6 & 63)),
               out[2] = (char)(0x80 | (code & 63)), 3;
    out[0] = (char)(0xf0 | code >> 18), out[1] = (char)(0x80 | (code >> 12 & 63)),
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

TEST(every_character_of_unicode_is_kept)
{
    for (unsigned code = 0x80; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code <= 0xdfff) continue;
        char text[5], expected[8];
        text[encode(code, text)] = 0;
        snprintf(expected, sizeof expected, "\"%s\"", text);
        if (strcmp(quoted(text, 4), expected)) CHECK_IS(code, 0);
    }
}

TEST(what_is_not_utf8_is_replaced)
{
    static const char *const bad[] = {
        "\x80", "\xbf", "\xfe", "\xff",                     /* no first byte */
        "\xc0\x80", "\xc1\xbf",                             /* overlong in two */
        "\xe0\x80\x80", "\xe0\x9f\xbf",                     /* in three */
        "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",             /* in four */
        "\xed\xa0\x80", "\xed\xbf\xbf",                     /* surrogates */
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",             /* above U+10FFFF */
        "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", /* five and six bytes */
        "\xc3", "\xe2\x82", "\xf0\x9f\x98",                 /* cut off */
    };
    for (size_t i = 0; i < CS_COUNT(bad); i++) {
        char expected[64] = "\"";
        for (size_t k = 0; k < strlen(bad[i]); k++) strcat(expected, BAD);
        strcat(expected, "\"");
        CHECK_TEXT(quoted(bad[i], 100), expected);
    }
    CHECK_TEXT(quoted("\xc3(", 100), "\"" BAD "(\"");
    CHECK_TEXT(quoted("\xe2\x82\"", 100), "\"" BAD BAD "\\\"\"");
    CHECK_TEXT(quoted("\xe2\x82\xc3\xa9", 100), "\"" BAD BAD "\xc3\xa9\"");
}

TEST(a_cut_inside_a_character_leaves_no_half)
{
    CHECK_TEXT(quoted("ab\xc3\xa9", 3), "\"ab" BAD "\"");
    CHECK_TEXT(quoted("\xe2\x82\xac", 1), "\"" BAD "\"");
    CHECK_TEXT(quoted("\xe2\x82\xac", 2), "\"" BAD BAD "\"");
    CHECK_TEXT(quoted("\xf0\x9f\x98\x80x", 3), "\"" BAD BAD BAD "\"");
    CHECK_TEXT(quoted("\xf0\x9f\x98\x80x", 4), "\"\xf0\x9f\x98\x80\"");
    CHECK_TEXT(quoted("abcdef", 4), "\"abcd\"");
    CHECK_TEXT(quoted("abc", 0), "\"\"");
    char exact[3] = {'a', 'b', (char)0xe2}; /* no NUL behind it: nothing beyond text_max is read */
    char *heap = memcpy(malloc(3), exact, 3);
    CHECK_TEXT(quoted(heap, 3), "\"ab" BAD "\"");
    free(heap);
}

/* Whether it is UTF-8, written apart from the code under test: decoded first, judged by the code
 * point. */
static int is_utf8(const unsigned char *p)
{
    while (*p) {
        unsigned code = *p, n = *p < 0x80       ? 1
                                : *p >> 5 == 6  ? 2
                                : *p >> 4 == 14 ? 3
                                : *p >> 3 == 30 ? 4
                                                : 0;
        static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000},
                              bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
        if (!n) return 0;
        code &= bits[n];
        for (unsigned i = 1; i < n; i++) {
            if (p[i] >> 6 != 2) return 0;
            code = code << 6 | (p[i] & 63);
        }
        if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
        p += n;
    }
    return 1;
}

TEST(random_bytes_become_utf8)
{
    unsigned seed = 1;
    for (int round = 0; round < 200000; round++) {
        char text[13] = "";
        for (int i = 0; i < 12; i++) {
            seed = seed * 1664525 + 1013904223;
            unsigned r = seed >> 16;
            text[i] = (char)(r & 0x100   ? 0xc0 | (r & 0x3f)
                             : r & 0x200 ? 0x80 | (r & 0x3f)
                                         : r & 0xff); /* lead and follow bytes often */
        }
        if (!is_utf8((const unsigned char *)quoted(text, 12))) CHECK_IS(round, -1);
    }
}

static const char *put(char *(*function)(char *, cs_u64), cs_u64 n, size_t most)
{
    static char text[64];
    memset(text, '#', sizeof text);
    char *end = function(text, n);
    CHECK((size_t)(end - text) <= most);
    CHECK(*end == '#' ||
          function == cs_put_us); /* which has written zeros there, and taken them back */
    CHECK(text[most + 1] == '#');
    *end = 0;
    return text;
}
static char *put_int(char *at, cs_u64 n) { return cs_put_int(at, (cs_i64)n); }

TEST(integers_at_their_ends)
{
    cs_u64 n = 1;
    CHECK_TEXT(put(cs_put_uint, 0, 20), "0");
    CHECK_TEXT(put(cs_put_uint, UINT64_MAX, 20), "18446744073709551615");
    CHECK_TEXT(put(put_int, (cs_u64)INT64_MIN, 20), "-9223372036854775808");
    CHECK_TEXT(put(put_int, INT64_MAX, 20), "9223372036854775807");
    CHECK_TEXT(put(put_int, (cs_u64)-1, 20), "-1");
    for (int digits = 1; digits <= 19; digits++, n *= 10)
        for (int step = -1; step <= 1; step++) {
            char expected[32];
            snprintf(expected, sizeof expected, "%llu", (unsigned long long)(n + (cs_u64)step));
            CHECK_TEXT(put(cs_put_uint, n + (cs_u64)step, 20), expected);
        }
    for (int i = 0; i < 100000; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "%d", i);
        if (strcmp(put(cs_put_uint, (cs_u64)i, 20), expected)) CHECK_IS(i, -1);
    }
}

TEST(microseconds_have_the_decimals_that_they_need)
{
    CHECK_TEXT(put(cs_put_us, 0, 22), "0");
    CHECK_TEXT(put(cs_put_us, 1, 22), "0.001");
    CHECK_TEXT(put(cs_put_us, 999, 22), "0.999");
    CHECK_TEXT(put(cs_put_us, 1000, 22), "1");
    CHECK_TEXT(put(cs_put_us, 7500, 22), "7.5");
    CHECK_TEXT(put(cs_put_us, 7050, 22), "7.05");
    CHECK_TEXT(put(cs_put_us, 100000, 22), "100");
    CHECK_TEXT(put(cs_put_us, 10125, 22), "10.125");
    CHECK_TEXT(put(cs_put_us, UINT64_MAX, 22), "18446744073709551.615");
}

TEST(hex_stands_in_quotes)
{
    CHECK_TEXT(put(cs_put_hex, 0, 20), "\"0x0\"");
    CHECK_TEXT(put(cs_put_hex, 0x1f, 20), "\"0x1f\"");
    CHECK_TEXT(put(cs_put_hex, UINT64_MAX, 20), "\"0xffffffffffffffff\"");
    CHECK_TEXT(put(cs_put_hex, (cs_u64)1 << 63, 20), "\"0x8000000000000000\"");
}
