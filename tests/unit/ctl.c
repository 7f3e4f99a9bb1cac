/* Who may ask (process/ctl.c), with peers of any user: SO_PEERCRED is made up here. The cases of
 * test_ctl.py have real ones. */
#include "shim/process/ctl.c"

#include "tests/unit/check.h"

bool cs_window_has_time(void) { return false; }
cs_u64 cs_window_due(void) { return UINT64_MAX; }
bool cs_trigger_wanted(void) { return false; }
void cs_trigger_begin(bool apart) { (void)apart; }
cs_u64 cs_trigger_due(void) { return UINT64_MAX; }
void cs_trigger_end(void) {}
void cs_trigger_after_fork_in_child(void) {}

static int asked;
static enum cs_ctl_then then;
enum cs_ctl_then cs_ctl_answer(char *words, char *answer_, size_t room)
{
    asked++;
    snprintf(answer_, room, "ok %.9s\n", words);
    return then;
}

static int ended;
void cs_ctl_end_record(char *answer_, size_t room)
{
    ended++;
    snprintf(answer_, room, "ok ended\n");
}

static bool told; /* getsockopt says who it is */
static uid_t uid;
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    CHECK(fd >= 0 && level == SOL_SOCKET && name == SO_PEERCRED && *size == sizeof(struct ucred));
    *(struct ucred *)value = (struct ucred){.pid = 1, .uid = uid};
    return told ? 0 : -1;
}

/* Sends a word over a connection of its own; the client's place is the last one. */
static int client_who_says(const char *word)
{
    int pair[2];
    REQUIRE(
        !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) && send(pair[0], word, strlen(word), 0) > 0);
    clients[client_count++] = (struct client){pair[1], cs_monotonic_ns(), false};
    return pair[0];
}

static const char *said_to(int peer)
{
    static char line[256];
    ssize_t n = recv(peer, line, sizeof line - 1, MSG_DONTWAIT);
    line[n > 0 ? n : 0] = 0;
    return n < 0 ? "nothing" : line;
}

static void look(void)
{
    struct pollfd polled[CLIENTS];
    for (int i = 0; i < client_count; i++)
        polled[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
    poll(polled, (nfds_t)client_count, 0);
    look_after_clients(polled);
}

/* What a client of that user is told, who has asked before anybody looked; or, where `late`, after
 * that, when its time is over. */
static const char *answer_where(uid_t user, bool late)
{
    static char line[256];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t); /* the system finds a name */
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), peer = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    REQUIRE(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 1));
    length = sizeof address;
    REQUIRE(!getsockname(listener, (struct sockaddr *)&address, &length) &&
            !connect(peer, (struct sockaddr *)&address, length));
    REQUIRE(send(peer, "off", 3, 0) == 3);
    uid = user;
    take_client(listener);
    if (late && client_count) clients[0].since = 0;
    look_after_clients(&(struct pollfd){.revents = late ? 0 : POLLIN});
    CHECK_IS(client_count, 0);
    ssize_t n = recv(peer, line, sizeof line - 1, MSG_DONTWAIT);
    if (n < 0 && errno == ECONNRESET)
        n = recv(peer, line, sizeof line - 1,
            MSG_DONTWAIT); /* that what was asked has not been read comes first */
    line[n > 0 ? n : 0] = 0;
    close(peer);
    close(listener);
    return line;
}

static const char *answer_to(uid_t user) { return answer_where(user, false); }

TEST(the_processes_user_and_root)
{
    told = true;
    CHECK_TEXT(answer_to(geteuid()), "ok off\n");
    CHECK_TEXT(answer_to(0), "ok off\n");
    CHECK_IS(asked, 2);
}

TEST(nobody_else)
{
    const uid_t others[] = {geteuid() + 1, geteuid() + 65534, (uid_t)-1, (uid_t)-2};
    told = true;
    for (size_t i = 0; i < CS_COUNT(others); i++)
        CHECK_TEXT(answer_to(others[i]), "error this process belongs to another user\n");
    CHECK_IS(asked, 0);
}

TEST(who_can_not_be_told)
{
    CHECK_TEXT(answer_to(geteuid()), "error this process belongs to another user\n");
    CHECK_IS(asked, 0);
}

/* Serving another may take as long as a client is waited for. */
TEST(who_asked_while_another_was_served)
{
    told = true;
    CHECK_TEXT(answer_where(geteuid(), true), "ok off\n");
    CHECK_IS(asked, 1);
}

/* `off` ends them all once each, also one whose place has changed in the same round. */
TEST(off_ends_every_record_once)
{
    then = CS_CTL_HOLDS;
    const int first = client_who_says("record"), gone = client_who_says("record"),
              second = client_who_says("record");
    look();
    CHECK_IS(client_count, 3);
    CHECK_TEXT(said_to(first), "ok record\n");
    CHECK_TEXT(said_to(second), "ok record\n");
    close(gone);
    look();
    CHECK_IS(ended, 1);
    CHECK_IS(client_count, 2);
    then = CS_CTL_DONE;
    const int other = client_who_says("status"); /* leaves in the same round */
    then = CS_CTL_ENDS;
    const int off = client_who_says("off");
    look();
    CHECK_IS(ended, 3);
    CHECK_TEXT(said_to(first), "ok ended\n");
    CHECK_TEXT(said_to(second), "ok ended\n");
    CHECK_TEXT(said_to(off), "ok off\n");
    CHECK_TEXT(said_to(other), "ok status\n");
    then = CS_CTL_DONE;
    look();
    CHECK_IS(client_count, 0);
    CHECK_IS(ended, 3);
}

TEST(end_is_answered_and_whoever_waits_is_not_late)
{
    then = CS_CTL_HOLDS;
    const int peer = client_who_says("record");
    look();
    CHECK_TEXT(said_to(peer), "ok record\n");
    clients[0].since = 0;
    look();
    CHECK_IS(client_count, 1);
    REQUIRE(send(peer, "end", 3, 0) == 3);
    look();
    CHECK_TEXT(said_to(peer), "ok ended\n");
    CHECK_IS(client_count, 0);
}

TEST(so_many_record_that_others_can_still_ask)
{
    then = CS_CTL_HOLDS;
    for (int i = 0; i < CLIENTS / 2; i++) client_who_says("record");
    const int more = client_who_says("record");
    look();
    CHECK_IS(client_count, CLIENTS / 2);
    CHECK_TEXT(said_to(more), "error too many record this process at once\n");
}

/* Where there is no place for another one, a client has a tenth of a second to ask. One that asks
 * in time is answered. */
TEST(who_says_nothing_makes_room)
{
    const cs_u64 before = cs_monotonic_ns() - 1000000000ull;
    int peers[CLIENTS], pair[2];
    for (int i = 0; i < CLIENTS; i++) {
        REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
        clients[client_count++] = (struct client){pair[1], before, false};
        peers[i] = pair[0];
    }
    CHECK_IS(timeout_ms(UINT64_MAX), CROWDED_MS);
    REQUIRE(send(peers[7], "status", 6, 0) == 6);
    client_count--; /* a place is free */
    look();
    CHECK_IS(client_count, CLIENTS - 2);
    CHECK_TEXT(said_to(peers[7]), "ok status\n");
    CHECK_IS(timeout_ms(UINT64_MAX), LOOK_MS);
    client_count = CLIENTS;
    for (int i = 0; i < CLIENTS; i++) {
        REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
        clients[i] = (struct client){pair[1], before, i == 3};
        peers[i] = pair[0];
    }
    REQUIRE(send(peers[7], "status", 6, 0) == 6);
    look();
    CHECK_IS(client_count, 1); /* the one that records */
    CHECK_TEXT(said_to(peers[7]), "ok status\n");
    CHECK_TEXT(said_to(peers[0]), "");
}
