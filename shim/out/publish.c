#define _GNU_SOURCE
#include "shim/out/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/apart.h"
#include "shim/base/claim.h"
#include "shim/base/keep.h"
#include "shim/base/log.h"
#include "shim/base/owner.h"
#include "shim/base/plain.h"
#include "shim/out/path.h"

enum { NAMES = 100 };

static struct {
    int folder, file;     /* descriptors, +1; 0: none. The file stands at the name, and is locked */
    char name[NAME_MAX + 1], path[PATH_MAX]; /* in the folder; for people */
    char said[PATH_MAX + 256];
} now;

static int folder(void) { return now.folder - 1; }

static bool failed(const char *variable, const char *why)
{
    char line[sizeof now.said];
    snprintf(line, sizeof line, "cannot write %s (%s): %s", now.path, variable, why);
    if (strcmp(line, now.said)) cs_log(CS_LOG_ERROR, "%s; it is tried again every ten seconds", strcpy(now.said, line));
    return false;
}

static void let_go(void)
{
    CS_KEEP_ERRNO;
    if (now.file) close(now.file - 1);
    if (now.folder) close(folder());
    now.file = now.folder = 0;
}

/* --- the name --- */

static bool leads_to(int fd)
{
    struct stat there, file;
    return !fstatat(folder(), now.name, &there, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &file) && there.st_dev == file.st_dev && there.st_ino == file.st_ino;
}

/* The folder that the claimed file is in, and its name there. */
static bool open_folder(const char *path)
{
    char place[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int stem = slash ? (int)(slash - path) : 0;
    snprintf(place, sizeof place, "%.*s%s", stem, path, !slash ? "." : slash == path ? "/" : "");
    if ((size_t)snprintf(now.name, sizeof now.name, "%s", slash ? slash + 1 : path) >= sizeof now.name) return errno = ENAMETOOLONG, false;
    now.folder = cs_apart_keep(open(place, O_PATH | O_DIRECTORY | O_CLOEXEC)) + 1;
    return now.folder;
}

enum outcome { TAKEN, FAILED, ANOTHERS };

static enum outcome claim_one(const char *path, const char **why)
{
    static struct cs_claim claim;
    *why = NULL;
    if (!cs_claim(&claim, path, CS_CLAIM_METRICS, NULL)) return *why = claim.refusal, FAILED;
    if (flock(claim.fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return close(claim.fd), ANOTHERS;
    now.file = cs_apart_keep(claim.fd) + 1;
    snprintf(now.path, sizeof now.path, "%s", claim.path);
    const bool opened = open_folder(claim.path);
    if (opened && leads_to(now.file - 1)) return TAKEN;
    let_go();
    return opened ? ANOTHERS : FAILED; /* its owner has just replaced it */
}

/* The name itself, then with the pid, then others. */
static bool claim_name(const char *variable, const char *pattern)
{
    char plain[PATH_MAX], name[PATH_MAX + 64];
    const char *why = NULL, *extension;
    enum outcome outcome = ANOTHERS;
    cs_path_expand(variable, pattern, plain, sizeof plain);
    snprintf(now.path, sizeof now.path, "%s", plain);
    extension = strrchr(plain, '.');
    const int stem = extension ? (int)(extension - plain) : (int)strlen(plain);
    for (int i = 0; i < NAMES && outcome == ANOTHERS; i++) {
        if (i == 0) snprintf(name, sizeof name, "%s", plain);
        if (i == 1) snprintf(name, sizeof name, "%.*s-%d%s", stem, plain, (int)getpid(), plain + stem);
        if (i > 1) snprintf(name, sizeof name, "%.*s-%d-%d%s", stem, plain, (int)getpid(), i, plain + stem);
        outcome = claim_one(name, &why);
    }
    if (outcome == TAKEN) return true;
    return failed(variable, why ?: outcome == ANOTHERS ? "other processes have the file" : cs_plain_error(errno));
}

/* --- the file --- */

static bool write_all(int fd, const char *text, size_t size)
{
    while (size) {
        const ssize_t done = write(fd, text, size);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done ? false : (errno = ENOSPC, false);
        text += done, size -= (size_t)done;
    }
    return true;
}

/* A file beside it. A name that is taken already is that of a process which had our number, and was killed. */
static int make_beside(char beside[NAME_MAX + 1])
{
    enum { HOW = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, MODE = 0644 };
    struct stat there;
    snprintf(beside, NAME_MAX + 1, "%.*s.%d.tmp", NAME_MAX - 32, now.name, (int)getpid());
    int fd = openat(folder(), beside, HOW, MODE);
    if (fd >= 0 || errno != EEXIST) return fd;
    const bool ours = !fstatat(folder(), beside, &there, AT_SYMLINK_NOFOLLOW) && S_ISREG(there.st_mode) && there.st_nlink == 1 && cs_name_is_ours(folder(), beside, &there);
    if (!ours || unlinkat(folder(), beside, 0)) return errno = EEXIST, -1;
    return openat(folder(), beside, HOW, MODE);
}

/* Locked before it has the name, so that the name is never free. */
static bool replace(const char *text, size_t size)
{
    char beside[NAME_MAX + 1];
    const int fd = cs_apart_keep(make_beside(beside));
    if (fd < 0) return false;
    if (flock(fd, LOCK_EX | LOCK_NB)) {} /* nobody else has it; where there are no locks, others may write to the same name */
    if (write_all(fd, text, size) && !renameat2(folder(), beside, folder(), now.name, 0)) {
        close(now.file - 1);
        now.file = fd + 1;
        return true;
    }
    CS_KEEP_ERRNO;
    unlinkat(folder(), beside, 0);
    close(fd);
    return false;
}

bool cs_publish(const char *variable, const char *pattern, const char *text, size_t size)
{
    if (now.file && !leads_to(now.file - 1)) let_go();
    if (!now.file && !claim_name(variable, pattern)) return false;
    if (!replace(text, size)) return failed(variable, cs_plain_error(errno));
    *now.said = 0;
    return true;
}

void cs_publish_end(void)
{
    if (now.file && leads_to(now.file - 1)) unlinkat(folder(), now.name, 0);
    let_go();
}

void cs_publish_forget(void) { memset(&now, 0, sizeof now); }
