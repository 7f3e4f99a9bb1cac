/* What the encoder of Perfetto's format keeps of what it has told (base/perfetto.h). */
#define _GNU_SOURCE
#include "shim/base/perfetto_inside.h"
#include "tests/unit/check.h"

static const char *one(cs_u64 number) { return number ? "one" : ""; }
static const char *other(cs_u64 number) { return number ? "other" : ""; }

/* Full and brief names of kernels have the same small numbers, and the functions that give them
 * stand close together. */
TEST(texts_with_numbers_of_two_kinds_differ)
{
    const cs_u64 apart = (cs_u64)(uintptr_t)one ^ (cs_u64)(uintptr_t)other;
    for (cs_u64 n = 1; n < 1000; n++) {
        const struct cs_pf_text a = {.number = n, .text_of = one},
                                b = {.number = n ^ apart, .text_of = other},
                                c = {.number = n, .text_of = other};
        const unsigned of = cs_pf_of(CS_PF_KNOWS_WORD, 0);
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&b, of));
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&c, of));
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&a, cs_pf_of(CS_PF_KNOWS_NAME, 0)));
        CHECK(cs_pf_key_of(&a, of) == cs_pf_key_of(&a, of));
    }
}

static unsigned count_of(const char *at, const char *end, const char *what)
{
    unsigned count = 0;
    for (; (at = memmem(at, (size_t)(end - at), what, strlen(what))); at++) count++;
    return count;
}

/* No argument gets a number where the table is full, and each byte of a text that is no UTF-8
 * becomes three. The most that the library writes is the name of a kernel, another name, and some
 * numbers (trace/event_packets.c). */
TEST(the_largest_event_passes_whole_when_the_table_is_full)
{
    static struct cs_pf pf;
    static struct cs_pf_entry entries[CS_PF_ENTRIES];
    static char room[CS_PF_EVENT_MAX], text[CS_PF_TEXT_MAX];
    const struct cs_pf_text category = {"cs_test", 7, 0, NULL, NULL},
                            known = {text, 1, 0, NULL, NULL}, name = {text, 2048, 0, NULL, NULL};
    enum { NUMBERS = 14 };
    memset(text, 0xff, sizeof text);
    pf.entries = entries;
    cs_pf_begin(&pf, 0);
    cs_pf_instant(&pf, room, CS_PF_OF_THREAD, &category, &known, 1, 1, 1); /* the lane is told */
    cs_pf_news_out(&pf, room);
    pf.count = CS_PF_ENTRIES / 4 * 3;
    char *at = cs_pf_instant(&pf, room, CS_PF_OF_THREAD, &category, &name, 1, 1, 2);
    const struct {
        const char *key;
        size_t n;
    } texts[] = {{"the name of some kernel.", CS_PF_TEXT_MAX}, {"the name of its stream..", 512}};
    for (unsigned i = 0; i < 2; i++)
        cs_pf_key(&pf, texts[i].key, 24, NULL), at = cs_pf_value_text(&pf, at, text, texts[i].n);
    for (unsigned i = 0; i < NUMBERS; i++)
        cs_pf_key(&pf, "a number of its arguments", 24, NULL),
            at = cs_pf_value_uint(&pf, at, UINT64_MAX);
    at = cs_pf_close(&pf, at);
    CHECK(at <= room + sizeof room);
    CHECK_IS(count_of(room, at, "\xef\xbf\xbd"), 2048 + CS_PF_TEXT_MAX + 512);
    CHECK_IS(count_of(room, at, "a number of its argument"), NUMBERS);
}
