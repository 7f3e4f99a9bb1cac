/* The rule about launches that do not keep up with the GPU: CS107. */
#include "tools/custream/model/views.h"
#include "tools/custream/report/inside.h"

/* A kernel is short if the host needs about as long to launch the next: a launch takes 2 to 10 us,
 * and some frameworks' own code 10 to 50 us. */
enum { SHORT_NS = 50000 };
/* A longer gap than this is something else than a launch. */
enum { LAUNCH_GAP_NS = 100000 };
/* So many in a row are worth a graph. */
enum { KERNELS_IN_A_ROW = 20 };

/* Short kernels, one after the other, with the host's time between them. In frameworks memsets and
 * copies on the device lie among them. A graph has these too. */
struct stretch {
    int64_t idle, busy;
    uint64_t kernels, others;
    int64_t last_end; /* of its last gap */
    uint32_t stream;  /* of its last kernel */
};

struct launches {
    struct stretch sum, longest; /* of a device */
    uint64_t stretches;
};

static void end_stretch(struct launches *launches, struct stretch *now)
{
    if (now->kernels >= KERNELS_IN_A_ROW) {
        if (now->idle > launches->longest.idle) launches->longest = *now;
        launches->sum.idle += now->idle;
        launches->sum.busy += now->busy;
        launches->sum.kernels += now->kernels;
        launches->sum.others += now->others;
        launches->stretches++;
    }
    *now = (struct stretch){0};
}

static void end_device(struct findings *to, struct launches *launches, uint32_t device)
{
    const struct stretch *sum = &launches->sum;
    if (launches->stretches) {
        const uint64_t all = sum->kernels + sum->others;
        const char *evidence = report_text(to->report,
            "%s of %s, with %s of idle time before each, on the average; up to %lu in a row",
            sum->others ? "kernels, memsets and copies on the GPU," : "kernels",
            find_time(to, (double)sum->busy / (double)all),
            find_time(to, (double)sum->idle / (double)all),
            (unsigned long)(launches->longest.kernels + launches->longest.others));
        finding(to, device, find_stream(to, launches->longest.stream), (double)sum->idle, all,
            evidence);
    }
    *launches = (struct launches){0};
}

static bool is_other(const struct work *work)
{
    return work->kind == WORK_SET || (work->kind == WORK_COPY && work->way == CS_WAY_DtoD);
}

/* A gap that only the launch of a short kernel, or of what may lie among them, explains: the thread
 * did not wait for the GPU in it. */
static bool is_launch(const struct run *run, const struct idles *idles, const struct gap *gap)
{
    const struct work *next = &run->works[gap->next];
    int64_t order = 0; /* the host was ahead, and the work came behind what was before it on its
                          stream, as in a graph */
    for (size_t i = gap->first; i < gap->last; i++) {
        const struct idle *piece = &idles->rows[i];
        if (piece->cause == CAUSE_HOST && piece->doing == DOING_BLOCKED) return false;
        if (piece->cause == CAUSE_ORDER) order += piece->end - piece->begin;
    }
    return gap->host + gap->launch + order == gap->end - gap->begin &&
           gap->end - gap->begin <= LAUNCH_GAP_NS &&
           (next->kind == WORK_KERNEL || is_other(next)) && !next->graph &&
           next->end - next->begin <= SHORT_NS;
}

void look_launches(struct findings *to)
{
    const struct run *run = &to->of->run;
    struct launches launches = {0};
    struct stretch now = {0};
    struct gap gap, last = {.device = NONE};
    for (size_t at = 0; gap_next(&to->of->idles, run, &at, &gap); last = gap) {
        const bool follows =
            gap.device == last.device && now.kernels && gap.begin - now.last_end <= SHORT_NS;
        if (!follows) end_stretch(&launches, &now);
        if (last.device != NONE && last.device != gap.device)
            end_device(to, &launches, last.device);
        if (!is_launch(run, &to->of->idles, &gap)) {
            end_stretch(&launches, &now);
            continue;
        }
        now.last_end = gap.end;
        if (!gap.host && !gap.launch) continue;
        now.idle += gap.host + gap.launch;
        now.busy += run->works[gap.next].end - run->works[gap.next].begin;
        *(is_other(&run->works[gap.next]) ? &now.others : &now.kernels) += 1;
        now.stream = run->works[gap.next].stream;
    }
    end_stretch(&launches, &now);
    if (last.device != NONE) end_device(to, &launches, last.device);
}
