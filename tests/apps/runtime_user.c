/*
 * A library that is linked to a runtime, as many are to one of their own: what it does shows which
 * copy its calls have gone to.
 *
 * A kernel is known to the copy in which it was registered, and an error stands in the copy that
 * found it.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>

#define USER __attribute__((visibility("default")))

void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(
    void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

static void empty(void) { abort(); } /* the host's side of a kernel, and of one by library */

USER void user_register(void)
{
    static int image[4];
    void **binary = __cudaRegisterFatBinary(image);
    __cudaRegisterFunction(
        binary, (const char *)empty, NULL, "empty", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(binary);
}

USER int user_launch(void)
{
    return cudaLaunchKernel((const void *)empty, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
}
/* A kernel of somebody else's is not known to this one's copy. */
USER void *user_kernel(void) { return (void *)empty; }
USER int user_launch_of(void *kernel)
{
    volatile int result = cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
    return result;
}
USER int user_fail(void)
{
    volatile int result = cudaEventSynchronize(
        (cudaEvent_t)(intptr_t)0x1234560); /* there is something left to do after it */
    return result;
}
USER int user_last(void) { return cudaGetLastError(); }
USER void *user_bound(void)
{
    return (void *)cudaGetLastError;
} /* nobody is in front of this one */

/* Nothing of the library's is left on the stack when the runtime is called: it returns to whoever
 * called the library. */
#ifndef USER_TAIL
#define USER_TAIL user_tail
#endif
USER int USER_TAIL(void) { return cudaEventSynchronize((cudaEvent_t)(intptr_t)0x1234560); }
#ifdef USER_CALLS /* another library of this kind, linked to another runtime */
int USER_CALLS(void);
USER int user_calls_tail(void)
{
    volatile int result = USER_CALLS();
    return result;
}
#endif
USER int user_sync(void)
{
    int result = cudaDeviceSynchronize();
    return result + cudaStreamSynchronize(NULL);
}
/* Calls through a pointer that somebody else was given. */
typedef cudaError_t sync_fn(cudaStream_t);
USER sync_fn *user_pointer(void) { return cudaStreamSynchronize; }
typedef cudaError_t launch_fn(const void *, dim3, dim3, void **, size_t, cudaStream_t);
USER launch_fn *user_launcher(void) { return cudaLaunchKernel; }
