/* Who may ask (hook/ctl.c), with peers of any user: SO_PEERCRED is made up here. The cases of test_ctl.py have real ones. */
#include "shim/hook/ctl.c"

#include "tests/unit/check.h"

bool cs_window_has_time(void) { return false; }
cs_u64 cs_window_due(void) { return UINT64_MAX; }

static int asked;
void cs_ctl_answer(char *words, char *answer_, size_t room)
{
    asked++;
    snprintf(answer_, room, "ok %.9s\n", words);
}

static bool told; /* getsockopt says who it is */
static uid_t uid;
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    CHECK(fd >= 0 && level == SOL_SOCKET && name == SO_PEERCRED && *size == sizeof(struct ucred));
    *(struct ucred *)value = (struct ucred){.pid = 1, .uid = uid};
    return told ? 0 : -1;
}

/* What a client of that user is told, who has asked before anybody looked; or, where `late`, after that, when its time is over. */
static const char *answer_where(uid_t user, bool late)
{
    static char line[256];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t length = sizeof(sa_family_t); /* the system finds a name */
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), peer = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    REQUIRE(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 1));
    length = sizeof address;
    REQUIRE(!getsockname(listener, (struct sockaddr *)&address, &length) && !connect(peer, (struct sockaddr *)&address, length));
    REQUIRE(send(peer, "off", 3, 0) == 3);
    uid = user;
    take_client(listener);
    if (late && client_count) clients[0].since = 0;
    look_after_clients(&(struct pollfd){.revents = late ? 0 : POLLIN});
    CHECK_IS(client_count, 0);
    ssize_t n = recv(peer, line, sizeof line - 1, MSG_DONTWAIT);
    if (n < 0 && errno == ECONNRESET) n = recv(peer, line, sizeof line - 1, MSG_DONTWAIT); /* that what was asked has not been read comes first */
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
    for (size_t i = 0; i < CS_COUNT(others); i++) CHECK_TEXT(answer_to(others[i]), "error this process belongs to another user\n");
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
