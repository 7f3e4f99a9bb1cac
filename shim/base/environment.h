/*
 * The program's environment, beside options: what a launcher and a toolkit have put there.
 *
 * A program may change its environment at any time, and that is no more than its own threads have agreed on. So no thread of ours reads it: it is read on a
 * thread of the program's, at the first look-up and at the first call, and kept. In the child of a fork that is its own first call.
 */
#ifndef CS_BASE_ENVIRONMENT_H
#define CS_BASE_ENVIRONMENT_H

#include "shim/base/compiler.h"

/* A thread of the program's, while no thread of ours lives that asks for what follows. */
void cs_environment_read(void);

/* Rank of a distributed run, and how many there are; -1: no launcher has told. */
int cs_process_rank(int *world_size);
extern const char *const cs_rank_variables[]; /* up to NULL */

/* The job that the process is part of, by the launcher's or the scheduler's name for it; NULL: none has told. */
const char *cs_process_job(void);

/* Hardware queues between the host and a GPU: CUDA_DEVICE_MAX_CONNECTIONS (CUDA C++ Programming Guide, "CUDA Environment Variables"): 1 to 32, and 8 if it is
 * not set or is none of these. */
int cs_max_connections(void);

/* Where CUDA's toolkit may be: the first such folder (0), the second (1); "" where there is none. */
const char *cs_toolkit(int which);

#endif
