#define _GNU_SOURCE /* O_PATH */
#include "tools/custream/live/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_known(const struct file_at *file) { return file->device || file->inode; }

bool file_is(int fd, const struct file_at *file)
{
    struct stat about;
    return !fstat(fd, &about) && S_ISREG(about.st_mode) &&
           (!is_known(file) || (about.st_dev == file->device && about.st_ino == file->inode));
}

static int look(const char *path, const struct file_at *file)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || file_is(fd, file)) return fd;
    close(fd);
    return errno = ESTALE, -1;
}

static DIR *folder_of(char *path, int n, const char *more)
{
    snprintf(path + n, 64, "%s", more);
    return opendir(path);
}

/* The writer has a table of descriptors of its own. */
static int look_at_descriptors(int pid, const struct file_at *file)
{
    char path[128];
    int found = -1;
    int n = snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = folder_of(path, n, "");
    for (struct dirent *thread; found < 0 && threads && (thread = readdir(threads));) {
        if (*thread->d_name == '.') continue;
        const int m = n + snprintf(path + n, 32, "/%.20s", thread->d_name);
        DIR *descriptors = folder_of(path, m, "/fd");
        for (struct dirent *one; found < 0 && descriptors && (one = readdir(descriptors));) {
            if (*one->d_name == '.') continue;
            snprintf(path + m, 32, "/fd/%.20s", one->d_name);
            found = look(path, file);
        }
        if (descriptors) closedir(descriptors);
    }
    if (threads) closedir(threads);
    return found;
}

int trace_find(int pid, const char *trace, const struct file_at *file, char path[TRACE_ROOM])
{
    char root[64];
    if (*trace != '/') return errno = ENOENT, -1;
    snprintf(root, sizeof root, "/proc/%d/root", pid);
    const bool through = !access(root, F_OK); /* it has ended, or may not be looked into */
    snprintf(path, TRACE_ROOM, "%s%s", through ? root : "", trace);
    int fd = look(path, file);
    const int error = errno;
    if (fd < 0 && through && is_known(file))
        fd = look(trace, file); /* a link on the way leads on from this command's root */
    if (fd < 0 && is_known(file)) fd = look_at_descriptors(pid, file);
    if (fd < 0) errno = error;
    return fd;
}

int trace_readable(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int readable = fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int error = errno;
    if (fd >= 0) close(fd);
    return errno = error, readable;
}
