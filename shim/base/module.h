/*
 * Which loaded module holds an address. Takes no lock where the C library is glibc 2.35 or later, and with older ones none that is held while
 * constructors run (cs_objects_each).
 *
 * Instead of dladdr, which takes the loader's lock: a library's constructor holds that for as long as it likes, and may wait for the thread that asks
 * (dev/check-loader). Any thread; a signal handler and a fork's child too; errno and dlerror() stay as they are.
 */
#ifndef CS_BASE_MODULE_H
#define CS_BASE_MODULE_H

#include "shim/base/realdl.h"

/* Valid while the module is loaded. Two are the same where `dynamic` is. */
struct cs_module {
    uintptr_t base;      /* what is added to the addresses in its file */
    const void *dynamic; /* its dynamic section */
    const char *name;    /* the loader's; "" of the program itself */
};

/* False if none holds it. */
bool cs_module_of(const void *address, struct cs_module *module);

bool cs_module_is_same(const void *a, const void *b); /* one module holds both */
bool cs_module_is_own(const struct cs_module *module);

/* The path by which it was loaded; the program's is its argv[0], as dladdr has it. And without folders. */
const char *cs_module_path(const struct cs_module *module);
const char *cs_module_file(const struct cs_module *module);

bool cs_module_image(const struct cs_module *module, struct cs_image *image); /* false where it has no symbols */

/* Opens a library that lies where the module lies which holds the address, or on the way from there that `file` says. NULL: there is none, or it cannot be
 * opened. Takes the loader's lock if there is one. Beside this library lie those that the wheel brings. */
void *cs_open_beside(const void *address, const char *file);

/* There is something of that name, which has a slash, and it is no regular file. Not to be opened as a library: a FIFO would hold the loader's lock for ever. */
bool cs_is_no_file(const char *path);

/* The module that holds an address is in the process for good, whoever closes it. Takes the loader's lock. False: it can't be had, or there is none. */
bool cs_module_stays(const void *address);

/* Which module holds an address, as a number that another one does not have, wherever it lies. 0: none, or the C library is too old to tell without
 * a lock. The module may go meanwhile: nothing of it is read. */
cs_u64 cs_module_number(const void *address);

#endif
