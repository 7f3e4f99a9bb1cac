/* custream ctl: tells a process to record, to stop recording, to flush, to take a policy, or to say
 * its state. */
#include "tools/custream/commands.h"
#include "tools/custream/live/peer.h"
#include "tools/custream/near.h"

static const char NAME[] = "custream ctl";

static int ask(struct peer *peer, const char *request)
{
    static char answer[CS_CONTROL_ANSWER];
    const bool ok = peer_ask(peer, request) && peer_hear(peer, answer);
    peer_close(peer);
    if (!ok) return complain(NAME, "%s", peer->error);
    const char *done = answer_behind(answer, cs_answer_ok);
    if (!done) {
        complain(
            NAME, "process %d: %s", peer->pid, answer_behind(answer, cs_answer_error) ?: answer);
        return STATUS_BROKEN;
    }
    text_put(stdout, *done ? done : answer);
    putchar('\n');
    return STATUS_OK;
}

int command_ctl(int argc, char **argv)
{
    static char request[CS_CONTROL_REQUEST];
    struct peer peer;
    int pid = 0;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return command_put(command_find(argv[0])), STATUS_OK;
    if (argc < 3) return complain(NAME, "which process, and what? 'custream help ctl' says more");
    if (!number_read(argv[1], 1, &pid)) return complain(NAME, "'%.60s' is no process id", argv[1]);
    const struct command_row *asked = word_find(NAME, command_find(argv[0]), "request", argv[2]);
    if (!asked) return STATUS_UNUSABLE;
    const bool takes_file = *asked->argument;
    if (takes_file && argc != 4)
        return complain(NAME, "%s takes one FILE (- is standard input)", argv[2]);
    if (!takes_file && argc != 3) return complain(NAME, "%s takes nothing more", argv[2]);
    snprintf(request, sizeof request, "%s%s", argv[2], takes_file ? " " : "");
    if (takes_file &&
        !policy_text_read(NAME, argv[3], request + strlen(request), sizeof request - 16))
        return STATUS_UNUSABLE;
    if (!peer_find(&peer, pid)) return complain(NAME, "%s", peer.error);
    return ask(&peer, request);
}
