/* Interned names (object/names.h). */
#include "shim/object/names.h"
#include "tests/unit/check.h"

TEST(equal_texts_have_equal_numbers)
{
    char copy[] = "kernel_b";
    cs_name a = cs_name_add("kernel_a"), b = cs_name_add("kernel_b");
    CHECK(a && b && a != b);
    CHECK_IS(cs_name_add("kernel_a"), a);
    CHECK_IS(cs_name_add(copy), b);
    copy[0] = 'x'; /* the text was copied */
    CHECK_TEXT(cs_name_text(b), "kernel_b");
    CHECK_TEXT(cs_name_text(a), "kernel_a");
}

TEST(nothing_is_number_0)
{
    CHECK_TEXT(cs_name_text(0), "");
    CHECK_TEXT(cs_name_text(77), ""); /* before any name is there */
    CHECK_IS(cs_name_add(""), 0);
    CHECK_IS(cs_name_add(NULL), 0);
    cs_name_add("a");
    CHECK_TEXT(cs_name_text(0), "");
    CHECK_TEXT(cs_name_text(60000), "");
    CHECK_TEXT(cs_name_text(UINT32_MAX), "");
}

TEST(long_names_are_cut)
{
    static char text[20000];
    memset(text, 'n', sizeof text - 1);
    cs_name name = cs_name_add(text);
    CHECK(name);
    CHECK_IS(strlen(cs_name_text(name)), 4095);
    CHECK_IS(cs_name_add(text), name);
    CHECK_TEXT(cs_name_text(name) + 4092, "...");
    text[19000] = 'm'; /* what is cut off makes them two all the same */
    const cs_name other = cs_name_add(text);
    CHECK(other && other != name && strcmp(cs_name_text(other), cs_name_text(name)));
    text[4096] = 0;
    CHECK(cs_name_add(text) != name && cs_name_add(text) != other);
    text[4095] = 0;
    CHECK_TEXT(cs_name_text(cs_name_add(text)), text); /* this one fits */
}

TEST(the_65535_are_kept_and_the_rest_share_one)
{
    enum { MANY = 70000 };
    static cs_name numbers[MANY];
    char text[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "_ZN6kernelILi%dEEvPf", i);
        numbers[i] = cs_name_add(text);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "_ZN6kernelILi%dEEvPf", i);
        const char *expected = i < 65534 ? text : "(more names than custream keeps)";
        CHECK_TEXT(cs_name_text(numbers[i]), expected);
        if (i < 65534) CHECK_IS(cs_name_add(text), numbers[i]);
        else CHECK_IS(numbers[i], 1);
    }
}

TEST(guests_leave_a_quarter_to_others)
{
    enum { GUESTS = 49151, MANY = 60000 };
    static cs_name numbers[MANY];
    char text[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "range %d", i);
        numbers[i] = cs_name_add_guest(text);
        if (i < GUESTS - 1) CHECK_TEXT(cs_name_text(numbers[i]), text);
        else CHECK_IS(numbers[i], 1);
    }
    cs_name kernel = cs_name_add("kernel");
    CHECK_TEXT(cs_name_text(kernel), "kernel");
    CHECK_IS(cs_name_add_guest("kernel"), kernel); /* what is kept is found, whoever asks */
    CHECK_IS(cs_name_add_guest("range 7"), numbers[7]);
    CHECK_IS(cs_name_add_guest(""), 0);
}

TEST(locks_are_free_after_a_fork)
{
    const char *before = cs_name_text(cs_name_add("before"));
    cs_names_after_fork_in_child();
    CHECK_TEXT(cs_name_text(cs_name_add("before")), "before");
    const char *after = cs_name_text(cs_name_add("after"));
    CHECK_TEXT(after, "after");
    CHECK(
        after < before || after >= before + 4096); /* not where the parent may have been writing */
}
