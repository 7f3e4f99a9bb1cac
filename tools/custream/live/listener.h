/* Processes that listen, with what they say of themselves: what custream ps lists, and what custream record and dump choose from. */
#ifndef CS_LIVE_LISTENER_H
#define CS_LIVE_LISTENER_H

#include <stddef.h>

#include "tools/custream/live/peer.h"

struct listener {
    struct peer peer;    /* connected only while it is asked */
    bool asked, answers; /* answers: about is known; else, of one that was asked, peer.error says why not */
    struct about about;
    char command[96];    /* "python3.11 train.py": the executable, and the first word behind it that is no option */
};

struct listeners {
    struct listener **each; /* by pid */
    size_t count, capacity;
};

void listeners_find(struct listeners *listeners);
/* One more, which is not asked anything. */
struct listener *listeners_add(struct listeners *listeners, const struct peer *peer);
/* It was asked and has not answered, which has been said: it is not waited for once more. */
bool listener_is_silent(const char *command, const struct listener *listener);
void listeners_free(struct listeners *listeners);

/* The executable's name, that in argv[0], or the first word behind it that is no option, each without its folder; `name` may have * and ?. */
bool listener_is_named(const struct listener *listener, const char *name);

enum { SIZE_ROOM = 32 };
/* Bytes of its file, -1 where that can't be told; and a number of bytes for people, "1.2M". */
long long listener_file_size(const struct listener *listener);
const char *size_text(char text[SIZE_ROOM], long long bytes);

#endif
