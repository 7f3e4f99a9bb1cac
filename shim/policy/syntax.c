#include "shim/policy/syntax.h"

#include <string.h>

#include "shim/base/json.h"

enum {
    DEEPEST = 16,     /* a policy needs 4; the thread that reads it may have a small stack */
    NUMBER_MOST = 40, /* cJSON cuts a number at 63 characters */
};

struct scan {
    const char *at, *end;
    const char *what; /* of the fault, which is at `at` */
    int depth;
};

static bool value(struct scan *s);

static bool fail(struct scan *s, const char *what)
{
    s->what = what;
    return false;
}

static void blanks(struct scan *s) { s->at += strspn(s->at, " \t\r\n"); }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool digits(struct scan *s)
{
    if (!is_digit(*s->at)) return fail(s, "a digit is missing");
    while (is_digit(*s->at)) s->at++;
    return true;
}

static bool number(struct scan *s)
{
    const char *start = s->at;
    if (*s->at == '-') s->at++;
    if (*s->at == '0' && is_digit(s->at[1])) return fail(s, "a number begins with 0");
    if (!digits(s)) return false;
    if (*s->at == '.' && (s->at++, !digits(s))) return false;
    if (*s->at == 'e' || *s->at == 'E') {
        s->at++;
        if (*s->at == '+' || *s->at == '-') s->at++;
        if (!digits(s)) return false;
    }
    if (s->at - start <= NUMBER_MOST) return true;
    s->at = start;
    return fail(s, "a number is too long");
}

/* Four hexadecimal digits; -1 if they are not there. */
static int hex4(const char *at)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        const char *hex = "0123456789abcdef0123456789ABCDEF", *found = at[i] ? strchr(hex, at[i]) : NULL;
        if (!found) return -1;
        code = code * 16 + (int)(found - hex) % 16;
    }
    return code;
}

/* At the backslash. Half a surrogate pair is no character, and a NUL would end the string for whoever reads on. */
static bool escape(struct scan *s)
{
    if (s->at[1] != 'u') {
        if (!s->at[1] || !strchr("\"\\/bfnrt", s->at[1])) return fail(s, "no escape of JSON's");
        s->at += 2;
        return true;
    }
    int code = hex4(s->at + 2);
    bool high = code >= 0xd800 && code < 0xdc00, low = code >= 0xdc00 && code < 0xe000;
    int next = high && s->at[6] == '\\' && s->at[7] == 'u' ? hex4(s->at + 8) : -1;
    if (code <= 0 || low || (high && (next < 0xdc00 || next >= 0xe000))) return fail(s, "no character that may be in a string");
    s->at += high ? 12 : 6;
    return true;
}

static bool string(struct scan *s)
{
    if (*s->at != '"') return fail(s, "a text in quotes is missing");
    s->at++;
    while (s->at < s->end && *s->at != '"') {
        int n = cs_utf8_length((const unsigned char *)s->at, (const unsigned char *)s->end);
        if ((unsigned char)*s->at < ' ') return fail(s, "a control character in a text");
        if (!n) return fail(s, "not UTF-8");
        if (*s->at != '\\') s->at += n;
        else if (!escape(s)) return false;
    }
    if (s->at == s->end) return fail(s, "the quote that ends a text is missing");
    s->at++;
    return true;
}

/* Behind the bracket. An element of an object is a key and a value. */
static bool elements(struct scan *s, char closing)
{
    const bool object = closing == '}';
    s->at++;
    blanks(s);
    if (*s->at == closing) return s->at++, true;
    for (;; s->at++) {
        blanks(s);
        if (object) {
            if (!string(s)) return false;
            blanks(s);
            if (*s->at != ':') return fail(s, "a colon is missing");
            s->at++;
        }
        if (!value(s)) return false;
        blanks(s);
        if (*s->at == closing) return s->at++, true;
        if (*s->at != ',') return fail(s, object ? "a comma or } is missing" : "a comma or ] is missing");
    }
}

static bool word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < CS_COUNT(words); i++)
        if (!strncmp(s->at, words[i], strlen(words[i]))) return s->at += strlen(words[i]), true;
    return fail(s, "a value is missing");
}

static bool value(struct scan *s)
{
    blanks(s);
    switch (*s->at) {
    case '{': case '[': {
        if (s->depth == DEEPEST) return fail(s, "nested too deeply");
        s->depth++;
        bool ok = elements(s, *s->at == '{' ? '}' : ']');
        s->depth--;
        return ok;
    }
    case '"': return string(s);
    case '-': return number(s);
    default: return is_digit(*s->at) ? number(s) : word(s);
    }
}

static void place(const char *text, const char *at, struct cs_json_fault *fault)
{
    fault->line = fault->column = 1;
    for (; text < at; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80) fault->column++; /* bytes that go on with a character are no column */
        if (*text == '\n') fault->line++, fault->column = 1;
    }
}

bool cs_json_check(const char *text, size_t length, struct cs_json_fault *fault)
{
    struct scan s = {.at = text, .end = text + length};
    const char *nul = memchr(text, 0, length);
    if (nul) s.at = nul, s.what = "a NUL byte";
    else if (value(&s)) {
        blanks(&s);
        if (s.at < s.end) s.what = "something stands behind the end";
    }
    fault->what = s.what;
    if (s.what) place(text, s.at, fault);
    return !s.what;
}
