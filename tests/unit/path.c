/* Which file a trace takes (out/path.h), where the system refuses. What names are taken:
 * tests/cases/test_unit.py. */
#include "shim/base/environment.h"
#include "shim/out/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "shim/base/options.h"
#include "tests/unit/check.h"

int ftruncate(int fd, off_t size) { return (void)fd, (void)size, errno = EPERM, -1; }

static bool no_proc;
static const char *program; /* that the process says it is; NULL: what it is */
ssize_t readlink(const char *path, char *to, size_t size)
{
    if (no_proc) return errno = ENOENT, -1;
    if (program) return (ssize_t)(stpncpy(to, program, size) - to);
    return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
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

/* --- the name of a process --- */

static const char *arguments; /* a file in the place of /proc/self/cmdline */
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const unsigned mode = va_arg(more, unsigned);
    va_end(more);
    return (int)syscall(SYS_openat, AT_FDCWD,
        arguments && !strcmp(path, "/proc/self/cmdline") ? arguments : path, flags, mode);
}

static void check_shown(const char *line, size_t size, const char *expected)
{
    char name[256];
    FILE *file = fopen("cmdline", "w");
    REQUIRE(file && fwrite(line, 1, size, file) == size && !fclose(file));
    arguments = "cmdline";
    cs_process_shown_name(name);
    CHECK_TEXT(name, expected);
}
#define CHECK_SHOWN(line, expected) check_shown(line "\0", sizeof line, expected)

TEST(an_interpreter_is_called_as_what_it_runs)
{
    program = "/usr/bin/python3.11";
    CHECK_SHOWN("python3\0train.py", "train.py");
    CHECK_SHOWN("python3\0dir/train.py\0-m\0x", "train.py");
    CHECK_SHOWN("python3\0dir/", "dir/");
    CHECK_SHOWN("python3\0-m\0pkg.mod\0train.py", "pkg.mod");
    CHECK_SHOWN("python3\0-mpkg", "pkg");
    CHECK_SHOWN("python3\0-um\0pkg", "pkg");
    CHECK_SHOWN("python3\0-u\0-B\0train.py", "train.py");
    CHECK_SHOWN("python3\0-X\0dev\0-W\0ignore\0train.py", "train.py");
    CHECK_SHOWN("python3\0-Xdev\0-Wignore\0train.py", "train.py");
    CHECK_SHOWN(
        "python3\0--check-mode\0train.py", "train.py"); /* the letters of a long option are none */
    CHECK_SHOWN("python3\0-c\0import x", "python3.11");
    CHECK_SHOWN("python3\0-uc\0import x", "python3.11");
    CHECK_SHOWN("python3", "python3.11");
    CHECK_SHOWN("python3\0-", "python3.11");
    CHECK_SHOWN("python3\0-m", "python3.11");
    CHECK_SHOWN("python3\0-X", "python3.11");
    CHECK_SHOWN("python3\0", "python3.11"); /* an empty name */
    check_shown("", 0, "python3.11");
    program = "/usr/bin/pytho";
    CHECK_SHOWN("python3\0train.py", "pytho");
}

TEST(a_script_is_read_from_the_first_4095_bytes)
{
    char line[8192], name[256];
    memset(line, 'x', sizeof line);
    memcpy(line, "python3\0-m", 11);
    program = "/usr/bin/python3";
    memset(name, 'x', 255);
    name[255] = 0;
    check_shown(line, sizeof line, name); /* and 255 of them are shown */
}

/* --- the pattern --- */

TEST(a_rank_that_nobody_has_set_is_said_with_the_names_that_are_looked_for)
{
    char path[PATH_MAX];
    static const char *const names[] = {
        "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < CS_COUNT(names); i++) unsetenv(names[i]);
    cs_options_read();
    captured_begin();
    cs_path_open("r%r.json", path, sizeof path);
    CHECK_TEXT(captured_end(),
        "custream: warning: CUSTREAM_TRACE=r%r.json: %r is 0, since no launcher has set a rank "
        "(RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID)\n");
    CHECK_TEXT(path, "r0.json");
}

TEST(a_pattern_that_is_too_long_is_cut)
{
    char pattern[PATH_MAX + 100], path[64];
    memset(pattern, 'a', sizeof pattern - 1);
    pattern[sizeof pattern - 1] = 0;
    cs_options_read();
    CHECK_IS(cs_path_open(pattern, path, sizeof path), -1);
    CHECK_IS(strlen(path), sizeof path - 1);
    CHECK_TEXT(cs_path_why(), strerror(ENAMETOOLONG));
}

TEST(what_stands_in_front_of_the_ending)
{
    static const struct {
        const char *path;
        size_t stem;
    } rows[] = {{"a.json", 1}, {"a.json.gz", 1}, {".json", 0}, {".json.gz", 0}, {"a.gz", 4},
        {"json", 4}, {"", 0}, {"a.json/b", 8}, {"x.jsonl", 7}};
    for (size_t i = 0; i < CS_COUNT(rows); i++) CHECK_IS(cs_path_stem(rows[i].path), rows[i].stem);
}

static void check_rank(const char *name, const char *value, int rank, int expected)
{
    int size;
    setenv(name, value, 1);
    cs_environment_read();
    unsetenv(name);
    CHECK_IS(cs_process_rank(&size), rank); /* kept */
    CHECK_IS(size, expected);
}

TEST(ranks_and_sizes_are_numbers)
{
    static const char *const all[] = {
        "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    static const char *const sizes[] = {
        "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
    for (size_t i = 0; i < CS_COUNT(all); i++) unsetenv(all[i]);
    for (size_t i = 0; i < CS_COUNT(sizes); i++) unsetenv(sizes[i]);
    for (size_t i = 0; i < CS_COUNT(all); i++)
        check_rank(all[i], "0", 0, -1), check_rank(all[i], "9", 9, -1),
            check_rank(all[i], "12x", 12, -1);
    for (size_t i = 0; i < CS_COUNT(sizes); i++)
        check_rank(sizes[i], "0", -1, 0), check_rank(sizes[i], "90", -1, 90);
    check_rank("RANK", "", -1, -1), check_rank("RANK", "/", -1, -1),
        check_rank("RANK", ":", -1, -1), check_rank("RANK", "-1", -1, -1);
}
