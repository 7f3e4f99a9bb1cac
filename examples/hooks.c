/* A hook that gives every new stream the greatest priority. Runs under the preload library; without it there are no hooks. */
#include <custream.h>
#include <stdio.h>

#define MUST(call)                                                                                              \
    do {                                                                                                        \
        custream_status_t status_ = (call);                                                                     \
        if (status_) return fprintf(stderr, "%s: %s\n", #call, custream_status_string(status_)), 1;             \
    } while (0)

static void raise_priority(custream_hook_info_t *info, void *greatest)
{
    if (!info->after) info->priority = *(int *)greatest;
}

int main(void)
{
    custream_t stream;
    custream_hook_t hook;
    int greatest, priority;

    MUST(custream_priority_range(-1, NULL, &greatest));
    custream_status_t status = custream_register_hook(CUSTREAM_HOOK_CREATE, raise_priority, &greatest, &hook);
    if (status == CUSTREAM_NOT_SUPPORTED) return printf("no preload library\ndone\n"), 0;
    MUST(status);
    MUST(custream_create(&stream, NULL));
    MUST(custream_get_priority(stream, &priority));
    printf("%s\n", priority == greatest ? "the greatest priority" : "?");
    MUST(custream_unregister_hook(hook));
    MUST(custream_release(stream));
    printf("done\n");
    return 0;
}
