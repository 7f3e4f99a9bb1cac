/*
 * runtime_moves deep|wraps|loading LIBRARY DEEP: LIBRARY is built from runtime_user.c. It is closed
 * and opened again, and its runtime comes to lie elsewhere: where it lay nothing can be called any
 * more. A function of it is called from one place of the program all the time. It is closed through
 * DEEP (runtime_deep.c); or 32,768 libraries are closed in between, itself the first. `loading`: it
 * stays where it is, and is called while another thread is in the loader until that is done.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 3, CLOSED = 32768 };
typedef int sync_fn(void *);
static void *(*opens)(const char *);
static int (*closes)(void *);
static void *open_itself(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

static void *must(void *found)
{
    if (!found) fprintf(stderr, "%s\n", dlerror()), exit(3);
    return found;
}

static __attribute__((noinline)) int call(sync_fn *volatile *function)
{
    volatile int result = (*function)(NULL);
    return result;
}

/* Where the loader has put the library that has the function, it puts nothing any more. */
static struct {
    char *begin, *end;
} place;
static int look(struct dl_phdr_info *info, size_t size, void *function)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        char *begin = (char *)info->dlpi_addr + (p->p_vaddr & ~(uintptr_t)4095),
             *end = (char *)info->dlpi_addr + p->p_vaddr + p->p_memsz;
        if (p->p_type != PT_LOAD) continue;
        if (begin <= (char *)function && (char *)function < end) place.begin = begin;
        place.end = end;
    }
    return place.begin && place.begin <= (char *)function && (char *)function < place.end;
}
static void take_place(void)
{
    void *taken = mmap(place.begin, (size_t)(place.end - place.begin), PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken != place.begin) printf("the library has stayed\n");
}

/* --- while another thread is in the loader --- */

static int numbers[2];
static void *load(void *path)
{
    char text[32];
    snprintf(text, sizeof text, "%p", (void *)numbers);
    setenv("DEEP_WAITS", text, 1);
    must(dlopen(path, RTLD_NOW));
    printf("loaded %s\n", __atomic_load_n(&numbers[1], __ATOMIC_SEQ_CST)
                              ? "behind the call"
                              : "before the call returned");
    return NULL;
}
static int while_loading(const char *path, char *other)
{
    static sync_fn *volatile function;
    pthread_t thread;
    void *library = must(open_itself(path));
    ((int (*)(void))must(dlsym(library, "user_sync")))();
    function = ((sync_fn * (*)(void)) must(dlsym(library, "user_pointer")))();
    pthread_create(&thread, NULL, load, other);
    while (!__atomic_load_n(&numbers[0], __ATOMIC_SEQ_CST)) usleep(1000);
    const int result = call(&function);
    __atomic_store_n(&numbers[1], 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    return printf("sync %d\n", result) < 0;
}

int main(int argc, char **argv)
{
    static sync_fn *volatile function;
    if (argc != 4) return 2;
    if (!strcmp(argv[1], "loading")) return while_loading(argv[2], argv[3]);
    const int deep = !strcmp(argv[1], "deep");
    void *other = must(dlopen(argv[3], RTLD_NOW | RTLD_DEEPBIND));
    opens = deep ? (void *(*)(const char *))must(dlsym(other, "deep_open")) : open_itself;
    closes = deep ? (int (*)(void *))must(dlsym(other, "deep_close")) : dlclose;
    for (int i = 0; i < ROUNDS; i++) {
        void *library = must(opens(argv[2]));
        ((void (*)(void))must(dlsym(library, "user_register")))();
        place.begin = NULL;
        dl_iterate_phdr(look, must(dlsym(library, "cudaStreamSynchronize")));
        function = ((sync_fn * (*)(void)) must(dlsym(library, "user_pointer")))();
        printf("sync %d\n", call(&function));
        fflush(stdout);
        closes(library);
        take_place();
        for (int k = 1; !deep && k < CLOSED; k++)
            dlclose(dlopen(argv[3], RTLD_NOW)); /* it is open already */
    }
    return 0;
}
