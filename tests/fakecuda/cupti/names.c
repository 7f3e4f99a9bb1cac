/* Names and numbers, from lists that are made from CUPTI's headers: calls of the driver and the
 * runtime, and results. */
#include "tests/fakecuda/cupti/fake_cupti.h"

struct name {
    const char *name;
    uint32_t number;
};
#define NAME(name, number) {#name, number},
static const struct name driver_calls[] = {
/* in order of name */
#include "cupti_driver.inc"
};
static const struct name runtime_calls[] = {
#include "cupti_runtime.inc"
};
static const struct name results[] = {
#include "cupti_results.inc"
};

static int by_name(const void *key, const void *element)
{
    return strcmp(key, ((const struct name *)element)->name);
}

uint32_t cupti_driver_number(const char *symbol)
{
    const struct name *found =
        bsearch(symbol, driver_calls, COUNT_OF(driver_calls), sizeof driver_calls[0], by_name);
    return found ? found->number : 0;
}

/* "cudaLaunchKernel", or the "__cudaLaunchKernel" behind <<<...>>>, is "cudaLaunchKernel_v7000"
 * here. */
uint32_t cupti_runtime_number(const char *symbol)
{
    size_t length;

    symbol += strspn(symbol, "_");
    length = strlen(symbol);
    for (size_t i = 0; i < COUNT_OF(runtime_calls); i++)
        if (strncmp(runtime_calls[i].name, symbol, length) == 0 &&
            strncmp(runtime_calls[i].name + length, "_v", 2) == 0 &&
            !strchr(runtime_calls[i].name + length + 2, '_'))
            return runtime_calls[i].number;
    return 0;
}

#undef NAME
#define NAME(name, number) [number] = #name,
static const char *const driver_names[] = {
#include "cupti_driver.inc"
};
static const char *const runtime_names[] = {
#include "cupti_runtime.inc"
};
#define NAME_OF(names, number) ((number) < COUNT_OF(names) ? (names)[number] : NULL)

CUptiResult CUPTIAPI cuptiGetCallbackName(
    CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    ENTER(cuptiGetCallbackName);
    if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = domain == CUPTI_CB_DOMAIN_DRIVER_API    ? NAME_OF(driver_names, cbid)
            : domain == CUPTI_CB_DOMAIN_RUNTIME_API ? NAME_OF(runtime_names, cbid)
                                                    : NULL;
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static CUptiResult text_of(CUptiResult result, const char **text)
{
    if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
    *text = NULL;
    for (size_t i = 0; i < COUNT_OF(results) && !*text; i++)
        if (results[i].number == (uint32_t)result) *text = results[i].name;
    return *text ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text)
{
    ENTER(cuptiGetResultString);
    return text_of(result, text);
}
CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char **text)
{
    ENTER(cuptiGetErrorMessage);
    return text_of(result, text);
}
