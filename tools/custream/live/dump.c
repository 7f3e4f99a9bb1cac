/* custream dump: writes what processes recorded last, from their files. The processes go on. */
#include <math.h>

#include "tools/custream/live/live.h"

static const char NAME[] = "custream dump";

static int dump_chosen(const struct choice *choice, struct listeners *chosen)
{
    struct extract *extracts = array_zeros(chosen->count, sizeof *extracts);
    size_t count = 0;
    struct cut_reach cut = {0};
    char own[64] = "custream-dump.json";
    listeners_bring_up_to_date(NAME, chosen, "there is nothing to dump");
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->each[i]->answers)
            extracts[count++] = extract_of(&chosen->each[i]->peer, &chosen->each[i]->about,
                (int64_t)chosen->each[i]->about.now - choice->time);
    if (count && chosen->count == 1)
        snprintf(own, sizeof own, "custream-dump-%d.json", chosen->each[0]->peer.pid);
    const char *to = choice->to ? choice->to : own;
    const bool written = count && (choice->to || cut_possible(NAME, to)) &&
                         cut_write(NAME, to, extracts, count, &cut);
    if (written) {
        count -= cut.missing;
        const double seconds = fmax(0, (double)(cut.until - cut.begin) * 1e-9),
                     asked = (double)choice->time * 1e-9;
        if (seconds < asked - 1)
            complain(NAME, "%.1f s were asked for; what is %s goes back %.1f s (%s)", asked,
                cut.apart ? "found" : "kept", seconds,
                cut.apart ? "parts that have ended are not where the trace was"
                          : "CUSTREAM_TRACE_MAX");
        printf("%s: the last %.10g s of %zu process%s. Open it: custream open %s\n", to,
            (double)choice->time * 1e-9, count, count == 1 ? "" : "es", to);
    }
    free(extracts);
    return !written                                   ? STATUS_UNUSABLE
           : count < chosen->count + chosen->left_out ? STATUS_BROKEN
                                                      : STATUS_OK;
}

int command_dump(int argc, char **argv)
{
    struct choice choice = {.time = INT64_C(10000000000)};
    return choice_run(NAME, &choice, "", argc, argv, dump_chosen);
}
