/* custream fleet: questions over the tables of many ranks. The wheel's module answers them (python/custream/fleet/). */
#include <stdio.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/module.h"
#include "tools/custream/report/output.h"

static const char NAME[] = "custream fleet";

void fleet_usage(void)
{
    puts("usage: custream fleet [OPTION...] DIR [QUESTION...]\n\n"
         "Answers questions over the ranks whose traces 'custream export --parquet DIR' has read\n"
         "(docs/fleet.md): who is late, and why. All of them, if no QUESTION is given:\n\n"
         "  stragglers   who arrives last at collectives, what the others waited, and why\n"
         "  steps        how long a step takes on each rank\n"
         "  idle         why the GPUs are idle, by rank\n"
         "  kernels      kernels that take longer on some ranks than on others\n"
         "  collectives  what collectives take once all ranks are there, by communicator\n"
         "  hidden       how much communication is hidden behind computation\n"
         "  clocks       how far the ranks' clocks are off, by the ends of collectives\n"
         "  settings     ranks that differ in settings or version\n\n"
         "  --run=NAME      of several runs in DIR, this one\n"
         "  --json          as JSON\n"
         "  --html=FILE     also as one page with plots, which needs no network\n"
         "  --clocks=FILE   also writes the clocks, for 'custream merge' and 'custream export'\n"
         "  --against=DIR   compares with the run in this folder: what got slower, and what was set up in\n"
         "                  another way\n"
         "  --engine=duckdb|spark\n"
         "                  what answers: DuckDB in this process (the default), or Apache Spark\n"
         "  --master=URL    of Spark: where it runs\n\n"
         "It needs the wheel with its extra \"fleet\"; Spark needs the extra \"spark\" and Java.\n\n"
         "Exit status: 0 answered; 2 wrong usage, DIR has no tables, or a file cannot be written.");
}

int command_fleet(int argc, char **argv)
{
    enum { OPTION_FILE = 1, OPTION_HELP = 'h', OPTION_OTHER = 'o' };
    static const struct option options[] = {{"run", required_argument, NULL, OPTION_OTHER},    {"json", no_argument, NULL, OPTION_OTHER},
                                            {"html", required_argument, NULL, OPTION_OTHER},   {"clocks", required_argument, NULL, OPTION_OTHER},
                                            {"against", required_argument, NULL, OPTION_OTHER}, {"engine", required_argument, NULL, OPTION_OTHER},
                                            {"master", required_argument, NULL, OPTION_OTHER}, {"help", no_argument, NULL, OPTION_HELP},
                                            {0}};
    int option, words = 0;
    argv[0] = (char[]){"custream fleet"};
    while ((option = flags_next(argc, argv, "-h", options, NULL)) != -1) {
        if (option == OPTION_HELP) return fleet_usage(), STATUS_OK;
        if (option == '?') return STATUS_UNUSABLE;
        words += option == OPTION_FILE;
    }
    if (!(words + argc - optind)) return complain(NAME, "which folder? 'custream help fleet' says more");
    return module_run(NAME, "fleet", argc, argv);
}
