#define _GNU_SOURCE /* asprintf */
#include "tools/custream/inspect/inspect.h"

#include <elf.h>
#include <limits.h>
#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/program.h"

/* --- the loader's cache --- */

/* Takes a line such as "	libz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1". */
static void cache_line(struct tree *tree, char *line, const char *word)
{
    char *name = line + strspn(line, " \t"), *kind = strstr(name, " ("),
         *arrow = strstr(name, ") => "), *entry;
    if (!kind || !arrow || kind > arrow) return;
    *kind = *arrow = 0;
    if (!strstr(kind + 2, word) || strstr(kind + 2, "hwcap")) return;
    arrow += strlen(") => ");
    arrow[strcspn(arrow, "\n")] = 0;
    if (asprintf(&entry, "%s\n%s", name, arrow) < 0) out_of_memory();
    array_add(tree->cache.at, tree->cache.count, tree->cache.capacity, entry);
}

/* Reads what ldconfig prints of the cache. Without ldconfig the cache stays empty. */
static void cache_read(struct tree *tree, unsigned machine)
{
    const char *word = machine == EM_X86_64    ? "x86-64"
                       : machine == EM_AARCH64 ? "AArch64"
                                               : NULL; /* ldconfig's words */
    FILE *from = word && !access("/sbin/ldconfig", X_OK)
                     ? popen("exec /sbin/ldconfig -p 2>/dev/null", "re")
                     : NULL;
    char *line = NULL;
    size_t room = 0;
    while (from && getline(&line, &room, from) > 0) cache_line(tree, line, word);
    if (from) pclose(from);
    free(line);
}

/* --- one library --- */

struct search {
    struct tree *tree;
    const char *name;
    unsigned machine, bits;
    char found[PATH_MAX];
};

/* Whether the file is for the program's machine and word size. The loader skips other files. */
static bool fits(const struct search *search, const char *path)
{
    unsigned char ident[20];
    const int fd = program_open(path);
    const bool whole = fd >= 0 && pread(fd, ident, sizeof ident, 0) == sizeof ident;
    if (fd >= 0) close(fd);
    if (!whole || memcmp(ident, ELFMAG, SELFMAG)) return false;
    const unsigned machine =
        ident[EI_DATA] == ELFDATA2LSB ? ident[18] | ident[19] << 8 : ident[19] | ident[18] << 8;
    return machine == search->machine &&
           (ident[EI_CLASS] == ELFCLASS64 ? 64u : 32u) == search->bits;
}

static bool try_folder(struct search *search, const char *folder)
{
    const int length = snprintf(
        search->found, sizeof search->found, "%s/%s", *folder ? folder : ".", search->name);
    return length > 0 && length < (int)sizeof search->found && !access(search->found, R_OK) &&
           fits(search, search->found);
}

/* Replaces $ORIGIN (the folder of the file that has the path) and $LIB, with or without braces. */
static void expand(const struct image *by, const char *from, size_t length, char *to, size_t size)
{
    char origin[PATH_MAX];
    if (!realpath(by->path, origin)) snprintf(origin, sizeof origin, "%s", by->path);
    *(strrchr(origin, '/') ?: origin) = 0;
    const struct {
        const char *word, *value;
    } tokens[] = {{"$ORIGIN", origin}, {"${ORIGIN}", origin},
        {"$LIB", by->bits == 64 ? "lib64" : "lib"}, {"${LIB}", by->bits == 64 ? "lib64" : "lib"}};
    size_t at = 0;
    for (size_t i = 0; i < length && at < size - 1;) {
        size_t t = 0;
        while (t < sizeof tokens / sizeof *tokens &&
               strncmp(from + i, tokens[t].word, strlen(tokens[t].word)))
            t++;
        if (t < sizeof tokens / sizeof *tokens) {
            const int put = snprintf(to + at, size - at, "%s", tokens[t].value);
            at += put > 0 && (size_t)put < size - at ? (size_t)put : size - at - 1;
            i += strlen(tokens[t].word);
        } else to[at++] = from[i++];
    }
    to[at] = 0;
}

static bool try_path(
    struct search *search, const struct image *by, const char *path, const char *between)
{
    char folder[PATH_MAX];
    for (const char *at = path; at;
        at = at[strcspn(at, between)] ? at + strcspn(at, between) + 1 : NULL) {
        expand(by, at, strcspn(at, between), folder, sizeof folder);
        if (try_folder(search, folder)) return true;
    }
    return false;
}

/* Tries the DT_RPATH of the file, then of the files that needed it, up to the program. A DT_RPATH
 * beside a DT_RUNPATH does not count. If the file itself has a DT_RUNPATH, no DT_RPATH is tried. */
static bool try_rpaths(struct search *search, size_t by)
{
    if (search->tree->loaded[by].image.runpath) return false;
    for (;; by = search->tree->loaded[by].needed_by) {
        const struct image *image = &search->tree->loaded[by].image;
        if (image->rpath && !image->runpath && try_path(search, image, image->rpath, ":"))
            return true;
        if (!by) return false;
    }
}

static bool try_cache(struct search *search)
{
    const size_t length = strlen(search->name);
    for (size_t i = 0; i < search->tree->cache.count; i++) {
        const char *entry = search->tree->cache.at[i];
        if (strncmp(entry, search->name, length) || entry[length] != '\n') continue;
        snprintf(search->found, sizeof search->found, "%s", entry + length + 1);
        if (fits(search, search->found)) return true;
    }
    return false;
}

static bool find(struct search *search, size_t by)
{
    const struct image *image = &search->tree->loaded[by].image;
    const char *list = getenv("LD_LIBRARY_PATH");
    if (strchr(search->name, '/')) {
        snprintf(search->found, sizeof search->found, "%s", search->name);
        return fits(search, search->found);
    }
    return try_rpaths(search, by) || (list && *list && try_path(search, image, list, ":;")) ||
           (image->runpath && try_path(search, image, image->runpath, ":")) || try_cache(search) ||
           try_folder(search, "/lib64") || try_folder(search, "/usr/lib64") ||
           try_folder(search, "/lib") || try_folder(search, "/usr/lib");
}

/* --- all libraries --- */

static struct loaded *room_for_one(struct tree *tree)
{
    tree->loaded = array_room(tree->loaded, tree->count, &tree->capacity, sizeof *tree->loaded);
    return memset(&tree->loaded[tree->count], 0, sizeof *tree->loaded);
}

static void load(struct tree *tree, const char *name, size_t by)
{
    struct search search = {.tree = tree,
        .name = name,
        .machine = tree->loaded[0].image.machine,
        .bits = tree->loaded[0].image.bits};
    char error[256];
    /* A library has two names: the name by which it was needed, and its SONAME. */
    for (size_t i = 0; i < tree->count; i++) {
        const struct loaded *is = &tree->loaded[i];
        if ((is->name && !strcmp(is->name, name)) ||
            (is->image.soname && !strcmp(is->image.soname, name)))
            return;
    }
    if (strings_have(&tree->missing, name)) return;
    if (!find(&search, by)) {
        strings_add(&tree->missing, name);
        return;
    }
    struct loaded *loaded = room_for_one(tree);
    if (image_read(&loaded->image, search.found, error)) {
        loaded->name = kept(name);
        loaded->needed_by = by;
        tree->count++;
        return;
    }
    image_free(&loaded->image);
    strings_print(&tree->refused, "%s: %s", search.found, error);
}

bool tree_make(struct tree *tree, const char *path, char error[256])
{
    *tree = (struct tree){0};
    const bool read = image_read(&room_for_one(tree)->image, path, error);
    tree->count = 1;
    if (!read) return false;
    cache_read(tree, tree->loaded[0].image.machine);
    for (size_t by = 0; by < tree->count; by++)
        for (size_t n = 0; n < tree->loaded[by].image.needed.count; n++)
            load(tree, tree->loaded[by].image.needed.at[n], by);
    return true;
}

void tree_free(struct tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        image_free(&tree->loaded[i].image);
        free(tree->loaded[i].name);
    }
    free(tree->loaded);
    strings_free(&tree->missing);
    strings_free(&tree->refused);
    strings_free(&tree->cache);
}
