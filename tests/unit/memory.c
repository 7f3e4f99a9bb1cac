/* Memory of the shim's own (base/memory.h) where the program has locked it: the system takes no
 * page of that back unless it is unlocked. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/memory.h"
#include "tests/unit/check.h"

enum { PAGES = 8 }; /* which anybody may lock */
#define BYTES (PAGES * cs_memory_page())

static size_t pages_of(const char *at)
{
    unsigned char there[PAGES] = {0};
    size_t n = 0;
    REQUIRE(!mincore((void *)(uintptr_t)at, BYTES, there));
    for (size_t i = 0; i < PAGES; i++) n += there[i] & 1;
    return n;
}

TEST(what_is_forgotten_reads_as_zero_and_is_given_back)
{
    char *at = cs_memory_map(BYTES, "a test");
    REQUIRE(at);
    memset(at, 1, BYTES);
    REQUIRE(!mlock(at, BYTES));
    errno = 7;
    cs_memory_forget(at + 10, BYTES - 20);
    CHECK_IS(errno, 7);
    for (size_t i = 0; i < BYTES; i++) CHECK_IS(at[i], i < 10 || i >= BYTES - 10);
}

TEST(pages_of_a_file_are_given_back_and_closed)
{
    const int fd = memfd_create("a test", 0);
    REQUIRE(fd >= 0 && !ftruncate(fd, BYTES));
    char *at = cs_memory_map_file(fd, BYTES);
    REQUIRE(at && cs_memory_reserve(at, BYTES));
    memset(at, 1, BYTES);
    REQUIRE(!mlock(at, BYTES));
    CHECK_IS(pages_of(at), PAGES);
    errno = 7;
    cs_memory_free(at, BYTES);
    CHECK_IS(errno, 7);
    struct stat file;
    CHECK(!fstat(fd, &file) && !file.st_blocks);
    char one;
    CHECK(pread(fd, &one, 1, 0) == 1 && !one);
    int pipes[2];
    REQUIRE(!pipe(pipes));
    CHECK(write(pipes[1], at, 1) < 0 && errno == EFAULT);
}
