/* custream fleet: questions over many ranks' tables, answered by python/custream/fleet/. */
#include <getopt.h>

#include "tools/custream/command.h"
#include "tools/custream/commands.h"
#include "tools/custream/module.h"
#include "tools/custream/near.h"

static const char NAME[] = "custream fleet";

int command_fleet(int argc, char **argv)
{
    const cJSON *options = module_options(argc, argv);
    if (optind == argc) return complain(NAME, "which folder? 'custream help fleet' says more");
    for (int i = optind + 1; i < argc; i++)
        if (!word_find(NAME, command_find(argv[0]), "question", argv[i])) return STATUS_UNUSABLE;
    return module_run(NAME, "fleet", options, argv + optind);
}
