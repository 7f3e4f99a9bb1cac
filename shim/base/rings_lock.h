/* The lock on a file of rings (base/rings.h), which tells whether its process lives. */
#ifndef CS_BASE_RINGS_LOCK_H
#define CS_BASE_RINGS_LOCK_H

#include <fcntl.h>
#include <stdbool.h>

/* The writer has it, and it goes with the writer's table of descriptors: closing any descriptor of the file that is in that table ends it too. One of flock() would
 * last as long as the open file, so as long as any child has the mapping. Readers share it. False, with errno set: somebody else has it. */
static inline bool cs_rings_lock(int fd, bool exclusive)
{
    struct flock whole = {.l_type = exclusive ? F_WRLCK : F_RDLCK};
    return !fcntl(fd, F_SETLK, &whole);
}

#endif
