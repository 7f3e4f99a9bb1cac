/* custream convert: one trace in the other format. Each says what the other does, so nothing is lost on the way there or back. */
#include <stdio.h>
#include <sys/stat.h>

#include "shim/base/options.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/flags.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/report/output.h"

static const char NAME[] = "custream convert";

static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static int convert(const char *from, const char *to, unsigned how)
{
    struct out out;
    const char *extension = cs_trace_extension(to);
    char *inputs[] = {(char *)(uintptr_t)from}, error[256];
    if (!extension) return complain(NAME, "%s: allowed is a path ending in .json, .json.gz, .pftrace or .pftrace.gz: it tells what to convert to", to);
    if (cs_trace_extension_is_packets(extension)) how |= ROWS_PACKETS;
    if (same_file(from, to)) return complain(NAME, "%s: is the trace itself; the converted one needs a file of its own", to);
    if (!out_open_as_is(NAME, &out, to, inputs, 1)) return STATUS_UNUSABLE;
    const enum source_end end = rows_convert(from, how, out_put, &out, error);
    if (end == SOURCE_BROKEN) complain(NAME, "%s: %s", from, error);
    if (end == SOURCE_CUT) fprintf(stderr, "%s: %s: truncated, as when a process is killed while it writes; %s has what is before that\n", NAME, from, to);
    return out_close(&out, end != SOURCE_BROKEN) ? STATUS_OK : STATUS_UNUSABLE;
}

void convert_usage(void)
{
    puts("usage: custream convert [--whole] FROM TO\n\n"
         "Writes a trace in the other format. The name of TO tells which: .json or .pftrace, each also\n"
         "with .gz behind it. Both say the same, so that nothing is lost on the way there and back.\n"
         "FROM is a trace of custream's, or another tool's. TO is a new file or an earlier trace. If\n"
         "converting fails, TO does not change.\n\n"
         "  --whole  each slice says all of it. In a trace, a kernel that is launched as the one of that name\n"
         "           before does not repeat its shape. With this it does, for people who look at one slice,\n"
         "           and for queries\n\n"
         "Exit status: 0 converted, also if FROM is truncated: one line on stderr then says so; 2 wrong\n"
         "usage, or FROM cannot be read, is not a trace, or says what the other format has no place for.");
}

int command_convert(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {"whole", no_argument, NULL, 'w'}, {0}};
    int option;
    unsigned how = 0;
    argv[0] = (char[]){"custream convert"};
    while ((option = flags_next(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') return convert_usage(), STATUS_OK;
        if (option != 'w') return STATUS_UNUSABLE;
        how |= ROWS_WHOLE;
    }
    if (argc - optind != 2) return complain(NAME, "needs two names: custream convert FROM TO; 'custream help convert' says more");
    return convert(argv[optind], argv[optind + 1], how);
}
