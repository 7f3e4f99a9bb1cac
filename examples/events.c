/* How long a piece of a stream's work takes: two events around it. */
#include <custream.h>
#include <stdio.h>

#define MUST(call)                                                                                              \
    do {                                                                                                        \
        custream_status_t status_ = (call);                                                                     \
        if (status_) return fprintf(stderr, "%s: %s\n", #call, custream_status_string(status_)), 1;             \
    } while (0)

static void host_work(void *done) { *(int *)done = 1; }

int main(void)
{
    custream_t stream;
    custream_event_options_t options;
    custream_event_t begin, end;
    int done = 0;
    float ms;

    MUST(custream_create(&stream, NULL));
    MUST(custream_event_options_init(&options));
    options.timing = 1;
    MUST(custream_record_new(stream, &options, &begin));
    MUST(custream_launch_host_func(stream, host_work, &done, NULL));
    MUST(custream_record_new(stream, &options, &end));
    MUST(custream_event_elapsed_ms(begin, end, 1, &ms));
    printf("%s\n", done && ms >= 0 ? "the host function was between the events" : "?");

    MUST(custream_event_release(begin));
    MUST(custream_event_release(end));
    MUST(custream_release(stream));
    printf("done\n");
    return 0;
}
