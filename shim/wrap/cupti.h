/*
 * Look-ups of CUPTI's functions, answered with ours.
 */
#ifndef CS_WRAP_CUPTI_H
#define CS_WRAP_CUPTI_H

/* What a look-up of a cupti* name that found `found` is answered. */
void *cs_cupti_swap(const char *name, void *found);

#endif
