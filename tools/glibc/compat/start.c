/*
 * How a program starts. The start code of glibc 2.34 and later asks for a version of
 * __libc_start_main that runs the program's constructors. With the older version the program brings
 * a function that does.
 */
#include <stddef.h>

typedef int main_fn(int, char **, char **);
typedef void constructor_fn(int, char **, char **);

int old_start(main_fn *main, int argc, char **argv, constructor_fn *init, void (*fini)(void),
    void (*loader_fini)(void), void *stack_end);
#ifdef __x86_64__
__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");
#else
__asm__(".symver old_start,__libc_start_main@GLIBC_2.17");
#endif

extern void _init(void);
extern constructor_fn *__preinit_array_start[] __attribute__((visibility("hidden"))),
    *__preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor_fn *__init_array_start[] __attribute__((visibility("hidden"))),
    *__init_array_end[] __attribute__((visibility("hidden")));

static void construct(int argc, char **argv, char **environment)
{
    for (constructor_fn **f = __preinit_array_start; f < __preinit_array_end; f++)
        (*f)(argc, argv, environment);
    _init();
    for (constructor_fn **f = __init_array_start; f < __init_array_end; f++)
        (*f)(argc, argv, environment);
}

int __libc_start_main(main_fn *main, int argc, char **argv, constructor_fn *init,
    void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    return old_start(main, argc, argv, init ? init : construct, fini, loader_fini, stack_end);
}
