/* The next part of a trace (out/part.h) where the file system can do less: no files without a name, no exchange of two names, no move to a free one. */
#define _GNU_SOURCE
#include "shim/out/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/check.h"

static bool no_unnamed;
static unsigned no_renames; /* flags that are refused */

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const unsigned mode = va_arg(more, unsigned);
    va_end(more);
    if (no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    if (flags & no_renames) return errno = EINVAL, -1;
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static const char *text_of(const char *name)
{
    static char text[64];
    FILE *file = fopen(name, "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[n] = 0;
    if (file) fclose(file);
    return text;
}

static int files_here(void)
{
    int count = 0;
    DIR *files = opendir(".");
    for (const struct dirent *file; (file = readdir(files));) count += file->d_name[0] != '.';
    closedir(files);
    return count;
}

static void swap(void)
{
    struct cs_file_id old;
    int fd = open("t.json", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && write(fd, "old", 3) == 3 && cs_file_id_of(fd, &old) && !close(fd));
    REQUIRE(cs_parts_begin("t.json"));
    const int before = files_here();
    fd = cs_part_create();
    REQUIRE(fd >= 0 && write(fd, "new", 3) == 3);
    CHECK_IS(files_here(), before + no_unnamed);
    CHECK(cs_part_swap(fd, old, 1, 5));
    CHECK_TEXT(text_of("t.json"), "new");
    CHECK_TEXT(text_of("t.1.json"), "old");
    CHECK_IS(files_here(), before + 1);
    close(fd);
    fd = cs_part_create();
    CHECK_IS(files_here(), before + 1 + no_unnamed);
    cs_part_drop(fd); /* it is not wanted */
    CHECK_IS(files_here(), before + 1);
}

TEST(with_all_of_that) { swap(); }
TEST(without_unnamed_files) { no_unnamed = true, swap(); }
TEST(without_an_exchange) { no_renames = RENAME_EXCHANGE, swap(); }
TEST(without_any_of_that) { no_unnamed = true, no_renames = RENAME_EXCHANGE | RENAME_NOREPLACE, swap(); }

/* Of a process that had our pid and was killed, or of somebody who knows: they are not ours to delete. */
TEST(names_that_others_have_for_all_next_parts)
{
    char name[64];
    no_unnamed = true;
    REQUIRE(cs_parts_begin("t.json"));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "t.json.%d-%d.next", (int)getpid(), i);
        REQUIRE(!close(open(name, O_RDWR | O_CREAT | O_EXCL, 0600)));
    }
    const int fd = cs_part_create();
    CHECK(fd == -1 && errno == EEXIST);
    cs_part_drop(fd);
    CHECK_IS(files_here(), 100);
}

/* A short name leads there: the folder is known by links, or is the process's own. */
TEST(a_folder_so_deep_that_the_file_in_it_has_no_path)
{
    char folder[201], file[201];
    memset(folder, 'd', sizeof folder - 1);
    memset(file, 'f', sizeof file - 1);
    folder[200] = file[200] = 0;
    int depth = 0;
    for (char here[PATH_MAX]; getcwd(here, sizeof here) && strlen(here) < PATH_MAX - 202; depth++) REQUIRE(!mkdir(folder, 0700) && !chdir(folder));
    CHECK(!cs_parts_begin(file));
    CHECK(strlen(cs_parts_path()) < PATH_MAX);
    while (depth--) REQUIRE(!chdir("..") && !rmdir(folder));
}
