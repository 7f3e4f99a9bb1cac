/*
 * cuGetProcAddress: a base name, a version and flags to an exported symbol, from the table that
 * gen/versions.awk makes of NVIDIA's headers.
 *
 * What a real driver answers where its documentation leaves it open, as measured on 580.159: a name
 * that came after the driver gives CUDA_SUCCESS with NULL and SYMBOL_NOT_FOUND, and so does an
 * unknown one here; a per-thread sibling asked for with a version before 7000 gives CUDA_SUCCESS
 * with NULL.
 */
#include "tests/fakecuda/driver/fake.h"

struct version {
    const char *base;
    int since;
    bool per_thread;
    void *symbol;
};

/* The addresses are those that dlsym gives, since -Bsymbolic binds them here. Types do not matter
 * for a table of addresses. */
static const struct version versions[] = {
#define VERSION(base, since, per_thread, symbol) {#base, since, per_thread, (void *)symbol},
#include "versions.inc"
#undef VERSION
};

static const struct version *first_of(const char *base)
{
    size_t low = 0, high = COUNT_OF(versions);

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(versions[middle].base, base) < 0) low = middle + 1;
        else high = middle;
    }
    return low < COUNT_OF(versions) && strcmp(versions[low].base, base) == 0 ? &versions[low]
                                                                             : NULL;
}

static CUresult look_up(const char *base, void **pointer, int asked, cuuint64_t flags,
    CUdriverProcAddressQueryResult *status)
{
    const int driver = fake_driver_version();
    const struct version *v, *first;
    bool has_sibling = false, known = false;

    if (!base || !pointer || (flags & ~(cuuint64_t)3) || flags == 3)
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = NULL;
    first = first_of(base);
    for (v = first; v && v < versions + COUNT_OF(versions) && strcmp(v->base, base) == 0; v++) {
        known |= v->since <= driver;
        has_sibling |= v->per_thread;
    }
    for (v = first; v && v < versions + COUNT_OF(versions) && strcmp(v->base, base) == 0; v++) {
        if (v->per_thread !=
            (has_sibling && flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
            continue;
        if (v->since <= asked && v->since <= driver)
            *pointer = v->symbol; /* ascending: the newest stays */
    }
    if (status) {
        *status = *pointer ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                           : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}

API_EARLY(cuGetProcAddress_v2,
    (const char *base, void **pointer, int version, cuuint64_t flags,
        CUdriverProcAddressQueryResult *status),
    (base, pointer, version, flags, status))
{
    return look_up(base, pointer, version, flags, status);
}

/* The one of CUDA 11.3 has no status to tell it with, so it fails. */
API_EARLY(cuGetProcAddress, (const char *base, void **pointer, int version, cuuint64_t flags),
    (base, pointer, version, flags))
{
    CUresult result = look_up(base, pointer, version, flags, NULL);
    return result ? result : *pointer ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- Error names ---- */

static const struct {
    CUresult code;
    const char *name;
} errors[] = {
#define ERROR(name) {name, #name},
#include "errors.inc"
#undef ERROR
};

static CUresult name_of(CUresult code, const char **text)
{
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (unsigned i = 0; i < COUNT_OF(errors); i++)
        if (errors[i].code == code) *text = errors[i].name;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
API_EARLY(cuGetErrorName, (CUresult code, const char **text), (code, text))
{
    return name_of(code, text);
}

/* No prose here but for the one that every program sees: the name says it. */
API_EARLY(cuGetErrorString, (CUresult code, const char **text), (code, text))
{
    FAKE_TRY(name_of(code, text));
    if (code == CUDA_SUCCESS) *text = "no error";
    return CUDA_SUCCESS;
}
