#include "tools/custream/trace/foreign.h"

#include "shim/base/lane.h"
#include "tools/custream/command.h"
#include "tools/custream/lanes.h"

enum { UNKNOWN, HOST, GPU };

/* Categories of Kineto before 2022, each with its name today. */
static const char *const categories[][2] = {{"Kernel", "kernel"}, {"Memcpy", "gpu_memcpy"},
    {"Memset", "gpu_memset"}, {"Runtime", "cuda_runtime"}, {"Driver", "cuda_driver"}};
static const char *const work[] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph"};

static text text_in(struct foreign *foreign, const char *word)
{
    return text_number(foreign->texts, word, strlen(word));
}

void foreign_begin(struct foreign *foreign, struct texts *texts, struct trace_left *left)
{
    *foreign = (struct foreign){.texts = texts, .left = left};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        *numbers_at(&foreign->work, text_in(foreign, work[i]), 0) = 1;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        *numbers_at(&foreign->categories, text_in(foreign, categories[i][0]), 0) =
            text_in(foreign, categories[i][1]);
}

void foreign_end(struct foreign *foreign)
{
    numbers_free(&foreign->processes);
    numbers_free(&foreign->streams);
    numbers_free(&foreign->categories);
    numbers_free(&foreign->work);
    free(foreign->held);
}

/* --- processes --- */

/* Returns a key for a pid or tid, which is a number, or in some tools a text such as "GPU 0". */
static uint64_t key_of(const struct trace_row *row, enum trace_key key)
{
    return row_has(row, key) ? (uint64_t)row->number[key] & UINT32_MAX
                             : UINT64_C(1) << 32 | row->word[key];
}

static uint64_t thread_of(uint64_t process, uint64_t thread)
{
    return process * UINT64_C(0x9e3779b97f4a7c15) ^ thread;
}

uint32_t gpu_of_process(bool ours, int64_t pid, const char *called)
{
    static const char *const names[] = {"/device:GPU:%u", "GPU%*1[ ]%u"};
    unsigned ordinal;
    if (ours)
        return pid < CS_GPU_PIDS    ? (uint32_t)pid
               : pid >= MERGED_GPUS ? merged_gpu_ordinal((uint32_t)pid)
                                    : TRACE_NO_GPU;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sscanf(called, names[i], &ordinal) == 1) return ordinal;
    return TRACE_NO_GPU;
}

static void process_named(
    struct foreign *foreign, const struct trace_row *row, const char *name, bool label)
{
    uint32_t *process = numbers_at(&foreign->processes, key_of(row, KEY_PID), UNKNOWN);
    const uint32_t gpu = gpu_of_process(false, 0, name);
    if (gpu != TRACE_NO_GPU) *process = GPU + gpu;
    else if (!label && *process == UNKNOWN && *name) *process = HOST;
}

static void named(struct foreign *foreign, const struct trace_row *row)
{
    const char *what = text_of(foreign->texts, row_word(row, KEY_NAME)),
               *name = text_of(foreign->texts, row_word(row, KEY_META_NAME));
    if (!strcmp(what, "process_name")) process_named(foreign, row, name, false);
    if (!strcmp(what, "process_labels"))
        process_named(foreign, row, text_of(foreign->texts, row_word(row, KEY_LABELS)), true);
    unsigned stream; /* of an XLA lane, "Stream #14(Compute)" */
    if (!strcmp(what, "thread_name") && sscanf(name, "Stream #%u", &stream) == 1)
        *numbers_at(&foreign->streams, thread_of(key_of(row, KEY_PID), key_of(row, KEY_TID)), 0) =
            stream + 1;
}

/* --- rows --- */

static void number_put(struct trace_row *row, enum trace_key key, int64_t number)
{
    row->number[key] = number;
    row->has |= UINT64_C(1) << key;
}

/* Turns a slice into GPU work if its lane is named after a stream. False: the slice is on another
 * lane of XLA's, which shows the same work again. */
static bool put_work(struct foreign *foreign, struct trace_row *row, uint64_t thread)
{
    const char *name = text_of(foreign->texts, row_word(row, KEY_NAME));
    const uint32_t stream = numbers_get(&foreign->streams, thread, 0);
    if (!stream) return false;
    row->word[KEY_CAT] = text_in(foreign, !strncasecmp(name, "memcpy", 6)   ? "gpu_memcpy"
                                          : !strncasecmp(name, "memset", 6) ? "gpu_memset"
                                                                            : "kernel");
    row->has |= UINT64_C(1) << KEY_CAT;
    number_put(row, KEY_STREAM, stream - 1);
    return true;
}

/* Sets row->gpu to the device that the row names, else to the GPU that the row's process stands
 * for, else to GPU 0. */
static void find_gpu(struct foreign *foreign, struct trace_row *row)
{
    uint32_t *process = numbers_at(&foreign->processes, key_of(row, KEY_PID), UNKNOWN);
    const int64_t pid = row_number(row, KEY_PID, 0);
    if (row_has(row, KEY_DEVICE)) row->gpu = (uint32_t)row->number[KEY_DEVICE];
    else if (*process >= GPU) row->gpu = *process - GPU;
    else if (row_has(row, KEY_PID)) row->gpu = pid >= 0 && pid < CS_GPU_PIDS ? (uint32_t)pid : 0;
    else row->gpu = gpu_of_process(false, 0, text_of(foreign->texts, row->word[KEY_PID]));
    if (row->gpu == TRACE_NO_GPU) row->gpu = 0;
    if (*process == UNKNOWN) *process = GPU + row->gpu;
}

bool foreign_row(struct foreign *foreign, struct trace_row *row)
{
    const char phase = *text_of(foreign->texts, row_word(row, KEY_PH));
    const uint32_t today = numbers_get(&foreign->categories, row_word(row, KEY_CAT), 0);
    if (!phase) return foreign->left->others++, false;
    if (phase == 'M') named(foreign, row);
    else if (!row_has(row, KEY_TS) || row->bad_time) return foreign->left->times++, false;
    if (today) row->word[KEY_CAT] = today;
    if (phase == 'X' && !row_has(row, KEY_CAT)) { /* GPU work, if it is on a GPU's stream */
        const uint64_t process = key_of(row, KEY_PID), thread = key_of(row, KEY_TID);
        const uint32_t kind = numbers_get(&foreign->processes, process, UNKNOWN);
        if (kind == UNKNOWN) /* the slice waits for foreign_held() */
            array_add(foreign->held, foreign->held_count, foreign->held_capacity,
                (struct held){row->number[KEY_TS], row_number(row, KEY_DUR, 0), process, thread,
                    row_number(row, KEY_CORRELATION, 0), row_word(row, KEY_NAME)});
        row->gpu = kind - GPU;
        return kind >= GPU && put_work(foreign, row, thread_of(process, thread));
    }
    if (phase == 'X' && numbers_get(&foreign->work, row_word(row, KEY_CAT), 0))
        return find_gpu(foreign, row), true;
    const uint32_t kind = numbers_get(&foreign->processes, key_of(row, KEY_PID), UNKNOWN);
    row->gpu = kind >= GPU ? kind - GPU : TRACE_NO_GPU;
    return true;
}

bool foreign_held(struct foreign *foreign, struct trace_row *row)
{
    while (foreign->held_told < foreign->held_count) {
        const struct held held = foreign->held[foreign->held_told++];
        const uint32_t kind = numbers_get(&foreign->processes, held.process, UNKNOWN);
        if (kind < GPU) continue;
        *row = (struct trace_row){.gpu = kind - GPU};
        row->word[KEY_PH] = text_in(foreign, "X");
        row->word[KEY_NAME] = held.name;
        row->has = UINT64_C(1) << KEY_PH | UINT64_C(1) << KEY_NAME;
        number_put(row, KEY_TS, held.ts);
        number_put(row, KEY_DUR, held.dur);
        number_put(row, KEY_TID, (int64_t)(held.thread & UINT32_MAX));
        if (held.correlation) number_put(row, KEY_CORRELATION, held.correlation);
        if (put_work(foreign, row, thread_of(held.process, held.thread))) return true;
    }
    return false;
}
