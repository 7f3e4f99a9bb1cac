/* Finishes a trace whose process was ended from outside: says why, and mends a torn file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/custream/mend/mend.h"
#include "tools/custream/trace/ends.h"
#include "tools/custream/verdict.h"

/* --- parts --- */

static bool is_regular(int fd, struct stat *st) { return !fstat(fd, st) && S_ISREG(st->st_mode); }

static bool is_file(int fd, struct file_id id)
{
    struct stat st;
    return is_regular(fd, &st) && st.st_dev == id.device && st.st_ino == id.inode;
}

/* Opens the part before the trace `fd`: if "trace.json" is part 7, "trace.6.json". -1: there is
 * none. */
static int part_before(const char *path, int fd)
{
    char name[PATH_MAX + 32];
    struct trace_head own, its;
    struct stat st;
    const char *extension = cs_trace_extension(path);
    if (!extension || !is_regular(fd, &st) || !trace_head(fd, &own) || own.part < 2) return -1;
    if ((size_t)snprintf(name, sizeof name, "%.*s.%u%s", (int)(extension - path), path,
            own.part - 1, extension) >= sizeof name)
        return -1;
    const int part = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (part >= 0 && is_regular(part, &st) && trace_head(part, &its) && its.part == own.part - 1 &&
        its.base == own.base)
        return part;
    if (part >= 0) close(part);
    return -1;
}

cJSON *finish_trailer(int fd)
{
    struct trailer trailer;
    trailer_read(fd, &trailer);
    return trailer_finish(&trailer);
}

cJSON *finish_part_before(const char *path, int fd)
{
    const int part = part_before(path, fd);
    cJSON *trailer = part >= 0 ? finish_trailer(part) : NULL;
    if (part >= 0) close(part);
    return trailer;
}

/* --- a file --- */

/* Mends a file and returns its new trailer; NULL: the file stays as it is. A file of packets is
 * mended only if there are rings, and is written anew then. */
static cJSON *mend(const char *path, int fd, const char *by, struct rings *rings, const cJSON *last)
{
    struct mended mended;
    cJSON *trailer = NULL, *before = finish_part_before(path, fd);
    bool good = mend_make(&mended, fd, rings,
                    &(struct mend_known){.by = by, .before = before, .last = last}) == MEND_TORN;
    if (mended.packets) good = good && rings && mend_write("custream", path, fd, &mended);
    else if (good) { /* in place, if there is no room for a second file */ struct statvfs about;
        const bool room =
            !statvfs(path, &about) && (uint64_t)about.f_bavail * about.f_frsize >
                                          (uint64_t)mended.stands + mended.tail.length;
        good = (room && mend_write("custream", path, fd, &mended)) || mend_in_place(fd, &mended);
    }
    if (good) {
        trailer = mended.trailer;
        mended.trailer = NULL;
        if (rings) rings_remove(rings);
    }
    mended_free(&mended);
    cJSON_Delete(before);
    return trailer;
}

static cJSON *finish_open(const char *path, int fd, const char *by, int memfd)
{
    bool all = false; /* the trace is known to have all calls, as the rings add nothing */
    struct trailer trailer;
    struct rings_why why;
    struct rings *rings = by ? rings_open(fd, memfd, &why) : NULL;
    if (rings && !rings_add(rings)) {
        all = !rings->head.unkept;
        rings_remove(rings);
        rings_close(rings);
        rings = NULL;
    }
    cJSON *last = rings ? finish_trailer(fd) : NULL,
          *value = rings ? mend(path, fd, by, rings, last) : NULL;
    rings_close(rings);
    cJSON_Delete(last);
    if (value) return value;
    const bool whole = trailer_read(fd, &trailer);
    cJSON *totals = whole ? cJSON_GetObjectItemCaseSensitive(trailer.value, "totals") : NULL;
    /* The trailer says that the trace is incomplete, but not why. */
    if (whole && by && cJSON_IsFalse(member_of(totals, "complete")) &&
        !member_of(totals, "ended_by")) {
        static const char *const none[] = {"cut_bytes", "rows", "left_out"};
        json_add(totals, "ended_by", cJSON_CreateString(by));
        cJSON *recovered = all ? json_add(totals, "recovered", cJSON_CreateObject()) : NULL;
        for (size_t i = 0; all && i < CS_COUNT(none); i++) json_add_number(recovered, none[i], 0);
        trailer_replace(fd, &trailer);
    }
    value = trailer_finish(&trailer);
    return value || !by ? value : mend(path, fd, by, NULL, NULL);
}

cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings)
{
    cJSON *trailer = NULL;
    const int fd = open(path, (by ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return NULL;
    bool is = is_file(fd, id);
    if (!is) { /* the process may have ended before it told of a new part */
        const int part = part_before(path, fd);
        is = part >= 0 && is_file(part, id);
        if (part >= 0) close(part);
    }
    if (is && (!by || !flock(fd, LOCK_EX | LOCK_NB)))
        trailer = finish_open(path, fd, by, rings); /* the lock keeps other writers away */
    close(fd);
    return trailer;
}

bool finish_is_there(const char *path, struct file_id id)
{
    struct stat st;
    return !lstat(path, &st) && st.st_dev == id.device && st.st_ino == id.inode;
}
