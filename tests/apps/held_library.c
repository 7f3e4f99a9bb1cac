/* libheld.so: its constructor runs what the program has left for it, with the loader's lock held
 * all the time. */
#include <stdint.h>
#include <stdlib.h>

__attribute__((constructor)) static void run(void)
{
    const char *address = getenv("HELD_IN_CONSTRUCTOR");
    if (address) ((void (*)(void))(uintptr_t)strtoull(address, NULL, 10))();
}
