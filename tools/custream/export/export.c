/* custream export: makes tables of the rows of traces; Python's pyarrow writes them as Parquet. */
#include <errno.h>
#include <getopt.h>

#include "tools/custream/command.h"
#include "tools/custream/export/batch.h"
#include "tools/custream/export/rows.h"
#include "tools/custream/module.h"

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
    const cJSON *options = module_options(argc, argv);
    const char *folder = cJSON_GetStringValue(cJSON_GetObjectItem(options, "parquet"));
    if (cJSON_HasObjectItem(options, "schema")) return batch_schema(), STATUS_OK;
    if (optind == argc) return complain(NAME, "which trace? 'custream help export' says more");
    if (cJSON_HasObjectItem(options, "batches"))
        return argc - optind > 1 ? complain(NAME, "--batches: of one trace at a time")
                                 : batches(argv[optind]);
    if (!folder || !*folder) return complain(NAME, "--parquet=DIR: where the tables go is missing");
    return module_run(NAME, "export", options, argv + optind);
}
