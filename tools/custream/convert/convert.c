/* custream convert: converts a trace to the other format, with nothing lost on the way. */
#include "shim/base/options.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/flags.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/program.h"

static const char NAME[] = "custream convert";

static int convert(const char *from, const char *to, unsigned how)
{
    struct out out;
    const char *extension = cs_trace_extension(to);
    char *inputs[] = {(char *)(uintptr_t)from}, error[256];
    if (!extension)
        return complain(NAME,
            "%s: allowed is a path ending in .json, .json.gz, .pftrace or .pftrace.gz: it tells "
            "what to convert to",
            to);
    if (cs_trace_extension_is_packets(extension)) how |= ROWS_PACKETS;
    if (is_same_file(from, to))
        return complain(
            NAME, "%s: is the trace itself; the converted one needs a file of its own", to);
    if (!out_open(&out, NAME, to, OUT_OF_TEXT, inputs, 1)) return STATUS_UNUSABLE;
    const enum json_step end = rows_convert(from, how, out_put, &out, error);
    if (end == JSON_BROKEN) complain(NAME, "%s: %s", from, error);
    if (end == JSON_CUT)
        fprintf(stderr,
            "%s: %s: truncated, as when a process is killed while it writes; %s has what is before "
            "that\n",
            NAME, from, to);
    return out_close(&out, end != JSON_BROKEN) ? STATUS_OK : STATUS_UNUSABLE;
}

int command_convert(int argc, char **argv)
{
    int flag;
    unsigned how = 0;
    while ((flag = flags_next(argc, argv, 0)) != -1) how |= ROWS_WHOLE;
    if (argc - optind != 2)
        return complain(
            NAME, "needs two names: custream convert FROM TO; 'custream help convert' says more");
    return convert(argv[optind], argv[optind + 1], how);
}
