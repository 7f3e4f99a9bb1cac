/*
 * Names that the program gives (through NVTX) to what has no object of ours: categories of ranges, and threads by their id.
 *
 * Streams and events keep theirs in their own object. Read and written without locks.
 */
#ifndef CS_OBJECT_GIVEN_H
#define CS_OBJECT_GIVEN_H

#include "shim/object/names.h"

bool cs_given_init(void); /* before the first name is given; reading is fine before that. Once. */

void cs_given_category(cs_name domain, cs_u32 category, cs_name name);
cs_name cs_given_category_name(cs_name domain, cs_u32 category); /* 0: none */

void cs_given_thread(cs_u32 tid, cs_name name); /* 0 takes it back: the kernel gives the id to a later thread */
cs_name cs_given_thread_name(cs_u32 tid);

#endif
