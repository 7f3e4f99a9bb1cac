/* custream ctl: asks a process to record or not, to flush, to take a policy, or how it is. */
#include "tools/custream/commands.h"
#include "tools/custream/live/peer.h"
#include "tools/custream/near.h"

#include "shim/policy/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

static const char NAME[] = "custream ctl";

/* --- what is asked --- */

static bool pid_read(const char *text, int *pid)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < 1 || n > INT_MAX)
        return complained(NAME, "'%.60s' is no process id", text);
    *pid = (int)n;
    return true;
}

/* Reads at most `room` bytes; false after a line that says why not. */
static bool slurp(const char *name, char *text, size_t room, size_t *length)
{
    bool is_input = !strcmp(name, "-");
    int fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    for (*length = 0; got > 0 && *length < room; *length += got > 0 ? (size_t)got : 0)
        got = read(fd, text + *length, room - *length);
    int error = errno;
    if (fd >= 0 && !is_input) close(fd);
    if (got < 0) return complained(NAME, "%s: %s", name, strerror(error));
    if (*length == room) return complained(NAME, "%s: longer than %zu KiB", name, room >> 10);
    text[*length] = 0;
    return true;
}

/* The policy behind the word, if the process will take it as far as we know. */
static bool policy_add(char *request, const char *name)
{
    char error[CS_POLICY_LINE], *json = request + strlen(strcpy(request, "policy "));
    struct cs_policy_file file;
    size_t length;
    if (!slurp(name, json, CS_CONTROL_REQUEST - 16, &length)) return false;
    if (memchr(json, 0, length)) return complained(NAME, "%s: not text", name);
    if (!cs_policy_file_parse(&file, strcmp(name, "-") ? name : "standard input", json, length,
            true, error, sizeof error))
        return complained(NAME, "%s", error);
    cs_policy_file_finish(&file);
    return true;
}

/* --- asking --- */

static int ask(struct peer *peer, const char *request)
{
    static char answer[CS_CONTROL_ANSWER];
    const bool ok = peer_ask(peer, request) && peer_hear(peer, answer);
    peer_close(peer);
    if (!ok) return complain(NAME, "%s", peer->error);
    if (!strncmp(answer, "ok ", 3) || !strcmp(answer, "ok")) {
        text_put(stdout, answer[2] ? answer + 3 : "ok");
        putchar('\n');
        return STATUS_OK;
    }
    complain(NAME, "process %d: %s", peer->pid, strncmp(answer, "error ", 6) ? answer : answer + 6);
    return STATUS_BROKEN;
}

int command_ctl(int argc, char **argv)
{
    static char request[CS_CONTROL_REQUEST];
    struct peer peer;
    int pid = 0;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return command_put(command_find(argv[0])), STATUS_OK;
    if (argc < 3) return complain(NAME, "which process, and what? 'custream help ctl' says more");
    if (!pid_read(argv[1], &pid)) return STATUS_UNUSABLE;
    const struct command_row *asked = word_find(NAME, command_find(argv[0]), "request", argv[2]);
    if (!asked) return STATUS_UNUSABLE;
    const bool takes_file = *asked->argument;
    if (takes_file && argc != 4)
        return complain(NAME, "%s takes one FILE (- is standard input)", argv[2]);
    if (!takes_file && argc != 3) return complain(NAME, "%s takes nothing more", argv[2]);
    if (takes_file ? !policy_add(request, argv[3]) : !strcpy(request, argv[2]))
        return STATUS_UNUSABLE;
    if (!peer_find(&peer, pid)) return complain(NAME, "%s", peer.error);
    return ask(&peer, request);
}
