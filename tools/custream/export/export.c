/* custream export: the rows of traces as tables. This reads them; Python's pyarrow writes Parquet (python/custream/export.py). */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/export/batch.h"
#include "tools/custream/export/rows.h"
#include "tools/custream/flags.h"
#include "tools/custream/module.h"
#include "tools/custream/report/output.h"

static const char NAME[] = "custream export";

void export_usage(void)
{
    puts("usage: custream export --parquet DIR [--run NAME] [--host NAME] [--clocks FILE] TRACE...\n\n"
         "Writes the rows of traces as tables, for DuckDB, pandas, Spark: host calls, GPU work, waits with\n"
         "their causes, ranges, streams, losses, and what each file says of itself (docs/export.md). A\n"
         "TRACE is of any format and any version, or torn. It needs the wheel with its extra \"fleet\".\n\n"
         "  --parquet=DIR  where they go: DIR/TABLE/run=RUN/host=HOST/rank=N/NAME.parquet. What an earlier\n"
         "                 export of the same trace has put there is replaced\n"
         "  --run=NAME     the run that they are of; otherwise the job that the trace names, or when it began\n"
         "  --host=NAME    the host that they are of; otherwise the one that the trace names\n"
         "  --clocks=FILE  times by the fleet's clock, as 'custream fleet --clocks' has found it: of each rank\n"
         "                 what its clock was ahead is taken off\n"
         "  --batches      TRACE's tables on standard output, as columns in memory; for programs\n"
         "  --schema       the tables and their columns on standard output, as JSON\n\n"
         "Exit status: 0 written; 2 wrong usage, a file is missing, unreadable or no trace, or the tables\n"
         "could not be written. Nothing is left of a file that failed.");
}

static int batches(const char *path)
{
    char error[256];
    const enum trace_end end = rows_export(path, error);
    if (!batch_good()) return complain(NAME, "standard output: %s", strerror(errno));
    if (end == TRACE_UNREADABLE) return complain(NAME, "%s: %s", path, error);
    return STATUS_OK;
}

int command_export(int argc, char **argv)
{
    enum { OPTION_FILE = 1, OPTION_HELP = 'h', OPTION_PARQUET = 'p', OPTION_RUN = 'r', OPTION_HOST = 'H', OPTION_CLOCKS = 'c', OPTION_BATCHES = 'b', OPTION_SCHEMA = 's' };
    static const struct option options[] = {{"parquet", required_argument, NULL, OPTION_PARQUET}, {"run", required_argument, NULL, OPTION_RUN},
                                            {"host", required_argument, NULL, OPTION_HOST},       {"batches", no_argument, NULL, OPTION_BATCHES},
                                            {"schema", no_argument, NULL, OPTION_SCHEMA},         {"clocks", required_argument, NULL, OPTION_CLOCKS},
                                            {"help", no_argument, NULL, OPTION_HELP},             {0}};
    const char *folder = NULL, *file = NULL;
    bool in_batches = false;
    int option, files = 0;
    argv[0] = (char[]){"custream export"};
    while ((option = flags_next(argc, argv, "-h", options, NULL)) != -1) {
        if (option == OPTION_HELP) return export_usage(), STATUS_OK;
        if (option == OPTION_SCHEMA) return batch_schema(), STATUS_OK;
        if (option == OPTION_FILE) file = optarg, files++;
        else if (option == OPTION_PARQUET) folder = optarg;
        else if (option == OPTION_BATCHES) in_batches = true;
        else if (option == '?') return STATUS_UNUSABLE;
    }
    if (optind < argc) file = argv[optind], files += argc - optind; /* behind "--" */
    if (!files) return complain(NAME, "which trace? 'custream help export' says more");
    if (in_batches) return files > 1 ? complain(NAME, "--batches: of one trace at a time") : batches(file);
    if (!folder || !*folder) return complain(NAME, "--parquet=DIR: where the tables go is missing");
    return module_run(NAME, "export", argc, argv);
}
