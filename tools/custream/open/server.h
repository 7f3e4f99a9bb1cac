/* A web server for one trace, on loopback, in this thread. It answers GET and OPTIONS for the
 * trace, at a path with a random token, and for files of a folder with Perfetto's UI. It refuses
 * requests whose Host is not 127.0.0.1 or localhost, so that no web page reaches it under a name of
 * its own. */
#ifndef CS_OPEN_SERVER_H
#define CS_OPEN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_BYTES = 16 };

struct server {
    int listening; /* the socket */
    unsigned port;
    int file; /* the trace's descriptor */
    uint64_t size;
    bool whole;         /* kernels get the shapes that the file leaves out (ROWS_WHOLE) */
    const char *name;   /* the trace's name: the last part of its path, not URL-encoded */
    const char *folder; /* the real path of Perfetto's UI; NULL: none is served */
    char token[2 * TOKEN_BYTES + 1];
    unsigned delivered; /* how many times the trace was delivered to its end */
};

/* Loads libmicrohttpd. To be called first. Returns false if that fails: dlerror() says why. */
bool server_ready(void);

/* Listens on the port; 0: on any. Returns false if that fails: errno says why. */
bool server_listen(struct server *server, unsigned port);

/* Serves until the trace was delivered (not with `stay`): 0; a signal's number; -1 with errno. */
int server_run(struct server *server, bool stay);

#endif
