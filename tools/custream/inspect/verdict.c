#define _GNU_SOURCE /* asprintf */
#include "tools/custream/inspect/inspect.h"

#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/program.h"

/* Writes the version as " 13.0"; 0: "". */
static const char *version_text(unsigned version, char room[16])
{
    *room = 0;
    if (version) snprintf(room, 16, " %u.%u", version / 1000, version % 1000 / 10);
    return room;
}

void reach_of(const struct tree *tree, size_t place, struct strings *ways)
{
    const struct image *image = &tree->loaded[place].image;
    char version[16];
    if (image->is_libcuda) strings_print(ways, "it is the driver's library");
    if (image->is_cudart)
        strings_print(
            ways, "it is the CUDA runtime%s, shared", version_text(image->cudart_version, version));
    if (image->carries_cudart)
        strings_print(ways, "the CUDA runtime%s is linked into it (static), and opens libcuda.so.1",
            version_text(image->cudart_version, version));
    for (size_t i = 0; i < image->needed.count; i++) {
        const char *name = image->needed.at[i];
        unsigned cudart = 0; /* the version of the runtime that was found by this name */
        for (size_t l = tree->count; l-- > 1;) {
            const struct loaded *is = &tree->loaded[l];
            if (!strcmp(is->name, name) || (is->image.soname && !strcmp(is->image.soname, name)))
                cudart = is->image.cudart_version;
        }
        if (!strncmp(name, "libcuda.so", 10)) strings_print(ways, "linked to the driver, %s", name);
        else if (!strncmp(name, "libcudart", 9))
            strings_print(ways, "linked to the shared CUDA runtime%s, %s",
                version_text(cudart, version), name);
    }
    if (image->carries_cudart || image->is_cudart || image->is_libcuda || !image->opens) return;
    if (image->names_libcuda)
        strings_print(
            ways, "may open libcuda.so while it runs: it has that name, and calls dlopen");
    if (image->names_cudart)
        strings_print(
            ways, "may open libcudart.so while it runs: it has that name, and calls dlopen");
}

const char *default_stream_of(const struct image *image)
{
    const size_t legacy = image->by_stream[STREAM_LEGACY],
                 per_thread = image->by_stream[STREAM_PER_THREAD];
    return legacy && per_thread ? "both" : legacy ? "legacy" : per_thread ? "per-thread" : NULL;
}

bool calls_hidden(const struct image *image)
{
    return !image->has_sections || (image->carries_cudart && !image->has_symbols);
}

/* --- how all files together reach CUDA --- */

struct together {
    bool reaches, shared_runtime, static_runtime, opens_apart, own_pointers, legacy, per_thread;
};

static struct together together_of(const struct tree *tree)
{
    struct together all = {0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct image *image = &tree->loaded[i].image;
        struct strings ways = {0};
        reach_of(tree, i, &ways);
        all.reaches |= ways.count;
        strings_free(&ways);
        all.static_runtime |= image->carries_cudart;
        all.shared_runtime |= image->is_cudart;
        for (size_t n = 0; n < image->needed.count; n++)
            all.shared_runtime |= !strncmp(image->needed.at[n], "libcudart", 9);
        all.own_pointers |= image->own_driver_pointers && !image->is_libcuda;
        if (image->is_cudart || image->is_libcuda) continue;
        all.legacy |= image->by_stream[STREAM_LEGACY];
        all.per_thread |= image->by_stream[STREAM_PER_THREAD];
    }
    /* The CUDA runtime itself imports dlmopen, so in a file with a runtime the import says
     * nothing. */
    all.opens_apart = tree->loaded[0].image.opens_apart && !tree->loaded[0].image.carries_cudart &&
                      !tree->loaded[0].image.is_cudart;
    return all;
}

static void sees_make(struct verdict *verdict, const struct together *all)
{
    struct strings *sees = &verdict->sees;
    if (all->reaches)
        strings_print(sees,
            "each call of the driver on streams and events, whoever makes it, with its work "
            "on the GPU");
    else
        strings_print(
            sees, "no CUDA as far as these files tell; what it opens while it runs is seen then");
    if (all->shared_runtime)
        strings_print(sees, "the calls of the shared CUDA runtime around them");
    if (all->static_runtime)
        strings_print(
            sees, all->shared_runtime
                      ? "the calls of the CUDA runtime that is linked in: with --runtime=cupti"
                      : "the calls of the CUDA runtime that is linked in: by CUPTI, where GPU "
                        "times come from it");
    if (all->opens_apart)
        strings_print(sees, "nothing of libraries in a namespace of their own (dlmopen)");
}

/* Returns the word with quotes if a shell needs them; the caller frees it. */
static char *quoted(const char *word)
{
    char *to = malloc(4 * strlen(word) + 5), *at = to;
    if (!to) out_of_memory();
    if (!word[strspn(
            word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:@%,")] &&
        *word)
        return strcpy(to, word);
    *at++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') at = stpcpy(at, "'\\''");
        else *at++ = *word;
    }
    strcpy(at, "'");
    return to;
}

/* Returns the words that start the program in a shell: "./app", as "app" is searched on PATH. */
static char *word_of(const struct verdict *verdict)
{
    char *plain = quoted(verdict->path), *word;
    if (verdict->subject == SUBJECT_LIBRARY || verdict->subject == SUBJECT_OBJECT) {
        free(plain);
        return kept("PROGRAM");
    }
    const bool by_interpreter = verdict->subject == SUBJECT_SCRIPT && access(verdict->path, X_OK);
    if (asprintf(&word, "%s%s%s%s", by_interpreter ? verdict->interpreter : "",
            by_interpreter ? " " : "", !by_interpreter && !strchr(verdict->path, '/') ? "./" : "",
            plain) < 0)
        out_of_memory();
    free(plain);
    return word;
}

void verdict_make(struct verdict *verdict, const struct tree *tree)
{
    static const struct together nothing;
    const struct together all = tree ? together_of(tree) : nothing;
    const struct image *image = tree ? &tree->loaded[0].image : NULL;
    verdict->obstacle =
        verdict->subject == SUBJECT_OBJECT
            ? "is an object file: inspect the program that it is linked into"
        : image && image->interpreter && strstr(image->interpreter, "ld-musl")
            ? "is made for the C library musl, whose loader refuses the preload library"
        : image && image->bits == 32 ? "is a 32-bit file: the preload library is for 64 bits"
        : verdict->subject == SUBJECT_LIBRARY ? NULL
                                              : program_obstacle(verdict->path);
    if (verdict->obstacle) return;
    char *word = word_of(verdict);
    if (tree) sees_make(verdict, &all);
    else
        strings_print(&verdict->sees,
            "what its modules and the programs that it starts do with CUDA: inspect those files");
    if (all.own_pointers)
        strings_print(&verdict->run, "LD_PRELOAD=libcustream_shim_dlsym.so %s", word);
    else
        strings_print(&verdict->run, "custream run%s -- %s",
            all.static_runtime && all.shared_runtime ? " --runtime=cupti" : "", word);
    if (all.legacy && verdict->subject == SUBJECT_PROGRAM && !all.own_pointers) {
        strings_print(&verdict->run, "custream run --default-stream=audit -- %s", word);
        verdict->audit = verdict->run.at[verdict->run.count - 1];
    }
    free(word);
}

void verdict_free(struct verdict *verdict)
{
    free(verdict->interpreter);
    strings_free(&verdict->sees);
    strings_free(&verdict->run);
}
