/* Memory of the shim's own (base/memory.h) on a system with pages of 64 KiB, as some kernels for
 * aarch64 have them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shim/base/memory.h"
#include "tests/unit/check.h"

enum { PAGE = 64 << 10, PAGES = 4 };

/* As such a kernel has it: what begins within a page is a mistake, and what ends within one is the
 * whole page. */
static bool large;
unsigned long getauxval(unsigned long type)
{
    static __typeof__(&getauxval) next;
    if (type == AT_PAGESZ && large) return PAGE;
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "getauxval");
    return next(type);
}
int madvise(void *at, size_t bytes, int advice)
{
    if (advice == MADV_WIPEONFORK) return 0;
    if (large && (uintptr_t)at % PAGE) return errno = EINVAL, -1;
    return (int)syscall(SYS_madvise, at, large ? (bytes + PAGE - 1) / PAGE * PAGE : bytes, advice);
}

static char *memory;
static void begin(void)
{
    char *at =
        mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    memory = at + (PAGE - (uintptr_t)at % PAGE) % PAGE;
    large = true;
}

static bool is_all(size_t from, size_t to, char byte)
{
    while (from < to && memory[from] == byte) from++;
    return from == to;
}

TEST(what_is_forgotten_is_neither_less_nor_more)
{
    static const size_t places[] = {
        0, 64, 4096, PAGE / 2, PAGE, PAGE + 4096, 2 * PAGE, 3 * PAGE - 64, PAGES * PAGE};
    begin();
    for (size_t i = 0; i < CS_COUNT(places); i++) {
        for (size_t k = i; k < CS_COUNT(places); k++) {
            memset(memory, 1, PAGES * PAGE);
            cs_memory_forget(memory + places[i], places[k] - places[i]);
            CHECK(is_all(0, places[i], 1));
            CHECK(is_all(places[i], places[k], 0));
            CHECK(is_all(places[k], PAGES * PAGE, 1));
        }
    }
}

static char *one, *other, *third;
CS_TABLE(AUDIT, one, 5000);
CS_TABLE(AUDIT, other, 70000);
CS_TABLE(AUDIT, third, 1);

TEST(tables_have_pages_of_their_own)
{
    begin();
    REQUIRE(cs_tables_make(CS_TABLES_AUDIT, "a test"));
    CHECK(one && other && third && one != other && other != third);
    CHECK_IS((other - one) % PAGE, 0);
    CHECK_IS((third - other) % PAGE, 0);
}

/* A page that is in part somebody else's is not taken for a child's own. */
TEST(data_that_fills_no_page_stays)
{
    begin();
    memset(memory, 1, PAGES * PAGE);
    CHECK(!cs_memory_wiped_in_child(memory, 4096));
    CHECK(!cs_memory_wiped_in_child(memory + 4096, PAGE));
    CHECK(is_all(0, PAGES * PAGE, 1));
}
