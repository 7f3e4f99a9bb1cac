/* The file of a trace on a full disk, where it rotates (out/output.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/unit/trace_file.h"

static bool no_new_file; /* nothing can be written at its beginning */

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at)
{
    if (no_new_file && !at) return errno = ENOSPC, -1;
    return syscall(SYS_pwritev, fd, pieces, count, at, 0);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 65536; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(a_part_without_room_for_its_head_is_none)
{
    setenv("CUSTREAM_TRACE_MAX", "1M,rotate:3", 1);
    trace_file_begin();
    cs_output_flush();
    REQUIRE(!cs_output_full());
    const int before = descriptors();
    no_new_file = true;
    captured_begin();
    REQUIRE(cs_output_part_begin());
    cs_totals_part_begin();
    cs_timeline_begin(CS_BEGIN_PART);
    cs_output_flush();
    const bool taken = cs_output_part_take(0);
    const char *said = captured_end();
    CHECK(!taken && cs_output_full() && strstr(said, strerror(ENOSPC)));
    CHECK(access("t.1.json", F_OK) && !access("t.json", F_OK));
    CHECK_IS(descriptors(), before); /* the part's is closed */
}
