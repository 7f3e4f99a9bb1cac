/*
 * custream.h: the interface of custream to programs.
 *
 * This version of it has only what a program needs to find out that it runs under the preload library; stream and event objects come with a
 * later one. C99 and C++.
 */
#ifndef CUSTREAM_H
#define CUSTREAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the preload library in this process, "0.1.0": a static string. Any thread. Found by dlsym(RTLD_DEFAULT, "custream_version"),
 * which gives NULL where the library is not preloaded. */
const char *custream_version(void);

#ifdef __cplusplus
}
#endif

#endif
