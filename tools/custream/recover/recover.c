/* custream recover: makes a whole file of a trace whose process was killed while it wrote. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/merge/out.h"
#include "tools/custream/recover/mend.h"
#include "tools/custream/recover/rings.h"
#include "tools/custream/show.h"
#include "tools/custream/watch/finish.h"

#include "shim/base/options.h"
#include "shim/base/verdict.h"

static const char NAME[] = "custream recover";

enum { NAME_ROOM = PATH_MAX + 16 };

struct request {
    const char *to; /* NULL: beside each trace */
    bool in_place;
    char **files;
    int count;
};

/* One trace of the request, and where its whole file goes. */
struct subject {
    const struct request *request;
    const char *path, *to;
    const cJSON *before, *last; /* the trailers of the part before it, and of its own last flush; NULL: not known */
    bool all; /* nothing came behind that flush, or it is known what */
};

/* Where the extension begins; the end of the name where it has none of a trace. */
static size_t stem_of(const char *path)
{
    const char *extension = cs_trace_extension(path);
    return extension && extension > path ? (size_t)(extension - path) : strlen(path);
}

static bool trace_is_packets(const char *path)
{
    const char *extension = cs_trace_extension(path);
    return extension && cs_trace_extension_is_packets(extension);
}

static bool is_same(int fd, const char *path)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Only what nobody writes to: the library holds a lock on its file, and so does who puts another in its place. */
static int trace_open(const char *path, bool in_place)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return complain(NAME, "%s: %s", path, strerror(errno)), -1;
    if (fstat(fd, &about)) complain(NAME, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode)) complain(NAME, "%s: %s", path, S_ISDIR(about.st_mode) ? "Is a directory" : "no regular file, and it is to be read twice");
    else if (flock(fd, (in_place ? LOCK_EX : LOCK_SH) | LOCK_NB) && errno == EWOULDBLOCK) complain(NAME, "%s: a process still writes to it; its file gets a whole end when it ends", path);
    else if (!is_same(fd, path)) complain(NAME, "%s: another file has come to this name meanwhile", path);
    else return fd;
    close(fd);
    return -1;
}

static int write_to(const char *to, int fd, const struct mended *mended) { return mend_write(NAME, to, fd, mended) ? STATUS_OK : STATUS_UNUSABLE; }

static void say(const char *path, const char *to, const struct mended *mended)
{
    char line[3 * NAME_ROOM];
    const unsigned long long events = mended->events, cut = mended->cut_bytes;
    size_t n = cs_verdict_put(line, sizeof line, 0, "%s: %llu event%s", to, events, events == 1 ? "" : "s");
    if (strcmp(path, to)) n = cs_verdict_put(line, sizeof line, n, " of %s", path);
    n = cs_verdict_put(line, sizeof line, n, "; %llu byte%s behind the last whole one left out. ", cut, cut == 1 ? "" : "s");
    cs_verdict_advice(line, sizeof line, n, to);
    puts(line);
}

/* What the writer had not written: behind the line that says what stands there. Where events of theirs are cut off, the rings are damaged. */
static void say_rings(const struct mended *mended, const struct rings *rings)
{
    const unsigned long long rows = rings_row_count(rings), out = rings_left_out(rings);
    const bool all = !mended->cut_bytes && !rings_threads_not_kept(rings);
    printf("  with %s%llu row%s from the rings of the process", all ? "all calls that had returned: " : "", rows, rows == 1 ? "" : "s");
    if (out) printf(", and %llu record%s that cannot be shown", out, out == 1 ? "" : "s");
    if (mended->cut_bytes) printf("; they are damaged, and calls may be missing");
    puts("");
}

static int written(const char *path, const char *to, const struct mended *mended, struct rings *rings)
{
    say(path, to, mended);
    if (rings) say_rings(mended, rings), rings_remove(rings);
    return STATUS_OK;
}

static bool useless(const char *path, const struct mended *mended)
{
    complain(NAME, "%s: without the rings of its process, which are damaged: with them %s", path, mended->why);
    return true;
}

/* Perfetto's own format: all of it anew. `rings`: NULL, or what they add. */
static int recover_packets(const char *path, const char *to, const struct mend_source *sources, size_t count, const struct mend_known *known, struct rings *rings, bool *again)
{
    struct out out;
    struct mended mended;
    const struct mend_put put = {out_put, &out};
    if (!out_open_as_is(NAME, &out, to, NULL, 0)) return STATUS_UNUSABLE;
    const enum mend_end end = mend_make(&mended, sources, count, known, &put);
    if (end == MEND_WHOLE) complain(NAME, "%s: it has changed", path);
    if (end == MEND_USELESS && rings) *again = useless(path, &mended);
    else if (end == MEND_USELESS) complain(NAME, "%s: %s", path, mended.why);
    const int status = out_close(&out, end == MEND_TORN) ? written(path, to, &mended, rings) : STATUS_UNUSABLE;
    mended_free(&mended);
    return status;
}

static int whole(const struct subject *s, int fd)
{
    if (!s->request->to) return printf("%s: is whole; %s\n", s->path, s->all ? "nothing to recover" : "what was not flushed is not in it"), STATUS_OK;
    const int status = write_to(s->to, fd, NULL);
    if (status == STATUS_OK) printf("%s: is whole; %s is a copy\n", s->path, s->to);
    return status;
}

static const cJSON *total(const cJSON *trailer, const char *name) { return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(trailer, "totals"), name); }

/* There is nothing that rings could add: the process ended well, or they were added before. */
static bool has_all(const cJSON *trailer) { return cJSON_IsTrue(total(trailer, "complete")) || cJSON_GetObjectItemCaseSensitive(total(trailer, "recovered"), "rows"); }

/* The same trace, recovered before, with rings that are gone now. */
static bool is_better(const char *to, int trace)
{
    struct mend_head own, its;
    const int fd = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    cJSON *trailer = fd >= 0 && !is_same(trace, to) ? finish_trailer(fd) : NULL;
    const bool is = trailer && !cJSON_IsTrue(total(trailer, "complete")) && has_all(trailer) && mend_head(trace, &own) && mend_head(fd, &its) && own.part == its.part && !strcmp(own.base, its.base);
    cJSON_Delete(trailer);
    if (fd >= 0) close(fd);
    return is;
}

static void say_better(const struct subject *s) { printf("%s: %s has it, with what the rings of its process added, which are gone\n", s->path, s->to); }

/* `again`: what the rings add is no use. */
static int recover_from(const struct subject *s, int fd, struct rings *rings, bool *again)
{
    const struct torn_more more = rings ? rings_more(rings, fd) : (struct torn_more){0};
    const struct mend_source sources[] = {{.fd = fd, .more = rings ? &more : NULL}, {.of = rings, .rows = rings_rows}};
    const struct mend_known known = {.before = cJSON_GetObjectItemCaseSensitive(s->before, "totals"), .rings = rings, .last = s->last};
    const size_t count = rings ? 2 : 1;
    struct mended mended;
    if (rings && trace_is_packets(s->path)) return recover_packets(s->path, s->to, sources, count, &known, rings, again);
    const enum mend_end end = mend_make(&mended, sources, count, &known, NULL);
    const bool is_torn = end == MEND_USELESS && mended.packets && trace_is_packets(s->path); /* of packets it says no more without a place for them */
    int status = STATUS_OK;
    if (rings && end == MEND_USELESS) *again = useless(s->path, &mended);
    else if (is_torn && is_better(s->to, fd)) say_better(s);
    else if (is_torn) status = recover_packets(s->path, s->to, sources, count, &known, NULL, again);
    else if (end == MEND_USELESS && mended.packets) status = complain(NAME, "%s: it is in Perfetto's own format: under a name that ends in .pftrace it can be recovered", s->path);
    else if (end == MEND_USELESS) status = complain(NAME, "%s: %s", s->path, mended.why);
    else if (!rings && is_better(s->to, fd)) say_better(s);
    else if (end == MEND_WHOLE) status = whole(s, fd);
    else if ((status = write_to(s->to, fd, &mended)) == STATUS_OK) written(s->path, s->to, &mended, rings);
    mended_free(&mended);
    return status;
}

/* With what the rings add, if they add anything; where that is no use, without. */
static int recover_with(struct subject *s, int fd, struct rings *rings)
{
    bool again = false;
    const int status = recover_from(s, fd, rings, &again);
    if (!again) return status;
    s->all = false;
    return recover_from(s, fd, NULL, &again);
}

static int recover_open(const struct request *request, const char *path, const char *to, int fd)
{
    struct rings_why why;
    struct rings *rings = rings_open(fd, -1, &why);
    cJSON *before = finish_part_before(path, fd), *last = finish_trailer(fd);
    const bool had_all = has_all(last), adds = rings && rings_add(rings);
    struct subject subject = {.request = request, .path = path, .to = to, .before = before, .last = last, .all = had_all || rings || !*why.text};
    if (*why.text && !why.gone && !had_all) complain(NAME, "%s: without the rings of its process: %s", path, why.text);
    const int status = recover_with(&subject, fd, adds ? rings : NULL);
    if (rings && !adds && status == STATUS_OK) rings_remove(rings);
    if (why.gone && !had_all && status == STATUS_OK) printf("  without the rings of its process: %s\n", why.text);
    rings_close(rings);
    cJSON_Delete(before);
    cJSON_Delete(last);
    return status;
}

static int recover(const struct request *request, const char *path)
{
    char own[NAME_ROOM];
    const size_t stem = stem_of(path);
    const char *to = request->in_place ? path : request->to ? request->to : own;
    if (strlen(path) >= PATH_MAX) return complain(NAME, "%s: %s", path, strerror(ENAMETOOLONG));
    snprintf(own, sizeof own, "%.*s.recovered%s", (int)stem, path, path + stem);
    if (request->to && strcmp(path + stem, to + stem_of(to)))
        return complain(NAME, "-o %s: it needs the ending of the trace: %s", to, path[stem] ? path + stem : "none");
    const int fd = trace_open(path, request->in_place);
    if (fd < 0) return STATUS_UNUSABLE;
    int status;
    if (!request->in_place && is_same(fd, to)) status = complain(NAME, "%s%s: is the trace itself; --in-place puts the whole file in its place", request->to ? "-o " : "", to);
    else status = recover_open(request, path, to, fd);
    close(fd);
    return status;
}

static int request_read(struct request *request, int argc, char **argv)
{
    int flag;
    while ((flag = flags_next(argc, argv, '-')) != -1) {
        if (flag == FLAG_WORD) request->files[request->count++] = optarg;
        else if (flag == FLAG_OUTPUT) request->to = optarg;
        else request->in_place = true;
    }
    for (; optind < argc; optind++) request->files[request->count++] = argv[optind]; /* behind "--" */
    if (!request->count) return complain(NAME, "which trace? 'custream help recover' says more");
    if (request->to && request->in_place) return complain(NAME, "-o and --in-place: it is one of the two");
    if (request->to && !*request->to) return complain(NAME, "-o: the name of the whole file is missing");
    if (request->to && request->count > 1) return complain(NAME, "-o %s: one file for %d traces; without it each gets one beside it", request->to, request->count);
    return STATUS_OK;
}

int command_recover(int argc, char **argv)
{
    struct request request = {0};
    if (!(request.files = calloc((size_t)argc + 1, sizeof *request.files))) out_of_memory();
    int status = request_read(&request, argc, argv);
    for (int i = 0; i < request.count && (i || status == STATUS_OK); i++) {
        const int one = recover(&request, request.files[i]);
        if (one > status) status = one;
    }
    free(request.files);
    return status;
}
