/* The driver closed and opened again, at another address: what a program gets must be the driver
 * that is there now. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

static int use(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) return printf("no driver\n"), 0;
    __typeof__(&cuInit) init = (__typeof__(&cuInit))dlsym(driver, "cuInit");
    /* Not wrapped: its address is the driver's. */
    __typeof__(&cuDriverGetVersion) version =
        (__typeof__(&cuDriverGetVersion))dlsym(driver, "cuDriverGetVersion");
    __typeof__(&cuDevicePrimaryCtxRetain) retain =
        (__typeof__(&cuDevicePrimaryCtxRetain))dlsym(driver, "cuDevicePrimaryCtxRetain");
    __typeof__(&cuCtxSetCurrent) set =
        (__typeof__(&cuCtxSetCurrent))dlsym(driver, "cuCtxSetCurrent");
    __typeof__(&cuStreamCreate) create =
        (__typeof__(&cuStreamCreate))dlsym(driver, "cuStreamCreate");
    __typeof__(&cuStreamDestroy) destroy =
        (__typeof__(&cuStreamDestroy))dlsym(driver, "cuStreamDestroy_v2");
    CUcontext context;
    CUstream stream;
    int v = 0, results[6];
    if (!init || !version || !retain || !set || !create || !destroy)
        return printf("symbols are missing\n"), 0;
    results[0] = init(0);
    results[1] = version(&v);
    results[2] = retain(&context, 0);
    results[3] = set(context);
    results[4] = create(&stream, 0);
    results[5] = destroy(stream);
    for (int i = 0; i < 6; i++) printf("%d ", results[i]);
    printf("version %d\n", v);
    fflush(stdout);
    fprintf(stderr, "note version %p\n", (void *)version);
    dlclose(driver);
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) fprintf(stderr, "note stayed 1\n");
    return 1;
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        if (!use()) return 1;
        /* Where the library went away, its place is taken, so that it comes back elsewhere. */
        for (int k = 0; k < 64; k++)
            if (mmap(NULL, (size_t)1 << (22 - k % 10), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
                return 1;
    }
    return 0;
}
