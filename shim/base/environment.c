#include "shim/base/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1024 };

static int rank = -1, ranks = -1, connections;
static char job[TEXT], toolkits[2][TEXT];

const char *const cs_rank_variables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};

static int number_of(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        if (text && *text >= '0' && *text <= '9') return atoi(text);
    }
    return -1;
}

/* A value that does not fit counts as none. */
static void keep(char to[TEXT], const char *text)
{
    if (snprintf(to, TEXT, "%s", text ? text : "") >= TEXT) *to = 0;
}

void cs_environment_read(void)
{
    static const char *const sizes[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", NULL};
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "TORCHELASTIC_RUN_ID" /* "none", unless somebody chose one */};
    rank = number_of(cs_rank_variables);
    ranks = number_of(sizes);
    connections = number_of((const char *const[]){"CUDA_DEVICE_MAX_CONNECTIONS", NULL});
    keep(toolkits[0], getenv("CUDA_HOME"));
    keep(toolkits[1], getenv("CUDA_PATH"));
    *job = 0;
    for (size_t i = 0; i < CS_COUNT(jobs) && !*job; i++) {
        const char *text = getenv(jobs[i]);
        if (text && strcmp(text, "none")) keep(job, text);
    }
}

int cs_process_rank(int *world_size)
{
    *world_size = ranks;
    return rank;
}

int cs_max_connections(void) { return connections >= 1 && connections <= 32 ? connections : 8; }

const char *cs_process_job(void) { return *job ? job : NULL; }
const char *cs_toolkit(int which) { return toolkits[which]; }
