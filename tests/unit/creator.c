/* Who made an object, and from where (object/creator.h), where there are more places than are kept.
 * What is found behind a runtime: the cases. */
#include "shim/object/creator.c"

#include "shim/base/module.h"
#include "tests/unit/check.h"

TEST(places_beyond_those_that_are_kept)
{
    enum { PLACES = 40000 };
    const char *const code =
        (const char *)&getppid; /* of the C library, which is longer than that */
    struct cs_module module;
    REQUIRE(
        cs_creator_init() && cs_module_of(code, &module) && cs_module_of(code + PLACES, &module));
    for (int i = 0; i < PLACES; i++)
        CHECK_TEXT(cs_name_text(cs_creator_of(code + i)), cs_module_file(&module));
    for (int i = 0; i < PLACES; i += PLACES / 50) CHECK(cs_creator_place(code + i) == code + i);
    CHECK_TEXT(cs_name_text(cs_creator_of(&module)), ""); /* no code of a library's */
}

/* A runtime that is linked into a program has no library of its own: its functions are known by
 * their names, and a program's may be called nearly so. */
TEST(functions_of_a_runtime_within_a_program)
{
    static const struct {
        const char *name;
        cs_u64 marks;
    } functions[] = {
        {"", 0},
        {"main", 0},
        {"c", 0},
        {"cuda", 0},
        {"cudalike", 0},
        {"cuda_like", 0},
        {"cuda1", 0},
        {"cuda@A", 0},
        {"cuda[A", 0},
        {"my_cudaMalloc", 0},
        {"Cuda", 0},
        {"_cudaMalloc", 0},
        {"libcudart_static", 0},
        {"_ZL25__cudaLaunchKernel", 0},
        {"_Z6kernelPi", 0},
        {"device_stub_", 0},
        {"cudaMalloc", IS_STATIC},
        {"cudaA", IS_STATIC},
        {"cudaZ", IS_STATIC},
        {"libcudart_static_0a", IS_STATIC},
        {"libcudart_static_", IS_STATIC},
        {"__cudaPushCallConfiguration", IS_STATIC},
        {"__cuda", IS_STATIC},
        {"_ZL25__cudaLaunchKernel_helperPv", IS_STATIC},
        {"_Z20__device_stub__Z1kPiPi", IS_STATIC | IS_STUB},
        {"__device_stub_", IS_STATIC | IS_STUB},
    };
    char text[64] = "~"; /* in front of the name stands what is greater than any letter */
    for (size_t i = 0; i < CS_COUNT(functions); i++) {
        strcpy(text + 1, functions[i].name);
        if (marks_by_name(text + 1) != (LOOKED | functions[i].marks))
            fprintf(stderr, "%s\n", functions[i].name), check_failures++;
    }
}

/* Only code of a runtime is looked behind: code of no library, as a compiler in the process makes
 * it, is nobody's. */
TEST(code_of_no_library)
{
    const int local = 0;
    REQUIRE(cs_creator_init());
    cs_creator_in_loader();
    REQUIRE(unwinder_ready());
    CHECK_TEXT(cs_name_text(cs_creator_of(&local)), "");
    CHECK(library_behind_runtime() && cs_creator_place(&local) == &local);
    CHECK_TEXT(cs_name_text(cs_creator_of((const void *)&getppid)), "libc.so.6");
}
