/* custream recover: makes a whole file from a trace whose process was killed while it wrote. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/custream/flags.h"
#include "tools/custream/mend/mend.h"
#include "tools/custream/program.h"
#include "tools/custream/trace/ends.h"
#include "tools/custream/verdict.h"
#include "shim/base/options.h"

static const char NAME[] = "custream recover";

enum { NAME_ROOM = PATH_MAX + 16 };

struct request {
    const char *to; /* NULL: beside each trace */
    bool in_place;
    char **files;
    int count;
};

/* One trace of the request, and the path of its whole file. */
struct subject {
    const struct request *request;
    const char *path, *to;
    int fd;
    struct mend_known known;
    bool all; /* the trace, with its rings, has all that was recorded */
};

/* Returns where the extension in the name of a trace begins; without one, where the name ends. */
static size_t stem_of(const char *path)
{
    const char *extension = cs_trace_extension(path);
    return extension && extension > path ? (size_t)(extension - path) : strlen(path);
}

/* Opens a trace to which nobody writes: the library locks the file that it writes, and so does a
 * command that replaces the file. */
static int trace_open(const char *path, bool in_place)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return complain(NAME, "%s: %s", path, strerror(errno)), -1;
    if (fstat(fd, &about)) complain(NAME, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        complain(NAME, "%s: %s", path,
            S_ISDIR(about.st_mode) ? "Is a directory"
                                   : "no regular file, and it is to be read twice");
    else if (flock(fd, (in_place ? LOCK_EX : LOCK_SH) | LOCK_NB) && errno == EWOULDBLOCK)
        complain(
            NAME, "%s: a process still writes to it; its file gets a whole end when it ends", path);
    else if (!is_file_at(fd, path))
        complain(NAME, "%s: another file has come to this name meanwhile", path);
    else return fd;
    close(fd);
    return -1;
}

/* Whether rings could add nothing: the trace is complete, or its rings were added before. */
static bool has_all(const cJSON *trailer)
{
    return cJSON_IsTrue(member_of(member_of(trailer, "totals"), "complete")) ||
           member_of(member_of(member_of(trailer, "totals"), "recovered"), "rows");
}

/* Whether `to` is the same trace, recovered earlier with rings that are gone now. */
static bool is_better(const char *to, int trace)
{
    struct trace_head own, its;
    const int fd = open(to, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    cJSON *trailer = fd >= 0 && !is_file_at(trace, to) ? finish_trailer(fd) : NULL;
    const bool is = trailer && !cJSON_IsTrue(member_of(member_of(trailer, "totals"), "complete")) &&
                    has_all(trailer) && trace_head(trace, &own) && trace_head(fd, &its) &&
                    own.part == its.part && own.base == its.base;
    cJSON_Delete(trailer);
    if (fd >= 0) close(fd);
    return is;
}

/* --- a trace --- */

/* Recovers a trace with its rings; if the rings are damaged, without them. `rings` is NULL if no
 * rings add anything. */
static int recover_with(struct subject *s, struct rings *rings)
{
    struct mended mended;
    int status = STATUS_OK;
    const enum mend_end end = mend_make(&mended, s->fd, rings, &s->known);
    const bool again = rings && end == MEND_USELESS;
    if (again)
        complain(NAME, "%s: without the rings of its process, which are damaged: with them %s",
            s->path, mended.why);
    else if (end == MEND_USELESS) status = complain(NAME, "%s: %s", s->path, mended.why);
    else if (!rings && is_better(s->to, s->fd))
        printf("%s: %s has it, with what the rings of its process added, which are gone\n", s->path,
            s->to);
    else if (end == MEND_WHOLE && !s->request->to)
        printf("%s: is whole; %s\n", s->path,
            s->all ? "nothing to recover" : "what was not flushed is not in it");
    else if (end == MEND_WHOLE && mend_write(NAME, s->to, s->fd, NULL))
        printf("%s: is whole; %s is a copy\n", s->path, s->to);
    else if (end == MEND_WHOLE) status = STATUS_UNUSABLE;
    else if (!mend_write(NAME, s->to, s->fd, &mended)) status = STATUS_UNUSABLE;
    else {
        char line[3 * NAME_ROOM];
        const unsigned long long events = mended.events, cut = mended.cut_bytes;
        size_t n = cs_verdict_put(
            line, sizeof line, 0, "%s: %llu event%s", s->to, events, plural((double)events));
        if (strcmp(s->path, s->to)) n = cs_verdict_put(line, sizeof line, n, " of %s", s->path);
        n = cs_verdict_put(line, sizeof line, n,
            "; %llu byte%s behind the last whole one left out. ", cut, plural((double)cut));
        cs_verdict_advice(line, sizeof line, n, s->to);
        puts(line);
        if (rings) {
            const unsigned long long rows = rings->rows, out = rings->left_out;
            printf("  with %s%llu row%s from the rings of the process",
                mended.cut_bytes || rings->head.unkept ? "" : "all calls that had returned: ", rows,
                plural((double)rows));
            if (out) printf(", and %llu record%s that cannot be shown", out, plural((double)out));
            /* with sound rings, no bytes would have to be cut off */
            if (mended.cut_bytes) printf("; they are damaged, and calls may be missing");
            puts("");
            rings_remove(rings);
        }
    }
    mended_free(&mended);
    if (!again) return status;
    s->all = false;
    return recover_with(s, NULL);
}

static int recover_open(struct subject *s)
{
    struct rings_why why;
    struct rings *rings = rings_open(s->fd, -1, &why);
    cJSON *before = finish_part_before(s->path, s->fd), *last = finish_trailer(s->fd);
    const bool had_all = has_all(last), adds = rings && rings_add(rings);
    s->known = (struct mend_known){.before = before, .last = last};
    s->all = had_all || rings || !*why.text;
    if (*why.text && !why.gone && !had_all)
        complain(NAME, "%s: without the rings of its process: %s", s->path, why.text);
    const int status = recover_with(s, adds ? rings : NULL);
    if (rings && !adds && status == STATUS_OK) rings_remove(rings);
    if (why.gone && !had_all && status == STATUS_OK)
        printf("  without the rings of its process: %s\n", why.text);
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
        return complain(NAME, "-o %s: it needs the ending of the trace: %s", to,
            path[stem] ? path + stem : "none");
    struct subject subject = {
        .request = request, .path = path, .to = to, .fd = trace_open(path, request->in_place)};
    if (subject.fd < 0) return STATUS_UNUSABLE;
    int status;
    if (!request->in_place && is_file_at(subject.fd, to))
        status =
            complain(NAME, "%s%s: is the trace itself; --in-place puts the whole file in its place",
                request->to ? "-o " : "", to);
    else status = recover_open(&subject);
    close(subject.fd);
    return status;
}

static int request_read(struct request *request, int argc, char **argv)
{
    int flag;
    while ((flag = flags_next(argc, argv, 0)) != -1) {
        if (flag == FLAG_OUTPUT) request->to = optarg;
        else request->in_place = true;
    }
    request->files = argv + optind;
    request->count = argc - optind;
    if (!request->count) return complain(NAME, "which trace? 'custream help recover' says more");
    if (request->to && request->in_place)
        return complain(NAME, "-o and --in-place: it is one of the two");
    if (request->to && !*request->to)
        return complain(NAME, "-o: the name of the whole file is missing");
    if (request->to && request->count > 1)
        return complain(NAME, "-o %s: one file for %d traces; without it each gets one beside it",
            request->to, request->count);
    return STATUS_OK;
}

int command_recover(int argc, char **argv)
{
    struct request request = {0};
    int status = request_read(&request, argc, argv);
    for (int i = 0; i < request.count && (i || status == STATUS_OK); i++) {
        const int one = recover(&request, request.files[i]);
        if (one > status) status = one;
    }
    return status;
}
