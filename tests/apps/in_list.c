/* in_list [POLICY]: the first CUDA calls are made in a callback of dl_iterate_phdr, whose lock
 * dlopen takes too. The policy is given just before. */
#include "app.h"

#include <link.h>

static int in_list(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)info, (void)size, (void)data;
    app_start(0);
    LAUNCH(app_kernel("k"), NULL);
    OK(cuCtxSynchronize);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc > 1) setenv("CUSTREAM_POLICY", argv[1], 1);
    dl_iterate_phdr(in_list, NULL);
    app_sleep_ms(10);
    LAUNCH(app_kernel("k"), NULL);
    app_report();
    return 0;
}
