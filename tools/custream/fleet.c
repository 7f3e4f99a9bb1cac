/* custream fleet: questions over the tables of many ranks. The wheel's module answers them (python/custream/fleet/). */
#include <stdio.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/module.h"
#include "tools/custream/show.h"

static const char NAME[] = "custream fleet";

int command_fleet(int argc, char **argv)
{
    int flag, words = 0;
    while ((flag = flags_next(argc, argv, '-')) != -1) words += flag == FLAG_WORD;
    if (!(words + argc - optind)) return complain(NAME, "which folder? 'custream help fleet' says more");
    return module_run(NAME, "fleet", argc, argv);
}
