/* Kernels' names as people read them (trace/demangle.h): with the C++ library, whose demangler the
 * shim finds in the process, and the short forms. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/memory.h"
#include "shim/base/options.h"
#include "shim/trace/demangle.h"
#include "tests/unit/check.h"

static const struct {
    const char *mangled, *full, *brief; /* full NULL: not C++ */
} names[] = {
    {"k", NULL, "k"},
    {"", NULL, ""},
    {"_Z1kPfi", "k(float*, int)", "k"},
    {"_Z1kIfEvPT_", "void k<float>(float*)", "k"},
    {"_ZN1a1b1cEv", "a::b::c()", "a::b::c"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4EfEEviT0_",
        "void at::native::vectorized_elementwise_kernel<4, float>(int, float)",
        "at::native::vectorized_elementwise_kernel"},
    {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()", "(anonymous namespace)::foo"},
    {"_ZN2at12_GLOBAL__N_14rollEPf", "at::(anonymous namespace)::roll(float*)",
        "at::(anonymous namespace)::roll"},
    {"_ZN3foolsEi", "foo::operator<<(int)", "foo::operator<<"},
    {"_ZltRK1AS1_", "operator<(A const&, A const&)", "operator<"},
    {"_ZN1AclEv", "A::operator()()", "A::operator()"},
    {"_ZN1AptEv", "A::operator->()", "A::operator->"},
    {"_ZN1AixEi", "A::operator[](int)", "A::operator[]"},
    {"_ZNK1AcvbEv", "A::operator bool() const", "A::operator bool"},
    {"_ZN9operatory3fooEv", "operatory::foo()", "operatory::foo"},
    {"_ZN7cutlass6KernelINS_4gemm6kernelEEEvNT_6ParamsE",
        "void cutlass::Kernel<cutlass::gemm::kernel>(cutlass::gemm::kernel::Params)",
        "cutlass::Kernel"},
    {"_Z1fPFviE", "f(void (*)(int))", "f"},
    {"_Z1gIXgtLi1ELi0EEEvv", "void g<((1)>(0))>()", "g"},
};

static bool have_library(void) { return dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) != NULL; }

TEST(known_names)
{
    char full[CS_KERNEL_TEXT], brief[CS_KERNEL_TEXT];
    REQUIRE(have_library());
    for (size_t i = 0; i < CS_COUNT(names); i++) {
        bool is_cxx = cs_demangle(names[i].mangled, full, sizeof full, brief, sizeof brief);
        CHECK(is_cxx == (names[i].full != NULL));
        CHECK_TEXT(full, names[i].full ? names[i].full : names[i].mangled);
        CHECK_TEXT(brief, names[i].brief);
    }
}

TEST(what_only_looks_mangled_stays)
{
    static const char *const odd[] = {"_Z", "_ZN", "_Z99999999999999999999f", "_ZN1", "_ZN0E",
        "_ZNSt", "_Z3", "_ZN5ab", "_ZNKVrRO", "_Z\xff\xfe"};
    char full[CS_KERNEL_TEXT], brief[CS_KERNEL_TEXT];
    REQUIRE(have_library());
    for (size_t i = 0; i < CS_COUNT(odd); i++) {
        CHECK(!cs_demangle(odd[i], full, sizeof full, brief, sizeof brief));
        CHECK(*full && *brief);
    }
}

/* libstdc++ refuses names of more than 1,024 characters, which templates easily have: the short
 * form is there all the same. */
TEST(too_long_for_the_library)
{
    static char name[8192];
    char full[CS_KERNEL_TEXT], brief[CS_KERNEL_TEXT];
    REQUIRE(have_library());
    static const char *const known[][2] = {
        {"_ZN7cutlass6Kernel", "cutlass::Kernel"},
        {"_ZN12_GLOBAL__N_13foo", "(anonymous namespace)::foo"},
        {"_ZN2at10_GLOBAL__N4roll", "at::(anonymous namespace)::roll"}, /* the shortest such name */
        {"_ZN9_GLOBAL__3foo", "_GLOBAL__::foo"},
        {"_ZNK1A3foo", "A::foo"},
        {"_ZNVKR1A3foo", "A::foo"},
        {"_ZNSt1A3foo", "std::A::foo"},
        {"_ZSt3foo", "std::foo"},
    };
    for (size_t k = 0; k < CS_COUNT(known); k++) {
        strcpy(name, known[k][0]);
        strcat(name, "IN3std5tupleIJ");
        for (int i = 0; i < 900; i++) strcat(name, "ifd");
        strcat(name, "EEEEEvv");
        CHECK(!cs_demangle(name, full, sizeof full, brief, sizeof brief));
        CHECK_TEXT(full, name);
        CHECK_TEXT(brief, known[k][1]);
    }
}

TEST(a_small_room_is_kept)
{
    char full[12], brief[5];
    REQUIRE(have_library());
    CHECK(cs_demangle(
        "_ZN2at6native29vectorized_elementwise_kernelEv", full, sizeof full, brief, sizeof brief));
    CHECK_TEXT(full, "at::nati...");
    CHECK_TEXT(brief, "a...");
    CHECK(cs_demangle("_Z1kPfi", NULL, 0, NULL, 0));
}

/* Any cut of a name, and any byte of it changed: nothing breaks, and the rooms hold texts that end.
 */
TEST(damaged_names)
{
    static const char good[] = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_"
                               "11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
    char name[sizeof good], full[64], brief[32];
    for (size_t n = 0; n + 1 < sizeof good; n++)
        for (int byte = 1; byte < 256; byte += 7) {
            memcpy(name, good, sizeof good);
            name[n] = (char)byte;
            cs_demangle(name, full, sizeof full, brief, sizeof brief);
            CHECK(strlen(full) < sizeof full && strlen(brief) < sizeof brief);
            name[n] = 0;
            cs_demangle(name, full, sizeof full, brief, sizeof brief);
            CHECK(strlen(full) < sizeof full && strlen(brief) < sizeof brief);
        }
}

/* The address sanitizer brings the library. */
TEST(a_process_without_the_library_is_told_so_when_it_matters)
{
    char full[64], brief[64];
    const bool has = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD) != NULL;
    setenv("CUSTREAM_LOG", "info", 1);
    cs_options_read();
    captured_begin();
    cs_demangle("k", full, sizeof full, brief, sizeof brief);
    CHECK_TEXT(captured_end(), "");
    captured_begin();
    for (int i = 0; i < 2; i++) cs_demangle("_Z1kPfi", full, sizeof full, brief, sizeof brief);
    CHECK_TEXT(captured_end(),
        has ? ""
            : "custream: info: the process has no C++ library: names of kernels stay mangled\n");
    CHECK_TEXT(full, has ? "k(float*, int)" : "_Z1kPfi");
    CHECK_TEXT(brief, "k");
}

TEST(a_process_with_the_library_is_told_nothing)
{
    char full[64], brief[64];
    setenv("CUSTREAM_LOG", "info", 1);
    cs_options_read();
    REQUIRE(have_library());
    captured_begin();
    cs_demangle("_Z1kPfi", full, sizeof full, brief, sizeof brief);
    cs_demangle("_Z", full, sizeof full, brief, sizeof brief);
    CHECK_TEXT(captured_end(), "");
}

/* Names that differ only behind what is shown are two. */
TEST(long_names_that_are_cut_stay_two)
{
    static char one[9000], other[9000], shown[2][CS_KERNEL_TEXT];
    REQUIRE(cs_tables_make(CS_TABLES_TRACE, "a test"));
    memset(one, 'a', sizeof one - 1);
    memset(other, 'a', sizeof other - 1);
    other[8000] = 'b';
    const cs_name names[] = {cs_name_add(one), cs_name_add(other)};
    CHECK(cs_kernel_key(names[0]) != cs_kernel_key(names[1]));
    for (int i = 0; i < 2; i++) strcpy(shown[i], cs_kernel_text(names[i], false));
    CHECK(strcmp(shown[0], shown[1]) && strlen(shown[0]) == CS_KERNEL_TEXT - 1);
}
