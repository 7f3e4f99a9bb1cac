/* Words for enumerators of cuda.h (calls/words.h). */
#include <string.h>

#include "shim/calls/cuda_api.h"
#include "shim/calls/words.h"
#include "tests/unit/check.h"

static const char *shown(enum cs_words set, cs_u64 value)
{
    static char text[CS_WORDS_ROOM];
    memset(text, '!', sizeof text);
    cs_words_put(set, value, text);
    return text;
}

TEST(words_stand_before_their_number)
{
    CHECK_TEXT(shown(CS_WORDS_STREAM, CU_STREAM_DEFAULT), "DEFAULT (0)");
    CHECK_TEXT(shown(CS_WORDS_STREAM, CU_STREAM_NON_BLOCKING), "NON_BLOCKING (1)");
    CHECK_TEXT(shown(CS_WORDS_EVENT, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS),
        "DISABLE_TIMING|INTERPROCESS (6)");
    CHECK_TEXT(shown(CS_WORDS_CONTEXT, CU_CTX_SCHED_SPIN | CU_CTX_LMEM_RESIZE_TO_MAX),
        "SCHED_SPIN|LMEM_RESIZE_TO_MAX (0x11)");
    CHECK_TEXT(shown(CS_WORDS_INSTANTIATE, 0), "0");
}

TEST(words_of_several_bits_win)
{
    CHECK_TEXT(shown(CS_WORDS_WAIT_VALUE, CU_STREAM_WAIT_VALUE_NOR), "NOR (3)");
    CHECK_TEXT(shown(CS_WORDS_WAIT_VALUE, CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH),
        "NOR|FLUSH (0x40000003)");
    CHECK_TEXT(shown(CS_WORDS_WAIT_VALUE, CU_STREAM_WAIT_VALUE_GEQ), "GEQ (0)");
}

TEST(bits_without_a_word_are_a_number)
{
    CHECK_TEXT(shown(CS_WORDS_STREAM, 0x11), "NON_BLOCKING|0x10 (0x11)");
    CHECK_TEXT(shown(CS_WORDS_STREAM, 0xff00), "0xff00");
    CHECK_TEXT(
        shown(CS_WORDS_STREAM, ~(cs_u64)0), "NON_BLOCKING|0xfffffffffffffffe (0xffffffffffffffff)");
}

TEST(one_of_several_is_no_sum)
{
    CHECK_TEXT(shown(CS_WORDS_ATTRIBUTE, CU_LAUNCH_ATTRIBUTE_PRIORITY), "PRIORITY (8)");
    CHECK_TEXT(shown(CS_WORDS_ATTRIBUTE, 99), "0x63");
    CHECK_TEXT(shown(CS_WORDS_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
        "SET_CAPTURE_DEPENDENCIES (1)");
}

TEST(everything_fits)
{
    for (int set = 0; set < CS_WORDS_COUNT; set++) {
        CHECK(strlen(shown((enum cs_words)set, ~(cs_u64)0)) < CS_WORDS_ROOM);
        CHECK(strlen(shown((enum cs_words)set, 0xffffffff)) < CS_WORDS_ROOM);
    }
}
