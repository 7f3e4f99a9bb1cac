/* A module that is loaded with dlopen and has a copy of NVTX of its own. */
#include <nvtx3/nvToolsExt.h>

__attribute__((visibility("default"))) int nvtx_module(void)
{
    int level = nvtxRangePushA("of the module");
    nvtxRangePop();
    return level;
}
