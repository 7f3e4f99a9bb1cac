/*
 * What the preload library knows and the API cannot ask CUDA: one table of functions. The preload library has it, and exports a function that gives it.
 * libcustream.so, which is the API on its own, has a table in which all is "nothing" (alone/link.c). If a preload library is in the process, it takes over that
 * one's functions once, when it is loaded. The two may be of different versions: functions that the preload library's table is too short for stay "nothing".
 *
 * Later versions only append functions, and never change one. Else the version changes, and tables of different versions have nothing to say to each other.
 */
#ifndef CS_API_LINK_H
#define CS_API_LINK_H

#include "shim/api/status.h"

enum { API_LINK_VERSION = 1 };

struct api_link {
    size_t size; /* of the table in the library that has it */
    cs_u32 version;

    /* The recorder's object of a live stream, of a live event; 0: none. These four are the preload library's own. */
    cs_u64 (*stream)(void *handle);
    cs_u64 (*event)(void *handle);
    /* That stream or event has ended: somebody destroyed it, or its context. Whatever has its handle now is another one. */
    bool (*stream_ended)(cs_u64 link);
    bool (*event_ended)(cs_u64 link);

    /* From here on libcustream.so passes on. Link 0: the stream that has the handle now. The priority that its maker asked for; false: not known. */
    bool (*requested)(void *handle, cs_u64 link, int *priority);
    void (*named)(void *handle, const char *name);
    bool (*history)(void *handle, cs_u64 link, custream_history_t *history); /* false: nothing is known. Fills the size that is set there */

    /* Hooks: the number of a new one, 0: none is free; false: there is none of that number, or it has gone. */
    status (*hook)(custream_hook_kind_t kind, custream_hook_fn *function, void *arg, cs_u32 *number);
    bool (*unhook)(cs_u32 number, bool *running);
    bool (*in_hook)(void);
    void (*stays)(bool stays); /* while so, hooks do not change the streams of this thread's calls */

    /* Annotations, and recording. */
    int (*push)(const char *text); /* negative: there is no room */
    int (*pop)(void);              /* negative: there was none */
    void (*mark)(const char *text);
    status (*record)(bool on);
    status (*flush)(void);
};

extern const struct api_link *const api_link;
CS_EXPORT const struct api_link *libcustream_link(void);

#endif
