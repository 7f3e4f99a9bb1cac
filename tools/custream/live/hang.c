/* custream hang: shows what processes are doing now, from their files. The processes go on. */
#include "tools/custream/live/live.h"
#include "tools/custream/model/unfinished.h"
#include "tools/custream/report/report.h"

#include <locale.h>
#include <unistd.h>

static const char NAME[] = "custream hang";
enum { TAIL = 64 << 20 };

/* The state of one process, as its trace tells it now. */
struct state {
    struct run run;
    struct report report;
};

static bool state_load(struct state *state, const struct listener *listener, bool whole)
{
    const struct about *about = &listener->about;
    struct extract extract = extract_of(&listener->peer, about, INT64_MIN);
    int *files;
    char error[256];
    const size_t count = newest_take(NAME, &extract, whole ? 0 : TAIL, &files);
    bool good = count > 0;
    run_init(&state->run);
    state->run.last_bytes = whole ? 0 : TAIL;
    for (size_t i = 0; i < count; i++) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", files[i]);
        if (good && !run_load(&state->run, path, NULL, NULL, error)) {
            complain(NAME, "%s: %s", about->trace, error);
            good = false;
        }
    }
    if (good && !extract_is(files[0], &extract)) {
        complain(NAME, "process %d: its trace %s became another file while it was read",
            extract.pid, about->trace);
        good = false;
    }
    for (size_t i = 0; i < count; i++) close(files[i]);
    free(files);
    if (!good) return run_free(&state->run), false;
    run_settle(&state->run);
    section_running(&state->report, &state->run);
    return true;
}

static int hang_chosen(const struct choice *choice, struct listeners *chosen)
{
    size_t said = 0;
    setlocale(LC_CTYPE, "C.UTF-8");
    if (choice->json)
        fputs("{\"custream_hang\":1,\"tool\":\"custream " CUSTREAM_VERSION_STRING
              "\",\"processes\":[",
            stdout);
    listeners_bring_up_to_date(NAME, chosen, "nothing is known of it");
    for (size_t i = 0; i < chosen->count; i++) {
        const struct listener *listener = chosen->each[i];
        struct state state = {0};
        if (!listener->answers) continue;
        if (listener->about.full)
            complain(NAME,
                "process %d (%s): its trace is full, so what it did later is not known; "
                "CUSTREAM_TRACE_MAX with rotate goes on",
                listener->peer.pid, listener->command);
        if (!state_load(&state, listener, choice->whole)) continue;
        if (choice->json) {
            printf("%s\n{\"pid\":%d,\"rank\":%d,\"partly\":%s,\"tables\":{\n", said ? "," : "",
                listener->peer.pid, (int)run_number(&state.run, "distributedInfo.rank", 0),
                state.run.end_only ? "true" : "false");
            json_tables_put(stdout, &state.report);
            fputs("}}", stdout);
        } else {
            printf(
                "%sprocess %d (%s), by ", said ? "\n" : "", listener->peer.pid, listener->command);
            text_put(stdout, listener->about.trace);
            putchar('\n');
            if (state.run.end_only)
                puts("Only the last 64 MiB of the trace were read: --whole reads all of it.");
            running_put(
                stdout, &(struct print){.report = &state.report, .columns = columns_of_terminal()});
        }
        said++;
        report_free(&state.report);
        run_free(&state.run);
    }
    if (choice->json) puts("]}");
    return !said                                     ? STATUS_UNUSABLE
           : said < chosen->count + chosen->left_out ? STATUS_BROKEN
                                                     : STATUS_OK;
}

int command_hang(int argc, char **argv)
{
    struct choice choice = {0};
    return choice_run(
        NAME, &choice, ", and 'custream report' reads a trace", argc, argv, hang_chosen);
}
