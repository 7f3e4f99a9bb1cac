/*
 * The library's own system calls (direct.c). They are declared in the C library's headers.
 */
#ifndef CS_BASE_DIRECT_H
#define CS_BASE_DIRECT_H

/* Whoever stands behind this library is destroyed next: from here on system calls are the C library's own, for threads of ours that live on. */
void cs_direct_alone(void);

#endif
