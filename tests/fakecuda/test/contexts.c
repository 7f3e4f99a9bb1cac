/* Contexts, devices, fork, errors on demand. Argument: what to test; the environment belongs to it.
 */
#include "device.h"

#include <sys/wait.h>

static void test_contexts(void)
{
    CUcontext second, now;
    CUstream s, own;
    CUevent e;
    int count, active;
    unsigned flags;
    CUdevice device;

    set_up();
    OK(cuDeviceGetCount(&count));
    CHECK_IS(count, 2); /* CUSTREAM_FAKE_DEVICES=2 */
    OK(cuStreamCreate(&own, 0));
    OK(cuCtxCreate(&second, NULL, 0, 1));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == second);
    OK(cuCtxGetDevice(&device));
    CHECK_IS(device, 1);
    OK(cuStreamCreate(&s, 0));
    OK(cuEventCreate(&e, 0));
    CHECK_IS(cuEventRecord(e, own), CUDA_ERROR_INVALID_HANDLE); /* of another context */
    CHECK_IS(launch(empty, own, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(own, e, 0)); /* across contexts it may */
    OK(cuStreamGetCtx(own, &now));
    CHECK(now == context);
    OK(cuCtxPopCurrent(&now));
    CHECK(now == second);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == context);
    OK(cuCtxPushCurrent(second));
    OK(cuCtxPopCurrent(NULL));
    OK(cuCtxDestroy(second));
    CHECK_IS(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE); /* its streams went with it */
    CHECK_IS(cuCtxSetCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxRetain(&now, 0));
    CHECK(now == context);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuStreamQuery(own));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_IS(active, 0);
    CHECK_IS(cuStreamQuery(own), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(launch(empty, NULL, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&now, 0));
    CHECK(now == context); /* the same again */
    OK(launch(empty, NULL, NULL));
}

/* As driver 580 does: a reset leaves the references, and what has ended can be current. */
static void test_reset(void)
{
    unsigned long long id, later;
    CUdevice device = -1;
    unsigned flags;
    CUstream s;
    int active;

    set_up();
    OK(cuCtxGetId(context, &id));
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_IS(active, 0);
    OK(cuCtxGetDevice(&device));
    CHECK_IS(device, 0);
    CHECK_IS(cuCtxGetId(context, &later), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_IS(cuStreamCreate(&s, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuCtxSetCurrent(context));
    OK(cuCtxPushCurrent(context));
    CHECK_IS(cuStreamCreate(&s, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuStreamCreate(&s, 0));
    OK(cuCtxGetId(context, &later));
    CHECK(later != id);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuStreamQuery(s)); /* the first reference counts still */
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxRelease(0));
    CHECK_IS(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_fork(void)
{
    int status = 0;
    pid_t child;

    set_up();
    OK(sleep_on(NULL, 1000));
    child = fork();
    if (child == 0) {
        int version;
        failures = 0;
        CHECK_IS(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
        CHECK_IS(launch(empty, NULL, NULL), CUDA_ERROR_NOT_INITIALIZED);
        OK(cuDriverGetVersion(&version));
        _exit(failures != 0);
    }
    waitpid(child, &status, 0);
    OK(status);
    OK(cuCtxSynchronize());
}

static void test_failures(void)
{ /* CUSTREAM_FAKE_FAIL=cuLaunchKernel:3=700,cuStreamCreate*=2 */
    CUstream s;

    set_up();
    OK(launch(empty, NULL, NULL));
    OK(launch(empty, NULL, NULL));
    CHECK_IS(launch(empty, NULL, NULL), 700);
    OK(launch(empty, NULL, NULL));
    CHECK_IS(cuStreamCreate(&s, 0), 2);
    CHECK_IS(cuStreamCreateWithPriority(&s, 0, 0), 2);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "contexts") == 0) test_contexts();
    else if (strcmp(what, "reset") == 0) test_reset();
    else if (strcmp(what, "fork") == 0) test_fork();
    else if (strcmp(what, "failures") == 0) test_failures();
    else if (strcmp(what, "no-device") == 0) CHECK_IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
    else return 2;
    FINISH();
}
