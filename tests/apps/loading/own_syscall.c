/* A program with a function named as one of the C library's, which means something else: nobody but
 * the program calls it. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>

static int calls;
long syscall(long number, ...) { return calls++, number; }

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(&cuInit) init = (__typeof__(init))dlsym(driver, "cuInit");
    __typeof__(&cuDevicePrimaryCtxRetain) retain =
        (__typeof__(retain))dlsym(driver, "cuDevicePrimaryCtxRetain");
    __typeof__(&cuCtxSetCurrent) set = (__typeof__(set))dlsym(driver, "cuCtxSetCurrent");
    __typeof__(&cuStreamCreate) create = (__typeof__(create))dlsym(driver, "cuStreamCreate");
    CUcontext context;
    CUstream stream;
    int results = (int)init(0);
    results += (int)retain(&context, 0);
    results += (int)set(context);
    for (int i = 0; i < 10; i++) results += (int)create(&stream, CU_STREAM_NON_BLOCKING);
    printf("results %d, calls %d\n", results, calls);
    return 0;
}
