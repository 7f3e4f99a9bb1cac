/* stat and its like are functions of the C library since glibc 2.33. Before, programs carried them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fstatat(int folder, const char *restrict path, struct stat *restrict to, int flags)
{
    return (int)syscall(SYS_newfstatat, folder, path, to, flags);
}

int stat(const char *restrict path, struct stat *restrict to)
{
    return fstatat(AT_FDCWD, path, to, 0);
}
int lstat(const char *restrict path, struct stat *restrict to)
{
    return fstatat(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
int fstat(int fd, struct stat *to) { return fstatat(fd, "", to, AT_EMPTY_PATH); }
