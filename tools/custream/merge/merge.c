/* custream merge: puts traces of ranks or processes, or a trace's parts, into one timeline. */

#include "tools/custream/command.h"
#include "tools/custream/near.h"
#include "tools/custream/flags.h"
#include "tools/custream/merge/plan.h"

static const char NAME[] = "custream merge";

struct request {
    struct plan plan;
    const char *to;
    char **files;
    size_t file_count;
};

static int request_read(struct request *request, int argc, char **argv)
{
    const char *clocks = NULL;
    int flag;
    while ((flag = flags_next(argc, argv, 0)) != -1) {
        if (flag == FLAG_OUTPUT) request->to = optarg;
        else if (flag == FLAG_ALIGN) {
            request->plan.align_start = !strcmp(optarg, "start");
            if (!request->plan.align_start && strcmp(optarg, "clock"))
                return complain(NAME, "--align='%s': it is clock or start", optarg);
        } else if (flag == FLAG_WINDOW) {
            const char *at = optarg;
            int64_t *window = request->plan.window;
            request->plan.windowed = true;
            const bool begins = duration_read(at, &at, &window[0]) && *at == ',';
            if (!begins || !duration_read(at + 1, &at, &window[1]) || *at || window[0] >= window[1])
                return complain(NAME,
                    "--window='%s': FROM,TO are wanted, from the first event on, in seconds or "
                    "with a unit (s, ms, us, ns): 1.5,2 or 20ms,30ms",
                    optarg);
        } else if (flag == FLAG_CLOCKS) clocks = optarg;
        else if (flag == FLAG_RANGE) request->plan.range = optarg;
        else if (flag == FLAG_FROM_BYTE) {
            char *end;
            const uint64_t bytes = strtoull(optarg, &end, 10);
            /* The file had this many bytes when the range began. If it ended in a trailer then,
             * the range's rows were written over that trailer, and begin earlier. */
            request->plan.skip_to = bytes > TORN_BEHIND ? bytes - TORN_BEHIND : 0;
            if (*optarg < '0' || *optarg > '9' || *end)
                return complain(NAME, "--from-byte='%s': a number of bytes is wanted", optarg);
        }
    }
    request->files = argv + optind;
    request->file_count = (size_t)(argc - optind);
    if (!request->to || !*request->to)
        return complain(NAME,
            "-o OUT is missing: where the merged trace goes; 'custream help merge' says more");
    if (!strcmp(request->to, "-"))
        return complain(NAME, "-o -: the merged trace needs a file, not standard output");
    if (!request->file_count) return complain(NAME, "which files? 'custream help merge' says more");
    if (request->plan.range && (request->plan.windowed || clocks || request->file_count > 1))
        return complain(NAME, "--range: of one trace, without --window and --clocks");
    if (request->plan.skip_to && !request->plan.range)
        return complain(NAME, "--from-byte goes with --range");
    if (clocks && request->plan.align_start)
        return complain(NAME, "--clocks and --align=start: it is one or the other");
    return !clocks || clocks_read(&request->plan.clocks, clocks) ? STATUS_OK : STATUS_UNUSABLE;
}

static bool merge(struct plan *plan, const char *to, char **files, size_t count)
{
    struct out out;
    struct rope text = {0};
    if (!out_open(&out, NAME, to, OUT_OF_ROWS, files, count)) return false;
    bool good = plan_make(plan, files, count);
    if (good) {
        header_put(&text, plan);
        out_put(&out, text.at, text.length);
        text.length = 0;
        good = rows_write(&out, plan);
    }
    if (good) {
        trailer_put(&text, plan);
        out_put(&out, text.at, text.length);
    }
    free(text.at);
    return out_close(&out, good);
}

bool merge_between(const char *to, char **files, char **shown, size_t count, int64_t from,
    int64_t until, int64_t *begin, struct refusal *refusals)
{
    struct plan plan = {.windowed = true,
        .wall = true,
        .window = {from, until},
        .shown = shown,
        .refusals = refusals};
    const bool good = merge(&plan, to, files, count);
    *begin = plan.base + plan.begin;
    plan_free(&plan);
    return good;
}

int command_merge(int argc, char **argv)
{
    struct request request = {0};
    int status = request_read(&request, argc, argv);
    const struct plan *plan = &request.plan;
    if (status == STATUS_OK && !merge(&request.plan, request.to, request.files, request.file_count))
        status = plan->idle ? STATUS_BROKEN : STATUS_UNUSABLE;
    if (status == STATUS_OK)
        printf("%s: %zu file%s, %zu process%s\n", request.to, plan->file_count,
            plan->file_count == 1 ? "" : "s", plan->process_count,
            plan->process_count == 1 ? "" : "es");
    plan_free(&request.plan);
    return status;
}
