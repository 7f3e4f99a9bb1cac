#include "shim/base/append.h"
#include "tools/custream/command.h"
#include "tools/custream/inspect/inspect.h"
#include "tools/custream/verdict.h"

static const char *const subject_name[] = {[SUBJECT_PROGRAM] = "program",
    [SUBJECT_LIBRARY] = "library",
    [SUBJECT_OBJECT] = "object file",
    [SUBJECT_SCRIPT] = "script"};
static const char *const use_name[USES] = {
    [USE_IMPORTED] = "imported", [USE_CALLED] = "called", [USE_NAMED] = "named"};
static const char *const level_name[API_LEVELS] = {
    [API_DRIVER] = "driver", [API_RUNTIME] = "runtime"};

/* VERSION: the version of the JSON. It grows if a member goes away or changes its meaning. */
enum { VERSION = 1, INDENT = 20, WIDTH = 100, SHOWN = 40 };

/* Puts "  LABEL           " to begin a line; an empty label puts the same width in blanks. */
static void label_put(const char *label) { printf("  %-*s", INDENT - 2, label); }

static void words_put(const char *label, const char *text)
{
    label_put(label);
    text_put_wrapped(stdout, text, WIDTH, INDENT, INDENT);
}

static void lines_put(const char *label, const struct strings *lines)
{
    for (size_t i = 0; i < lines->count; i++) words_put(i ? "" : label, lines->at[i]);
}

static void list_put(const char *label, const struct strings *list, size_t most)
{
    char text[SHOWN * 64 + 64] = "";
    size_t at = 0;
    for (size_t i = 0; i < list->count && i < most; i++)
        at = cs_append(text, sizeof text, at, "%s%.60s", i ? ", " : "", list->at[i]);
    if (list->count > most)
        snprintf(
            text + at, sizeof text - at, ", and %zu more (--json has all)", list->count - most);
    if (list->count) words_put(label, text);
}

/* Writes the names of up to three functions, or how many functions there are. */
static void functions_put(
    char *text, size_t size, const struct image *image, enum api_stream stream)
{
    enum { NAMED_MOST = 3 };
    const size_t count = image->by_stream[stream];
    size_t at = 0, n = 0;
    if (count > NAMED_MOST) snprintf(text, size, "%zu functions that it calls", count);
    for (int level = 0; level < API_LEVELS && count <= NAMED_MOST; level++)
        for (int use = 0; use < USE_NAMED; use++)
            for (size_t i = 0; i < image->calls[level][use].count; i++) {
                const char *name = image->calls[level][use].at[i];
                if (api_find(name)->stream == stream)
                    at = cs_append(text, size, at, "%s%s", n++ ? ", " : "", name);
            }
}

static void stream_put(const struct image *image)
{
    char text[1024] = "", legacy[400], per_thread[400];
    functions_put(legacy, sizeof legacy, image, STREAM_LEGACY);
    functions_put(per_thread, sizeof per_thread, image, STREAM_PER_THREAD);
    const char *stream = default_stream_of(image);
    const bool both = stream && !strcmp(stream, "both");
    if (both)
        snprintf(text, sizeof text, "both: the legacy one by %s; the thread's own by %s", legacy,
            per_thread);
    else if (stream)
        snprintf(text, sizeof text, "%s, by %s", stream,
            image->by_stream[STREAM_LEGACY] ? legacy : per_thread);
    else if (image->has_sections && calls_hidden(image))
        snprintf(text, sizeof text, "not known: the file is stripped");
    else if (image->calls[API_DRIVER][USE_NAMED].count + image->calls[API_RUNTIME][USE_NAMED].count)
        snprintf(text, sizeof text, "not known: it looks functions up by name");
    if (*text) words_put("default stream", text);
}

static void image_put(const struct tree *tree, size_t place)
{
    const struct image *image = &tree->loaded[place].image;
    struct strings ways = {0};
    reach_of(tree, place, &ways);
    lines_put("reaches CUDA", &ways);
    if (!ways.count && !place)
        words_put("reaches CUDA",
            image->has_sections ? "not by itself" : "not known: the file has no section headers");
    strings_free(&ways);
    if (image->is_libcuda || image->is_cudart) return;
    stream_put(image);
    static const char *const labels[API_LEVELS][2] = {
        {"driver calls", "driver, by name"}, {"runtime calls", "runtime, by name"}};
    for (int level = 0; level < API_LEVELS; level++)
        for (int use = 0; use < USES; use++)
            list_put(labels[level][use == USE_NAMED], &image->calls[level][use],
                use == USE_NAMED ? SHOWN / 4 : SHOWN);
    list_put("GPU code", &image->gpu_code, SHOWN);
    if (image->gpu_code_broken) words_put("", "and some that could not be read");
    if (image->own_driver_pointers)
        words_put(
            "note", "it has variables named as the driver's functions, and fills them itself");
}

static void title_put(const char *path, const char *kind)
{
    text_put(stdout, path);
    printf(": %s\n", kind);
}

static void tree_put(const struct verdict *verdict, const struct tree *tree)
{
    const struct image *first = &tree->loaded[0].image;
    char room[16], kind[128];
    const bool is_static = first->kind == IMAGE_PROGRAM && !first->loaded_by_loader;
    snprintf(kind, sizeof kind, "%s%s for %s, %u bits", is_static ? "static " : "",
        subject_name[verdict->subject], machine_name(first->machine, room), first->bits);
    title_put(verdict->path, kind);
    image_put(tree, 0);
    if (first->opens)
        words_put("opens", "libraries while it runs (dlopen); which ones, and with which flags, is "
                           "not in the file. One that is linked to libcuda itself and "
                           "opened with RTLD_DEEPBIND is not seen");
    for (size_t i = 1; i < tree->count; i++) {
        if (!image_touches(&tree->loaded[i].image)) continue;
        putchar('\n');
        title_put(tree->loaded[i].image.path, "library that it needs");
        image_put(tree, i);
    }
    if (tree->missing.count + tree->refused.count) putchar('\n');
    lines_put("not found", &tree->missing);
    lines_put("not read", &tree->refused);
}

static void verdict_put(const struct verdict *verdict)
{
    putchar('\n');
    if (verdict->obstacle) {
        char text[512];
        snprintf(text, sizeof text, "nothing: it %s", verdict->obstacle);
        words_put("custream sees", text);
        return;
    }
    lines_put("custream sees", &verdict->sees);
    for (size_t i = 0; i < verdict->run.count; i++) {
        label_put(verdict->run.at[i] == verdict->audit ? "per-thread safe?" : i ? "" : "run");
        text_put(stdout, verdict->run.at[i]);
        putchar('\n');
    }
    if (verdict->subject == SUBJECT_LIBRARY)
        words_put("", "PROGRAM is the one that loads this library");
}

/* --- as JSON --- */

static cJSON *list(const struct strings *of)
{
    return of->count ? cJSON_CreateStringArray((const char *const *)of->at, (int)of->count)
                     : cJSON_CreateArray();
}

static cJSON *file_of(const struct tree *tree, size_t place)
{
    const struct loaded *loaded = &tree->loaded[place];
    const struct image *image = &loaded->image;
    struct strings ways = {0};
    const unsigned version = image->cudart_version;
    char room[16], number[16];
    snprintf(number, sizeof number, "%u.%u", version / 1000, version % 1000 / 10);
    reach_of(tree, place, &ways);
    cJSON *file = cJSON_CreateObject();
    json_add(file, "path", text_or_null(image->path));
    json_add(
        file, "needed_by", text_or_null(place ? tree->loaded[loaded->needed_by].image.path : NULL));
    json_add(file, "machine", text_or_null(machine_name(image->machine, room)));
    json_add(file, "bits", cJSON_CreateNumber(image->bits));
    json_add(
        file, "static", cJSON_CreateBool(image->kind == IMAGE_PROGRAM && !image->loaded_by_loader));
    json_add(file, "soname", text_or_null(image->soname));
    json_add(file, "needed", list(&image->needed));
    json_add(file, "reaches_cuda", list(&ways));
    json_add(file, "cudart",
        text_or_null(image->carries_cudart ? "static"
                     : image->is_cudart    ? "shared"
                                           : NULL));
    json_add(file, "cudart_version", text_or_null(version ? number : NULL));
    json_add(file, "default_stream", text_or_null(default_stream_of(image)));
    json_add(file, "calls_known", cJSON_CreateBool(!calls_hidden(image)));
    cJSON *calls = json_add(file, "calls", cJSON_CreateObject());
    for (int level = 0; level < API_LEVELS; level++) {
        cJSON *uses = json_add(calls, level_name[level], cJSON_CreateObject());
        for (int use = 0; use < USES; use++)
            json_add(uses, use_name[use], list(&image->calls[level][use]));
    }
    json_add(file, "gpu_code", list(&image->gpu_code));
    json_add(file, "gpu_code_broken", cJSON_CreateBool(image->gpu_code_broken));
    json_add(file, "dlopen", cJSON_CreateBool(image->opens));
    json_add(file, "dlmopen", cJSON_CreateBool(image->opens_apart));
    strings_free(&ways);
    return file;
}

static void verdict_write(const struct verdict *verdict, const struct tree *tree)
{
    static const struct strings none;
    cJSON *all = cJSON_CreateObject(), *files = cJSON_CreateArray();
    json_add(all, "custream_inspect", cJSON_CreateNumber(VERSION));
    json_add(all, "tool", text_or_null("custream " CUSTREAM_VERSION_STRING));
    json_add(all, "path", text_or_null(verdict->path));
    json_add(all, "kind", text_or_null(subject_name[verdict->subject]));
    json_add(all, "interpreter",
        text_or_null(tree ? tree->loaded[0].image.interpreter : verdict->interpreter));
    json_add(all, "obstacle", text_or_null(verdict->obstacle));
    json_add(all, "sees", list(&verdict->sees));
    json_add(all, "run", list(&verdict->run));
    json_add(all, "not_found", list(tree ? &tree->missing : &none));
    json_add(all, "not_read", list(tree ? &tree->refused : &none));
    for (size_t i = 0; tree && i < tree->count; i++)
        if (!cJSON_AddItemToArray(files, file_of(tree, i))) out_of_memory();
    json_add(all, "files", files);
    char *printed = cJSON_Print(all);
    if (!printed) out_of_memory();
    json_text_put(printed);
    putchar('\n');
    cJSON_free(printed);
    cJSON_Delete(all);
}

void inspect_show(const struct verdict *verdict, const struct tree *tree, bool json)
{
    if (json) return verdict_write(verdict, tree);
    if (tree) tree_put(verdict, tree);
    else {
        title_put(verdict->path, subject_name[SUBJECT_SCRIPT]);
        words_put("started by", verdict->interpreter);
    }
    verdict_put(verdict);
}
