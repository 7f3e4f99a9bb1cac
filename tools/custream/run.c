/* custream run: sets the environment and becomes the program, so pid and status are its own. */
#define _GNU_SOURCE /* asprintf, memrchr */
#include "tools/custream/flags.h"
#include "tools/custream/commands.h"
#include "tools/custream/program.h"
#include "tools/custream/watch/watch.h"
#include "shim/base/options.h"
#include "shim/policy/settle.h"

#include <errno.h>
#include <limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#define SHIM "libcustream_shim.so"

/* The folder of `make install`; looked at last, for a tree that was moved. */
#ifndef CUSTREAM_LIBDIR
#define CUSTREAM_LIBDIR "/usr/local/lib"
#endif

/* Complains of a wrong value. Without this complaint the program would start, and the library would
 * use the default. */
static bool value_ok(enum cs_option id, const char *prefix, const char *name, const char *separator,
    const char *value)
{
    const char *allowed = cs_option_check(id, value);
    if (allowed)
        complain("custream run", "%s%s%s%s is not valid: allowed is %s", prefix, name, separator,
            value, allowed);
    return !allowed;
}

static bool option_give(enum cs_option id, const char *value)
{
    char name[FLAG_ROOM];
    if (!value) value = "on"; /* a switch alone */
    option_flag(name, id);
    if (!value_ok(id, "--", name, "=", value)) return false;
    if (!setenv(cs_option_info[id].env, value, 1)) return true;
    perror("custream run");
    return false;
}

/* Returns the value of the variable; NULL: not set, or empty, which is the same to the shim. */
static const char *environment_value(enum cs_option id)
{
    const char *value = getenv(cs_option_info[id].env);
    return value && *value ? value : NULL;
}

/* Settles policy file and variables as the program will. False: the complaint was printed. */
static bool policy_ok(struct watch_plan *plan)
{
    char error[CS_POLICY_LINE];
    struct cs_policy_file file = {0};
    struct cs_settled settled;
    struct cs_contradiction found;
    const char *given = environment_value(CS_OPTION_POLICY);
    bool ok = !given || cs_policy_file_read(&file, given, error, sizeof error);
    if (ok) {
        cs_settle(&settled, given ? &file : NULL, environment_value);
        ok = !cs_settled_contradicts(&settled, &found, error, sizeof error);
    }
    if (!ok) complain("custream run", "%s", error);
    ok = ok && !run_hopeless(&settled, plan->report);
    if (ok) {
        plan->quiet =
            !strcmp(cs_option_word(CS_OPTION_QUIET, settled.value[CS_OPTION_QUIET]), "on") ||
            !strcmp(settled.value[CS_OPTION_LOG], "error");
        plan->off = !strcmp(settled.value[CS_OPTION_TRACE], "off") &&
                    strcmp(settled.value[CS_OPTION_CTL], "on");
    }
    bool is_path = given && file.name == given;
    cs_policy_file_finish(&file);
    if (!ok || !is_path || *given == '/') return ok;
    /* children may change their directory before they read the file */
    char *folder = getcwd(NULL, 0), *absolute = NULL;
    if (folder && asprintf(&absolute, "%s/%s", folder, given) < 0) absolute = NULL;
    ok = absolute && !setenv(cs_option_info[CS_OPTION_POLICY].env, absolute, 1);
    if (!ok) perror("custream run");
    free_all(folder, absolute);
    return ok;
}

/* Looks for the library beside the command, in lib/ beside its bin/, then in CUSTREAM_LIBDIR. */
static bool shim_find(char *path)
{
    char self[PATH_MAX], candidate[2 * PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (length > 0) self[length] = 0;
    /* without /proc, by the path that the command was started with */
    const bool known = length > 0 || realpath((const char *)getauxval(AT_EXECFN), self);
    char *slash = known ? strrchr(self, '/') : NULL;
    if (slash) *slash = 0;
    static const char *const places[] = {"/" SHIM, "/../lib/" SHIM, CUSTREAM_LIBDIR "/" SHIM};
    for (size_t i = 0; i < CS_COUNT(places); i++) {
        if (i < 2 && !slash) continue;
        snprintf(candidate, sizeof candidate, "%s%s", i < 2 ? self : "", places[i]);
        if (!access(candidate, R_OK) && realpath(candidate, path)) return true;
    }
    complain("custream run",
        "" SHIM " is neither beside this command, nor in ../lib, nor in " CUSTREAM_LIBDIR "");
    return false;
}

/* Puts the library before other preloaded ones, unless the user has chosen its place. */
static bool shim_preload(void)
{
    static const char *const tokens[] = {
        "$ORIGIN", "${ORIGIN}", "$LIB", "${LIB}", "$PLATFORM", "${PLATFORM}"};
    char path[PATH_MAX], *value;
    if (!shim_find(path)) return false;
    bool expands = false; /* the path has a token that the loader would replace */
    for (size_t i = 0; i < CS_COUNT(tokens); i++) expands |= strstr(path, tokens[i]) != NULL;
    if (strpbrk(path, ": \t") || expands) {
        complain("custream run",
            "%s: a path with a colon, a space or a $ that the loader expands cannot "
            "be preloaded",
            path);
        return false;
    }
    const char *before = getenv("LD_PRELOAD");
    const size_t length = strlen(path);
    for (const char *at = before; at && (at = strstr(at, path)); at += length)
        if ((at == before || strchr(": ", at[-1])) && (!at[length] || strchr(": ", at[length])))
            return true; /* LD_PRELOAD has the library already */
    if (asprintf(&value, "%s%s%s", path, before && *before ? ":" : "", before ? before : "") < 0)
        value = NULL;
    bool ok = value && !setenv("LD_PRELOAD", value, 1);
    if (!ok) perror("custream run");
    free(value);
    return ok;
}

/* Becomes the program. Returns only if exec failed, with env(1)'s status. */
static int program_become(char **argv, struct watch_plan *plan)
{
    char path[PATH_MAX];
    const char *obstacle = program_find(argv[0], path, sizeof path) ? program_obstacle(path) : NULL;
    if (obstacle)
        complain("custream run", "warning: %s %s: it will not be traced", argv[0], obstacle);
    plan->unseen = obstacle;
    if (!watch_start(plan) && plan->report)
        complain("custream run", "warning: no process could be made that reports at the end");
    execvp(argv[0], argv);
    watch_cancel();
    int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    complain("custream run", "%s: %s", argv[0], strerror(errno));
    return status;
}

int command_run(int argc, char **argv)
{
    struct watch_plan plan = {0};
    int flag;
    /* The first word that is no option is the program; all words behind it are the program's. */
    while ((flag = flags_next(argc, argv, '+')) != -1) {
        if (flag == FLAG_REPORT) plan.report = true;
        else if (!option_give((enum cs_option)(flag - FLAG_LIBRARY), optarg))
            return STATUS_UNUSABLE;
    }
    bool good = true; /* variables are checked behind the flags, which replace wrong ones */
    for (int i = 0; i < CS_OPTION_COUNT; i++) {
        const char *value = environment_value((enum cs_option)i);
        if (value) good &= value_ok((enum cs_option)i, "", cs_option_info[i].env, "=", value);
    }
    if (!good || !policy_ok(&plan)) return STATUS_UNUSABLE;
    if (optind == argc)
        return complain("custream run", "which program? 'custream help run' says more");
    return shim_preload() ? program_become(argv + optind, &plan) : STATUS_UNUSABLE;
}
