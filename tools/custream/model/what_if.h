/* Changes of a run, as a user words them: "no cuCtxSynchronize", "kernel gemm*=0.5". */
#ifndef CS_MODEL_WHAT_IF_H
#define CS_MODEL_WHAT_IF_H

#include "tools/custream/model/replay.h"

struct what_if {
    struct change change;
    enum split split;
    /* the memory of change.calls, change.scale and change.gaps */
    bool *calls, *gaps;
    float *scale;
};

/* Words a change. False: `error` says what is wrong, or what the run does not have, in one line. */
bool what_if_read(struct what_if *what, const struct run *run, const char *words, char error[512]);
void what_if_free(struct what_if *what);

/* Whether a name, which may have * and ?, fits a call, with or without what CUDA adds to names:
 * _v2, _ptsz, _ptds. */
bool call_is_named(const char *name, const char *call);

/* Adds what another change changes. Places, names and factors are left out. */
void change_add(struct change *to, const struct change *change);

/* Returns how long the run takes when it is played without a change. Kernels of unknown shape are
 * played twice: as if they filled the device, and as if all had room. The length that is nearer to
 * the recorded one is returned. */
int64_t unchanged_length(struct replay *replay);

/* The gain of a change: how much shorter the run would be, in ns. The two figures differ if the
 * trace does not know enough for one. */
struct gain {
    int64_t low, high;
};
/* Plays the run with the change. `replay`: the run without a split. False: the run cannot be played
 * with this split. */
bool gain_of(
    struct gain *gain, struct replay *replay, const struct change *change, enum split split);

#endif
