/* The custream command: picks the subcommand, and notices when what it printed did not arrive. */
#include "tools/custream/command.h"
#include "tools/custream/near.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int command_help(int argc, char **argv);
static int command_version(int argc, char **argv);

/* The one list of subcommands. */
static const struct subcommand {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
    void (*usage)(void);
} subcommands[] = {
    {"run", "start a program with the preload library in it", command_run, run_usage},
    {"check", "say whether a trace keeps the rules of the format", command_check, check_usage},
    {"report", "say why streams do not overlap, what it costs, and what to change", command_report, report_usage},
    {"diff", "say what got slower or faster between two runs", command_diff, diff_usage},
    {"merge", "put traces of ranks, processes or parts in one timeline", command_merge, merge_usage},
    {"convert", "write a trace in the other format: JSON, or Perfetto's own", command_convert, convert_usage},
    {"export", "write traces as tables, for DuckDB, pandas, Spark", command_export, export_usage},
    {"fleet", "say which rank is late, at which collective, and why", command_fleet, fleet_usage},
    {"recover", "make a whole file of a trace whose process was killed while it wrote", command_recover, recover_usage},
    {"open", "open a trace in Perfetto, with the busiest streams pinned", command_open, open_usage},
    {"inspect", "say how a program or library reaches CUDA, and how to trace it", command_inspect, inspect_usage},
    {"ps", "list the processes that can be asked to record", command_ps, ps_usage},
    {"record", "have processes that run record for a while", command_record, record_usage},
    {"trigger", "have ranks of a job record the same seconds", command_trigger, trigger_usage},
    {"dump", "write what processes recorded last", command_dump, dump_usage},
    {"hang", "say what processes that run are waiting for", command_hang, hang_usage},
    {"ctl", "tell a process that runs to record or not, or to take a policy", command_ctl, ctl_usage},
    {"options", "list what can be set, with values, defaults and meaning", command_options, options_usage},
    {"help", "show this text, or that of one command", command_help, NULL},
    {"version", "show the version", command_version, NULL},
};
enum { SUBCOMMAND_COUNT = sizeof subcommands / sizeof *subcommands };

static const struct subcommand *subcommand_find(const char *name)
{
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
        if (!strcmp(subcommands[i].name, name)) return &subcommands[i];
    return NULL;
}

static int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("custream " CUSTREAM_VERSION_STRING);
    return STATUS_OK;
}

static int unknown(const char *name)
{
    char room[SHOWN_ROOM];
    const char *word = name + strspn(name, "-");
    struct near near = {.typed = word, .length = strlen(word)};
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) near_look(&near, subcommands[i].name);
    fprintf(stderr, "custream: there is no command \"%s\"", shown(room, name, strlen(name)));
    if (near.best) fprintf(stderr, "; did you mean \"%s\"?\n", near.best);
    else fputs("; 'custream help' lists them\n", stderr);
    return STATUS_UNUSABLE;
}

static int command_help(int argc, char **argv)
{
    if (argc > 1) {
        const struct subcommand *asked = subcommand_find(argv[1]);
        if (!asked) return unknown(argv[1]);
        if (asked->usage) {
            asked->usage();
            return STATUS_OK;
        }
    }
    puts("usage: custream COMMAND ...\n");
    for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) printf("  %-8s %s\n", subcommands[i].name, subcommands[i].summary);
    puts("\n'custream help COMMAND' says more; so does custream(1).");
    return STATUS_OK;
}

/* A summary that a full disk or a closed pipe swallowed must not look like success to a script. Who closes a pipe, as head(1) does, knows of it. */
static int close_stdout(int status)
{
    int failed = ferror(stdout);
    errno = 0;
    if (!fclose(stdout) && !failed) return status;
    if (errno != EPIPE) fprintf(stderr, "custream: cannot write the output: %s\n", errno ? strerror(errno) : "write error");
    return status ? status : STATUS_UNUSABLE;
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 256 * 1024); /* left alone it grows, and large tables that are freed stay with the process */
    if (argc < 2) {
        fputs("custream: which command? 'custream help' lists them\n", stderr);
        return STATUS_UNUSABLE;
    }
    const struct subcommand *chosen = subcommand_find(argv[1]);
    return chosen ? close_stdout(chosen->run(argc - 1, argv + 1)) : unknown(argv[1]);
}
