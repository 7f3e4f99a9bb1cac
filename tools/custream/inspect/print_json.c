#include <cjson/cJSON.h>

#include "shim/base/compiler.h"
#include "tools/custream/command.h"
#include "tools/custream/inspect/inspect.h"
#include "tools/custream/verdict.h"

static void member(cJSON *object, const char *name, cJSON *value)
{
    if (!value || !cJSON_AddItemToObject(object, name, value)) out_of_memory();
}

static cJSON *text(const char *of) { return of ? cJSON_CreateString(of) : cJSON_CreateNull(); }
static cJSON *list(const struct strings *of)
{
    return of->count ? cJSON_CreateStringArray((const char *const *)of->at, (int)of->count)
                     : cJSON_CreateArray();
}

static cJSON *calls_of(const struct image *image)
{
    cJSON *calls = cJSON_CreateObject();
    for (int level = 0; level < API_LEVELS; level++) {
        cJSON *uses = cJSON_CreateObject();
        for (int use = 0; use < USES; use++)
            member(uses, use_name[use], list(&image->calls[level][use]));
        member(calls, level_name[level], uses);
    }
    return calls;
}

static const char *runtime_of(const struct image *image)
{
    return image->carries_cudart ? "static" : image->is_cudart ? "shared" : NULL;
}

static cJSON *version_of(unsigned version)
{
    char number[16];
    snprintf(number, sizeof number, "%u.%u", version / 1000, version % 1000 / 10);
    return version ? cJSON_CreateString(number) : cJSON_CreateNull();
}

static cJSON *file_of(const struct tree *tree, size_t place)
{
    const struct loaded *loaded = &tree->loaded[place];
    const struct image *image = &loaded->image;
    struct strings ways = {0};
    char room[16];
    reach_of(tree, place, &ways);
    cJSON *file = cJSON_CreateObject();
    member(file, "path", text(image->path));
    member(file, "needed_by", text(place ? tree->loaded[loaded->needed_by].image.path : NULL));
    member(file, "machine", text(machine_name(image->machine, room)));
    member(file, "bits", cJSON_CreateNumber(image->bits));
    member(
        file, "static", cJSON_CreateBool(image->kind == IMAGE_PROGRAM && !image->loaded_by_loader));
    member(file, "soname", text(image->soname));
    member(file, "needed", list(&image->needed));
    member(file, "reaches_cuda", list(&ways));
    member(file, "cudart", text(runtime_of(image)));
    member(file, "cudart_version", version_of(image->cudart_version));
    member(file, "default_stream", text(default_stream_of(image)));
    member(file, "calls_known", cJSON_CreateBool(!calls_hidden(image)));
    member(file, "calls", calls_of(image));
    member(file, "gpu_code", list(&image->gpu_code));
    member(file, "gpu_code_broken", cJSON_CreateBool(image->gpu_code_broken));
    member(file, "dlopen", cJSON_CreateBool(image->opens));
    member(file, "dlmopen", cJSON_CreateBool(image->opens_apart));
    strings_free(&ways);
    return file;
}

void inspect_write(const struct verdict *verdict, const struct tree *tree)
{
    static const struct strings none;
    cJSON *all = cJSON_CreateObject(), *files = cJSON_CreateArray();
    member(all, "custream_inspect", cJSON_CreateNumber(INSPECT_VERSION));
    member(all, "tool", text("custream " CUSTREAM_VERSION_STRING));
    member(all, "path", text(verdict->path));
    member(all, "kind", text(subject_name[verdict->subject]));
    member(
        all, "interpreter", text(tree ? tree->loaded[0].image.interpreter : verdict->interpreter));
    member(all, "obstacle", text(verdict->obstacle));
    member(all, "sees", list(&verdict->sees));
    member(all, "run", list(&verdict->run));
    member(all, "not_found", list(tree ? &tree->missing : &none));
    member(all, "not_read", list(tree ? &tree->refused : &none));
    for (size_t i = 0; tree && i < tree->count; i++)
        if (!cJSON_AddItemToArray(files, file_of(tree, i))) out_of_memory();
    member(all, "files", files);
    char *printed = cJSON_Print(all);
    if (!printed) out_of_memory();
    json_text_put(printed);
    putchar('\n');
    cJSON_free(printed);
    cJSON_Delete(all);
}
