#include "shim/base/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/base/log.h"
#include "shim/base/settings.h"
#include "shim/base/watch.h"

#define ENV_PREFIX "CUSTREAM_"

const struct cs_option_info cs_option_info[CS_OPTION_COUNT] = {
#define OPTION(id, type, preset, allowed, help) {#id, ENV_PREFIX #id, preset, allowed, help, CS_TYPE_##type},
#include "shim/base/options.def"
#undef OPTION
};

enum { TEXT_MAX = 4096, POLICY_MAX = 1 << 16 };

static struct {
    const char *text;
    bool given;
    cs_u64 size;
    cs_u32 parts;
} value_of[CS_OPTION_COUNT];

static char texts[CS_OPTION_COUNT][TEXT_MAX], policy_text[POLICY_MAX]; /* a policy may be given as itself */

static size_t room_of(enum cs_option id) { return id == CS_OPTION_POLICY ? POLICY_MAX : TEXT_MAX; }

/* "4M" -> 4194304, and `end` behind it. false for anything but digits and one unit. */
static bool parse_number(const char *text, cs_u64 *out, char **end)
{
    if (*text < '0' || *text > '9') return false;
    unsigned long long n = strtoull(text, end, 10);
    int shift = 0;
    switch (**end) {
    case 'K': case 'k': shift = 10; break;
    case 'M': case 'm': shift = 20; break;
    case 'G': case 'g': shift = 30; break;
    default: break;
    }
    if (shift) ++*end;
    if (n > UINT64_MAX >> shift) return false;
    *out = (cs_u64)n << shift;
    return true;
}

static bool parse_size(const char *text, cs_u64 *out)
{
    char *end;
    return parse_number(text, out, &end) && !*end;
}

/* "256M", "256M,rotate", "256M,rotate:4". Without a number two files: never less than one whole one of what came last. */
static bool parse_limit(const char *text, cs_u64 *size, cs_u32 *parts)
{
    static const char word[] = ",rotate";
    char *end;
    *parts = 0;
    if (!parse_number(text, size, &end)) return false;
    if (!*end) return true;
    if (strncmp(end, word, sizeof word - 1)) return false;
    end += sizeof word - 1;
    *parts = 2;
    if (!*end) return true;
    if (*end++ != ':' || *end < '0' || *end > '9') return false;
    unsigned long n = strtoul(end, &end, 10);
    *parts = n >= 2 && n <= 9999 ? (cs_u32)n : 0;
    return !*end && *parts;
}

static bool in_range(enum cs_option id, cs_u64 size)
{
    switch (id) {
    case CS_OPTION_BUFFER: return size >= 64 << 10 && size <= 1 << 30;
    case CS_OPTION_TRACE_MAX: return size >= 1 << 20 && size <= (cs_u64)1 << 40;
    default: return true;
    }
}

static bool is_word_of(const char *list, const char *word)
{
    size_t n = strcspn(word, "|");
    for (const char *p = list; n && !word[n] && p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == '|' || !p[n])) return true;
    return false;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);
    return n >= k && !strcmp(text + n - k, tail);
}

/* The names of traces: what they end in, and whether that is Perfetto's own format. */
static const struct {
    const char *text;
    bool packets;
} extensions[] = {{".json", false}, {".json.gz", false}, {".pftrace", true}, {".pftrace.gz", true}};

const char *cs_trace_extension(const char *path)
{
    for (size_t i = 0; i < CS_COUNT(extensions); i++)
        if (ends_with(path, extensions[i].text)) return path + strlen(path) - strlen(extensions[i].text);
    return NULL;
}

bool cs_trace_extension_is_packets(const char *extension)
{
    for (size_t i = 0; i < CS_COUNT(extensions); i++)
        if (!strcmp(extension, extensions[i].text)) return extensions[i].packets;
    return false;
}

/* What follows each percent sign stands for something. */
static bool is_pattern(const char *text)
{
    for (const char *p = strchr(text, '%'); p; p = strchr(p + 2, '%'))
        if (!p[1] || !strchr("pehr%", p[1])) return false;
    return true;
}

static bool has_control(const char *text)
{
    while (*text && !iscntrl((unsigned char)*text)) text++;
    return *text;
}

const char *cs_option_check(enum cs_option id, const char *value)
{
    const struct cs_option_info *info = &cs_option_info[id];
    cs_u64 size;
    cs_u32 parts;
    bool ok = strlen(value) < room_of(id);
    switch (info->type) {
    case CS_TYPE_CHOICE: case CS_TYPE_SWITCH: ok = ok && is_word_of(info->allowed, value); break;
    case CS_TYPE_SIZE: ok = ok && parse_size(value, &size) && in_range(id, size); break;
    case CS_TYPE_LIMIT: ok = ok && parse_limit(value, &size, &parts) && in_range(id, size); break;
    case CS_TYPE_FILE: ok = ok && !has_control(value); break;
    case CS_TYPE_PATH: ok = ok && (!strcmp(value, "off") || (is_pattern(value) && cs_trace_extension(value))); break;
    case CS_TYPE_METRICS: ok = ok && !has_control(value) && is_pattern(value) && (!*value || ends_with(value, ".prom")); break;
    case CS_TYPE_POLICY: break; /* what it holds is read by the policy layer */
    case CS_TYPE_PRIORITY: ok = ok && cs_priority_read(value, &(struct cs_priority){0}); break;
    case CS_TYPE_SHARING: ok = ok && cs_sharing_read(value, &(struct cs_sharing){0}); break;
    case CS_TYPE_JITTER: ok = ok && cs_jitter_read(value, &(struct cs_jitter){0}); break;
    case CS_TYPE_WINDOW: ok = ok && cs_window_read(value, &(struct cs_window){0}); break;
    case CS_TYPE_GPU: ok = ok && cs_gpu_times_read(value, &(struct cs_gpu_times){0}); break;
    }
    return ok ? NULL : info->allowed;
}

const char *cs_option_word(enum cs_option id, const char *value)
{
    if (cs_option_info[id].type != CS_TYPE_SWITCH) return value;
    return !strcmp(value, "1") ? "on" : !strcmp(value, "0") ? "off" : value;
}

static void option_set(enum cs_option id, const char *value)
{
    char *text = id == CS_OPTION_POLICY ? policy_text : texts[id];
    value = cs_option_word(id, value);
    value_of[id].text = strcpy(text, value);
    if (cs_option_info[id].type == CS_TYPE_SIZE) parse_size(value, &value_of[id].size);
    if (cs_option_info[id].type == CS_TYPE_LIMIT) parse_limit(value, &value_of[id].size, &value_of[id].parts);
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    for (int i = 0; id == CS_OPTION_LOG && i < 4; i++)
        if (!strcmp(value, levels[i])) cs_log_set_level((enum cs_log_level)i);
}

/* How many single-character edits lie between a name, in any case of letters, and another, for "did you mean". Short strings only. */
size_t cs_edits(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[64];
    if (m >= CS_COUNT(row)) return m;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (toupper((unsigned char)a[i - 1]) != toupper((unsigned char)b[j - 1]));
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

enum cs_option cs_option_like(const char *name, size_t length, size_t *edits)
{
    enum cs_option best = 0;
    *edits = SIZE_MAX;
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        size_t distance = cs_edits(name, length, cs_option_info[i].id, strlen(cs_option_info[i].id));
        if (distance < *edits) best = (enum cs_option)i, *edits = distance;
    }
    return best;
}

static void warn_unknown(const char *entry)
{
    const char *name = entry + strlen(ENV_PREFIX);
    size_t n = strcspn(name, "="), edits;
    if (!strncmp(name, "FAKE_", 5) || !strncmp(entry, CS_WATCH_VARIABLE "=", sizeof CS_WATCH_VARIABLE)) return; /* the simulated GPU's own; custream run's */
    if (!strncmp(name, "PYTHON=", 7) || !strncmp(name, "PYTEST=", 7)) return;                                    /* the command's; its plug-in's for pytest */
    enum cs_option best = cs_option_like(name, n, &edits);
    const char *id = cs_option_info[best].id;
    if (n == strlen(id) && !strncmp(name, id, n)) return;
    if (edits <= 3)
        cs_log(CS_LOG_WARN, "%.*s is not an option; did you mean %s?", (int)(n + strlen(ENV_PREFIX)), entry, cs_option_info[best].env);
    else
        cs_log(CS_LOG_WARN, "%.*s is not an option of this version", (int)(n + strlen(ENV_PREFIX)), entry);
}

void cs_options_read(void)
{
    for (int id = 0; id < CS_OPTION_COUNT; id++) {
        const struct cs_option_info *info = &cs_option_info[id];
        const char *given = getenv(info->env);
        option_set(id, info->preset);
        value_of[id].given = given && *given;
        if (!value_of[id].given) continue;
        const char *allowed = cs_option_check(id, given);
        if (allowed)
            cs_log(CS_LOG_WARN, "%s=%.200s is not valid: allowed is %s; using %s", info->env, given, allowed, info->preset);
        else
            option_set(id, given);
    }
    extern char **environ;
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, ENV_PREFIX, strlen(ENV_PREFIX))) warn_unknown(*e);
}

void cs_option_give(enum cs_option id, const char *value)
{
    if (!value_of[id].given) option_set(id, value);
}

void cs_option_drop(enum cs_option id) { option_set(id, cs_option_info[id].preset); }
bool cs_option_given(enum cs_option id) { return value_of[id].given; }
const char *cs_option_text(enum cs_option id) { return value_of[id].text; }
cs_u64 cs_option_size(enum cs_option id) { return value_of[id].size; }
cs_u32 cs_option_parts(enum cs_option id) { return value_of[id].parts; }
bool cs_option_is(enum cs_option id, const char *word) { return !strcmp(value_of[id].text, word); }
