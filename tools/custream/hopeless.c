#define _GNU_SOURCE /* faccessat's AT_EACCESS */
#include "tools/custream/program.h"
#include "tools/custream/command.h"
#include "shim/base/claim.h"
#include "shim/policy/keys.h"
#include "shim/policy/settle.h"
#include "tools/custream/trace/gz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the option has one of these values, "A|B". A value that ends in ':' stands for all that
 * begin with it: "sample:" for "sample:50". */
static bool is(const struct cs_settled *settled, enum cs_option id, const char *values)
{
    const char *word = cs_option_word(id, settled->value[id]);
    for (size_t n;; values += n + 1) {
        n = strcspn(values, "|");
        if (!strncmp(word, values, n) && (!word[n] || (n && values[n - 1] == ':'))) return true;
        if (!values[n]) return false;
    }
}

/* --- the files of the trace and of metrics; `id` tells which --- */

static bool unwritable(const struct cs_settled *settled, enum cs_option id, const char *why)
{
    complain("custream run", "cannot write the %s %s (%s): %s",
        id == CS_OPTION_TRACE ? "trace" : "metrics", settled->value[id], cs_option_info[id].env,
        why);
    return true;
}

/* Complains if a folder is unusable; true: it complained. `whole`: the file itself is made in the
 * folder, so the folder has to be writable. */
static bool folder_hopeless(
    const struct cs_settled *settled, enum cs_option id, const char *folder, bool whole)
{
    struct stat about;
    char why[PATH_MAX + 128];
    const char *error = NULL;
    if (stat(folder, &about)) error = strerror(errno);
    else if (!S_ISDIR(about.st_mode)) error = strerror(ENOTDIR);
    else if (faccessat(AT_FDCWD, folder, X_OK | (whole ? W_OK : 0), AT_EACCESS))
        error = strerror(errno);
    if (!error) return false;
    snprintf(why, sizeof why, "folder %s: %s; %s a folder that is there and can be written to",
        folder, error, id == CS_OPTION_TRACE ? "a trace needs" : "metrics need");
    return unwritable(settled, id, why);
}

/* Cuts the last name off: "a/b" becomes "a", "b" becomes ".". */
static const char *folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash) return ".";
    slash[slash == path] = 0;
    return path;
}

/* Complains of a file that the library would refuse at the first call of CUDA. True: this function
 * complained. */
static bool file_hopeless(const struct cs_settled *settled, enum cs_option id)
{
    static struct cs_claim claim;
    char path[PATH_MAX];
    const unsigned kind = id == CS_OPTION_METRICS              ? CS_CLAIM_METRICS
                          : is(settled, CS_OPTION_FORCE, "on") ? CS_CLAIM_FORCE
                                                               : 0;
    if (is(settled, CS_OPTION_TRACE, "off") || !*settled->value[id]) return false;
    const char *rest = settled->value[id]; /* ends up at the first %p, %e, %h or %r; %% is % */
    size_t n = 0;
    for (; *rest && n < PATH_MAX - 1; path[n++] = *rest++) {
        if (*rest != '%') continue;
        if (rest[1] != '%') break;
        rest++;
    }
    path[n] = 0;
    if (*rest) return folder_hopeless(settled, id, folder_of(path), !strchr(rest, '/'));
    if (cs_claim(&claim, path, CS_CLAIM_OLD | kind, &gz_inflate))
        return cs_claim_drop(&claim), false;
    if (claim.refusal) return unwritable(settled, id, claim.refusal);
    if (errno != ENOENT && errno != ENOTDIR) return unwritable(settled, id, strerror(errno));
    return folder_hopeless(
        settled, id, folder_of(claim.path), true); /* claim.path: where links lead */
}

/* --- libraries that options name --- */

/* Complains of a library that cannot be opened; true: it complained. A name without a / is not
 * checked, as the loader searches for it. */
static bool library_hopeless(enum cs_option id, const char *path)
{
    struct stat about;
    const char *error = NULL;
    if (!strchr(path, '/') || strchr(path, '$')) return false;
    if (stat(path, &about)) error = strerror(errno);
    else if (!S_ISREG(about.st_mode))
        error = S_ISDIR(about.st_mode) ? strerror(EISDIR) : "not a file";
    else if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS)) error = strerror(errno);
    if (error)
        complain("custream run", "%s: %s: %s; allowed is %s", cs_option_info[id].env, path, error,
            cs_option_info[id].allowed);
    return error;
}

/* --- options that cancel each other --- */

/* Option `id` with `value` does nothing beside option `by` with `other`. NULL stands for any value
 * but the default. Options that contradict each other stand in shim/policy/settle.c. */
static const struct cancel {
    enum cs_option id;
    const char *value;
    enum cs_option by;
    const char *other, *why;
    /* if this option has the value `so`, `id` works after all; 0: no option does that */
    enum cs_option unless;
    const char *so;
} cancels[] = {
    {CS_OPTION_DEFAULT_STREAM, "audit", CS_OPTION_TRACE, "off",
        "an audit reads what is recorded, and nothing is", CS_OPTION_CTL, "on"},
    {CS_OPTION_WINDOW, NULL, CS_OPTION_TRACE, "off", "nothing is recorded", CS_OPTION_CTL, "on"},
    {CS_OPTION_TRIGGER, NULL, CS_OPTION_TRACE, "off", "nothing is recorded", 0, NULL},
    {CS_OPTION_METRICS, NULL, CS_OPTION_TRACE, "off", "nothing is recorded", 0, NULL},
    {CS_OPTION_WINDOW, "ctl", CS_OPTION_CTL, "off", "nobody can ask the process to record",
        CS_OPTION_TRIGGER, NULL},
    {CS_OPTION_RUNTIME, "cupti", CS_OPTION_GPU, "events|off|sample:", "CUPTI is not used", 0, NULL},
    {CS_OPTION_CUPTI, NULL, CS_OPTION_GPU, "events|off|sample:", "CUPTI is not used", 0, NULL},
    {CS_OPTION_GRAPH, "node", CS_OPTION_GPU,
        "events|sample:", "only CUPTI has times of single nodes", 0, NULL},
    {CS_OPTION_COUNTERS, "streams", CS_OPTION_GPU, "sample:", "counters need the times of all work",
        0, NULL},
    {CS_OPTION_GRAPH, "node", CS_OPTION_GPU, "off", "there are no GPU times", 0, NULL},
};

/* Prints an option as the user gave it: a variable, or a key of the policy file. */
static void option_put(const struct cs_settled *settled, enum cs_option id)
{
    char key[CS_KEY_ROOM];
    const char *value = settled->value[id];
    if (settled->source[id] == CS_FROM_FILE)
        fprintf(stderr, "%s: %s \"%.60s\"", settled->file->name, cs_option_key(id, key), value);
    else fprintf(stderr, "%s=%.60s", cs_option_info[id].env, value);
}

static bool stands(const struct cs_settled *settled, enum cs_option id, const char *value)
{
    return value ? is(settled, id, value) : !is(settled, id, cs_option_info[id].preset);
}

static bool options_cancel(const struct cs_settled *settled)
{
    for (size_t i = 0; i < CS_COUNT(cancels); i++) {
        const struct cancel *row = &cancels[i];
        if (!stands(settled, row->id, row->value) || !stands(settled, row->by, row->other))
            continue;
        if (row->unless && stands(settled, row->unless, row->so)) continue;
        fputs("custream run: ", stderr);
        option_put(settled, row->id);
        fputs(" does nothing beside ", stderr);
        option_put(settled, row->by);
        fprintf(stderr, ": %s\n", row->why);
        return true;
    }
    return false;
}

bool run_hopeless(const struct cs_settled *settled, bool reports)
{
    if (reports && is(settled, CS_OPTION_TRACE, "off")) {
        fputs("custream run: --report does nothing beside ", stderr);
        option_put(settled, CS_OPTION_TRACE);
        fputs(": nothing is recorded\n", stderr);
        return true;
    }
    if (options_cancel(settled) || file_hopeless(settled, CS_OPTION_TRACE) ||
        file_hopeless(settled, CS_OPTION_METRICS))
        return true;
    char path[PATH_MAX];
    for (const char *rest = settled->value[CS_OPTION_PLUGIN]; *rest; rest += *rest == ':') {
        const size_t n = strcspn(rest, ":");
        snprintf(path, sizeof path, "%.*s", (int)n, rest);
        if (n && n < sizeof path && library_hopeless(CS_OPTION_PLUGIN, path)) return true;
        rest += n;
    }
    return *settled->value[CS_OPTION_CUPTI] &&
           library_hopeless(CS_OPTION_CUPTI, settled->value[CS_OPTION_CUPTI]);
}
