/* A web server for one trace, on loopback, in this thread. It answers GET and OPTIONS for the
 * trace, at a path with a random token, and for files of a folder of Perfetto's UI. Whoever asks by
 * another name than 127.0.0.1 or localhost is refused: so no web page reaches it by a name of its
 * own. */
#ifndef CS_OPEN_SERVER_H
#define CS_OPEN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_BYTES = 16 };

struct server {
    int listening; /* descriptor */
    unsigned port;
    int file; /* the trace */
    uint64_t size;
    bool whole;         /* it is handed out with each slice saying all of it */
    const char *name;   /* the trace's, the last part of its path, not encoded */
    const char *folder; /* of Perfetto's UI, with no link in it; NULL: none */
    char token[2 * TOKEN_BYTES + 1];
    unsigned delivered; /* how often the whole trace was */
};

/* Before anything else. False: the library that it takes is not installed; dlerror() says which. */
bool server_ready(void);

/* Takes the port, 0 for any. False: errno says why not. */
bool server_listen(struct server *server, unsigned port);

/* Answers until the trace was delivered, or to a signal, which it returns. -1: errno says why. */
int server_run(struct server *server, bool stay);

#endif
