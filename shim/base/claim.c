#define _GNU_SOURCE
#include "shim/base/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "shim/base/keep.h"
#include "shim/base/owner.h"
#include "shim/base/unpack.h"

/* CLAIM_TRIES: links on the way, and changes while we look. OPEN_MODE: a pipe or a device that comes to the name meanwhile keeps nobody waiting. */
enum { CLAIM_TRIES = 40, OPEN_MODE = O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK };

enum outcome { TAKEN, FAILED, AGAIN }; /* AGAIN: a link led on, or the file changed under our hands */

static enum outcome refuse(struct cs_claim *claim, const char *why)
{
    claim->refusal = why;
    errno = EEXIST;
    return FAILED;
}

/* --- what is in it --- */

bool cs_trace_begins(const char *text, size_t length)
{
    static const char before[] = "{\"schemaVersion\":", behind[] = CS_TRACE_BEGIN_BEHIND;
    size_t at = sizeof before - 1;
    if (length < at || memcmp(text, before, at)) return false;
    while (at < length && at < sizeof before - 1 + 9 && text[at] >= '0' && text[at] <= '9') at++;
    return length - at >= sizeof behind - 1 && !memcmp(text + at, behind, sizeof behind - 1);
}

/* The frame of a packet has no zero (base/perfetto.c). */
static bool is_trace(const char *head)
{
    enum { FRAME_MAX = 40 };
    const char *at = *head == '\n' ? strstr(head, "{\"schemaVersion\":") : head;
    return at && at - head < FRAME_MAX && cs_trace_begins(at, strlen(at)) && strstr(at, "\"metadata\":{\"tool\":\"custream ");
}

/* The header says so in front of all texts that others choose (totals.c). */
static cs_u32 part_of(const char *head)
{
    static const char mark[] = ",\"part\":", end[] = ",\n\"distributedInfo\"";
    const char *at = strstr(head, mark);
    char *behind;
    unsigned long number = at ? strtoul(at + sizeof mark - 1, &behind, 10) : 0;
    return number && number <= UINT32_MAX && !strncmp(behind, end, sizeof end - 1) ? (cs_u32)number : 0;
}

static void read_head(struct cs_claim *claim, unsigned how, const struct cs_inflate *zlib)
{
    unsigned char packed[CS_CLAIM_HEAD];
    ssize_t got = pread(claim->fd, claim->head, CS_CLAIM_HEAD - 1, 0);
    size_t n = got > 0 ? (size_t)got : 0;
    if (zlib && n > 2 && (unsigned char)claim->head[0] == 0x1f && (unsigned char)claim->head[1] == 0x8b) {
        memcpy(packed, claim->head, n);
        n = cs_unpack(zlib, packed, n, claim->head, CS_CLAIM_HEAD - 1);
    }
    claim->head[n] = 0;
    const bool metrics = how & CS_CLAIM_METRICS;
    claim->ours = metrics ? !strncmp(claim->head, CS_METRICS_BEGIN, sizeof CS_METRICS_BEGIN - 1) : is_trace(claim->head);
    claim->part = claim->ours && !metrics ? part_of(claim->head) : 0;
}

/* --- the folder --- */

/* The group that has its one member's number is his own, as most systems make them. */
static bool is_own_group(const struct stat *folder) { return folder->st_uid && folder->st_gid == folder->st_uid && folder->st_gid == getegid(); }

static bool others_make_files(int at, const struct stat *folder)
{
    if (!cs_owner_is_us_or_root(folder->st_uid) && !cs_name_is_ours(at, ".", folder)) return true;
    return folder->st_mode & S_IWOTH || (folder->st_mode & S_IWGRP && !is_own_group(folder));
}

/* The folder of the claim's path, and the name in it. */
static int open_folder(struct cs_claim *claim, const char **name)
{
    char *slash = strrchr(claim->path, '/');
    *name = slash ? slash + 1 : claim->path;
    if (!slash) return open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!**name) *name = "."; /* a link to "folder/" */
    if (slash == claim->path) return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = 0;
    int fd = open(claim->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
    return fd;
}

/* --- one name in one folder --- */

static enum outcome follow(struct cs_claim *claim, int folder, const char *name)
{
    char target[PATH_MAX], way[PATH_MAX];
    struct statfs system;
    if (!fstatfs(folder, &system) && system.f_type == PROC_SUPER_MAGIC) /* these lead by no name to what some process has open: /dev/stdout */
        return refuse(claim, "it leads to an open file of a process; give that file's own name");
    ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
    if (n < 0) return errno == EINVAL || errno == ENOENT ? AGAIN : FAILED;
    target[n] = 0;
    const char *slash = strrchr(claim->path, '/');
    int stem = *target == '/' || !slash ? 0 : (int)(slash + 1 - claim->path);
    if ((size_t)snprintf(way, sizeof way, "%.*s%s", stem, claim->path, target) >= sizeof way) return errno = ENAMETOOLONG, FAILED;
    memcpy(claim->path, way, sizeof way);
    return AGAIN;
}

#define OR_BY_FORCE "(CUSTREAM_FORCE=on or custream run --force takes any)"

/* The name by which the file was opened may be gone by now: then the one name that is left is another. The system does not tell both at once, so whoever makes
 * the name come and go would have to meet several looks. */
static bool has_this_name_alone(const struct cs_claim *claim, int at, const char *name)
{
    enum { LOOKS = 4 };
    struct stat there, file;
    for (int i = 0; i < LOOKS; i++) {
        if (fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) || fstat(claim->fd, &file)) return false;
        if (there.st_dev != file.st_dev || there.st_ino != file.st_ino || file.st_nlink != 1) return false;
    }
    return true;
}

/* The file that was opened as `name` in `at`, a folder like `folder`. */
static enum outcome judge(struct cs_claim *claim, int at, const char *name, const struct stat *folder, unsigned how, const struct cs_inflate *zlib)
{
    struct stat file;
    if (fstat(claim->fd, &file)) return FAILED;
    if (!S_ISREG(file.st_mode)) return AGAIN;
    if (others_make_files(at, folder)) {
        if (file.st_nlink > 1) return refuse(claim, "the file has other names (hard links), in a folder that others can write to");
        if (!has_this_name_alone(claim, at, name)) return AGAIN;
        const bool known = cs_file_is_ours(claim->fd, file.st_uid) || (file.st_uid == folder->st_uid && cs_owner_is_one(file.st_uid));
        if (!known && !(how & CS_CLAIM_FORCE))
            return refuse(claim, how & CS_CLAIM_METRICS ? "the file is somebody else's, in a folder that others can write to" :
                                                          "the file is somebody else's, in a folder that others can write to " OR_BY_FORCE);
    }
    if (!file.st_size) return TAKEN;
    read_head(claim, how, zlib);
    if (claim->ours || how & CS_CLAIM_FORCE) return TAKEN;
    if (how & CS_CLAIM_METRICS) return refuse(claim, "the file has no metrics of custream's; allowed is a new file, an empty one or earlier metrics");
    return refuse(claim, "the file is no trace; allowed is a new file, an empty one or an earlier trace " OR_BY_FORCE);
}

int cs_make_file(int folder, const char *name, int flags)
{
    const int fd = openat(folder, name, flags, S_IRUSR | S_IWUSR);
    CS_KEEP_ERRNO;
    if (fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR)) {} /* then it has less */
    return fd;
}

static enum outcome claim_in(struct cs_claim *claim, int at, const char *name, unsigned how, const struct cs_inflate *zlib)
{
    struct stat folder, there;
    if (!(how & CS_CLAIM_OLD)) {
        claim->fd = cs_make_file(at, name, OPEN_MODE | O_CREAT | O_EXCL); /* alone makes sure that it is new; follows no link */
        claim->made = claim->fd >= 0;
        if (claim->made) return TAKEN;
        if (errno != EEXIST) return FAILED;
    }
    if (fstat(at, &folder)) return FAILED;
    if (fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT && !(how & CS_CLAIM_OLD) ? AGAIN : FAILED;
    if (S_ISDIR(there.st_mode)) return refuse(claim, "it is a directory");
    if (S_ISLNK(there.st_mode)) {
        if (!others_make_files(at, &folder)) return follow(claim, at, name);
        return refuse(claim, "it is a symbolic link, in a folder that others can write to; give the name of its target");
    }
    if (!S_ISREG(there.st_mode)) /* not even opened: that may do something */
        return refuse(claim, "it is a device, a pipe or a socket; allowed is a regular file");
    claim->fd = openat(at, name, OPEN_MODE);
    if (claim->fd < 0) return errno == ENOENT || errno == ELOOP ? AGAIN : FAILED;
    enum outcome outcome = judge(claim, at, name, &folder, how, zlib);
    if (outcome == TAKEN) return TAKEN;
    CS_KEEP_ERRNO;
    close(claim->fd);
    claim->fd = -1;
    return outcome;
}

bool cs_claim(struct cs_claim *claim, const char *path, unsigned how, const struct cs_inflate *zlib)
{
    enum outcome outcome = AGAIN;
    const char *name;
    *claim = (struct cs_claim){.fd = -1};
    if ((size_t)snprintf(claim->path, sizeof claim->path, "%s", path) >= sizeof claim->path) return errno = ENAMETOOLONG, false;
    for (int i = 0; i < CLAIM_TRIES && outcome == AGAIN; i++) {
        int folder = open_folder(claim, &name);
        if (folder < 0) return false;
        outcome = claim_in(claim, folder, name, how, zlib);
        CS_KEEP_ERRNO;
        close(folder);
    }
    if (outcome == AGAIN) errno = ELOOP;
    return outcome == TAKEN;
}

bool cs_claim_stands(const struct cs_claim *claim)
{
    struct stat name, file;
    return !lstat(claim->path, &name) && !fstat(claim->fd, &file) && name.st_dev == file.st_dev && name.st_ino == file.st_ino;
}

void cs_claim_drop(struct cs_claim *claim)
{
    CS_KEEP_ERRNO;
    struct stat file;
    if (claim->fd < 0) return;
    if (claim->made && !fstat(claim->fd, &file) && !file.st_size && cs_claim_stands(claim)) unlink(claim->path);
    close(claim->fd);
    claim->fd = -1;
}
