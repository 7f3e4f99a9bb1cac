#include "tools/custream/open/open.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/show.h"

/* libmicrohttpd is opened only if it is needed: Debian's package brings GnuTLS along. */

/* The functions of libmicrohttpd that we call, each with our short name. */
#define MICROHTTPD_CALLS(CALL) \
    CALL(start, MHD_start_daemon) CALL(stop, MHD_stop_daemon) \
    CALL(header_get, MHD_lookup_connection_value) CALL(header_add, MHD_add_response_header) \
    CALL(of_buffer, MHD_create_response_from_buffer) \
    CALL(of_file, MHD_create_response_from_fd64) CALL(queue, MHD_queue_response) \
    CALL(destroy, MHD_destroy_response)

#define MICROHTTPD_MEMBER(member, name) __typeof__(&name) member;
static struct microhttpd {
    MICROHTTPD_CALLS(MICROHTTPD_MEMBER)
} mhd; /* filled by server_ready() */
#undef MICROHTTPD_MEMBER

/* --- requests --- */

/* DELIVERED: the signal by which the thread that serves says that the trace was delivered. */
enum { WAIT_SECONDS = 60, CONNECTIONS = 64, DELIVERED = SIGUSR1 };

/* The origin of Perfetto's own UI, the only foreign page that may read our answers (CORS). */
static const char UI_ORIGIN[] = "https://ui.perfetto.dev";

static const char *type_of(const char *path)
{
    static const struct {
        const char *ending, *type;
    } kinds[] = {{".html", "text/html; charset=utf-8"}, {".js", "text/javascript"},
        {".css", "text/css"}, {".json", "application/json"}, {".wasm", "application/wasm"},
        {".png", "image/png"}, {".svg", "image/svg+xml"}, {".woff2", "font/woff2"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_ends(path, kinds[i].ending)) return kinds[i].type;
    return "application/octet-stream";
}

/* --- answers --- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    const char *value = mhd.header_get(connection, MHD_HEADER_KIND, name);
    return value ? value : "";
}

static enum MHD_Result answer(
    struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    mhd.header_add(response, "Cache-Control", "no-store");
    mhd.header_add(response, "X-Content-Type-Options", "nosniff");
    if (!strcmp(header(connection, "Origin"), UI_ORIGIN)) {
        mhd.header_add(response, "Access-Control-Allow-Origin", UI_ORIGIN);
        mhd.header_add(response, "Access-Control-Allow-Methods", "GET, OPTIONS");
        mhd.header_add(response, "Access-Control-Allow-Private-Network", "true");
    }
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) mhd.header_add(response, "Allow", "GET, OPTIONS");
    const enum MHD_Result queued = mhd.queue(connection, status, response);
    mhd.destroy(response);
    return queued;
}

static enum MHD_Result answer_text(
    struct MHD_Connection *connection, unsigned status, const char *text)
{
    return answer(
        connection, status, mhd.of_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT));
}

/* Answers with a file, and closes the descriptor. */
static enum MHD_Result answer_file(
    struct MHD_Connection *connection, int fd, uint64_t size, const char *type)
{
    struct MHD_Response *response = fd >= 0 ? mhd.of_file(size, fd) : NULL;
    if (!response) {
        if (fd >= 0) close(fd);
        return answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "the file cannot be read\n");
    }
    mhd.header_add(response, "Content-Type", type);
    return answer(connection, MHD_HTTP_OK, response);
}

/* Whether the host is loopback. Any port is right: an ssh tunnel may begin at another port. */
static bool is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        if (!strncmp(host, names[i], length) && (!host[length] || host[length] == ':')) return true;
    }
    return false;
}

/* Answers with a file of the UI's folder, but not its service worker, which would outlive us. */
static enum MHD_Result answer_ui(
    const struct server *server, struct MHD_Connection *connection, const char *url)
{
    char asked[PATH_MAX], path[PATH_MAX];
    struct stat about;
    const size_t folder = strlen(server->folder);
    const char *name = strcmp(url, "/") ? url : "/index.html";
    const int length = snprintf(asked, sizeof asked, "%s%s", server->folder, name);
    if (length < 0 || length >= (int)sizeof asked || text_ends(name, "/service_worker.js") ||
        !realpath(asked, path) || strncmp(path, server->folder, folder) || path[folder] != '/')
        return answer_text(connection, MHD_HTTP_NOT_FOUND, "no such file\n");
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode)) {
        if (fd >= 0) close(fd);
        return answer_text(connection, MHD_HTTP_NOT_FOUND, "no such file\n");
    }
    return answer_file(connection, fd, (uint64_t)about.st_size, type_of(path));
}

/* Whether the URL leads to the trace. Without the right token no answer tells anything of the
 * trace, not even its name. */
static bool is_trace(const struct server *server, const char *url)
{
    const size_t token = strlen(server->token);
    return *url == '/' && !strncmp(url + 1, server->token, token) && url[1 + token] == '/' &&
           !strcmp(url + 2 + token, server->name);
}

static enum MHD_Result handle(void *of, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_size, void **state)
{
    struct server *server = of;
    (void)version, (void)upload, (void)upload_size;
    *state = NULL;
    if (!is_loopback(header(connection, "Host")))
        return answer_text(connection, MHD_HTTP_FORBIDDEN, "ask for 127.0.0.1\n");
    if (!strcmp(method, "OPTIONS")) return answer_text(connection, MHD_HTTP_NO_CONTENT, "");
    if (strcmp(method, "GET"))
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    if (is_trace(server, url)) {
        *state = server;
        return answer_file(connection, fcntl(server->file, F_DUPFD_CLOEXEC, 3), server->size,
            "application/octet-stream");
    }
    return server->folder ? answer_ui(server, connection, url)
                          : answer_text(connection, MHD_HTTP_NOT_FOUND, "no such file\n");
}

static void ended(
    void *of, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode how)
{
    struct server *server = of;
    (void)connection;
    if (*state == server && how == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        server->delivered = true;
        kill(getpid(), DELIVERED);
    }
    *state = NULL;
}

/* --- life --- */

static bool token_make(struct server *server)
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return false;
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

bool server_ready(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define MICROHTTPD_FIND(member, name) \
    if (!(mhd.member = (__typeof__(mhd.member))dlsym(library, #name))) return false;
    MICROHTTPD_CALLS(MICROHTTPD_FIND)
#undef MICROHTTPD_FIND
    return true;
}

bool server_listen(struct server *server, unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
        !bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, CONNECTIONS) &&
        !getsockname(fd, (struct sockaddr *)&address, &length) && token_make(server)) {
        server->listening = fd;
        server->port = ntohs(address.sin_port);
        return true;
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return false;
}

sigset_t signals_that_end(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    struct sigaction action;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) /* ignored ones stay ignored */
        if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
            sigaddset(&set, numbers[i]);
    return set;
}

int server_run(struct server *server, bool stay)
{
    sigset_t awaited = signals_that_end(), before;
    int end = DELIVERED;
    sigaddset(&awaited, DELIVERED);
    sigprocmask(SIG_BLOCK, &awaited, &before); /* also in the thread that serves */
    signal(SIGPIPE, SIG_IGN);                  /* a browser may go away in the middle */
    struct MHD_Daemon *daemon = mhd.start(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle,
        server, MHD_OPTION_LISTEN_SOCKET, server->listening, MHD_OPTION_NOTIFY_COMPLETED, ended,
        server, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)WAIT_SECONDS, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_END);
    while (daemon && !sigwait(&awaited, &end) && end == DELIVERED && stay) continue;
    if (daemon) mhd.stop(daemon);
    signal(DELIVERED, SIG_IGN); /* one that came since is dropped */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return !daemon ? -1 : end == DELIVERED ? 0 : end;
}
