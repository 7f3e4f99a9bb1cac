/* Symbols read from a library's own tables (base/realdl.h), against what the loader says. */
#define _GNU_SOURCE
#include "shim/base/realdl.h"

#include "shim/base/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/check.h"

/* Every function and variable that the library's file defines for others, by its section table,
 * which the code under test does not read. */
static int compare_all(const char *soname)
{
    struct cs_image image;
    void *handle = dlopen(soname, RTLD_NOW);
    struct link_map *map = NULL;
    struct stat st;
    REQUIRE(handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map) && cs_image_find(soname, &image));
    int fd = open(map->l_name, O_RDONLY), compared = 0;
    REQUIRE(fd >= 0 && !fstat(fd, &st));
    const char *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    const ElfW(Ehdr) *head = (const void *)file;
    const ElfW(Shdr) *sections = (const void *)(file + head->e_shoff), *symbols = NULL,
                     *versions = NULL;
    for (int i = 0; i < head->e_shnum; i++) {
        if (sections[i].sh_type == SHT_DYNSYM) symbols = &sections[i];
        if (sections[i].sh_type == SHT_GNU_versym) versions = &sections[i];
    }
    REQUIRE(symbols && versions);
    const ElfW(Sym) *table = (const void *)(file + symbols->sh_offset);
    const ElfW(Half) *version = (const void *)(file + versions->sh_offset);
    const char *names = file + sections[symbols->sh_link].sh_offset;
    for (size_t i = 0; i < symbols->sh_size / sizeof *table; i++) {
        int type = ELF64_ST_TYPE(table[i].st_info), bind = ELF64_ST_BIND(table[i].st_info);
        const char *name = names + table[i].st_name;
        if (table[i].st_shndx == SHN_UNDEF || table[i].st_shndx == SHN_ABS ||
            (type != STT_FUNC && type != STT_OBJECT))
            continue;
        if ((bind != STB_GLOBAL && bind != STB_WEAK) || version[i] & 0x8000 || version[i] < 2)
            continue;
        void *ours = cs_image_symbol(&image, name), *loaders = dlsym(handle, name);
        if (ours != loaders)
            fprintf(stderr, "%s in %s: %p, not %p\n", name, soname, ours, loaders),
                check_failures++;
        compared++;
    }
    return compared;
}

TEST(every_symbol_of_the_c_library_as_dlsym_finds_it) { CHECK(compare_all("libc.so.6") > 2000); }
TEST(every_symbol_of_the_maths_library_as_dlsym_finds_it) { CHECK(compare_all("libm.so.6") > 200); }

TEST(missing_names_and_libraries)
{
    struct cs_image libc;
    CHECK(!cs_image_find("libnosuch.so.1", &libc));
    REQUIRE(cs_image_find("libc.so.6", &libc));
    CHECK(!cs_image_symbol(&libc, "cuInit"));
    CHECK(!cs_image_symbol(&libc, ""));
    CHECK(!cs_image_symbol(&libc, "printf_"));
    CHECK(!cs_image_symbol(&libc, "print"));
    CHECK_TEXT(libc.soname, "libc.so.6");
    /* What libc itself takes from elsewhere is not its own. */
    CHECK(!cs_image_symbol(&libc, "__tls_get_addr"));
    CHECK(!cs_image_symbol(&libc, "_rtld_global"));
}

TEST(the_real_functions_are_the_c_librarys)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    REQUIRE(cs_realdl_init() && cs_realdl_init());
    CHECK((void *)cs_real_dlsym == dlsym(libc, "dlsym"));
    CHECK((void *)cs_real_dlvsym == dlsym(libc, "dlvsym"));
}

static int call(const struct cs_image *image, const char *name)
{
    int (*function)(void) = (int (*)(void))cs_image_symbol(image, name);
    return function ? function() : -1;
}

static void versions_in(const char *library)
{
    const char *folder = getenv("UNIT_LIBS");
    char path[4096];
    REQUIRE(folder);
    snprintf(path, sizeof path, "%s/%s", folder, library);
    void *handle = dlopen(path, RTLD_NOW);
    struct cs_image image;
    REQUIRE(handle && cs_image_find(library, &image));
    CHECK_TEXT(image.soname, library); /* it has no DT_SONAME */
    CHECK_IS(call(&image, "cs_sample"), 2);
    CHECK_IS(call(&image, "cs_gone"), 3); /* only an old version is there */
    CHECK_IS(call(&image, "cs_plain"), 4);
    CHECK(cs_image_symbol(&image, "cs_plain") == dlsym(handle, "cs_plain"));
    CHECK(!cs_image_symbol(&image, "cs_hidden"));
    CHECK(!cs_symbol_behind("cs_plain")); /* in the list of loaded libraries only what was loaded
                                             with the program stays, so nobody looks beyond it */
    CHECK(!cs_image_symbol(&image, "cs_elsewhere"));
    /* To what the loader binds a reference with a version. */
    CHECK(cs_image_function(&image, "cs_sample", "SAMPLE_1") ==
          dlvsym(handle, "cs_sample", "SAMPLE_1"));
    CHECK(cs_image_function(&image, "cs_sample", "SAMPLE_2") ==
          dlvsym(handle, "cs_sample", "SAMPLE_2"));
    CHECK(cs_image_function(&image, "cs_gone", "SAMPLE_1") &&
          !cs_image_function(&image, "cs_gone", "SAMPLE_2"));
    CHECK(!cs_image_function(&image, "cs_sample", "SAMPLE_3") &&
          !cs_image_function(&image, "cs_sample", ""));
    CHECK(!cs_image_function(&image, "cs_thread_variable", "SAMPLE_1"));
    /* Neither a thread's variable nor a resolver is the address of what the name means. */
    CHECK(!cs_image_symbol(&image, "cs_thread_variable"));
    CHECK(!cs_image_symbol(&image, "cs_indirect"));
    dlclose(handle);
    CHECK(!cs_image_find(library, &image));
}

TEST(versions_through_the_gnu_hash_table) { versions_in("libversions_gnu.so"); }
TEST(versions_through_the_old_hash_table) { versions_in("libversions_sysv.so"); }

static void of_one(void) {}
static void of_another(void) {}

/* An old version stands last in its chain. What follows it in the table, or behind the table, is
 * none of the chain's. */
TEST(an_old_version_at_the_end_of_its_chain)
{
    enum { GLOBAL_FUNCTION = STB_GLOBAL << 4 | STT_FUNC, HIDDEN = 0x8000 };
    const ElfW(Sym) symbols[] = {{0},
        {.st_name = 1, .st_info = GLOBAL_FUNCTION, .st_shndx = 1, .st_value = (uintptr_t)of_one},
        {.st_name = 1,
            .st_info = GLOBAL_FUNCTION,
            .st_shndx = 1,
            .st_value = (uintptr_t)of_another}};
    const ElfW(Half) versions[] = {0, HIDDEN | 2, 3};
    cs_u32 hash = 5381 * 33 + 'f';
    const cs_u32 gnu[] = {1, 1, 1, 0, ~0u, ~0u, 1, hash | 1, hash | 1}, sysv[] = {1, 3, 1, 0, 0, 0};
    const struct cs_image by_gnu = {
        .symbols = symbols, .strings = "\0f", .versions = versions, .gnu_hash = gnu};
    const struct cs_image by_sysv = {
        .symbols = symbols, .strings = "\0f", .versions = versions, .sysv_hash = sysv};
    CHECK(cs_image_symbol(&by_gnu, "f") == (void *)of_one && !cs_image_symbol(&by_gnu, "g"));
    CHECK(cs_image_symbol(&by_sysv, "f") == (void *)of_one && !cs_image_symbol(&by_sysv, "g"));
}

TEST(the_module_of_an_address)
{
    struct cs_module module;
    struct cs_image libc;
    REQUIRE(cs_image_find("libc.so.6", &libc));
    REQUIRE(cs_module_of((const void *)&getppid, &module));
    CHECK_TEXT(cs_module_file(&module), "libc.so.6");
    CHECK(strstr(cs_module_path(&module), "/libc.so.6"));
    CHECK(module.base == libc.base && module.dynamic == libc.dynamic && !cs_module_is_own(&module));
    CHECK(!cs_module_of((const void *)8, &module));
    CHECK(!cs_module_of(NULL, &module));
    REQUIRE(cs_module_of((const void *)&check_failures, &module));
    CHECK(cs_module_is_own(&module));
    CHECK_TEXT(cs_module_path(&module), program_invocation_name);
    CHECK(cs_module_is_same((const void *)&getppid, (const void *)&getpgrp) &&
          !cs_module_is_same((const void *)&getppid, (const void *)&check_failures));
    CHECK(!cs_module_is_same(NULL, NULL));
}

TEST(the_name_at_an_address_as_dladdr_finds_it)
{
    struct cs_image libc;
    Dl_info info;
    uintptr_t begin;
    int compared = 0;
    REQUIRE(cs_image_find("libc.so.6", &libc));
    const uintptr_t middle = (uintptr_t)cs_image_symbol(&libc, "printf");
    for (uintptr_t at = middle - 200000; at < middle + 200000; at += 997, compared++) {
        const char *ours = cs_image_name_at(&libc, at, &begin);
        REQUIRE(dladdr((void *)at, &info));
        CHECK(!ours == !info.dli_sname &&
              (!ours ||
                  begin == (uintptr_t)info.dli_saddr)); /* one function may have several names */
    }
    CHECK(compared > 300);
}

static _Atomic bool enough;

static void *comes_and_goes(void *library)
{
    for (int i = 0; i < 2000; i++) {
        void *handle = dlopen(library, RTLD_NOW);
        if (handle) dlclose(handle);
    }
    cs_store(&enough, true);
    return NULL;
}

static bool all_names(const struct cs_image *image, void *length)
{
    *(size_t *)length += strlen(image->soname);
    return false;
}

TEST(libraries_that_come_and_go_while_others_are_looked_for)
{
    char library[4096];
    struct cs_image image;
    size_t length = 0;
    pthread_t thread;
    REQUIRE(readlink("/proc/self/exe", library, sizeof library - 1) > 0);
    *strstr(library, "/unit/") = 0;
    strcat(library, "/unit/lib/libversions_gnu.so");
    REQUIRE(!pthread_create(&thread, NULL, comes_and_goes, library));
    while (!cs_load(&enough)) {
        CHECK(cs_image_find("libc.so.6", &image));
        CHECK(!cs_image_each(all_names, &length));
        CHECK(!cs_symbol_behind("defined nowhere") && !cs_glibc_symbol("defined nowhere"));
    }
    pthread_join(thread, NULL);
    CHECK(length);
}

static int behind_count;
static bool counts(const struct cs_image *image, void *last)
{
    return behind_count++, *(struct cs_image *)last = *image, false;
}

/* All that was loaded with the program is behind it, up to the last; what is opened later is not.
 */
TEST(what_was_loaded_with_the_program)
{
    struct cs_image last = {0}, own;
    int at_start = 0;
    REQUIRE(cs_image_own(&own));
    CHECK(!cs_image_each_behind(counts, &last));
    const struct link_map *map = dlopen(NULL, RTLD_NOW);
    for (map = map->l_next; map; map = map->l_next)
        if (map->l_ld && *map->l_name) at_start++;
    CHECK(behind_count >= at_start &&
          behind_count <= at_start + 1); /* and the system's own, where it has one */
    const int before = behind_count;
    CHECK(dlopen("libcrypt.so.1", RTLD_NOW) || dlopen("libutil.so.1", RTLD_NOW) ||
          dlopen("libresolv.so.2", RTLD_NOW));
    behind_count = 0;
    CHECK(!cs_image_each_behind(counts, &last));
    CHECK_IS(behind_count, before);
    CHECK(cs_symbol_behind("getenv") == (void *)getenv);
}
