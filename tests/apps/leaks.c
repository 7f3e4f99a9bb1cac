/* leaks STREAMS EVENTS LIBRARY_STREAMS LIBRARY_EVENTS: leaves that many behind, made here and in
 * libmaker.so. With five arguments (any fifth) the primary context is released at the end, which
 * ends them all. */
#include "tests/apps/app.h"

int make_streams(int count, void **out);
int make_events(int count);

int main(int argc, char **argv)
{
    CUstream stream;
    CUevent event;
    if (argc < 5) return 2;
    app_start(0);
    for (int i = 0; i < 3; i++) { /* these are destroyed */
        OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
        OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
        OK(cuEventRecord, event, stream);
        OK(cuEventDestroy_v2, event);
        OK(cuStreamDestroy_v2, stream);
    }
    for (int i = 0; i < atoi(argv[1]); i++) OK(cuStreamCreate, &stream, CU_STREAM_DEFAULT);
    for (int i = 0; i < atoi(argv[2]); i++) OK(cuEventCreate, &event, CU_EVENT_DEFAULT);
    if (make_streams(atoi(argv[3]), NULL) || make_events(atoi(argv[4]))) return 1;
    OK(cuMemsetD8Async, 0, 0, 0, NULL); /* the default stream is nobody's leak */
    if (argc > 5) OK(cuDevicePrimaryCtxRelease_v2, 0);
    app_report();
    return 0;
}
