/* Names of kernels by their handles (object/kernel.h). */
#include "shim/object/kernel.h"

#include "shim/calls/real.h"
#include "tests/unit/driver.h"

static const CUfunction handle = (CUfunction)(uintptr_t)0x1000;
static const char *drivers_name, *kernels_name; /* NULL: it has no answer */
static int asked;

static CUresult function_name(const char **name, CUfunction function)
{
    (void)function;
    asked++;
    return drivers_name ? *name = drivers_name, CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_name(const char **name, CUkernel kernel)
{
    (void)kernel;
    return kernels_name ? *name = kernels_name, CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static const char *name_of(bool accepted) { return cs_name_text(cs_kernel_of(handle, accepted)); }

static void begin(void)
{
    REQUIRE(cs_kernels_init());
    cs_real.cuFuncGetName = function_name;
    cs_real.cuKernelGetName = kernel_name;
}

TEST(the_driver_is_asked_once_and_only_of_a_good_handle)
{
    begin();
    drivers_name = "first";
    CHECK_TEXT(name_of(false), "");
    CHECK_IS(asked, 0);
    for (int i = 0; i < 3; i++) CHECK_TEXT(name_of(true), "first");
    CHECK_TEXT(name_of(false), "first");
    CHECK_IS(asked, 1);
}

TEST(after_an_unload_a_handle_may_be_another_kernel)
{
    begin();
    cs_kernel_named(handle, "first");
    CHECK_TEXT(name_of(true), "first");
    CHECK_IS(asked, 0);
    cs_kernels_unloaded();
    drivers_name = "second";
    CHECK_TEXT(name_of(false), "");
    CHECK_TEXT(name_of(true), "second");
    CHECK_TEXT(name_of(true), "second");
    CHECK_IS(asked, 1);
    cs_kernels_unloaded();
    drivers_name = NULL;
    CHECK_TEXT(name_of(true), ""); /* it could have told, and did not */
    kernels_name = "third";
    CHECK_TEXT(name_of(true), "third");
}

TEST(a_context_takes_its_modules_along)
{
    begin();
    stub_driver();
    stub_current = stub_context(0, 1);
    cs_context_made(stub_current);
    cs_kernel_named(handle, "first");
    cs_context_destroyed(cs_context_destroying(stub_current), true);
    drivers_name = "second"; /* of a module of the next one */
    CHECK_TEXT(name_of(true), "second");
}

TEST(a_driver_that_tells_no_names_gives_no_handle_out_twice_unsaid)
{
    begin();
    cs_real.cuFuncGetName = NULL;
    cs_real.cuKernelGetName = NULL;
    CHECK_TEXT(name_of(true), "");
    cs_kernel_named(handle, "first");
    cs_kernels_unloaded();
    CHECK_TEXT(name_of(false), "");
    CHECK_TEXT(name_of(true), "first");
    CHECK_TEXT(name_of(false), "first"); /* kept, for this epoch too */
}

TEST(as_many_handles_as_there_are_names)
{
    begin();
    for (cs_u64 i = 1; i <= 1 << 16; i++) cs_kernel_named((CUfunction)(uintptr_t)(i << 8), "a");
    for (cs_u64 i = 1; i <= 1 << 16; i++)
        CHECK(cs_kernel_of((CUfunction)(uintptr_t)(i << 8), false));
}
