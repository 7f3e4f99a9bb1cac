/* The simulated CUPTI's settings: what each does to the records of the same work. The argument
 * names the setting that is on. */
#include "records.h"

#define KIND(name) CUPTI_ACTIVITY_KIND_##name

enum { KERNELS = 24 };
static const CUpti_ActivityKernel10 *kernel(size_t n) { return &NTH(CONCURRENT_KERNEL, n)->kernel; }

int main(int argc, char **argv)
{
    const char *setting = argc > 1 ? argv[1] : "";
    size_t dropped, zeros = 0, disorder = 0, overlaps = 0, early = 0;
    uint32_t version;
    CUstream stream;

    set_up();
    OK(cuptiActivityRegisterCallbacks(ask_buffer, take_buffer));
    if (strcmp(setting, "fail") == 0) { /* the third and all after it */
        OK(cuptiActivityEnable(KIND(DRIVER)));
        OK(cuptiActivityEnable(KIND(MEMSET)));
        CHECK_IS(cuptiActivityEnable(KIND(CONCURRENT_KERNEL)), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
        CHECK_IS(cuptiActivityEnable(KIND(CONCURRENT_KERNEL)), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
        CHECK_IS(cuptiSubscribe(NULL, NULL, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
        FINISH();
    }
    OK(cuptiGetVersion(&version));
    CHECK_IS(version, strcmp(setting, "version") == 0 ? 120050 : 130001);
    OK(cuStreamCreate(&stream, 0));
    enable(KIND(CONCURRENT_KERNEL));
    enable(KIND(DRIVER));
    for (int i = 0; i < KERNELS; i++)
        OK(sleep_on(stream, i ? 1000 : 100000)); /* all are enqueued while the first one runs */
    disable(KIND(DRIVER));
    OK(cuStreamSynchronize(stream));
    flush();
    OK(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    CHECK_IS(dropped, strcmp(setting, "lose") == 0 ? 6 : 0); /* of 48 each eighth */
    CHECK_IS(record_count + dropped, 2 * KERNELS);
    for (size_t i = 0; i + dropped < KERNELS; i++) {
        zeros += !kernel(i)->start && !kernel(i)->end;
        if (!i) continue;
        disorder += kernel(i)->correlationId < kernel(i - 1)->correlationId;
        overlaps += kernel(i)->start < kernel(i - 1)->end && kernel(i)->end > kernel(i - 1)->end &&
                    kernel(i)->start > kernel(i - 1)->start;
    }
    if (!dropped && !disorder) early = kernel(0)->start + 400000 < NTH(DRIVER, 0)->api.start;
    CHECK_IS(zeros, strcmp(setting, "zero") == 0 ? KERNELS / 4 : 0);
    CHECK((disorder != 0) == (strcmp(setting, "shuffle") == 0));
    CHECK_IS(early, strcmp(setting, "early") == 0);
    if (strcmp(setting, "overlap") == 0 || strcmp(setting, "late") == 0)
        CHECK_IS(overlaps, KERNELS - 1);
    else if (strcmp(setting, "shuffle") && strcmp(setting, "early")) CHECK_IS(overlaps, 0);
    FINISH();
}
