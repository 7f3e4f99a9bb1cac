/* Races, for the thread sanitizer: objects of custream.h that several threads use, on the simulated
 * driver. */
#include <pthread.h>

#include "include/custream.h"
#include "tests/unit/check.h"

enum { THREADS = 4, ROUNDS = 300 };

static custream_event_t event;
static custream_t stream;
static pthread_barrier_t round_begins;

/* The first record makes a lazy event; whoever sees its handle sees its device too. */
static void *lazy_user(void *me)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (!me) {
            custream_event_options_t options;
            custream_event_options_init(&options);
            options.lazy = 1;
            REQUIRE(custream_event_create(&event, &options) == CUSTREAM_SUCCESS);
        }
        pthread_barrier_wait(&round_begins);
        void *handle = NULL;
        int device = -2;
        if ((intptr_t)me & 1) CHECK_IS(custream_event_record(event, stream), CUSTREAM_SUCCESS);
        while (!handle) CHECK_IS(custream_event_get_handle(event, &handle), CUSTREAM_SUCCESS);
        CHECK_IS(custream_event_get_device(event, &device), CUSTREAM_SUCCESS);
        CHECK_IS(device, 0);
        pthread_barrier_wait(&round_begins);
        if (!me) custream_event_release(event);
    }
    return NULL;
}

TEST(a_lazy_event_is_whole_when_it_is_seen)
{
    pthread_t threads[THREADS];
    custream_options_t options;
    custream_options_init(&options);
    REQUIRE(custream_create(&stream, &options) == CUSTREAM_SUCCESS);
    pthread_barrier_init(&round_begins, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, lazy_user, (void *)i));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    custream_release(stream);
}
