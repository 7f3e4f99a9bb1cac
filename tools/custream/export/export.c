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
#include "tools/custream/show.h"

static const char NAME[] = "custream export";

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
    const char *folder = NULL, *file = NULL;
    bool in_batches = false;
    int flag, files = 0;
    while ((flag = flags_next(argc, argv, '-')) != -1) {
        if (flag == FLAG_SCHEMA) return batch_schema(), STATUS_OK;
        if (flag == FLAG_WORD) file = optarg, files++;
        else if (flag == FLAG_PARQUET) folder = optarg;
        else if (flag == FLAG_BATCHES) in_batches = true;
    }
    if (optind < argc) file = argv[optind], files += argc - optind; /* behind "--" */
    if (!files) return complain(NAME, "which trace? 'custream help export' says more");
    if (in_batches) return files > 1 ? complain(NAME, "--batches: of one trace at a time") : batches(file);
    if (!folder || !*folder) return complain(NAME, "--parquet=DIR: where the tables go is missing");
    return module_run(NAME, "export", argc, argv);
}
