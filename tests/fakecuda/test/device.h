/* A context and a kernel, which nearly every test of the driver level starts with. */
#ifndef FAKECUDA_DEVICE_H
#define FAKECUDA_DEVICE_H

#include <cuda.h>
#include <unistd.h>

#include "check.h"

static CUcontext context;
static CUmodule module;
static CUfunction empty, sleep_kernel;

static inline void set_up(void)
{
    begin();
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, "any image"));
    OK(cuModuleGetFunction(&empty, module, "empty"));
    OK(cuModuleGetFunction(&sleep_kernel, module, "sleep"));
}

static inline CUresult launch(CUfunction f, CUstream stream, void **parameters)
{
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* What stands behind a closed gate has not begun, however slow the machine is. */
static _Atomic int gate_is_open;
static inline void CUDA_CB gate(void *unused)
{
    (void)unused;
    while (!gate_is_open) usleep(200);
}
static inline CUresult close_gate(CUstream stream)
{
    gate_is_open = 0;
    return cuLaunchHostFunc(stream, gate, NULL);
}

static inline CUresult sleep_on(CUstream stream, unsigned microseconds)
{
    void *parameters[] = {&microseconds};
    return launch(sleep_kernel, stream, parameters);
}

#endif
