/* Between load.c and settle.c: what is only known while a run is loaded. */
#ifndef CS_MODEL_LOAD_H
#define CS_MODEL_LOAD_H

#include "tools/custream/model/model.h"

/* Words of the format, as numbers of texts. The kinds of work come first, as in enum work_kind. */
#define WORDS(WORD) \
    WORD(KERNEL, "kernel") WORD(COPY, "gpu_memcpy") WORD(SET, "gpu_memset") \
    WORD(GRAPH, "gpu_graph") WORD(GPU_RANGE, "gpu_range") WORD(DRIVER, "cuda_driver") \
    WORD(RUNTIME, "cuda_runtime") WORD(CALLBACK, "cs_callback") WORD(LOSS, "cs_loss") \
    WORD(WINDOW, "cs_window") WORD(NO_TIMES, "no GPU times") WORD(RANGE, "user_annotation") \
    WORD(LEGACY, "legacy default") WORD(PER_THREAD, "per-thread default") \
    WORD(PROCESS_NAME, "process_name") WORD(THREAD_NAME, "thread_name") \
    WORD(GOES_ON, "goes on in the next part") WORD(BEGAN_EARLIER, "began in an earlier part") \
    WORD(BEGAN_AND_GOES_ON, "began in an earlier part, and goes on in the next") \
    WORD(LIFE, "cs_stream")
#define WORD_ENUMERATOR(word, spelled) WORD_##word,
enum word { WORDS(WORD_ENUMERATOR) WORD_COUNT };

/* The answer of the last look-up: most rows are of the same thread and stream as the one before. */
struct nearest {
    uint64_t key;
    uint32_t index;
    bool known;
};

struct loading {
    struct nearest last_stream, last_thread;
    text words[WORD_COUNT];
    struct numbers devices, streams,
        threads;                /* indices, by ordinal; ordinal and lane; pid and tid */
    struct numbers calls, ways; /* enum cs_call, enum cs_way, by the text that names one */
    struct numbers open_ranges; /* indices, by text */
    uint32_t first_shape;       /* of the file's, in the run */
    unsigned files;
    bool merged; /* by custream merge: the header says so */
    void (*progress)(void *of, uint64_t bytes);
    void *progress_of;
};

/* run_init() with texts, which may have been another run's. */
void run_begin(struct run *run, struct texts texts);
void facts_free(struct facts *facts);

#endif
