/* Which of CUPTI's numbers are calls that may enqueue work: by the names that it gives them. */
#include "shim/base/options.h"
#include "shim/base/realdl.h"
#include "shim/gpu/cupti.h"
#include "tests/unit/check.h"

/* By number, of the driver and of the runtime. Of a call of the runtime that has no namesake in the
 * driver nothing is known. */
static const struct {
    const char *driver;
    bool enqueues;
    const char *runtime;
    bool may;
} calls[] = {
    {NULL, false, NULL, false},
    {"cuLaunchKernel", true, "cudaLaunchKernel_v7000", true},
    {"cuStreamQuery", false, "cudaStreamQuery_v3020", false},
    {"cuMemcpyHtoDAsync_v2_ptsz", true, "cudaMemcpyAsync_ptsz_v7000", true},
    {"cuEventQuery", false, "cudaEventQuery_v3020", false},
    {"cuStreamGetCtx_ptsz", false, "cudaMallocManaged_v6000", true},
    {"cuGraphLaunch", true, "cudaGraphLaunch_ptsz_v10000", true},
};

static CUptiResult CUPTIAPI name_of(CUpti_CallbackDomain domain, uint32_t number, const char **name)
{
    if (number >= CS_COUNT(calls)) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? calls[number].driver : calls[number].runtime;
    return CUPTI_SUCCESS;
}

TEST(calls_that_may_enqueue_by_their_names)
{
    static const struct cs_cupti stub = {.cuptiGetCallbackName = name_of};
    cs_store_rel(&cs_cupti_opened, &stub);
    cs_cupti_calls_read();
    for (uint32_t i = 1; i < CS_COUNT(calls); i++) {
        CHECK_IS(cs_cupti_may_enqueue(
                     &(CUpti_ActivityAPI){.kind = CUPTI_ACTIVITY_KIND_DRIVER, .cbid = i}),
            calls[i].enqueues);
        CHECK_IS(cs_cupti_may_enqueue(
                     &(CUpti_ActivityAPI){.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .cbid = i}),
            calls[i].may);
    }
}

/* The writer may be at the first reason while the second is made. */
TEST(a_reason_why_there_is_no_cupti_stays_as_it_is)
{
    static const char *const libraries[] = {
        "/nonexistent/libcupti.so.13", "/nonexistent/another.so", "libz.so.1"};
    const char *whys[CS_COUNT(libraries)];
    char said[CS_COUNT(libraries)][256];
    REQUIRE(cs_realdl_init());
    for (size_t i = 0; i < CS_COUNT(libraries); i++) {
        setenv("CUSTREAM_CUPTI", libraries[i], 1);
        cs_options_read();
        whys[i] = cs_cupti_open();
        REQUIRE(whys[i]);
        snprintf(said[i], sizeof said[i], "%s", whys[i]);
    }
    for (size_t i = 0; i < CS_COUNT(libraries); i++) CHECK_TEXT(whys[i], said[i]);
    CHECK_TEXT(whys[2], "the library has no cuptiGetVersion");
}
