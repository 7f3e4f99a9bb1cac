/* Two streams, one of high priority, in order by an event; and the current stream of a thread. */
#include <custream.h>
#include <stdio.h>

#define MUST(call)                                                                                              \
    do {                                                                                                        \
        custream_status_t status_ = (call);                                                                     \
        if (status_) return fprintf(stderr, "%s: %s\n", #call, custream_status_string(status_)), 1;             \
    } while (0)

int main(void)
{
    custream_options_t options;
    custream_t first, second, current;
    int least, greatest;
    char line[200];

    MUST(custream_priority_range(-1, &least, &greatest));
    MUST(custream_options_init(&options));
    options.name = "first";
    MUST(custream_create(&first, &options));
    options.name = "second";
    options.priority = greatest;
    MUST(custream_create(&second, &options));

    MUST(custream_wait_stream(second, first, NULL, 0)); /* what comes on the second waits for what is on the first */
    MUST(custream_push(second, 0));
    MUST(custream_current(-1, &current));
    MUST(custream_format(current, line, sizeof line, NULL));
    printf("%s\n", custream_equal(current, second) ? "the second is current" : "?");
    MUST(custream_release(current));
    MUST(custream_pop(CUSTREAM_SYNC_EXIT));

    MUST(custream_synchronize(second));
    MUST(custream_release(first));
    MUST(custream_release(second));
    MUST(custream_shutdown());
    printf("done\n");
    return 0;
}
