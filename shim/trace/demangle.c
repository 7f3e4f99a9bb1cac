#include "shim/trace/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/json.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/realdl.h"

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *length, int *status);

/* Looked for until it is there: a program's first kernels may be named before its C++ library is loaded, by a module of Python's. */
static demangle_fn *demangler(void)
{
    static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
    static demangle_fn *found;
    struct cs_image image;
    for (size_t i = 0; !found && i < CS_COUNT(libraries); i++)
        if (cs_image_find(libraries[i], &image)) found = (demangle_fn *)cs_image_symbol(&image, "__cxa_demangle");
    return found;
}

/* --- the short form of a demangled name: what stands before its parameters, without template arguments and return type --- */

/* Past an operator's own characters, so that its brackets are none: "operator<", "operator()", "operator->", "operator bool". */
static const char *past_operator(const char *p)
{
    const char *start = p;
    p += strlen("operator");
    if (isalnum((unsigned char)*p) || *p == '_') return start + 1; /* a name that only begins so */
    if (p[0] == '(' && p[1] == ')') return p + 2;
    if (*p == ' ') return p + strcspn(p, "(<");
    while (*p && strchr("<>=!+-*/%^&|~,[]", *p)) p++;
    return p;
}

static bool is_operator(const char *text, const char *p) { return !strncmp(p, "operator", 8) && (p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')); }

static void brief_of(const char *full, char *to, size_t size)
{
    size_t n = 0;
    int depth = 0, inner = 0; /* of template arguments; of parentheses in them, where < and > are no brackets: k<(1)>(0)> */
    for (const char *p = full; *p && n + 1 < size;) {
        const char *next = p + 1;
        if (is_operator(full, p)) {
            next = past_operator(p);
            for (; !depth && p < next && n + 1 < size; p++) to[n++] = *p;
        } else if (depth && (*p == '(' || *p == ')')) {
            inner += *p == '(' ? 1 : -1;
        } else if ((*p == '<' || *p == '>') && !inner) {
            depth += *p == '<' ? 1 : -1;
        } else if (*p == '(' && !depth) {
            if (strncmp(p, "(anonymous namespace)", 21)) break; /* the parameters */
            next = p + 21;
            for (; p < next && n + 1 < size; p++) to[n++] = *p;
        } else if (*p == ' ' && !depth && strncmp(p, " namespace)", 11)) {
            n = 0; /* so far it was the return type */
        } else if (!depth) {
            to[n++] = *p;
        }
        p = next;
    }
    to[n] = 0;
}

/* --- of a mangled one, where it can't be demangled: the names that it begins with, up to the first template --- */

static bool brief_of_mangled(const char *mangled, char *to, size_t size)
{
    const char *p = mangled + 2, *end = mangled + strlen(mangled);
    size_t n = 0;
    while (*p && strchr("NKVrRO", *p)) p++;
    if (p[0] == 'S' && p[1] == 't') p += 2, n = (size_t)(stpcpy(to, "std") - to);
    while (isdigit((unsigned char)*p)) {
        char *name;
        unsigned long length = strtoul(p, &name, 10);
        if (!length || length > (unsigned long)(end - name)) break;
        bool anonymous = length >= 10 && !strncmp(name, "_GLOBAL__N", 10);
        const char *text = anonymous ? "(anonymous namespace)" : name;
        size_t m = anonymous ? 21 : length;
        if (n + m + 3 > size) break;
        if (n) to[n++] = ':', to[n++] = ':';
        memcpy(to + n, text, m);
        n += m;
        p = name + length;
    }
    to[n] = 0;
    return n > 0;
}

bool cs_demangle(const char *mangled, char *full, size_t full_size, char *brief, size_t brief_size)
{
    static char short_form[CS_KERNEL_TEXT];
    int status = 0;
    bool is_cxx = mangled[0] == '_' && mangled[1] == 'Z';
    demangle_fn *demangle = is_cxx ? demangler() : NULL;
    char *text = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    if (is_cxx && !demangle) cs_log_once(CS_LOG_INFO, "the process has no C++ library: names of kernels stay mangled");
    if (text) {
        cs_name_cut(full, full_size, text, strlen(text));
        brief_of(text, short_form, sizeof short_form);
    } else if (!is_cxx || !brief_of_mangled(mangled, short_form, sizeof short_form)) {
        cs_name_cut(short_form, sizeof short_form, mangled, strlen(mangled));
    }
    const char *brief_form = *short_form ? short_form : mangled;
    cs_name_cut(brief, brief_size, brief_form, strlen(brief_form));
    if (!text) cs_name_cut(full, full_size, mangled, strlen(mangled));
    free(text);
    return text != NULL;
}

/* --- kept as JSON --- */

static struct kept {
    const char *full, *brief;
    cs_u32 full_length, brief_length;
    cs_u64 key; /* of the full text */
} *names;
enum { NAMES = 1 << 16 };
CS_TABLE(TRACE, names, NAMES);

static const char *keep(const char *text, cs_u32 *length)
{
    static char *chunk, *chunk_end;
    enum { CHUNK = 1 << 18, JSON_MAX = 6 * CS_KERNEL_TEXT + 2 };
    if (chunk_end - chunk < JSON_MAX) {
        chunk = cs_memory_map(CHUNK, "the names of kernels");
        chunk_end = chunk ? chunk + CHUNK : NULL;
    }
    if (!chunk) return NULL;
    const char *json = chunk;
    chunk = cs_put_string(chunk, text, CS_KERNEL_TEXT);
    *length = (cs_u32)(chunk - json);
    return json;
}

const char *cs_kernel_text(cs_name name, bool brief)
{
    static char text[2][CS_KERNEL_TEXT];
    const char *mangled = cs_name_text(name);
    if (brief) cs_demangle(mangled, NULL, 0, text[1], sizeof text[1]);
    else cs_demangle(mangled, text[0], sizeof text[0], NULL, 0);
    return text[brief];
}

static cs_u64 key_of(const char *text, cs_u32 length)
{
    cs_u64 key = 0xcbf29ce484222325;
    for (cs_u32 i = 0; i < length; i++) key = (key ^ (unsigned char)text[i]) * 0x100000001b3;
    return key;
}

static const struct kept *kept_name(cs_name name)
{
    static const struct kept none = {.full = "\"\"", .brief = "\"\"", 2, 2}, unkept = {.full = "\"kernel\"", .brief = "\"kernel\"", 8, 8}; /* there was no memory for it */
    static char full[CS_KERNEL_TEXT], brief[CS_KERNEL_TEXT];
    struct kept *kept = &names[name < NAMES ? name : 0];
    if (kept->brief) return kept;
    cs_demangle(cs_name_text(name < NAMES ? name : 0), full, sizeof full, brief, sizeof brief);
    if (!kept->full && (kept->full = keep(full, &kept->full_length))) kept->key = key_of(kept->full, kept->full_length);
    if (kept->full) kept->brief = keep(brief, &kept->brief_length);
    return kept->brief ? kept : name ? &unkept : &none;
}

char *cs_put_kernel(char *at, cs_name name)
{
    const struct kept *kept = kept_name(name);
    return cs_put(at, kept->full, kept->full_length);
}

cs_u64 cs_kernel_key(cs_name name)
{
    const struct kept *kept = name ? kept_name(name) : NULL;
    return kept && kept->key ? kept->key : key_of("\"kernel\"", 8);
}

char *cs_put_kernel_brief(char *at, cs_name name)
{
    const struct kept *kept = kept_name(name);
    return cs_put(at, kept->brief, kept->brief_length);
}
