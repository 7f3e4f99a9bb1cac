#define _GNU_SOURCE
#include "shim/policy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/plain.h"
#include "shim/policy/keys.h"
#include "shim/policy/reading.h"
#include "shim/policy/syntax.h"

enum { FILE_MOST = 1 << 20 };

/* --- the object itself: options, and the list of rules --- */

/* Keys of the top: the options' in their order, without POLICY, since a policy file names no other; then "rules". */
enum { TOP_RULES = CS_OPTION_COUNT - 1 };

static enum cs_option option_of(int key) { return (enum cs_option)(key < CS_OPTION_POLICY ? key : key + 1); }

static bool take_option(struct cs_reading *r, enum cs_option id, const cJSON *value, const char *path)
{
    const struct cs_option_info *info = &cs_option_info[id];
    bool bytes = info->type == CS_TYPE_SIZE || info->type == CS_TYPE_LIMIT;
    char number[32], **out = &r->file->option[id];
    const char *text = NULL;
    if ((value->type & 0xff) == cJSON_String) text = value->valuestring;
    else if (bytes && (value->type & 0xff) == cJSON_Number) {
        snprintf(number, sizeof number, "%.0f", value->valuedouble);
        if (strtod(number, NULL) == value->valuedouble) text = number; /* a whole one; of one with more digits than that the rest is missing */
    }
    if (!text || cs_option_check(id, text)) return cs_reading_refuse(r, path, value, info->allowed);
    if (r->live && !cs_live_example[id]) return cs_reading_fail(r, path, "cannot change in a running process");
    *out = strdup(text);
    return *out ? true : cs_reading_fail(r, path, "no memory");
}

static bool take_top(struct cs_reading *r, const cJSON *value, const char *path, int key, void *out)
{
    (void)out;
    return key == TOP_RULES ? cs_reading_rules(r, value) : take_option(r, option_of(key), value, path);
}

static bool take_file(struct cs_reading *r, const cJSON *tree)
{
    char names[TOP_RULES][CS_KEY_ROOM];
    const char *keys[TOP_RULES + 2] = {[TOP_RULES] = "rules"};
    for (int i = 0; i < TOP_RULES; i++) keys[i] = cs_option_key(option_of(i), names[i]);
    return cs_reading_object(r, tree, "", keys, take_top, NULL);
}

/* --- its text --- */

static bool parse(struct cs_reading *r, const char *text, size_t length)
{
    struct cs_json_fault fault;
    if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3, length -= 3; /* some editors begin a file so */
    if (strspn(text, " \t\r\n") == length) return cs_reading_fail(r, "", "is empty");
    if (!cs_json_check(text, length, &fault)) {
        char place[32];
        snprintf(place, sizeof place, "line %u, column %u", fault.line, fault.column);
        return cs_reading_fail(r, place, "not JSON: %s", fault.what);
    }
    const struct cs_cjson *cjson = cs_cjson();
    if (!cjson) return cs_reading_fail(r, "", "libcjson.so.1 is missing, which reading a policy takes");
    cJSON *tree = cjson->ParseWithOpts(text, NULL, true);
    bool ok = tree ? take_file(r, tree) : cs_reading_fail(r, "", "no memory");
    cjson->Delete(tree);
    return ok;
}

bool cs_policy_file_parse(struct cs_policy_file *file, const char *name, const char *text, size_t length, bool live, char *error, size_t room)
{
    struct cs_reading reading = {name, error, room, file, live};
    *file = (struct cs_policy_file){.name = name};
    bool ok = parse(&reading, text, length);
    if (!ok) cs_policy_file_finish(file);
    return ok;
}

/* The file's bytes and a NUL behind them; NULL with errno, or with 0 there where it is too long. Nothing that could keep the caller waiting is opened: a pipe. */
static char *slurp(const char *path, size_t *length)
{
    struct stat about;
    char *text = NULL;
    ssize_t got = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return NULL;
    errno = 0;
    bool ok = !fstat(fd, &about);
    if (ok && !S_ISREG(about.st_mode)) errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL, ok = false;
    ok = ok && (text = malloc(FILE_MOST + 1));
    for (*length = 0; ok && got && *length <= FILE_MOST;) {
        got = read(fd, text + *length, FILE_MOST + 1 - *length);
        if (got >= 0) *length += (size_t)got;
        else ok = errno == EINTR;
    }
    int error = ok ? 0 : errno;
    close(fd);
    errno = error;
    if (ok && *length <= FILE_MOST) return text[*length] = 0, text;
    free(text);
    return NULL;
}

bool cs_policy_file_read(struct cs_policy_file *file, const char *given, char *error, size_t room)
{
    size_t length;
    if (given[strspn(given, " \t\r\n")] == '{') return cs_policy_file_parse(file, cs_option_info[CS_OPTION_POLICY].env, given, strlen(given), false, error, room);
    *file = (struct cs_policy_file){.name = given};
    char *text = slurp(given, &length);
    if (text) {
        bool ok = cs_policy_file_parse(file, given, text, length, false, error, room);
        free(text);
        return ok;
    }
    struct cs_reading reading = {given, error, room, file, false};
    if (!errno) return cs_reading_fail(&reading, "", "is longer than 1 MiB");
    /* strerror() translates, and may have the C library load what that takes. */
    return cs_reading_fail(&reading, "", "%s", errno == EINVAL ? "not a file that can be read at once" : cs_plain_error(errno));
}

static void texts_free(struct cs_rule *rule, const struct cs_policy_key *keys)
{
    for (; keys->name; keys++)
        if (keys->type == CS_KEY_GLOB || keys->type == CS_KEY_TEXT) free(*(char **)((char *)rule + keys->offset));
}

void cs_policy_file_finish(struct cs_policy_file *file)
{
    for (int i = 0; i < CS_OPTION_COUNT; i++) free(file->option[i]);
    for (int i = 0; i < file->rule_count; i++) texts_free(&file->rules[i], cs_match_keys), texts_free(&file->rules[i], cs_set_keys);
    free(file->rules);
    *file = (struct cs_policy_file){.name = file->name};
}
