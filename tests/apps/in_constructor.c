/* A library whose constructor makes more CUDA calls than a small ring holds, with the loader's lock
 * held all the time. */
#include "tests/apps/app.h"

__attribute__((constructor)) static void many_calls(void)
{
    CUresult result = CU(cuInit, 0);
    for (int i = 0; i < 3000 && (result == CUDA_SUCCESS); i++) (void)!CU(cuStreamQuery, 0);
    printf("constructor done\n");
}
