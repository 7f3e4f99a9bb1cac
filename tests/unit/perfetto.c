/* What the encoder of Perfetto's format keeps of what it has told (base/perfetto.h). */
#include "shim/base/perfetto_inside.h"
#include "tests/unit/check.h"

static const char *one(cs_u64 number) { return number ? "one" : ""; }
static const char *other(cs_u64 number) { return number ? "other" : ""; }

/* Full and brief names of kernels have the same small numbers, and the functions that give them stand close together. */
TEST(texts_with_numbers_of_two_kinds_differ)
{
    const cs_u64 apart = (cs_u64)(uintptr_t)one ^ (cs_u64)(uintptr_t)other;
    for (cs_u64 n = 1; n < 1000; n++) {
        const struct cs_pf_text a = {.number = n, .text_of = one}, b = {.number = n ^ apart, .text_of = other}, c = {.number = n, .text_of = other};
        const unsigned of = cs_pf_of(CS_PF_KNOWS_WORD, 0);
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&b, of));
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&c, of));
        CHECK(cs_pf_key_of(&a, of) != cs_pf_key_of(&a, cs_pf_of(CS_PF_KNOWS_NAME, 0)));
        CHECK(cs_pf_key_of(&a, of) == cs_pf_key_of(&a, of));
    }
}
