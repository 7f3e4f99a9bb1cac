/* Names that the program gives (object/given.h). */
#include "shim/object/given.h"

#include "tests/unit/check.h"

TEST(before_there_are_tables_nothing_is_kept)
{
    cs_given_thread(7, 5);
    cs_given_category(1, 2, 5);
    CHECK_IS(cs_given_thread_name(7), 0);
    CHECK_IS(cs_given_category_name(1, 2), 0);
    REQUIRE(cs_given_init());
    CHECK_IS(cs_given_thread_name(7), 0);
    CHECK_IS(cs_given_category_name(1, 2), 0);
}

TEST(a_thread_has_the_last_name_that_it_was_given)
{
    REQUIRE(cs_given_init());
    cs_given_thread(7, 5);
    cs_given_thread(8, 6);
    CHECK_IS(cs_given_thread_name(7), 5);
    cs_given_thread(7, 9);
    CHECK_IS(cs_given_thread_name(7), 9);
    cs_given_thread(7, 0);
    CHECK_IS(cs_given_thread_name(7), 0);
    CHECK_IS(cs_given_thread_name(8), 6);
}

TEST(threads_without_a_name_take_no_room)
{
    REQUIRE(cs_given_init());
    for (cs_u32 tid = 1; tid <= 20000; tid++) cs_given_thread(tid, 0); /* as each does at its end */
    cs_given_thread(4000000, 3);
    CHECK_IS(cs_given_thread_name(4000000), 3);
}

TEST(ten_thousand_threads_and_three_thousand_categories_have_room)
{
    REQUIRE(cs_given_init());
    for (cs_u32 n = 1; n <= 10000; n++) cs_given_thread(n, n + 1);
    for (cs_u32 n = 1; n <= 3000; n++) cs_given_category(1, n, n + 1);
    for (cs_u32 n = 1; n <= 10000; n++) CHECK_IS(cs_given_thread_name(n), n + 1);
    for (cs_u32 n = 1; n <= 3000; n++) CHECK_IS(cs_given_category_name(1, n), n + 1);
}

TEST(each_domain_has_categories_of_its_own)
{
    static const cs_u32 numbers[] = {0, 1, 2, 3, 4, 6, 8, 1u << 16, 1u << 31, UINT32_MAX};
    cs_name name = 0;
    REQUIRE(cs_given_init());
    for (cs_name domain = 0; domain < 70; domain++)
        for (size_t i = domain ? 0 : 1; i < CS_COUNT(numbers); i++)
            cs_given_category(domain, numbers[i], ++name);
    name = 0;
    for (cs_name domain = 0; domain < 70; domain++)
        for (size_t i = domain ? 0 : 1; i < CS_COUNT(numbers); i++)
            CHECK_IS(cs_given_category_name(domain, numbers[i]), ++name);
    cs_given_category(0, 0, 7); /* of no domain the number 0: none */
    CHECK_IS(cs_given_category_name(0, 0), 0);
}
