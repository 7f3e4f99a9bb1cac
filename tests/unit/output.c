/* The file of a trace on a full disk, where it rotates (out/output.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "shim/out/gzip.c" /* its functions of zlib are the test's to take away */
#include "shim/trace/rotate.h"
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

static off_t file_size(const char *name)
{
    struct stat st;
    return stat(name, &st) ? -1 : st.st_size;
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

/* --- when a part is over --- */

enum { MOST = 1 << 20, TRAILER = 64 << 10, BLOCK = 1 << 14 };

static void begin_parts(const char *most)
{
    setenv("CUSTREAM_TRACE_MAX", most, 1);
    trace_file_begin();
    cs_output_flush();
    REQUIRE(!cs_output_full());
}

static void gather(size_t bytes)
{
    for (size_t n; bytes; bytes -= n) {
        n = bytes < BLOCK ? bytes : BLOCK;
        char *at = cs_output_room();
        memset(at, ' ', n);
        cs_output_commit(at + n);
    }
}

TEST(a_part_is_over_where_what_waits_would_not_fit)
{
    begin_parts("1M,rotate:3");
    const size_t left = MOST - TRAILER / 2 - cs_output_events_end();
    CHECK(!cs_output_part_due(left) && cs_output_part_due(left + 1));
    gather(1000);
    CHECK(!cs_output_part_due(left - 1000) && cs_output_part_due(left - 999));
    cs_output_flush();
    CHECK(!cs_output_part_due(left - 1000) && cs_output_part_due(left - 999));
    CHECK(cs_output_roomy());
    gather(MOST / 2 - cs_output_events_end() - 1);
    CHECK(cs_output_roomy());
    gather(1);
    CHECK(!cs_output_roomy());
}

/* Packed, what waits takes a tenth of its size, or less. */
TEST(a_packed_part_has_room_for_eight_times_as_much)
{
    setenv("CUSTREAM_TRACE_MAX", "1M,rotate:3", 1);
    setenv("CUSTREAM_TRACE", "t.json.gz", 1);
    cs_options_read();
    REQUIRE(cs_realdl_init());
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test") && cs_output_open(&cs_totals_teller));
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_output_flush();
    const size_t left = MOST - TRAILER / 2 - cs_output_events_end();
    CHECK(!cs_output_part_due(8 * left + 7) && cs_output_part_due(8 * left + 8));
}

static int packs_nothing(z_stream *unused, int flush)
{
    return (void)unused, (void)flush, Z_BUF_ERROR;
}

/* Events that are not in the file are none that were written, and the file stays as it was. */
TEST(zlib_packs_nothing_any_more)
{
    struct stat before, after;
    setenv("CUSTREAM_TRACE", "t.json.gz", 1);
    cs_options_read();
    REQUIRE(cs_realdl_init());
    cs_clock_init();
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test") && cs_output_open(&cs_totals_teller));
    cs_clock_sync();
    cs_timeline_begin(CS_BEGIN_FILE);
    cs_output_flush();
    REQUIRE(!cs_output_full() && !stat("t.json.gz", &before));
    deflate_run = packs_nothing;
    gather(1000);
    captured_begin();
    cs_output_flush();
    const char *said = captured_end();
    CHECK(strstr(said, "cannot write on to the trace") &&
          strstr(said, "zlib refused to pack it; it ends here\n"));
    CHECK(cs_output_full());
    CHECK(!stat("t.json.gz", &after) &&
          after.st_size == before.st_size); /* events and their trailer */
}

/* A part with many streams begins with all of them: it ends when it is twice as long, and not at
 * once. */
TEST(a_head_that_fills_its_part_leaves_as_much_room_again)
{
    begin_parts("1M,rotate:3");
    REQUIRE(cs_output_part_begin());
    cs_totals_part_begin();
    cs_timeline_begin(CS_BEGIN_PART);
    gather(600000);
    cs_output_flush();
    REQUIRE(cs_output_part_take(0));
    const size_t head = cs_output_events_end();
    CHECK(head > 600000 && !cs_output_part_due(head) && cs_output_part_due(head + 1));
    CHECK_IS(cs_output_part(), 2);
}

TEST(a_file_without_parts_ends_at_its_limit)
{
    begin_parts("1M");
    CHECK(!cs_output_rotates());
    gather(MOST - cs_output_events_end());
    cs_output_flush();
    CHECK(!cs_output_full());
    captured_begin();
    gather(1);
    cs_output_flush();
    CHECK(strstr(captured_end(), "reached CUSTREAM_TRACE_MAX=1M and ends here\n"));
    CHECK(cs_output_full());
    CHECK_TEXT(cs_output_full_cause(), "its size limit (CUSTREAM_TRACE_MAX)");
}

/* Small files are flushed more often, so that little is lost at the limit. */
TEST(an_eighth_of_the_limit_is_gathered)
{
    begin_parts("1M");
    const cs_u64 before = cs_output_events_end();
    gather(MOST / 8);
    cs_output_room();
    CHECK_IS(cs_output_events_end(), before);
    gather(1);
    cs_output_room();
    CHECK_IS(cs_output_events_end(), before + MOST / 8 + 1);
}

/* --- descriptors and names --- */

TEST(the_files_of_all_parts_are_closed)
{
    const int before = descriptors();
    begin_parts("1M,rotate:3");
    for (int i = 0; i < 3; i++) {
        REQUIRE(cs_output_part_begin());
        cs_totals_part_begin();
        cs_timeline_begin(CS_BEGIN_PART);
        cs_output_flush();
        REQUIRE(cs_output_part_take(0));
        CHECK_IS(descriptors(), before + 1);
    }
    cs_output_finish();
    CHECK_IS(descriptors(), before);
    cs_output_close();
    CHECK(!access("t.json", F_OK));
}

TEST(a_path_is_known_from_the_root)
{
    char folder[4096];
    begin_parts("1M");
    REQUIRE(getcwd(folder, sizeof folder));
    strcat(folder, "/t.json");
    CHECK_TEXT(cs_output_path(), folder);
    cs_output_forget();
    CHECK_TEXT(cs_output_path(), "");
}

/* A process that never got to write anything leaves no empty file. */
TEST(a_file_that_stayed_empty_goes_away)
{
    setenv("CUSTREAM_TRACE", "t.json", 1);
    cs_options_read();
    REQUIRE(cs_realdl_init());
    REQUIRE(cs_output_open(&cs_totals_teller) && !access("t.json", F_OK));
    cs_output_close();
    CHECK(access("t.json", F_OK));
    REQUIRE(cs_output_open(&cs_totals_teller) && !unlink("t.json") &&
            !close(open("t.json", O_RDWR | O_CREAT, 0600)));
    cs_output_close(); /* another's file by now */
    CHECK(!access("t.json", F_OK));
}

/* --- a forked child --- */

/* The trailer of its parent's file is none of its own: where not even the head can be written,
 * nothing is. */
TEST(a_forked_childs_file_without_a_head_stays_empty)
{
    begin_parts("1M");
    cs_output_forget();
    no_new_file = true;
    trace_file_begin();
    captured_begin();
    cs_output_flush();
    CHECK(strstr(captured_end(), "cannot write on to the trace "));
    no_new_file = false; /* there is room again */
    cs_output_flush();
    CHECK(cs_output_full() && file_size(cs_output_path()) == 0);
    cs_output_finish();
    CHECK(file_size(cs_output_path()) < 0 && file_size("t.json") > 0); /* the parent's */
}

/* --- parts that cannot be begun, and names that change --- */

TEST(a_trace_whose_next_part_cannot_be_begun_says_all_that_it_has)
{
    begin_parts("1M,rotate:3");
    cs_totals.sum.recorded = cs_totals.sum.calls = 7;
    gather(1 << 20);
    no_new_file = true;
    captured_begin();
    cs_rotate_if_due();
    CHECK_IS(lines_in(captured_end()), 1);
    CHECK(cs_output_full() && cs_output_part() == 1);
    const char *text = trace_file_text();
    CHECK(strstr(text, "\"recorded\":7,\"calls\":7,") &&
          strstr(text, "\"complete\":false,\"ended\":\"") && strstr(text, "\"continues\":false,"));
    CHECK(strstr(text, "\"recorded_in_all_parts\":7,\"calls_in_all_parts\":7,") &&
          access("t.1.json", F_OK));
    CHECK_IS(cs_totals_told().recorded, 7);
}

TEST(a_trace_goes_on_beside_a_file_that_took_its_name)
{
    char beside[64];
    begin_parts("1M,rotate:3");
    REQUIRE(!unlink("t.json") && !close(open("t.json", O_RDWR | O_CREAT, 0600)));
    gather(1 << 20);
    captured_begin();
    cs_rotate_if_due();
    CHECK_IS(lines_in(captured_end()), 1);
    snprintf(beside, sizeof beside, "/t-%d.json", (int)getpid());
    const char *path = cs_output_path();
    CHECK(strlen(path) > strlen(beside) && !strcmp(path + strlen(path) - strlen(beside), beside));
    CHECK(cs_output_part() == 2 && !access(beside + 1, F_OK) && !file_size("t.json"));
}
