/* Between load.c and settle.c: what is only known while a run is loaded. */
#ifndef CS_MODEL_LOAD_H
#define CS_MODEL_LOAD_H

#include "tools/custream/model/model.h"
#include "tools/custream/trace/numbers.h"

/* Words of the format, as numbers of texts. The kinds of work come first, as in enum work_kind. */
enum word {
    WORD_KERNEL,
    WORD_COPY,
    WORD_SET,
    WORD_GRAPH,
    WORD_GPU_RANGE,
    WORD_DRIVER,
    WORD_RUNTIME,
    WORD_CALLBACK,
    WORD_LOSS,
    WORD_WINDOW,
    WORD_NO_TIMES,
    WORD_RANGE,
    WORD_LEGACY,
    WORD_PER_THREAD,
    WORD_PROCESS_NAME,
    WORD_THREAD_NAME,
    WORD_GOES_ON,
    WORD_BEGAN_EARLIER,
    WORD_BEGAN_AND_GOES_ON,
    WORD_LIFE,
    WORDS
};

/* The answer of the last look-up: most rows are of the same thread and stream as the one before. */
struct nearest {
    uint64_t key;
    uint32_t index;
    bool known;
};

struct loading {
    struct nearest last_stream, last_thread;
    text words[WORDS];
    struct numbers devices, streams,
        threads;                       /* indices, by ordinal; ordinal and lane; pid and tid */
    struct numbers calls, ways;        /* enum cs_call, enum cs_way, by the text that names one */
    struct numbers facts, open_ranges; /* indices, by text */
    uint32_t first_shape;              /* of the file's, in the run */
    unsigned files;
    bool merged; /* by custream merge: the header says so */
    void (*progress)(void *of, uint64_t bytes);
    void *progress_of;
};

/* run_init() with texts, which may have been another run's. */
void run_begin(struct run *run, struct texts texts);

#endif
