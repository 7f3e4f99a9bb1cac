/* The state that load.c and settle.c share while a run is loaded. */
#ifndef CS_MODEL_LOAD_H
#define CS_MODEL_LOAD_H

#include "tools/custream/model/model.h"

/* Words of the trace format. The kinds of work come first, in the order of enum work_kind. */
#define WORDS(WORD) \
    WORD(KERNEL, "kernel") WORD(COPY, "gpu_memcpy") WORD(SET, "gpu_memset") \
    WORD(GRAPH, "gpu_graph") WORD(GPU_RANGE, "gpu_range") WORD(DRIVER, "cuda_driver") \
    WORD(RUNTIME, "cuda_runtime") WORD(CALLBACK, "cs_callback") WORD(LOSS, "cs_loss") \
    WORD(WINDOW, "cs_window") WORD(NO_TIMES, "no GPU times") WORD(RANGE, "user_annotation") \
    WORD(LEGACY, "legacy default") WORD(PER_THREAD, "per-thread default") \
    WORD(PROCESS_NAME, "process_name") WORD(THREAD_NAME, "thread_name") \
    WORD(LIFE, "cs_stream")
#define WORD_ENUMERATOR(word, spelled) WORD_##word,
enum word { WORDS(WORD_ENUMERATOR) WORD_COUNT };

/* The last look-up and its answer: most rows have the same thread and stream as the row before. */
struct nearest {
    uint64_t key;
    uint32_t index;
    bool known;
};

struct loading {
    struct nearest last_stream, last_thread;
    text words[WORD_COUNT];
    struct numbers devices, streams, threads; /* indices: of devices by ordinal, of streams by
                                                 ordinal and lane, of threads by pid and tid */
    struct numbers calls, ways; /* enum cs_call and enum cs_way, by the number of the name's text */
    struct numbers open_ranges; /* indices of the process's ranges, by their id's text */
    uint32_t first_shape;       /* the index in run->shapes of the file's first shape */
    unsigned files;
    bool merged; /* the header says that custream merge made the file */
    void (*progress)(void *of, uint64_t bytes);
    void *progress_of;
};

/* Does what run_init() does, with given texts, which may be another run's. */
void run_begin(struct run *run, struct texts texts);
void facts_free(struct facts *facts);
/* Makes run->pauses, once calls are in their order. */
void pauses_make(struct run *run);
/* Returns the sum of -log of as many even chances that chance hardly gives: of one in 30 cases, of
 * 40 in one of 10,000. */
double evidence_enough(uint32_t count);
/* Finds whose calls let a thread go on after its pauses, in order of time (wakers.c). */
void wakers_find(const struct run *run, uint32_t thread, struct pause *pauses, size_t count);

#endif
