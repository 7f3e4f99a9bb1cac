/*
 * One module's look-ups, compiled into the program and into each library, since dlsym answers by
 * who calls it: ASK names the function.
 *
 * ask_X(how, name) looks `name` up (or "name@VERSION", with dlvsym) and prints what it found in a
 * form that is the same in every process: the module, the offset in it and the symbol that stands
 * there; what dlerror and errno say. Where our own library answers, its offset is left out.
 */
#ifndef DLSYM_ASK_H
#define DLSYM_ASK_H

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef void *ask_fn(const char *how, const char *name);

static inline void ask_print(
    const char *who, const char *how, const char *name, void *found, int error)
{
    Dl_info info = {0};
    char text[512];
    const char *error_text = dlerror();
    snprintf(text, sizeof text, "%s", error_text ? error_text : "no error");
    printf("%s %s %s: ", who, how, name);
    if (found && dladdr(found, &info) && info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        const char *file = slash ? slash + 1 : info.dli_fname;
        printf("%s", file);
        if (strncmp(file, "libcustream_shim", 16))
            printf("+%#tx", (char *)found - (char *)info.dli_fbase);
        printf(" %s", info.dli_sname ? info.dli_sname : "?");
    } else {
        printf("%s", found ? "nowhere" : "NULL");
    }
    printf("; errno %d; %s; then %s\n", error, text, dlerror() ? "an error" : "no error");
}

/* The handle that `how` means: default, next, self (the program), or a library's name, loaded for
 * nobody else. */
static inline void *ask_handle(const char *how)
{
    if (!strcmp(how, "default")) return RTLD_DEFAULT;
    if (!strcmp(how, "next")) return RTLD_NEXT;
    if (!strcmp(how, "self")) return dlopen(NULL, RTLD_LAZY);
    void *handle = dlopen(how, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) printf("cannot open %s: %s\n", how, dlerror());
    return handle;
}

/* A definition: ASK_DEFINE(local) makes ask_local. The look-up itself is the last thing of a
 * function, so that it is a tail call where the compiler makes one, and is not where it does not.
 */
#define ASK_DEFINE(who) \
    __attribute__((noinline)) static void *plain_##who(void *handle, const char *name) \
    { return dlsym(handle, name); } \
    __attribute__((noinline)) static void *versioned_##who(void *handle, const char *name, const \
    char *version) \
    { \
        return dlvsym(handle, name, version); \
    } \
    __attribute__((visibility("default"))) void *ask_##who(const char *how, const char *name) \
    { \
        char plain[256]; \
        const char *at = strchr(name, '@'); \
        void *handle = ask_handle(how), *found; \
        snprintf(plain, sizeof plain, "%.*s", at ? (int)(at - name) : 255, name); \
        dlerror(); \
        errno = 33; \
        found = at ? versioned_##who(handle, plain, at + 1) : plain_##who(handle, plain); \
        int error = errno; \
        ask_print(#who, how, name, found, error); \
        return found; \
    }

#endif
