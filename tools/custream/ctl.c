/*
 * custream ctl: asks a process that runs under custream to record or not, to bring its file up to date, to take another policy, or how it is.
 */
#include "tools/custream/command.h"
#include "tools/custream/commands.h"
#include "tools/custream/live/peer.h"
#include "tools/custream/show.h"

#include "shim/base/options.h"
#include "shim/policy/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *format, ...)
{
    static char line[2 * CS_CONTROL_ANSWER];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fputs("custream ctl: ", stderr);
    text_put(stderr, line);
    fputc('\n', stderr);
    return false;
}

/* --- what is asked --- */

static const char *const words[] = {
#define WORD(word) #word,
    CS_CONTROL_WORDS(WORD)
#undef WORD
};

static bool word_ok(const char *word)
{
    size_t best = 0, fewest = SIZE_MAX;
    for (size_t i = 0; i < CS_COUNT(words); i++) {
        size_t edits = cs_edits(word, strlen(word), words[i], strlen(words[i]));
        bool begins_so = *word && !strncmp(word, words[i], strlen(word));
        if (!edits) return !strcmp(word, words[i]) || fail("'%s' is written %s", word, words[i]);
        if (edits < fewest || (edits == fewest && begins_so)) fewest = edits, best = i;
    }
    if (fewest <= 2) return fail("'%.60s' is nothing that can be asked; did you mean %s?", word, words[best]);
    return fail("'%.60s' is nothing that can be asked: on, off, flush, status or policy FILE", word);
}

static bool pid_read(const char *text, int *pid)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || n < 1 || n > INT_MAX) return fail("'%.60s' is no process id", text);
    *pid = (int)n;
    return true;
}

/* Reads at most `room` bytes; false after a line that says why not. */
static bool slurp(const char *name, char *text, size_t room, size_t *length)
{
    bool is_input = !strcmp(name, "-");
    int fd = is_input ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    for (*length = 0; got > 0 && *length < room; *length += got > 0 ? (size_t)got : 0) got = read(fd, text + *length, room - *length);
    int error = errno;
    if (fd >= 0 && !is_input) close(fd);
    if (got < 0) return fail("%s: %s", name, strerror(error));
    if (*length == room) return fail("%s: longer than %zu KiB", name, room >> 10);
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
    if (memchr(json, 0, length)) return fail("%s: not text", name);
    if (!cs_policy_file_parse(&file, strcmp(name, "-") ? name : "standard input", json, length, true, error, sizeof error)) return fail("%s", error);
    cs_policy_file_finish(&file);
    return true;
}

/* --- asking --- */

static int ask(struct peer *peer, const char *request)
{
    static char answer[CS_CONTROL_ANSWER];
    const bool ok = peer_ask(peer, request) && peer_hear(peer, answer);
    peer_close(peer);
    if (!ok) return fail("%s", peer->error), STATUS_UNUSABLE;
    if (!strncmp(answer, "ok ", 3) || !strcmp(answer, "ok")) {
        text_put(stdout, answer[2] ? answer + 3 : "ok");
        putchar('\n');
        return STATUS_OK;
    }
    fail("process %d: %s", peer->pid, strncmp(answer, "error ", 6) ? answer : answer + 6);
    return STATUS_BROKEN;
}

int command_ctl(int argc, char **argv)
{
    static char request[CS_CONTROL_REQUEST];
    struct peer peer;
    int pid = 0;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) return command_put(command_find(argv[0])), STATUS_OK;
    if (argc < 3) return fail("which process, and what? 'custream help ctl' says more"), STATUS_UNUSABLE;
    if (!pid_read(argv[1], &pid) || !word_ok(argv[2])) return STATUS_UNUSABLE;
    bool policy = !strcmp(argv[2], "policy");
    if (policy && argc != 4) return fail("policy takes one FILE (- is standard input)"), STATUS_UNUSABLE;
    if (!policy && argc != 3) return fail("%s takes nothing more", argv[2]), STATUS_UNUSABLE;
    if (policy ? !policy_add(request, argv[3]) : !strcpy(request, argv[2])) return STATUS_UNUSABLE;
    if (!peer_find(&peer, pid)) return fail("%s", peer.error), STATUS_UNUSABLE;
    return ask(&peer, request);
}
