/* Which file a trace takes (out/path.h), where the system refuses. What names are taken: tests/cases/test_unit.py. */
#include "shim/out/path.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>

#include "shim/base/options.h"
#include "tests/unit/check.h"

int ftruncate(int fd, off_t size) { return (void)fd, (void)size, errno = EPERM, -1; }

static bool no_proc;
ssize_t readlink(const char *path, char *to, size_t size)
{
    if (no_proc) return errno = ENOENT, -1;
    return syscall(SYS_readlink, path, to, size);
}

TEST(the_name_of_a_program_whose_file_cannot_be_told)
{
    char name[256];
    cs_process_name(name);
    CHECK_TEXT(name, "path");
    no_proc = true;
    cs_process_name(name);
    CHECK_TEXT(name, "unknown");
}

TEST(a_file_that_cannot_be_emptied_is_not_taken)
{
    char path[PATH_MAX];
    cs_options_read();
    CHECK_IS(cs_path_open("t.json", path, sizeof path), -1);
    CHECK_TEXT(cs_path_why(), strerror(EPERM));
    CHECK(access("t.json", F_OK)); /* the one that was made for it is gone */
}
