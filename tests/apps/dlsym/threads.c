/* Look-ups from several threads at once, each of which must get its own answers and its own error.
 * Prints "done" or what was wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 3000 };
static const char *const names[] = {"cuLaunchKernel", "cuStreamCreate", "cuNoSuchCall", "strtod",
    "no_such_symbol", "cuGetProcAddress_v2"};
enum { NAMES = sizeof names / sizeof *names };
static void *handles[2], *got[THREADS][2][NAMES];
static pthread_barrier_t start;

static void *look(void *me)
{
    const char *wrong = NULL;
    void *(*mine)[NAMES] = got[(long)me];
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS && !wrong; i++) {
        int h = i & 1, n = (i / 2 + (int)(long)me) % NAMES;
        if (!handles[h]) continue;
        void *found = dlsym(handles[h], names[n]);
        const char *error = dlerror();
        if (i >= 2 * NAMES && found != mine[h][n]) wrong = "another answer than before";
        if (!found != !!error)
            wrong = found ? "an error beside an answer" : "neither answer nor error";
        if (error && !strstr(error, names[n])) wrong = "another thread's error";
        mine[h][n] = found;
    }
    return (void *)wrong;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int bad = 0;
    handles[0] = dlopen(NULL, RTLD_LAZY);
    handles[1] = argc > 1 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    if (argc > 1 && !handles[1]) return printf("%s\n", dlerror()), 1;
    pthread_barrier_init(&start, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, look, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong) bad = 1, printf("%s\n", (char *)wrong);
        if (memcmp(got[i], got[0], sizeof got[0]))
            bad = 1, printf("two threads got different answers\n");
    }
    if (!bad) printf("done\n");
    return bad;
}
