/* A capture with two branches, launched three times as a graph. */
#include <custream.h>
#include <stdatomic.h>
#include <stdio.h>

#define MUST(call)                                                                                              \
    do {                                                                                                        \
        custream_status_t status_ = (call);                                                                     \
        if (status_) return fprintf(stderr, "%s: %s\n", #call, custream_status_string(status_)), 1;             \
    } while (0)

static atomic_int count;
static void add(void *n) { atomic_fetch_add(&count, *(int *)n); }

int main(void)
{
    static int one = 1, ten = 10;
    custream_t stream, branch[2];
    custream_graph_t graph;

    MUST(custream_create(&stream, NULL));
    MUST(custream_begin_capture(stream, CUSTREAM_CAPTURE_THREAD_LOCAL));
    MUST(custream_fork(stream, 2, branch));
    MUST(custream_launch_host_func(branch[0], add, &one, NULL));
    MUST(custream_launch_host_func(branch[1], add, &ten, NULL));
    MUST(custream_join(stream, 2, branch));
    MUST(custream_end_capture(stream, &graph));

    for (int i = 0; i < 3; i++) MUST(custream_graph_launch(graph, stream));
    MUST(custream_synchronize(stream));
    printf("%d\n", atomic_load(&count));

    MUST(custream_graph_release(graph));
    MUST(custream_release(stream));
    printf("done\n");
    return 0;
}
