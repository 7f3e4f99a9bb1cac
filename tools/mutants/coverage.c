/*
 * Which blocks of a program or library have run: a byte for each address, in a shared mapping of the file $MUTANTS_REACH/BUILD-ID, so that no end of a process
 * loses it. Linked into everything that tools/mutants/cc links.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
extern char etext[] __attribute__((visibility("hidden")));
extern char **environ;
static unsigned char *reached;
static int off;

/* Without the functions that the shim defines itself: getenv, open, ftruncate. */
static const char *folder(void)
{
    for (char **e = environ; e && *e; e++)
        if (!strncmp(*e, "MUTANTS_REACH=", 14)) return *e + 14;
    return NULL;
}

static void path_of(char *path, size_t room, const char *where)
{
    const ElfW(Phdr) *p = (const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
    int at = snprintf(path, room, "%s/", where);
    for (int i = 0; i < __ehdr_start.e_phnum; i++) {
        if (p[i].p_type != PT_NOTE) continue;
        const ElfW(Nhdr) *n = (const void *)((const char *)&__ehdr_start + p[i].p_vaddr);
        const unsigned char *id = (const unsigned char *)(n + 1) + 4;
        if (n->n_type != NT_GNU_BUILD_ID) continue;
        for (unsigned k = 0; k < n->n_descsz; k++) at += snprintf(path + at, room - (size_t)at, "%02x", id[k]);
        return;
    }
}

static void begin(void)
{
    const size_t size = (size_t)(etext - (const char *)&__ehdr_start);
    const char *where = folder();
    struct rlimit limit;
    char path[4096];
    if (!where || off) return;
    int error = errno;
    off = 1;
    path_of(path, sizeof path, where);
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && !syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) && limit.rlim_cur >= size && !syscall(SYS_ftruncate, fd, size)) {
        long map = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != -1) __atomic_store_n(&reached, (unsigned char *)map, __ATOMIC_RELEASE), off = 0;
    }
    if (fd >= 0) syscall(SYS_close, fd);
    errno = error;
}

void __sanitizer_cov_trace_pc(void) __attribute__((visibility("hidden")));
void __sanitizer_cov_trace_pc(void)
{
    unsigned char *map = __atomic_load_n(&reached, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!map, 0)) begin(), map = reached;
    if (map) map[(const char *)__builtin_return_address(0) - (const char *)&__ehdr_start] = 1;
}
