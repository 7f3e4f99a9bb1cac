/* Tables of a fixed size (base/memory.h): which part of them the system is asked to have in large
 * pages. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shim/base/memory.h"
#include "tests/unit/check.h"

enum { MIB = 1 << 20, LARGE_PAGE = 2 * MIB };

static struct range {
    char *at;
    size_t bytes;
} ranges[16];
static int count;
static bool refuses;
int madvise(void *at, size_t bytes, int advice)
{
    if (advice != MADV_HUGEPAGE) return (int)syscall(SYS_madvise, at, bytes, advice);
    if (count < (int)CS_COUNT(ranges)) ranges[count++] = (struct range){at, bytes};
    errno = EINVAL;
    return refuses ? -1 : 0;
}

static char *little, *large, *largest, *sparse;
CS_TABLE(TRACE, little, LARGE_PAGE + 4096);
CS_TABLE(TRACE, large, 9 * MIB);
CS_TABLE(TRACE, largest, 32 * MIB);
CS_TABLE(AUDIT, sparse, 32 * MIB);

static const struct range *range_in(const char *table, size_t bytes)
{
    const struct range *found = NULL;
    for (int i = 0; i < count; i++)
        if (ranges[i].at >= table && ranges[i].at < table + bytes) found = &ranges[i];
    return found;
}

/* From the first large page behind two MiB on, up to the last whole one. */
static bool is_large_behind_the_first(const char *table, size_t bytes)
{
    const struct range *range = range_in(table, bytes);
    if (!range || (uintptr_t)range->at % LARGE_PAGE || range->bytes % LARGE_PAGE) return false;
    const size_t before = (size_t)(range->at - table),
                 behind = (size_t)(table + bytes - range->at) - range->bytes;
    return before >= LARGE_PAGE && before < 2 * LARGE_PAGE && behind < LARGE_PAGE;
}

TEST(large_pages_are_behind_the_first_two_mib_of_a_table)
{
    errno = 7;
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    CHECK_IS(errno, 7);
    CHECK_IS(count, 2);
    CHECK(!range_in(little, LARGE_PAGE + 4096));
    CHECK(is_large_behind_the_first(large, 9 * MIB));
    CHECK(is_large_behind_the_first(largest, 32 * MIB));
}

TEST(tables_of_the_audit_are_of_small_ones)
{
    REQUIRE(cs_tables_make(CS_TABLES_AUDIT, "a test"));
    CHECK(sparse && !count);
}

TEST(a_system_without_them_has_the_tables_all_the_same)
{
    refuses = true;
    errno = 7;
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    CHECK_IS(errno, 7);
    memset(little, 1, LARGE_PAGE + 4096);
    memset(large, 1, 9 * MIB);
    memset(largest, 1, 32 * MIB);
    CHECK(little[0] == 1 && large[9 * MIB - 1] == 1 && largest[32 * MIB - 1] == 1);
}
