#include "tools/custream/text.h"

#include <string.h>

struct scan {
    const unsigned char *text;
    size_t length, at;
    struct text_fault *fault;
};

static bool scan_fail(struct scan *scan, int rule, const char *what)
{
    *scan->fault = (struct text_fault){rule, scan->at, what};
    return false;
}

/* The byte `ahead` of the current one, or 0 past the end: 0 is no legal byte of JSON text, so it ends every loop below. */
static unsigned char scan_peek(const struct scan *scan, size_t ahead)
{
    return scan->at + ahead < scan->length ? scan->text[scan->at + ahead] : 0;
}

static bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
static bool is_letter(unsigned char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static bool is_hex(unsigned char c) { return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); }

/* Length of the UTF-8 sequence that begins here; 0 if there is none: no overlong forms, no surrogates, nothing above U+10FFFF (RFC 3629). */
static size_t utf8_length(const struct scan *scan)
{
    unsigned char first = scan_peek(scan, 0), second = scan_peek(scan, 1);
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((scan_peek(scan, i) & 0xc0) != 0x80) return 0;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return length;
}

static bool scan_escape(struct scan *scan)
{
    unsigned char kind = scan_peek(scan, 1);
    if (!kind || !strchr("\"\\/bfnrtu", kind)) return scan_fail(scan, 9, "unknown escape");
    if (kind == 'u') {
        for (size_t i = 2; i < 6; i++)
            if (!is_hex(scan_peek(scan, i))) return scan_fail(scan, 9, "\\u without four hexadecimal digits");
        scan->at += 4;
    }
    scan->at += 2;
    return true;
}

static bool scan_string(struct scan *scan)
{
    size_t start = scan->at++;
    for (;;) {
        unsigned char c = scan_peek(scan, 0);
        if (scan->at >= scan->length) {
            scan->at = start;
            return scan_fail(scan, 9, "string that does not end on its line");
        }
        if (c < 0x20) return scan_fail(scan, 9, "control character that is not escaped");
        if (c == '"') break;
        if (c == '\\') {
            if (!scan_escape(scan)) return false;
            continue;
        }
        size_t length = utf8_length(scan);
        if (!length) return scan_fail(scan, 9, "not UTF-8");
        scan->at += length;
    }
    scan->at++;
    return true;
}

static bool scan_digits(struct scan *scan)
{
    if (!is_digit(scan_peek(scan, 0))) return false;
    while (is_digit(scan_peek(scan, 0))) scan->at++;
    return true;
}

static bool scan_number(struct scan *scan)
{
    static const char what[] = "not a JSON number";
    if (scan_peek(scan, 0) == '-') scan->at++;
    if (scan_peek(scan, 0) == '0' && is_digit(scan_peek(scan, 1))) return scan_fail(scan, 1, what);
    if (!scan_digits(scan)) return scan_fail(scan, 1, what);
    if (scan_peek(scan, 0) == '.') {
        scan->at++;
        if (!scan_digits(scan)) return scan_fail(scan, 1, what);
    }
    if ((scan_peek(scan, 0) | 32) == 'e') {
        scan->at++;
        if (scan_peek(scan, 0) == '+' || scan_peek(scan, 0) == '-') scan->at++;
        if (!scan_digits(scan)) return scan_fail(scan, 1, what);
    }
    return true;
}

static bool scan_word(struct scan *scan)
{
    const char *word = (const char *)scan->text + scan->at;
    size_t length = 0;
    while (is_letter(scan_peek(scan, length))) length++;
    if (length == 4 && !memcmp(word, "null", 4)) return scan_fail(scan, 1, "null");
    bool known = (length == 4 && !memcmp(word, "true", 4)) || (length == 5 && !memcmp(word, "false", 5));
    /* NaN, nan, Infinity, inf: what a careless printf leaves where a number should be. */
    if (!known && strchr("nNiI", *word)) return scan_fail(scan, 1, "not a JSON number");
    if (!known) return scan_fail(scan, 9, "neither true nor false nor in quotes");
    scan->at += length;
    return true;
}

bool text_check(const char *text, size_t length, struct text_fault *fault)
{
    struct scan scan = {(const unsigned char *)text, length, 0, fault};
    while (scan.at < length) {
        unsigned char c = scan.text[scan.at];
        if (c == '"') {
            if (!scan_string(&scan)) return false;
        } else if (c == '-' || is_digit(c)) {
            if (!scan_number(&scan)) return false;
        } else if (is_letter(c)) {
            if (!scan_word(&scan)) return false;
        } else if (c && strchr(" \t\r\n{}[]:,", c)) {
            scan.at++;
        } else {
            return scan_fail(&scan, 9, "stray character outside a string");
        }
    }
    return true;
}
