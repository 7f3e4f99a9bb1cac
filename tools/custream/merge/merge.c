/* custream merge: traces of ranks, of processes, or the parts of one, in one timeline. Options are judged before any file is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/duration.h"
#include "tools/custream/flags.h"
#include "tools/custream/merge/between.h"
#include "tools/custream/merge/write.h"
#include "tools/custream/report/output.h"

static const char NAME[] = "custream merge";

struct request {
    struct plan plan;
    const char *to;
    char **files;
    size_t file_count;
};

static int window_read(struct plan *plan, const char *text)
{
    const char *at = text;
    plan->windowed = true;
    const bool begins = duration_read(at, &at, &plan->window[0]) && *at == ',';
    if (begins && duration_read(at + 1, &at, &plan->window[1]) && !*at && plan->window[0] < plan->window[1]) return STATUS_OK;
    return complain(NAME,
                    "--window='%s': FROM,TO are wanted, from the first event on, in seconds or with a unit (s, ms, us, ns): 1.5,2 or 20ms,30ms", text);
}

static int align_read(struct plan *plan, const char *text)
{
    plan->align_start = !strcmp(text, "start");
    return plan->align_start || !strcmp(text, "clock") ? STATUS_OK : complain(NAME, "--align='%s': it is clock or start", text);
}

static int request_read(struct request *request, int argc, char **argv)
{
    enum { OPTION_FILE = 1, OPTION_TO = 'o', OPTION_ALIGN = 'a', OPTION_WINDOW = 'w', OPTION_CLOCKS = 'c' };
    static const struct option options[] = {{"output", required_argument, NULL, OPTION_TO},
                                            {"align", required_argument, NULL, OPTION_ALIGN},
                                            {"window", required_argument, NULL, OPTION_WINDOW},
                                            {"clocks", required_argument, NULL, OPTION_CLOCKS},
                                            {0}};
    const char *clocks = NULL;
    int option, status = STATUS_OK;
    while (status == STATUS_OK && (option = flags_next(argc, argv, "-o:", options, NULL)) != -1) {
        if (option == OPTION_FILE) request->files[request->file_count++] = optarg;
        else if (option == OPTION_TO) request->to = optarg;
        else if (option == OPTION_ALIGN) status = align_read(&request->plan, optarg);
        else if (option == OPTION_WINDOW) status = window_read(&request->plan, optarg);
        else if (option == OPTION_CLOCKS) clocks = optarg;
        else status = STATUS_UNUSABLE;
    }
    for (; optind < argc; optind++) request->files[request->file_count++] = argv[optind]; /* behind "--" */
    if (status != STATUS_OK) return status;
    if (!request->to || !*request->to) return complain(NAME, "-o OUT is missing: where the merged trace goes; 'custream help merge' says more");
    if (!strcmp(request->to, "-")) return complain(NAME, "-o -: the merged trace needs a file, not standard output");
    if (!request->file_count) return complain(NAME, "which files? 'custream help merge' says more");
    if (clocks && request->plan.align_start) return complain(NAME, "--clocks and --align=start: it is one or the other");
    return !clocks || clocks_read(&request->plan.clocks, clocks) ? STATUS_OK : STATUS_UNUSABLE;
}

static bool merge(struct plan *plan, const char *to, char **files, size_t count)
{
    struct out out;
    if (!out_open(&out, to, files, count)) return false;
    bool good = plan_make(plan, files, count);
    if (good) {
        header_write(&out, plan);
        names_write(&out, plan);
        good = rows_write(&out, plan);
    }
    if (good) trailer_write(&out, plan);
    return out_close(&out, good);
}

bool merge_between(const char *to, char **files, char **shown, size_t count, int64_t from, int64_t until, int64_t *begin, struct refusal *refusals)
{
    struct plan plan = {.windowed = true, .wall = true, .window = {from, until}, .shown = shown, .refusals = refusals};
    const bool good = merge(&plan, to, files, count);
    *begin = plan.base + plan.begin;
    plan_free(&plan);
    return good;
}

void merge_usage(void)
{
    puts("usage: custream merge -o OUT [OPTION...] FILE...\n\n"
         "Puts the traces of several ranks or processes, or the parts of one trace, into one timeline.\n"
         "FILE is a trace (.json, .pftrace). Each process keeps its own groups, such as \"rank 3, host\"\n"
         "and \"rank 3, GPU 1\". Times are those of the wall clock in each file. OUT is a new file or an\n"
         "earlier trace. Its name says its format. If merging fails, OUT does not change.\n\n"
         "  -o, --output=OUT   the merged trace\n"
         "  --align=clock      align by baseTimeNanoseconds (the default); a file without it is refused\n"
         "  --align=start      each process begins at 0\n"
         "  --clocks=FILE      by the ranks' clocks, as 'custream fleet --clocks' has found them\n"
         "  --window=FROM,TO   only what is in this time or overlaps it: seconds since the first event, or\n"
         "                     with ms, us, ns\n\n"
         "docs/merge.md says what is in the merged trace, and how accurate its times are.\n\n"
         "Exit status: 0 merged; 2 wrong usage, or a file cannot be read or is not a trace.");
}

int command_merge(int argc, char **argv)
{
    struct request request = {0};
    argv[0] = (char[]){"custream merge"};
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        merge_usage();
        return STATUS_OK;
    }
    if (!(request.files = calloc((size_t)argc + 1, sizeof *request.files))) out_of_memory();
    int status = request_read(&request, argc, argv);
    const struct plan *plan = &request.plan;
    if (status == STATUS_OK && !merge(&request.plan, request.to, request.files, request.file_count)) status = STATUS_UNUSABLE;
    if (status == STATUS_OK)
        printf("%s: %zu file%s, %zu process%s\n", request.to, plan->file_count, plan->file_count == 1 ? "" : "s", plan->process_count,
               plan->process_count == 1 ? "" : "es");
    plan_free(&request.plan);
    free(request.files);
    return status;
}
