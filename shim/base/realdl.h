/*
 * Symbols of loaded libraries, found without the loader's look-up functions.
 *
 * The shim defines dlsym, so its own reference to that name would come back to itself, and so would dlvsym's; and any look-up through them replaces the
 * error text that the application may still want from dlerror. Symbols are therefore read from a library's own symbol table, by the ELF
 * format. No allocation, no look-up that could re-enter, nothing loaded.
 */
#ifndef CS_BASE_REALDL_H
#define CS_BASE_REALDL_H

#include "shim/base/compiler.h"

typedef void *cs_dlsym_fn(void *handle, const char *name);
typedef void *cs_dlvsym_fn(void *handle, const char *name, const char *version);

/* The C library's own. Never NULL after cs_realdl_init() returned true; written once, before the first use. The assembly stubs read them too. */
extern cs_dlsym_fn *cs_real_dlsym;
extern cs_dlvsym_fn *cs_real_dlvsym;

/* Finds both. Any thread, any number of times, also before constructors have run. False where the C library has no such symbols. */
bool cs_realdl_init(void);

/* The dynamic section of a loaded library, as far as look-ups need it. Valid while the library is loaded. */
struct cs_image {
    uintptr_t base;
    const void *dynamic;
    const void *symbols;
    const char *strings, *soname;
    const void *versions, *defined_versions;
    const void *gnu_hash, *sysv_hash;
};

/* A function of the C library's, also one that glibc before 2.34 has in libpthread or libdl. NULL: it has none of that name. Takes no lock and calls no function,
 * unless a part of an old glibc that the program opened later has to be looked for, as cs_image_each does: it works in the child of a fork whose parent had another thread in the loader, and before a sanitizer has found the functions that it stands in front of. */
void *cs_glibc_symbol(const char *name);

bool cs_image_own(struct cs_image *image); /* this library */

/* The loaded library with this DT_SONAME, or where it has none, this file name. False if none is loaded. As cs_image_each. */
bool cs_image_find(const char *soname, struct cs_image *image);

/* All loaded libraries in the order in which they were loaded, until `want` returns true, which is then the answer; those that were loaded with the
 * program may come twice. They come without a lock; for the others cs_objects_each is asked. */
bool cs_image_each(bool (*want)(const struct cs_image *image, void *data), void *data);

/* The C library's own dl_iterate_phdr, until `visit` returns 1, which then is the answer: others that programs put in front of it have locks of
 * their own. It takes a lock of the loader's that keeps libraries from being unloaded meanwhile. That is not the one which is held while
 * constructors run: the loader has it for moments, and so do callbacks of the program's. */
struct dl_phdr_info;
bool cs_objects_each(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);
const void *cs_object_dynamic(const struct dl_phdr_info *info); /* its dynamic section; NULL: none */

/* A loaded library by its load base, its dynamic section and its file's name. False where it has no symbols. Takes no lock and calls no function. */
bool cs_image_read(uintptr_t base, const void *dynamic, const char *name, struct cs_image *image);

/* What an address in its dynamic section means. */
const void *cs_image_address(uintptr_t base, const void *dynamic, uintptr_t at);

/* The address of a defined function or variable: its default version, or an old one where there is only that. NULL if the library does not define it,
 * or not by an address (thread-local variables, functions chosen by a resolver). */
void *cs_image_symbol(const struct cs_image *image, const char *name);

/* The function to which the loader binds a reference with that version, if it comes to this library: one of the version, or without any. "" is a version that
 * none has. NULL: none. */
void *cs_image_function(const struct cs_image *image, const char *name, const char *version);

/* The libraries that were loaded with the program and stand behind this one in the loader's order of search, until `want` returns true, which is then the
 * answer. Takes no lock. */
bool cs_image_each_behind(bool (*want)(const struct cs_image *image, void *data), void *data);

/* The module with that dynamic section stands in front of this library, and none between them defines the name: what it finds with RTLD_NEXT is
 * what we find. */
bool cs_image_sees_behind(const void *dynamic, const char *name);

/* The definition that follows this library's own in the loader's order of search, so that others who stand in front of the C library's get their turn:
 * what RTLD_NEXT gives. Found as cs_glibc_symbol finds it, which is the answer where the order does not tell. */
void *cs_symbol_behind(const char *name);

/* The exported function or variable that holds an address, and where it begins. NULL: none. Walks the whole table. */
const char *cs_image_name_at(const struct cs_image *image, uintptr_t address, uintptr_t *begin);

#endif
