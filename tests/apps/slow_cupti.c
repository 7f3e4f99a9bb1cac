/* libslow_cupti.so: the simulated CUPTI, to which it is linked, for a process that takes a while to load it, as NVIDIA's does. */
#include <time.h>

__attribute__((constructor)) static void begin(void) { nanosleep(&(struct timespec){0, 500000000}, NULL); }
