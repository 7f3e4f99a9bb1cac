/* Copies, memsets, stream-ordered and managed memory, batches. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { N = 4096, W = 64, H = 16, D = 4 }; /* W x H x D words = N */

static uint32_t host_sum(const uint32_t *p)
{
    uint32_t sum = 0;
    for (int i = 0; i < N; i++) sum = sum * 31 + p[i];
    return sum;
}

static CUDA_MEMCPY2D plane(void *host, CUdeviceptr device, int to_device)
{
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    c.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    c.srcHost = c.dstHost = host;
    c.srcDevice = c.dstDevice = device;
    c.srcPitch = c.dstPitch = W * 4;
    c.WidthInBytes = W * 2;
    c.Height = H;
    return c;
}

static CUDA_MEMCPY3D cube(void *host, CUdeviceptr device, int to_device)
{
    CUDA_MEMCPY3D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    c.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    c.srcHost = c.dstHost = host;
    c.srcDevice = c.dstDevice = device;
    c.srcPitch = c.dstPitch = W * 4;
    c.srcHeight = c.dstHeight = H;
    c.WidthInBytes = W * 2;
    c.Height = H / 2;
    c.Depth = D;
    return c;
}

static CUDA_MEMCPY3D_PEER cube_peer(CUdeviceptr dst, CUdeviceptr src, CUcontext ctx)
{
    CUDA_MEMCPY3D_PEER c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = src;
    c.dstDevice = dst;
    c.srcContext = c.dstContext = ctx;
    c.srcPitch = c.dstPitch = W * 4;
    c.srcHeight = c.dstHeight = H;
    c.WidthInBytes = W * 4;
    c.Height = H;
    c.Depth = D;
    return c;
}

static void copy_arrays(CUdeviceptr p, uint32_t *host, CUstream s)
{
    CUarray a = NULL, b = NULL;
    CUDA_ARRAY_DESCRIPTOR line = {N, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
    fprintf(out, " arrays\n");
    if (FOUND(cuArrayCreate_v2, &a, &line) || FOUND(cuArrayCreate_v2, &b, &line)) return;
    RUN(cuMemcpyHtoA_v2, a, 0, host, N * 4);
    RUN(cuMemcpyAtoA_v2, b, 0, a, 0, N * 4);
    RUN(cuMemcpyAtoD_v2, p, b, 0, N * 4);
    RUN(cuMemcpyDtoA_v2, a, 0, p, N * 4);
    RUN(cuMemcpyAtoH_v2, host, a, 0, N * 4);
    RUN(cuMemcpyHtoAAsync_v2, a, 0, host, N * 4, s);
    RUN(cuMemcpyAtoHAsync_v2, host, a, 0, N * 4, s);
    RUN(cuStreamSynchronize, s);
    fprintf(out, "  host sum %08x\n", host_sum(host));
    FOUND(cuArrayDestroy, a);
    FOUND(cuArrayDestroy, b);
}

void section_copy(struct gpu *g)
{
    CUdeviceptr p = 0, q = 0;
    uint32_t *host = NULL, *pageable = malloc(N * 4);
    CUstream s;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuMemAlloc_v2, &q, N * 4);
    if (RUN(cuMemHostAlloc, (void **)&host, N * 4, 0)) return;
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < N; i++) host[i] = pageable[i] = (uint32_t)i * 2654435761u;

    fprintf(out, " plain\n");
    RUN(cuMemcpyHtoD_v2, p, pageable, N * 4);
    RUN(cuMemcpyDtoD_v2, q, p, N * 4);
    RUN(cuMemcpy, p, q, N * 2);
    RUN(cuMemcpyPeer, q, g->ctx, p, g->ctx, N * 4);
    RUN(cuCtxSynchronize);
    RUN(cuMemcpyDtoH_v2, pageable, q, N * 4);
    RUN(cuMemcpyHtoD_v2, p, pageable, 0);
    RUN(cuMemcpyHtoD_v2, 0, pageable, 4);
    fprintf(out, "  sum %08x\n", host_sum(pageable));

    fprintf(out, " on streams\n");
    RUN(cuMemcpyHtoDAsync_v2, p, host, N * 4, s);
    RUN(cuMemcpyDtoDAsync_v2, q, p, N * 4, s);
    RUN(cuMemcpyAsync, p, q, N * 4, s);
    RUN(cuMemcpyPeerAsync, q, g->ctx, p, g->ctx, N * 4, s);
    RUN(cuMemcpyDtoHAsync_v2, host, q, N * 4, s);
    RUN(cuStreamSynchronize, s);
    RUN(cuMemcpyHtoDAsync_v2, p, pageable, N * 4, NULL);
    RUN(cuMemcpyDtoHAsync_v2, pageable, p, N * 4, CU_STREAM_PER_THREAD);
    RUN(cuCtxSynchronize);
    fprintf(out, "  sums %08x %08x\n", host_sum(host), host_sum(pageable));

    fprintf(out, " planes\n");
    CUDA_MEMCPY2D up = plane(host, p, 1), down = plane(host, p, 0);
    RUN(cuMemcpy2D_v2, &up);
    RUN(cuMemcpy2DUnaligned_v2, &down);
    RUN(cuMemcpy2DAsync_v2, &up, s);
    RUN(cuMemcpy2DAsync_v2, &down, s);
    RUN(cuStreamSynchronize, s);
    up.WidthInBytes = W * 5; /* wider than its pitch: refused */
    RUN(cuMemcpy2D_v2, &up);
    RUN(cuMemcpy2DAsync_v2, &up, s);
    CUDA_MEMCPY3D in = cube(host, p, 1), back = cube(host, p, 0);
    RUN(cuMemcpy3D_v2, &in);
    RUN(cuMemcpy3D_v2, &back);
    RUN(cuMemcpy3DAsync_v2, &in, s);
    RUN(cuMemcpy3DAsync_v2, &back, s);
    RUN(cuStreamSynchronize, s);
    CUDA_MEMCPY3D_PEER peer = cube_peer(q, p, g->ctx);
    RUN(cuMemcpy3DPeer, &peer);
    RUN(cuMemcpy3DPeerAsync, &peer, s);
    RUN(cuStreamSynchronize, s);
    RUN(cuCtxSynchronize);
    fprintf(out, "  host sum %08x\n", host_sum(host));
    print_sum("device", q, N);
    copy_arrays(p, host, s);

    RUN(cuStreamDestroy_v2, s);
    FOUND(cuMemFreeHost, host);
    RUN(cuMemFree_v2, p);
    RUN(cuMemFree_v2, q);
    free(pageable);
}

void section_set(struct gpu *g)
{
    CUdeviceptr p = 0;
    CUstream s;
    (void)g;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s, CU_STREAM_DEFAULT);
    RUN(cuMemsetD8_v2, p, 1, N * 4);
    RUN(cuMemsetD16_v2, p, 0x1234, 100);
    RUN(cuMemsetD32_v2, p + 512, 0xdeadbeef, 100);
    RUN(cuMemsetD2D8_v2, p, W * 4, 7, W, H);
    RUN(cuMemsetD2D16_v2, p, W * 4, 0x77, W / 2, H);
    RUN(cuMemsetD2D32_v2, p, W * 4, 0x777, W / 4, H);
    RUN(cuCtxSynchronize);
    RUN(cuMemsetD8Async, p + 8192, 9, 100, s);
    RUN(cuMemsetD16Async, p + 9000, 0x99, 100, s);
    RUN(cuStreamSynchronize, s);
    RUN(cuMemsetD32Async, p + 10000, 0x999, 100, NULL);
    RUN(cuStreamSynchronize, NULL);
    RUN(cuMemsetD2D8Async, p + 8192, W * 4, 1, W, H / 2, s);
    RUN(cuMemsetD2D16Async, p + 8192, W * 4, 2, W / 2, H / 2, s);
    RUN(cuMemsetD2D32Async, p + 8192, W * 4, 3, W / 4, H / 2, s);
    RUN(cuMemsetD16_v2, p + 1, 0, 4); /* not aligned: refused */
    RUN(cuMemsetD32Async, p + 2, 0, 4, s);
    RUN(cuStreamSynchronize, s);
    print_sum("set", p, N);
    RUN(cuStreamDestroy_v2, s);
    RUN(cuMemFree_v2, p);
}

static void pools(struct gpu *g, CUstream s)
{
    CUdeviceptr p = 0, q = 0;
    CUmemoryPool pool = NULL;
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.id = g->dev;
    RUN(cuMemAllocAsync, &p, N * 4, s);
    RUN(cuMemsetD32Async, p, 3, N, s);
    LAUNCH_ADD(g, p, N, 1, s);
    RUN(cuStreamSynchronize, s);
    print_sum("allocated", p, N);
    RUN(cuMemFreeAsync, p, s);
    if (FOUND(cuMemPoolCreate, &pool, &props) == CUDA_SUCCESS) {
        RUN(cuMemAllocFromPoolAsync, &q, N * 4, pool, s);
        RUN(cuMemsetD8Async, q, 5, N * 4, s);
        RUN(cuStreamSynchronize, s);
        print_sum("from the pool", q, N);
        RUN(cuMemFreeAsync, q, s);
        RUN(cuStreamSynchronize, s);
        FOUND(cuMemPoolDestroy, pool);
    }
    RUN(cuMemAllocAsync, &p, (size_t)1 << 50, s);
    RUN(cuMemFreeAsync, 0, s);
    RUN(cuMemAllocAsync, &p, 4096, NULL);
    RUN(cuMemFreeAsync, p, NULL);
    RUN(cuStreamSynchronize, NULL);
}

/* Managed memory in kilobytes only: enough for the calls. */
void section_memory(struct gpu *g)
{
    CUstream s;
    CUdeviceptr m = 0;
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    pools(g, s);
    fprintf(out, " managed\n");
    if (FOUND(cuMemAllocManaged, &m, 1 << 16, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS) {
        CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->dev};
        size_t size = 1 << 16, index = 0;
        RUN(cuMemPrefetchAsync, m, size, g->dev, s);
        FOUND(cuMemPrefetchAsync_v2, m, size, device, 0, s);
        RUN(cuMemsetD32Async, m, 6, N, s);
        RUN(cuStreamAttachMemAsync, s, m, 0, CU_MEM_ATTACH_SINGLE);
        RUN(cuStreamAttachMemAsync, s, m, 0, CU_MEM_ATTACH_GLOBAL);
        RUN(cuStreamAttachMemAsync, s, m, 0, 0x77);
        FOUND(cuMemPrefetchBatchAsync, &m, &size, 1, &device, &index, 1, 0, s);
        RUN(cuStreamSynchronize, s);
        print_sum("managed", m, N);
        FOUND(cuMemDiscardBatchAsync, &m, &size, 1, 0, s);
        FOUND(cuMemDiscardAndPrefetchBatchAsync, &m, &size, 1, &device, &index, 1, 0, s);
        RUN(cuStreamSynchronize, s);
        RUN(cuMemFree_v2, m);
    }
    RUN(cuStreamDestroy_v2, s);
}

void section_batch(struct gpu *g)
{
    CUdeviceptr p = 0, dst[2], src[2];
    size_t sizes[2] = {N, N}, attr_index = 0, fail = 99;
    CUstream s;
    CUmemcpyAttributes attr;
    CUDA_MEMCPY3D_BATCH_OP op;
    RUN(cuMemAlloc_v2, &p, N * 4);
    RUN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    RUN(cuMemsetD32_v2, p, 1, N);
    RUN(cuMemsetD32_v2, p, 2, N / 4);
    RUN(cuCtxSynchronize);
    memset(&attr, 0, sizeof attr);
    attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    for (int i = 0; i < 2; i++) src[i] = p, dst[i] = p + (CUdeviceptr)(2 + i) * N;
    FOUND(cuMemcpyBatchAsync, dst, src, sizes, 2, &attr, &attr_index, 1, &fail, s);
    FOUND(cuMemcpyBatchAsync_v2, dst, src, sizes, 2, &attr, &attr_index, 1, s);
    FOUND(cuMemcpyBatchAsync_v2, dst, src, sizes, 2, &attr, &attr_index, 1,
        NULL); /* the null stream is refused */
    RUN(cuStreamSynchronize, s);
    print_sum("batch", p, N);

    memset(&op, 0, sizeof op);
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = p;
    op.dst.op.ptr.ptr = p + 2 * N;
    op.src.op.ptr.locHint.type = op.dst.op.ptr.locHint.type = CU_MEM_LOCATION_TYPE_DEVICE;
    op.src.op.ptr.locHint.id = op.dst.op.ptr.locHint.id = g->dev;
    op.extent.width = 64;
    op.extent.height = op.extent.depth = 2;
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    FOUND(cuMemcpy3DBatchAsync, 1, &op, &fail, 0, s);
    FOUND(cuMemcpy3DBatchAsync_v2, 1, &op, 0, s);
    RUN(cuStreamSynchronize, s);
    print_sum("cubes", p, N);
    RUN(cuStreamDestroy_v2, s);
    RUN(cuMemFree_v2, p);
}
