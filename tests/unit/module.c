/* Which module holds an address (base/module.h), by glibc 2.35's function and by what there is
 * for 2.34, against what the loader says. */
#include "shim/base/module.c"

#include <dlfcn.h>
#include <stdio.h>

#include "tests/unit/check.h"

static int sample;

static void as_the_loader_says(void)
{
    void *const places[] = {(void *)&printf, (void *)&dladdr, &sample, (void *)&as_the_loader_says,
        (void *)&cs_module_of, stdout, dlopen("libm.so.6", RTLD_NOW)};
    for (size_t i = 0; i < CS_COUNT(places); i++) {
        Dl_info info;
        struct link_map *map = NULL;
        struct cs_module module;
        const bool theirs = dladdr1(places[i], &info, (void **)&map, RTLD_DL_LINKMAP);
        CHECK(cs_module_of(places[i], &module) == theirs);
        if (!theirs) continue;
        CHECK(module.base == map->l_addr && module.dynamic == map->l_ld);
        CHECK_TEXT(module.name, map->l_name);
        CHECK_TEXT(cs_module_path(&module), info.dli_fname);
    }
    CHECK(cs_module_is_same(&sample, (void *)&as_the_loader_says) &&
          !cs_module_is_same(&sample, (void *)&printf));
}

TEST(with_a_function_that_takes_no_lock)
{
    look();
    CHECK(cs_load(&find_object));
    as_the_loader_says();
    CHECK(cs_module_number(&sample) &&
          cs_module_number(&sample) != cs_module_number((void *)&printf));
}

TEST(the_first_question_has_it_already)
{
    struct cs_module module;
    CHECK(cs_module_of(&sample, &module) && cs_load(&find_object));
}

TEST(the_first_question_for_a_number_has_it_already) { CHECK(cs_module_number(&sample)); }

TEST(without_it)
{
    look();
    find_object_fn *found = cs_load(&find_object);
    cs_store(&find_object, NULL);
    as_the_loader_says();
    CHECK(!cs_module_number(&sample));
    cs_store(&find_object, found);
}

static struct found_object told;
static int tells(void *address, struct found_object *found)
{
    (void)address;
    *found = told;
    return 0;
}

/* A module that comes to the place of another differs from it in one of these, if in nothing else.
 */
TEST(each_thing_that_is_known_of_a_module_makes_its_number)
{
    enum { VALUES = 4, MODULES = VALUES * VALUES * VALUES * VALUES };
    cs_u64 numbers[MODULES];
    look();
    cs_store(&find_object, tells);
    for (uintptr_t i = 0; i < MODULES; i++) {
        uintptr_t n = i;
        told.map = (void *)(1 + n % VALUES), n /= VALUES;
        told.begin = (void *)(1 + n % VALUES), n /= VALUES;
        told.end = (void *)(1 + n % VALUES), n /= VALUES;
        told.frames = (void *)(1 + n);
        numbers[i] = cs_module_number(&sample);
        CHECK_IS(cs_module_number(&sample), numbers[i]);
        for (uintptr_t k = 0; k < i; k++) CHECK(numbers[i] != numbers[k]);
    }
}
