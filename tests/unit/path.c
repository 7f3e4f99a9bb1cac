/* Which file a trace takes (out/path.h), where the system refuses. What names are taken: tests/cases/test_unit.py. */
#include "shim/out/path.h"

#include <errno.h>
#include <limits.h>

#include "shim/base/options.h"
#include "tests/unit/check.h"

int ftruncate(int fd, off_t size) { return (void)fd, (void)size, errno = EPERM, -1; }

TEST(a_file_that_cannot_be_emptied_is_not_taken)
{
    char path[PATH_MAX];
    cs_options_read();
    CHECK_IS(cs_path_open("t.json", path, sizeof path), -1);
    CHECK_TEXT(cs_path_why(), strerror(EPERM));
    CHECK(access("t.json", F_OK)); /* the one that was made for it is gone */
}
