/*
 * A few steps of GPU work whose parts last as long as one asks for, so that two runs differ in one
 * of them: paces [PART=NUMBER...].
 *
 * kernel   microseconds of the first of two kernels of a step
 * kernels  how often that is launched
 * copies   how many copies lie between them; CUSTREAM_FAKE_COPY_NS says how long each takes
 * hold     microseconds of a host function in front of the second kernel; 0: there is none
 * pause    microseconds that the thread sleeps behind a step; 0: it does not
 * blocked  microseconds that it waits there for another stream, on which only a host function runs;
 * 0: it does not
 */
#include "tests/apps/app.h"

#include <stdint.h>

enum { STEPS = 3, BYTES = 1 << 16 };

static struct part {
    const char *name;
    unsigned number;
} parts[] = {
    {"kernel", 1000}, {"kernels", 1}, {"copies", 2}, {"hold", 0}, {"pause", 0}, {"blocked", 0}};
enum { KERNEL, KERNELS, COPIES, HOLD, PAUSE, BLOCKED, PARTS };

static void rest(unsigned us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000l}, NULL);
}
static void rest_on_stream(void *us) { rest(*(unsigned *)us); }

static void launch(CUfunction kernel, CUstream stream, unsigned us)
{
    void *parameters[] = {&us};
    OK(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static void part_read(const char *word)
{
    const char *number = strchr(word, '=');
    for (int i = 0; number && i < PARTS; i++)
        if (strlen(parts[i].name) == (size_t)(number - word) &&
            !strncmp(parts[i].name, word, (size_t)(number - word))) {
            parts[i].number = (unsigned)strtoul(number + 1, NULL, 10);
            return;
        }
    fprintf(stderr, "paces: no part '%s'\n", word);
    exit(2);
}

static void step(CUstream stream, CUstream other, CUfunction first, CUfunction second,
    CUdeviceptr to, const void *from)
{
    for (unsigned i = 0; i < parts[KERNELS].number; i++)
        launch(first, stream, parts[KERNEL].number);
    for (unsigned i = 0; i < parts[COPIES].number; i++)
        OK(cuMemcpyHtoDAsync_v2, to, from, BYTES, stream);
    if (parts[HOLD].number) OK(cuLaunchHostFunc, stream, rest_on_stream, &parts[HOLD].number);
    launch(second, stream, 500);
    OK(cuStreamSynchronize, stream);
    if (parts[PAUSE].number) rest(parts[PAUSE].number);
    if (!parts[BLOCKED].number) return;
    OK(cuLaunchHostFunc, other, rest_on_stream, &parts[BLOCKED].number);
    OK(cuStreamSynchronize, other);
}

int main(int argc, char **argv)
{
    CUstream stream, other;
    CUdeviceptr to;
    void *from;
    for (int i = 1; i < argc; i++) part_read(argv[i]);
    app_start(0);
    OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    OK(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    OK(cuMemAlloc_v2, &to, BYTES);
    OK(cuMemAllocHost_v2, &from, BYTES);
    for (int i = 0; i < STEPS; i++)
        step(stream, other, app_kernel("sleep_first"), app_kernel("sleep_second"), to, from);
    return 0;
}
