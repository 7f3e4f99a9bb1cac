/* custream inspect: says from files alone how a program reaches CUDA, and what to type. */
#include <limits.h>
#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/inspect/inspect.h"
#include "tools/custream/program.h"

static const char NAME[] = "custream inspect";

/* --- scripts --- */

/* Returns the words that start a script, without env; the caller frees them. NULL: no script. */
static char *script_interpreter_of(const char *path)
{
    char line[SCRIPT_LINE], *at = script_words(path, line);
    if (!at)
        return *line && memcmp(line, "\177ELF", 4) && text_ends(path, ".py") ? kept("python3")
                                                                             : NULL;
    const size_t first = strcspn(at, " \t");
    if (first >= 4 && !memcmp(at + first - 4, "/env", 4) && at[first])
        at += first + strspn(at + first, " \t");
    if (!strncmp(at, "-S", 2)) at += 2 + strspn(at + 2, " \t");
    text_clean(at);
    return *at ? kept(at) : NULL;
}

/* --- the command --- */

static int inspect(const char *name, bool json)
{
    char path[PATH_MAX], error[256];
    struct verdict verdict = {.path = name, .subject = SUBJECT_SCRIPT};
    struct tree tree = {0};
    /* A name without a slash: a file in this folder, otherwise the program that a shell would
     * start. */
    if (!strchr(name, '/') && access(name, F_OK) && program_find(name, path, sizeof path))
        verdict.path = path;
    verdict.interpreter = script_interpreter_of(verdict.path);
    const bool script = verdict.interpreter, good = script || tree_make(&tree, verdict.path, error);
    if (good) {
        if (!script) verdict.subject = (enum subject)tree.loaded[0].image.kind;
        verdict_make(&verdict, script ? NULL : &tree);
        inspect_show(&verdict, script ? NULL : &tree, json);
    }
    tree_free(&tree);
    verdict_free(&verdict);
    return good ? STATUS_OK : complain(NAME, "%s: %s", verdict.path, error);
}

int command_inspect(int argc, char **argv)
{
    bool json = false;
    while (flags_next(argc, argv, 0) != -1) json = true;
    if (optind == argc)
        return complain(NAME, "which program or library? 'custream help inspect' says more");
    if (argc - optind > 1) return complain(NAME, "one file at a time, and without its arguments");
    return inspect(argv[optind], json);
}
