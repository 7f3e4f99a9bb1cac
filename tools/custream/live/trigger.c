/* custream trigger: writes the file of CUSTREAM_TRIGGER. The file gets its name once it is whole.
 */
#define _GNU_SOURCE /* mkostemp */
#include "shim/base/append.h"
#include "tools/custream/near.h"
#include "tools/custream/flags.h"
#include "tools/custream/live/live.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/settings.h"

static const char NAME[] = "custream trigger";

struct request {
    int64_t in, duration;
    const char *to, *ranks, *policy;
};

/* --- the text of the file --- */

enum { SAID = 4096 };

/* Makes the file's text, and `said`, which tells people of it. False: the complaint was printed. */
static bool compose(const struct request *request, char *text, size_t room, char said[SAID])
{
    char start[64];
    struct timespec now;
    struct tm tm;
    static char policy[CS_TRIGGER_MOST];
    struct cs_trigger trigger;
    int line;
    if (request->policy && !policy_text_read(NAME, request->policy, policy, sizeof policy))
        return false;
    for (char *at = policy; *at; at++) /* JSON has control characters only between its words */
        if ((unsigned char)*at < ' ') *at = ' ';
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t begin = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + request->in;
    const time_t second = (time_t)(begin / 1000000000);
    size_t n = strftime(start, sizeof start, "%Y-%m-%dT%H:%M:%S", gmtime_r(&second, &tm));
    snprintf(start + n, sizeof start - n, ".%03dZ", (int)(begin / 1000000 % 1000));
    n = cs_append(text, room, 0,
        "# custream trigger\nstart=%s\nduration=%" PRId64 ".%06" PRId64 "s\n", start,
        request->duration / 1000000000, request->duration / 1000 % 1000000);
    if (request->ranks) n = cs_append(text, room, n, "ranks=%.2000s\n", request->ranks);
    if (*policy) n = cs_append(text, room, n, "policy=%s\n", policy);
    if (n + 1 >= room)
        return complained(NAME, "%s: longer than %d KiB", request->policy, CS_TRIGGER_MOST >> 10);
    const char *allowed = cs_trigger_read(text, &trigger, &line);
    if (!allowed) {
        const bool all = !trigger.range_count;
        snprintf(said, SAID, "%s%s record from %s for %g s", all ? "all ranks" : "ranks ",
            all ? "" : request->ranks, start, (double)request->duration * 1e-9);
        return true;
    }
    return complained(NAME, "%s: allowed is %s",
        line == 3   ? "--duration"
        : line == 2 ? "--in"
                    : "--ranks",
        allowed);
}

/* --- the file --- */

/* Whether the file may be written: no file has this name, or the file is empty, or has a trigger
 * whose seconds are over. A trigger whose seconds are to come may have been read by some ranks
 * already. */
static bool may_replace(const char *name)
{
    static char text[CS_TRIGGER_MOST + 1];
    struct stat file;
    struct cs_trigger trigger;
    struct timespec now;
    int line;
    if (lstat(name, &file))
        return errno == ENOENT || complained(NAME, "%s: %s", name, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return complained(NAME, "%s: no regular file, which processes do not read", name);
    if (!file.st_size) return true;
    if (!text_read(name, text, sizeof text) || cs_trigger_read(text, &trigger, &line))
        return complained(NAME,
            "%s: there is another file of that name, which is no trigger; remove it, or "
            "choose another name",
            name);
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t left = (int64_t)(trigger.start_ns + trigger.duration_ns) -
                         ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    if (left <= 0) return true;
    return complained(NAME,
        "%s: the seconds of the last one are over in %.1f s; wait for that, or remove the "
        "file",
        name, (double)left * 1e-9);
}

/* Writes the file. All users may read the file: root may write it for processes of a job's user. */
static bool put(const char *name, const char *text)
{
    char *beside = malloc(strlen(name) + 8);
    if (!beside) out_of_memory();
    strcat(strcpy(beside, name), ".XXXXXX");
    const int fd = mkostemp(beside, O_CLOEXEC);
    bool good = fd >= 0 && dprintf(fd, "%s", text) >= 0 && !fchmod(fd, 0644);
    if (fd >= 0) good = !close(fd) && good && !rename(beside, name);
    const int error = errno;
    if (!good && fd >= 0) unlink(beside);
    if (!good) complain(NAME, "%s: cannot be written: %s", name, strerror(error));
    free(beside);
    return good;
}

/* --- the command --- */

int command_trigger(int argc, char **argv)
{
    static char text[CS_TRIGGER_MOST], said[SAID];
    struct request request = {.in = 5000000000, .duration = 5000000000};
    int flag;
    while ((flag = flags_next(argc, argv, 0)) != -1) {
        if (flag == FLAG_RANKS) request.ranks = optarg;
        else if (flag == FLAG_POLICY) request.policy = optarg;
        else if (!duration_take(NAME, flag == FLAG_IN ? "in" : "duration", optarg,
                     flag == FLAG_IN ? &request.in : &request.duration))
            return STATUS_UNUSABLE;
    }
    if (optind + 1 != argc)
        return complain(NAME, "takes one FILE, the one that CUSTREAM_TRIGGER names; 'custream help "
                              "trigger' says more");
    request.to = argv[optind];
    if (!may_replace(request.to) || !compose(&request, text, sizeof text, said) ||
        !put(request.to, text))
        return STATUS_UNUSABLE;
    printf("%s: %s\n", request.to, said);
    return STATUS_OK;
}
