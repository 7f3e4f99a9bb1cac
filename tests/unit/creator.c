/* Who made an object, and from where (object/creator.h), where there are more places than are kept. What is found behind a runtime: the cases. */
#include "shim/object/creator.h"

#include "shim/base/module.h"
#include "tests/unit/check.h"

TEST(places_beyond_those_that_are_kept)
{
    enum { PLACES = 40000 };
    const char *const code = (const char *)&getppid; /* of the C library, which is longer than that */
    struct cs_module module;
    REQUIRE(cs_creator_init() && cs_module_of(code, &module) && cs_module_of(code + PLACES, &module));
    for (int i = 0; i < PLACES; i++) CHECK_TEXT(cs_name_text(cs_creator_of(code + i)), cs_module_file(&module));
    for (int i = 0; i < PLACES; i += PLACES / 50) CHECK(cs_creator_place(code + i) == code + i);
    CHECK_TEXT(cs_name_text(cs_creator_of(&module)), ""); /* no code of a library's */
}
