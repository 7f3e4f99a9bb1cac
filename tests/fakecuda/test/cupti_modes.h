/* Which calls CUPTI records, by what was asked of it when: measured with CUPTI 13.0 on an H200 by
 * tests/gpu/cupti_calls.cu, and so simulated (cupti_runtime.c). */
#ifndef FAKECUDA_CUPTI_MODES_H
#define FAKECUDA_CUPTI_MODES_H

enum when { EARLY, LATE }; /* before the first context, or once there is one */
enum step {
    END,
    SINGLE_ON,
    SINGLE_OFF,
    DRIVER_ON,
    DRIVER_OFF,
    RUNTIME_ON,
    RUNTIME_OFF,
    CALLBACKS_ON,
    OTHER_CALLBACK_ON,
    CALLBACKS_OFF,
    WORK
};

/* Of the works: a kernel and a set by the runtime, then by the driver: D, R: a record of the
 * driver's or of the runtime's call has its number; c: there is none, and a callback of the
 * runtime's call has it. */
static const struct mode {
    const char *name;
    enum when when;
    enum step steps[12];
    const char *expected[3];
} modes[] = {
    {"early-singles", EARLY, {SINGLE_ON, WORK}, {"DDDD"}},
    {"late-singles", LATE, {SINGLE_ON, WORK}, {"----"}},
    {"singles-come-back", EARLY, {SINGLE_ON, WORK, SINGLE_OFF, WORK, SINGLE_ON, WORK},
        {"DDDD", "----", "DDDD"}},
    {"off-at-the-first-context", EARLY, {SINGLE_ON, SINGLE_OFF, WORK, SINGLE_ON, WORK},
        {"----", "----"}},
    {"driver-off-before-the-first-context", EARLY,
        {SINGLE_ON, DRIVER_ON, DRIVER_OFF, SINGLE_ON, WORK}, {"DDDD"}},
    {"singles-that-are-lost", EARLY, {SINGLE_ON, WORK, DRIVER_ON, DRIVER_OFF, SINGLE_ON, WORK},
        {"DDDD", "----"}},
    {"runtime-off", EARLY, {SINGLE_ON, WORK, RUNTIME_ON, RUNTIME_OFF, WORK}, {"DDDD", "--DD"}},
    {"both-after-all-off", LATE,
        {DRIVER_ON, RUNTIME_ON, WORK, DRIVER_OFF, RUNTIME_OFF, WORK, DRIVER_ON, RUNTIME_ON, WORK},
        {"RRDD", "----", "RRDD"}},
    {"early-driver", EARLY, {DRIVER_ON, WORK}, {"--DD"}},
    {"late-driver", LATE, {DRIVER_ON, WORK}, {"--DD"}},
    {"late-runtime", LATE, {RUNTIME_ON, WORK}, {"RR--"}},
    {"late-both", LATE, {DRIVER_ON, RUNTIME_ON, WORK}, {"RRDD"}},
    {"singles-then-driver", EARLY, {SINGLE_ON, WORK, DRIVER_ON, WORK}, {"DDDD", "--DD"}},
    {"singles-then-both", EARLY, {SINGLE_ON, SINGLE_OFF, DRIVER_ON, RUNTIME_ON, WORK}, {"RRDD"}},
    {"singles-then-callbacks", EARLY, {SINGLE_ON, CALLBACKS_ON, WORK, CALLBACKS_OFF, WORK},
        {"ccDD", "--DD"}},
    {"callbacks-then-singles", EARLY, {CALLBACKS_ON, SINGLE_ON, WORK, CALLBACKS_OFF, WORK},
        {"ccDD", "--DD"}},
    {"callbacks-later", EARLY, {SINGLE_ON, WORK, CALLBACKS_ON, WORK, CALLBACKS_OFF, WORK},
        {"DDDD", "ccDD", "--DD"}},
    {"callbacks-and-singles-off-and-on", EARLY,
        {SINGLE_ON, CALLBACKS_ON, WORK, SINGLE_OFF, CALLBACKS_OFF, WORK, SINGLE_ON, CALLBACKS_ON,
            WORK},
        {"ccDD", "----", "ccDD"}},
    {"callback-of-another-call", EARLY, {SINGLE_ON, OTHER_CALLBACK_ON, WORK, CALLBACKS_OFF, WORK},
        {"DDDD", "DDDD"}},
    {"callbacks-and-both", LATE, {DRIVER_ON, RUNTIME_ON, CALLBACKS_ON, WORK, CALLBACKS_OFF, WORK},
        {"RRDD", "RRDD"}},
    {"callbacks-and-driver", LATE, {CALLBACKS_ON, DRIVER_ON, WORK}, {"ccDD"}},
};

#endif
