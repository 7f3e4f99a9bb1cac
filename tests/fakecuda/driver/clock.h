/*
 * The virtual clock: with CUSTREAM_FAKE_CLOCK=virtual time is what the program asks for, and passes
 * for each of its threads alone. A program that wants it says which of its threads take part.
 */
#ifndef FAKECUDA_CLOCK_H
#define FAKECUDA_CLOCK_H

#include <stdint.h>

struct fake_clock {
    void (*join)(unsigned number); /* the calling thread takes part from now on, under this number;
                                      of two at one time the lower one goes on first */
    void (*spend)(uint64_t ns);    /* the calling thread's own code takes so long; 0: it waits for
                                      its turn */
    void (*leave)(void);           /* it takes part no more */
    uint64_t (*finish)(void);      /* returns when all threads have left and all work has ended: how
                                      long that took */
};
/* NULL: time is real. */
const struct fake_clock *custream_fakecuda_clock(void);

#endif
