/* The driver-API program: `driver [before] SECTION...` runs the sections named. See driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

_Thread_local FILE *out;

/* PTX for an old target, so that any driver from 12.0 on compiles it for any GPU. No kernel has a
   name to which the simulated GPU gives a meaning of its own (add, fill, sleep). */
const char *const kernels_ptx =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry empty() { ret; }\n"
    ".visible .entry raise(.param .u64 a0, .param .u32 a1, .param .u32 a2) {\n"
    "    .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>;\n"
    "    ld.param.u64 %rd1, [a0]; ld.param.u32 %r3, [a1]; ld.param.u32 %r2, [a2];\n"
    "    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mov.u32 %r6, %tid.x;\n"
    "    mad.lo.s32 %r1, %r4, %r5, %r6;\n"
    "    setp.ge.u32 %p1, %r1, %r3;\n"
    "    @%p1 bra DONE;\n"
    "    cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n"
    "    ld.global.u32 %r7, [%rd4]; add.s32 %r8, %r7, %r2; st.global.u32 [%rd4], %r8;\n"
    "DONE: ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 a0) {\n"
    "    .reg .pred %p<2>; .reg .b64 %rd<6>;\n"
    "    ld.param.u64 %rd2, [a0];\n"
    "    mov.u64 %rd3, %globaltimer;\n"
    "AGAIN: mov.u64 %rd4, %globaltimer; sub.s64 %rd5, %rd4, %rd3; setp.lt.u64 %p1, %rd5, %rd2;\n"
    "    @%p1 bra AGAIN;\n"
    "    ret;\n"
    "}\n";

CUresult step(const char *name, CUresult rc)
{
    fprintf(out, "  %s %d\n", name, (int)rc);
    return rc;
}

static void *libcuda(void)
{
    static void *handle;
    if (!handle) handle = dlopen("libcuda.so.1", RTLD_NOW);
    return handle;
}

void *find(const char *name)
{
    void *p = dlsym(libcuda(), name);
    if (!p) fprintf(out, "  %s absent\n", name);
    return p;
}

void *ask(const char *base, int version, cuuint64_t flags)
{
    __typeof__(&cuGetProcAddress_v2) get =
        (__typeof__(&cuGetProcAddress_v2))find("cuGetProcAddress_v2");
    if (!get) return NULL;
    void *p = NULL;
    CUdriverProcAddressQueryResult status = 99;
    CUresult rc = get(base, &p, version, flags, &status);
    fprintf(out, "  cuGetProcAddress_v2(%s, %d, %d) %d status %d\n", base, version, (int)flags,
        (int)rc, (int)status);
    return rc == CUDA_SUCCESS ? p : NULL;
}

uint32_t checksum(CUdeviceptr p, size_t n)
{
    uint32_t *host = calloc(n, sizeof *host), sum = 0;
    CUresult rc = cuMemcpyDtoH_v2(host, p, n * sizeof *host);
    for (size_t i = 0; i < n; i++) sum = sum * 31 + host[i];
    free(host);
    return rc == CUDA_SUCCESS ? sum : 0;
}

void print_sum(const char *what, CUdeviceptr p, size_t n)
{
    fprintf(out, "  %s sum %08x\n", what, checksum(p, n));
}

static const struct {
    const char *name;
    void (*run)(struct gpu *);
} sections[] = {
    {"stream", section_stream},
    {"launch", section_launch},
    {"memop", section_memop},
    {"thread", section_thread},
    {"copy", section_copy},
    {"set", section_set},
    {"memory", section_memory},
    {"batch", section_batch},
    {"capture", section_capture},
    {"graph", section_graph},
    {"context", section_context},
    {"green", section_green},
    {"lookup", section_lookup},
    {"odd", section_odd},
    {"legacy", section_legacy},
};

int load_kernels(struct gpu *g)
{
    if (RUN(cuModuleLoadData, &g->mod, kernels_ptx)) return -1;
    if (RUN(cuModuleGetFunction, &g->empty, g->mod, "empty")) return -1;
    if (RUN(cuModuleGetFunction, &g->add, g->mod, "raise")) return -1;
    return RUN(cuModuleGetFunction, &g->spin, g->mod, "spin") ? -1 : 0;
}

static int set_up(struct gpu *g)
{
    if (RUN(cuInit, 0) || RUN(cuDeviceGet, &g->dev, 0)) return -1;
    if (RUN(cuDevicePrimaryCtxRetain, &g->ctx, g->dev) || RUN(cuCtxSetCurrent, g->ctx)) return -1;
    return load_kernels(g);
}

int main(int argc, char **argv)
{
    struct gpu g;
    out = stdout;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash then shows its last call also through a pipe */
    int a = 1;
    if (a < argc &&
        !strcmp(argv[a],
            "before")) { /* before cuInit: the driver refuses, with and without the shim alike */
        RUN(cuStreamSynchronize, NULL);
        RUN(cuStreamQuery, NULL);
        a++;
    }
    if (set_up(&g)) return 1;
    for (; a < argc; a++) {
        size_t i;
        for (i = 0; i < sizeof sections / sizeof *sections && strcmp(argv[a], sections[i].name);
            i++)
            continue;
        if (i == sizeof sections / sizeof *sections)
            return fprintf(stderr, "no section %s\n", argv[a]), 2;
        printf("%s\n", argv[a]);
        sections[i].run(&g);
        RUN(cuCtxSynchronize);
    }
    RUN(cuModuleUnload, g.mod);
    RUN(cuDevicePrimaryCtxRelease_v2, g.dev);
    return 0;
}
