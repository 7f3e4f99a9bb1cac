/* custream hang: what processes are running at this moment, out of the files that they write. They go on as before. */
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/live/choose.h"
#include "tools/custream/live/cut.h"
#include "tools/custream/report/output.h"
#include "tools/custream/report/show.h"
#include "tools/custream/report/unfinished.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

static const char NAME[] = "custream hang";
enum { TAIL = 64 << 20 };

void hang_usage(void)
{
    puts("usage: custream hang -p PID|--all|--rank=N|--program=NAME [--json] [--whole]\n\n"
         "Says what processes are running, and what that waits for: of each stream with unfinished work the last operation that has\n"
         "ended, the first that has not, and what holds it; streams that wait for each other in a circle; and which threads are\n"
         "inside of which call of CUDA. The processes go on. Of one that has ended, 'custream report TRACE' says the same.\n\n"
         CHOOSE_USAGE
         "  --json               JSON: the same tables as those of 'custream report --json'\n"
         "  --whole              read all of a long trace, and all of its parts that are there. Without it, the last 64 MiB of a\n"
         "                       .json file are read, and the newest two parts\n\n"
         "Exit status: 0 said; 1 said, but not of all processes; 2 nothing was said, or wrong usage.");
}

struct request {
    struct choice choice;
    bool json, whole;
};

/* One process, as it is now. */
struct state {
    struct run run;
    struct report report;
    bool partly; /* not all of its file was read */
};

static bool state_load(struct state *state, const struct listener *listener, bool whole)
{
    const struct about *about = &listener->about;
    struct extract extract = {.pid = listener->peer.pid, .trace = about->trace, .file = about->file, .base = about->base, .events_end = about->events_end, .parts = about->parts, .from = INT64_MIN, .until = (int64_t)about->now};
    int *files;
    char error[256];
    const size_t count = newest_take(NAME, &extract, whole ? 0 : TAIL, &files, &state->partly);
    bool good = count > 0;
    run_init(&state->run);
    for (size_t i = 0; i < count; i++) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", files[i]);
        if (good && !run_load(&state->run, path, NULL, NULL, error)) {
            complain(NAME, "%s: %s", about->trace, error);
            good = false;
        }
    }
    if (good && !extract_is(files[0], &extract)) {
        complain(NAME, "process %d: its trace %s became another file while it was read", extract.pid, about->trace);
        good = false;
    }
    for (size_t i = 0; i < count; i++) close(files[i]);
    free(files);
    state->run.end_only = state->partly;
    if (!good) return run_free(&state->run), false;
    run_settle(&state->run);
    section_running(&state->report, &(struct analysis){.run = &state->run});
    return true;
}

static void state_free(struct state *state)
{
    report_free(&state->report);
    run_free(&state->run);
}

static void json_put(const struct listener *listener, const struct state *state, bool first)
{
    printf("%s\n{\"pid\":%d,\"rank\":%d,\"partly\":%s,\"tables\":{\n", first ? "" : ",", listener->peer.pid, (int)run_number(&state->run, "distributedInfo.rank", 0),
           state->partly ? "true" : "false");
    json_tables_put(stdout, &state->report);
    fputs("}}", stdout);
}

static void text_put_state(const struct listener *listener, const struct state *state, bool first)
{
    struct print print = {.report = &state->report, .columns = columns_of_terminal()};
    printf("%sprocess %d (%s), by ", first ? "" : "\n", listener->peer.pid, listener->command);
    text_put(stdout, listener->about.trace);
    putchar('\n');
    if (state->partly) puts("Only the last 64 MiB of the trace were read: --whole reads all of it.");
    running_put(stdout, &print);
}

static int hang_chosen(const struct request *request, struct listeners *chosen)
{
    size_t said = 0;
    setlocale(LC_CTYPE, "C.UTF-8");
    if (request->json) fputs("{\"custream_hang\":1,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"processes\":[", stdout);
    listeners_bring_up_to_date(NAME, chosen, "nothing is known of it");
    for (size_t i = 0; i < chosen->count; i++) {
        const struct listener *listener = chosen->each[i];
        struct state state = {0};
        if (!listener->answers) continue;
        if (listener->about.full)
            complain(NAME, "process %d (%s): its trace is full, so what it did later is not known; CUSTREAM_TRACE_MAX with rotate goes on", listener->peer.pid, listener->command);
        if (!state_load(&state, listener, request->whole)) continue;
        if (request->json) json_put(listener, &state, !said);
        else text_put_state(listener, &state, !said);
        said++;
        state_free(&state);
    }
    if (request->json) puts("]}");
    return !said ? STATUS_UNUSABLE : said < chosen->count + chosen->left_out ? STATUS_BROKEN : STATUS_OK;
}

static int request_read(struct request *request, int argc, char **argv)
{
    enum { OPTION_HELP = 'h', OPTION_JSON = 'j', OPTION_WHOLE = 'w' };
    static const struct option options[] = {CHOOSE_OPTIONS,
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"whole", no_argument, NULL, OPTION_WHOLE},
                                            {"help", no_argument, NULL, OPTION_HELP},
                                            {0}};
    int option;
    while ((option = flags_next(argc, argv, "p:h", options, NULL)) != -1) {
        if (option == OPTION_HELP) return hang_usage(), -1;
        if (option == '?') return STATUS_UNUSABLE;
        if (option == OPTION_JSON) request->json = true;
        else if (option == OPTION_WHOLE) request->whole = true;
        else if (!choice_take(NAME, &request->choice, option, optarg)) return STATUS_UNUSABLE;
    }
    if (optind < argc) return complain(NAME, "'%.60s' is no option; a process is named by -p PID, and 'custream report' reads a trace", argv[optind]);
    return choice_good(NAME, &request->choice) ? STATUS_OK : STATUS_UNUSABLE;
}

int command_hang(int argc, char **argv)
{
    struct request request = {0};
    struct listeners chosen;
    argv[0] = (char[]){"custream hang"};
    int status = request_read(&request, argc, argv);
    if (status != STATUS_OK) return status < 0 ? STATUS_OK : status;
    if (choice_find(NAME, &request.choice, &chosen)) status = hang_chosen(&request, &chosen);
    else status = STATUS_UNUSABLE;
    listeners_free(&chosen);
    return status;
}
