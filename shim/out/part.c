#define _GNU_SOURCE
#include "shim/out/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/claim.h"
#include "shim/base/log.h"
#include "shim/base/memory.h"
#include "shim/base/plain.h"
#include "shim/out/gzip.h"
#include "shim/out/path.h"

enum { KEPT_MAX = 1 << 14, NAME = PATH_MAX + 64 };

static char path[PATH_MAX];  /* absolute, no links in it: programs change their folder */
static char unfinished[NAME]; /* the name of the next part until it has its own; empty where it can be without one */

/* The parts that have ended and stand on the disk, the oldest first. */
static struct ended {
    struct cs_file_id id;
    cs_u32 number;
    bool beside; /* its name has our pid, since the plain one was taken */
    cs_u64 recorded;
} *ended;
static cs_u32 ended_first, ended_count;

bool cs_file_id_of(int fd, struct cs_file_id *id)
{
    struct stat st;
    if (fstat(fd, &st)) return false;
    *id = (struct cs_file_id){st.st_dev, st.st_ino};
    return true;
}

static bool stands_at(const char *name, struct cs_file_id id)
{
    struct stat st;
    return !lstat(name, &st) && st.st_dev == id.device && st.st_ino == id.inode;
}

const char *cs_parts_path(void) { return path; }

static void name_of(char name[NAME], cs_u32 number, bool beside)
{
    int stem = (int)cs_path_stem(path);
    if (beside) snprintf(name, NAME, "%.*s.%u-%d%s", stem, path, number, (int)getpid(), path + stem);
    else snprintf(name, NAME, "%.*s.%u%s", stem, path, number, path + stem);
}

void cs_part_comment(char text[32], cs_u32 number) { snprintf(text, 32, "custream part %u", number); }

/* --- parts of earlier runs --- */

/* Whether the file says of itself that it is that part of a trace, and no process of this run has to do with it. */
static bool is_left_over(const char *name, cs_u32 number)
{
    static struct cs_claim claim; /* the writer thread's alone */
    if (!cs_claim(&claim, name, CS_CLAIM_OLD, cs_gzip_inflate())) return false;
    bool ours = claim.part == number && !strcmp(claim.path, name) && !cs_path_is_taken(&claim); /* another path: a link led to it */
    cs_claim_drop(&claim);
    return ours;
}

/* The number of a part in a file's name: of "trace.12.json", where the path is trace.json. 0: it is no part's. */
static cs_u32 number_in(const char *name, const char *stem, size_t n, const char *extension)
{
    if (strncmp(name, stem, n) || name[n] != '.' || name[n + 1] < '1' || name[n + 1] > '9') return 0;
    char *end;
    unsigned long number = strtoul(name + n + 1, &end, 10);
    return number <= UINT32_MAX && !strcmp(end, extension) ? (cs_u32)number : 0;
}

static void remove_left_over(void)
{
    char folder[PATH_MAX], name[NAME];
    size_t stem = cs_path_stem(path);
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        cs_u32 number = number_in(file->d_name, slash + 1, stem - (size_t)(slash + 1 - path), path + stem);
        if (!number) continue;
        snprintf(name, sizeof name, "%.*s%s", (int)(slash + 1 - path), path, file->d_name);
        if (is_left_over(name, number)) unlink(name);
    }
    if (files) closedir(files);
}

/* The folder alone: where a link in the last place led to is known, and one that came since then is not followed. */
static bool resolve(const char *given)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(given, '/'), *name = slash ? slash + 1 : given;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - given), given);
    if (!realpath(*folder ? folder : ".", path)) return false;
    size_t n = strlen(path);
    return (size_t)snprintf(path + n, sizeof path - n, "%s%s", n > 1 ? "/" : "", name) < sizeof path - n;
}

bool cs_parts_begin(const char *given)
{
    ended_first = ended_count = 0;
    if (!ended && !(ended = cs_memory_map(KEPT_MAX * sizeof *ended, "the list of parts; the trace ends where its first part does"))) return false;
    if (!resolve(given)) return false;
    remove_left_over();
    return true;
}

/* --- the next part --- */

int cs_part_create(void)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    *unfinished = 0;
    int fd = cs_make_file(AT_FDCWD, folder, O_TMPFILE | O_RDWR | O_CLOEXEC);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT)) { /* NFS and others: with a name from the start */
        char name[NAME];
        for (int i = 0; i < 100 && fd < 0 && (!i || errno == EEXIST); i++) { /* one of our pid may have been killed */
            snprintf(name, sizeof name, "%s.%d-%d.next", path, (int)getpid(), i);
            fd = cs_make_file(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY);
        }
        if (fd >= 0) strcpy(unfinished, name);
    }
    if (fd >= 0) flock(fd, LOCK_EX | LOCK_NB); /* before another process of this run sees it */
    return fd;
}

void cs_part_drop(int fd)
{
    if (*unfinished) unlink(unfinished);
    *unfinished = 0;
    if (fd >= 0) close(fd);
}

/* Moves a file to a name that nothing has. */
static bool move_to_free(const char *from, const char *to)
{
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    if (!link(from, to)) return !unlink(from);
    if (errno == EEXIST) return false;
    struct stat st; /* it has no links either */
    if (!lstat(to, &st)) errno = EEXIST;
    else if (errno == ENOENT) return !rename(from, to);
    return false;
}

static bool give_name(int fd, const char *name)
{
    char proc[64];
    if (*unfinished) {
        if (!move_to_free(unfinished, name)) return false;
        *unfinished = 0;
        return true;
    }
    snprintf(proc, sizeof proc, "/proc/thread-self/fd/%d", fd);
    return !linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* The new part goes to `name` first, and then the two change places. */
static bool change_places(int fd, struct cs_file_id old, const char *name)
{
    struct cs_file_id new;
    if (!cs_file_id_of(fd, &new) || !give_name(fd, name)) return false;
    if (!renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_EXCHANGE)) {
        if (stands_at(name, old)) return true;
        if (!renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_EXCHANGE) && stands_at(name, new)) unlink(name); /* another file came to the path just now */
        errno = EEXIST;
        return false;
    }
    snprintf(unfinished, sizeof unfinished, "%s.%d.next", path, (int)getpid()); /* it can't be done in one step */
    if (!move_to_free(name, unfinished)) {
        unlink(name);
        *unfinished = 0;
        return false;
    }
    return move_to_free(path, name) && give_name(fd, path);
}

/* Somebody else's file stands at the path: the trace goes on beside it. */
static bool go_beside(int fd)
{
    char name[PATH_MAX];
    int stem = (int)cs_path_stem(path);
    if ((size_t)snprintf(name, sizeof name, "%.*s-%d%s", stem, path, (int)getpid(), path + stem) >= sizeof name) return false;
    if (!give_name(fd, name)) return false;
    cs_log(CS_LOG_WARN, "%s is another file now; the trace goes on in %s", path, name);
    memcpy(path, name, sizeof path);
    return true;
}

bool cs_part_swap(int fd, struct cs_file_id old, cs_u32 number, cs_u64 recorded)
{
    char name[NAME];
    if (!stands_at(path, old)) return give_name(fd, path) || (errno == EEXIST && go_beside(fd)); /* ours was taken away: it is not ours to keep or delete */
    name_of(name, number, false);
    if (is_left_over(name, number)) unlink(name);
    bool done = change_places(fd, old, name), beside = false;
    if (!done && errno == EEXIST) {
        name_of(name, number, true);
        done = change_places(fd, old, name);
        beside = true;
    }
    if (done) ended[(ended_first + ended_count++) % KEPT_MAX] = (struct ended){old, number, beside, recorded};
    return done;
}

void cs_parts_trim(cs_u32 parts, void (*deleted)(cs_u64 recorded))
{
    char name[NAME];
    for (; ended_count && ended_count + 1 > parts; ended_count--, ended_first++) {
        const struct ended *oldest = &ended[ended_first % KEPT_MAX];
        name_of(name, oldest->number, oldest->beside);
        if (!stands_at(name, oldest->id)) continue; /* somebody has taken it */
        if (unlink(name)) cs_log_once(CS_LOG_WARN, "cannot delete %s, an old part of the trace: %s", name, cs_plain_error(errno));
        else deleted(oldest->recorded);
    }
}
