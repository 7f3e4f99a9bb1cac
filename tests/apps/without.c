/* without NAME... -- PROGRAM ARGUMENT...: runs it where the system refuses those calls (EPERM), as
 * a container's filter does. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
static const struct {
    const char *name;
    unsigned number;
} known[] = {{"close_range", SYS_close_range}, {"unshare", SYS_unshare}};

static int refuse(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name)) continue;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, known[i].number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
            &(struct sock_fprog){sizeof filter / sizeof *filter, filter});
    }
    return -1;
}

int main(int argc, char **argv)
{
    int i = 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 3;
    for (; i < argc && strcmp(argv[i], "--"); i++)
        if (refuse(argv[i])) return 3;
    if (++i >= argc) return 3;
    execv(argv[i], argv + i);
    return 3;
}
