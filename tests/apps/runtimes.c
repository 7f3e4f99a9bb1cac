/* runtimes LIBRARY...: each library is a copy of cudart; the program works with all of them in
 * turn, and with the first from a second thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int create_fn(void **), destroy_fn(void *), memset_fn(void *, int, size_t, void *),
    malloc_fn(void **, size_t), free_fn(void *);

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "no %s\n", name), exit(4);
    return found;
}

static void *work(void *library)
{
    void *stream = NULL, *memory = NULL;
    int results = ((create_fn *)symbol(library, "cudaStreamCreate"))(&stream);
    results += ((malloc_fn *)symbol(library, "cudaMalloc"))(&memory, 256);
    for (int i = 0; i < 4; i++)
        results += ((memset_fn *)symbol(library, "cudaMemsetAsync"))(memory, i, 256, stream);
    results += ((destroy_fn *)symbol(library, "cudaStreamSynchronize"))(stream);
    results += ((destroy_fn *)symbol(library, "cudaStreamDestroy"))(stream);
    results += ((free_fn *)symbol(library, "cudaFree"))(memory);
    printf("results %d\n", results);
    return NULL;
}

int main(int argc, char **argv)
{
    void *library[8];
    pthread_t thread;
    if (argc < 2 || argc > 8) return 2;
    for (int i = 1; i < argc; i++) {
        library[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library[i]) return fprintf(stderr, "%s\n", dlerror()), 3;
        for (int k = 1; k < i; k++)
            if (library[k] == library[i]) return fprintf(stderr, "one library twice\n"), 3;
        /* The loader's error must survive a stream made behind a shared runtime, where the shim
         * looks for the creator. The runtime itself opens the driver at its first call, so one
         * comes before. */
        void *memory;
        if (((malloc_fn *)symbol(library[i], "cudaMalloc"))(&memory, 1)) return 5;
        dlerror();
        (void)!dlopen("/nowhere/libnothing.so", RTLD_NOW);
        void *stream;
        create_fn *create = NULL;
        char error[256];
        snprintf(error, sizeof error, "%s",
            dlerror()); /* the text is the loader's, and ends at its next call */
        create = (create_fn *)symbol(library[i], "cudaStreamCreate");
        (void)!dlopen("/nowhere/libnothing.so", RTLD_NOW);
        int created = create(&stream);
        const char *still = dlerror();
        printf("created %d\n", created);
        fprintf(stderr, "note error_kept_%d %d\n", i, still && !strcmp(error, still));
        work(library[i]);
    }
    pthread_create(&thread, NULL, work, library[1]);
    pthread_join(thread, NULL);
    return 0;
}
