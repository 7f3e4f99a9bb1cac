#include "tools/custream/module.h"
#include "shim/base/compiler.h"
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/commands.h"
#include "tools/custream/near.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

static const char PROGRAM[] =
    "import importlib, json, sys\n"
    "name, module, own, options, *words = sys.argv[1:]\n"
    "try:\n"
    "    command = importlib.import_module('custream.' + module).command\n"
    "except ImportError:\n"
    "    sys.exit(print(name + ': python3 has no module custream: install the wheel with its extra "
    "\"fleet\"',\n"
    "                   file=sys.stderr) or 2)\n"
    "sys.exit(command(own, json.loads(options), words))\n";

const char *python_name(void)
{
    const char *python = getenv("CUSTREAM_PYTHON");
    return python && *python ? python : "python3";
}

cJSON *module_options(int argc, char **argv)
{
    const struct command_row *command = command_find(argv[0]);
    cJSON *options = cJSON_CreateObject();
    int flag;
    while ((flag = flags_next(argc, argv, 0)) != -1) {
        EACH_ROW(row, command)
        {
            if (row->kind != ROW_OPTION || row->flag != flag) continue;
            cJSON_DeleteItemFromObject(options, row->name);
            if (!cJSON_AddItemToObject(
                    options, row->name, optarg ? cJSON_CreateString(optarg) : cJSON_CreateTrue()))
                out_of_memory();
        }
    }
    return options;
}

int module_run(const char *command, const char *module, const cJSON *options, char *const *words)
{
    char own[PATH_MAX], *text = cJSON_PrintUnformatted(options);
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    const char *const begin[] = {python_name(), "-c", PROGRAM, command, module, own, text};
    size_t count = 0;
    while (words[count]) count++;
    const char **argv = calloc(CS_COUNT(begin) + count + 1, sizeof *argv);
    if (!argv || !text) out_of_memory();
    if (length >= 0) {
        own[length] = 0;
        memcpy(argv, begin, sizeof begin);
        memcpy(argv + CS_COUNT(begin), words, count * sizeof *words);
        execvp(argv[0], (char **)(uintptr_t)argv);
    }
    return complain(command, "%s: %s", length < 0 ? "/proc/self/exe" : begin[0], strerror(errno));
}

/* --- custream fleet: questions over many ranks' tables, answered by python/custream/fleet/ --- */

int command_fleet(int argc, char **argv)
{
    const cJSON *options = module_options(argc, argv);
    if (optind == argc)
        return complain("custream fleet", "which folder? 'custream help fleet' says more");
    for (int i = optind + 1; i < argc; i++)
        if (!word_find("custream fleet", command_find(argv[0]), "question", argv[i]))
            return STATUS_UNUSABLE;
    return module_run("custream fleet", "fleet", options, argv + optind);
}
