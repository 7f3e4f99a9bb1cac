/*
 * CUPTI's entry points, in front of CUPTI, so that another client in the process gets its records and we keep ours (gpu/share.h).
 *
 * A program that is linked with CUPTI reaches the exported functions. They have no symbol version, unlike the driver's: references to libcupti name one, and
 * the loader takes an unversioned definition for it but not a hidden one. A program that looks them up gets them where its own look-up found the
 * function of the copy of CUPTI that we use. Where it found another copy's, both can't have the records: we let go of ours when it comes to use it.
 */
#include <stdio.h>
#include <string.h>

#include "shim/base/module.h"
#include "shim/gpu/backend.h"
#include "shim/gpu/share.h"
#include "shim/object/names.h"
#include "shim/wrap/inside.h"

#define EXPORTED(name, parameters, arguments)                                                                                                        \
    CS_EXPORT CUptiResult name parameters { return cs_share_##name arguments; }
CS_SHARED_FUNCTIONS(EXPORTED)

/* --- another copy: its first steps make us step back, its last lets us return --- */

static __typeof__(&cuptiActivityRegisterCallbacks) other_register;
static __typeof__(&cuptiSubscribe) other_subscribe;
static __typeof__(&cuptiSubscribe_v2) other_subscribe_v2;
static __typeof__(&cuptiFinalize) other_finalize;
static const char *_Atomic other_why; /* once it is known that there is one */

static CUptiResult other_cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
    cs_gpu_step_back(CS_GPU_AWAY_PROFILER, cs_load_acq(&other_why), 3000);
    return other_register(request, complete);
}

static CUptiResult other_cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data)
{
    cs_gpu_step_back(CS_GPU_AWAY_PROFILER, cs_load_acq(&other_why), 3000);
    return other_subscribe(subscriber, callback, data);
}

static CUptiResult other_cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback, void *data, CUpti_SubscriberParams *parameters)
{
    cs_gpu_step_back(CS_GPU_AWAY_PROFILER, cs_load_acq(&other_why), 3000);
    return other_subscribe_v2(subscriber, callback, data, parameters);
}

static CUptiResult other_cuptiFinalize(void)
{
    CUptiResult result = other_finalize();
    cs_gpu_come_back(CS_GPU_AWAY_PROFILER, 0);
    return result;
}

static void *of_other_copy(const char *name, void *found)
{
    static const struct {
        const char *name;
        void *wrapper, **real;
    } others[] = {
        {"cuptiActivityRegisterCallbacks", (void *)other_cuptiActivityRegisterCallbacks, (void **)&other_register},
        {"cuptiSubscribe", (void *)other_cuptiSubscribe, (void **)&other_subscribe},
        {"cuptiSubscribe_v2", (void *)other_cuptiSubscribe_v2, (void **)&other_subscribe_v2},
        {"cuptiFinalize", (void *)other_cuptiFinalize, (void **)&other_finalize},
    };
    struct cs_module module;
    for (size_t i = 0; i < CS_COUNT(others); i++) {
        if (strcmp(others[i].name, name)) continue;
        if (*others[i].real && *others[i].real != found) return found; /* a third copy */
        char why[300] = "another copy of CUPTI is at work";
        if (cs_module_of(found, &module)) snprintf(why, sizeof why, "another copy of CUPTI is at work: %.200s", cs_module_path(&module));
        if (!cs_load(&other_why)) cs_store_rel(&other_why, cs_name_text(cs_name_add(why)));
        *others[i].real = found;
        return others[i].wrapper;
    }
    return found;
}

void *cs_cupti_swap(const char *name, void *found)
{
    static const struct {
        const char *name;
        void *wrapper;
    } shared[] = {
#define SHARED(name, parameters, arguments) {#name, (void *)cs_share_##name},
        CS_SHARED_FUNCTIONS(SHARED)
#undef SHARED
    };
    void *real = found ? cs_share_real(name) : NULL;
    if (!real) return found;
    if (found != real) {
        for (size_t i = 0; i < CS_COUNT(shared); i++)
            if (found == shared[i].wrapper) return found;
        return of_other_copy(name, found);
    }
    for (size_t i = 0; i < CS_COUNT(shared); i++)
        if (!strcmp(shared[i].name, name)) return shared[i].wrapper;
    return found;
}
