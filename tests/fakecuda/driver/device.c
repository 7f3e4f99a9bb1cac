/* Devices: how many, and what they say about themselves. */
#include "tests/fakecuda/driver/fake.h"

#include <stdio.h>

int fake_device_count;
extern const int
    fake_version_cap; /* version.c: 0, or what this build of the library is the driver of */

enum { MEMORY_MIB = 8192 };

void fake_devices_init(void)
{
    long count = fake_setting("CUSTREAM_FAKE_DEVICES", 1);
    fake_device_count = count < 0 ? 0 : count > FAKE_MAX_DEVICES ? FAKE_MAX_DEVICES : (int)count;
}

int fake_driver_version(void)
{
    static int version;
    if (!version)
        version = (int)fake_setting(
            "CUSTREAM_FAKE_DRIVER_VERSION", fake_version_cap ? fake_version_cap : CUDA_VERSION);
    return version;
}

static CUresult check(CUdevice device, const void *out)
{
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    return device < 0 || device >= fake_device_count ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

API(cuDeviceGet, (CUdevice * device, int ordinal), (device, ordinal))
{
    FAKE_TRY(check(ordinal, device));
    *device = ordinal;
    return CUDA_SUCCESS;
}

API(cuDeviceGetCount, (int *count), (count))
{
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = fake_device_count;
    return CUDA_SUCCESS;
}

API(cuDeviceGetName, (char *name, int length, CUdevice device), (name, length, device))
{
    FAKE_TRY(check(device, name));
    if (length <= 0) return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "custream simulated GPU");
    return CUDA_SUCCESS;
}

static CUresult uuid(CUuuid *out, CUdevice device)
{
    FAKE_TRY(check(device, out));
    memcpy(out->bytes, "custream-fakegpu", 16);
    out->bytes[15] = (char)('0' + device);
    return CUDA_SUCCESS;
}
API(cuDeviceGetUuid, (CUuuid * out, CUdevice device), (out, device)) { return uuid(out, device); }
API(cuDeviceGetUuid_v2, (CUuuid * out, CUdevice device), (out, device))
{
    return uuid(out, device);
}

API(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice device), (luid, mask, device))
{
    (void)mask;
    FAKE_TRY(check(device, luid));
    return CUDA_ERROR_NOT_SUPPORTED; /* as on Linux */
}

API(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device), (bytes, device))
{
    FAKE_TRY(check(device, bytes));
    *bytes = (size_t)fake_setting("CUSTREAM_FAKE_MEMORY_MIB", MEMORY_MIB) << 20;
    return CUDA_SUCCESS;
}

API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device), (major, minor, device))
{
    FAKE_TRY(check(device, major && minor ? major : NULL));
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

/* An H200's values for what programs ask; 0 for everything else. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

API(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device),
    (value, attribute, device))
{
    FAKE_TRY(check(device, value));
    if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : 0;
    for (unsigned i = 0; i < COUNT_OF(attributes); i++)
        if (attributes[i].attribute == attribute) *value = attributes[i].value;
    return CUDA_SUCCESS;
}

API(cuDeviceGetPCIBusId, (char *text, int length, CUdevice device), (text, length, device))
{
    FAKE_TRY(check(device, text));
    snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

API(cuDeviceGetByPCIBusId, (CUdevice * device, const char *text), (device, text))
{
    unsigned domain, bus;

    if (!device || !text || sscanf(text, "%x:%x:", &domain, &bus) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_TRY(check((int)bus - 1, device));
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

API(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer))
{
    FAKE_TRY(check(device, can));
    FAKE_TRY(check(peer, can));
    *can = device != peer;
    return CUDA_SUCCESS;
}

API(cuDeviceGetP2PAttribute,
    (int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer),
    (value, attribute, device, peer))
{
    FAKE_TRY(check(device, value));
    FAKE_TRY(check(peer, value));
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED && device != peer;
    return CUDA_SUCCESS;
}
