/* Whose a user id is, in user namespaces (base/owner.h). Needs the right to make user namespaces. */
#define _GNU_SOURCE
#include "shim/base/owner.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/check.h"

enum { OVERFLOWS = 65534 };

/* Without what the leak checker does at an ordinary end: it may not look into a process that has changed its user. */
static void end(void) { _exit(check_failures ? 1 : 0); }

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(where_everybody_is_mapped)
{
    errno = EBADF;
    CHECK(cs_owner_is_us(geteuid()) && cs_owner_is_us_or_root(0) && cs_owner_is_one(OVERFLOWS));
    CHECK_IS(errno, EBADF);
    if (geteuid()) return;
    CHECK(cs_owner_serves_us(1234) && !cs_owner_is_us(1234));
    REQUIRE(seteuid(OVERFLOWS) == 0); /* "nobody" is a user like others here */
    CHECK(cs_owner_is_us(OVERFLOWS) && cs_owner_serves_us(OVERFLOWS) && !cs_owner_serves_us(1234) && !cs_owner_is_us(1234));
    end();
}

TEST(where_nobody_is_mapped)
{
    REQUIRE(unshare(CLONE_NEWUSER) == 0);
    REQUIRE(geteuid() == OVERFLOWS);
    CHECK(!cs_owner_is_us(OVERFLOWS) && !cs_owner_is_us_or_root(OVERFLOWS) && !cs_owner_serves_us(OVERFLOWS) && !cs_owner_is_one(OVERFLOWS));
    CHECK(cs_owner_is_one(1000) && !cs_owner_is_us(1000));
    end();
}

TEST(where_one_is_mapped)
{
    char map[64];
    snprintf(map, sizeof map, "1000 %d 1\n", (int)geteuid());
    REQUIRE(unshare(CLONE_NEWUSER) == 0);
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", map);
    REQUIRE(geteuid() == 1000);
    CHECK(cs_owner_is_us(1000) && cs_owner_serves_us(1000) && !cs_owner_is_us(OVERFLOWS) && !cs_owner_is_one(OVERFLOWS));
    end();
}

static int socket_at(const char *name, struct sockaddr_un *address, socklen_t *size)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)snprintf(address->sun_path + 1, 100, "custream-unit-%s-%d", name, (int)getpid()));
    return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

TEST(a_peer_in_another_namespace_is_not_us)
{
    struct sockaddr_un address;
    socklen_t size;
    const int listener = socket_at("peer", &address, &size);
    REQUIRE(listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 4) == 0);
    const pid_t child = fork();
    if (!child) {
        /* Its own user namespace: all others have the number that it has itself. */
        int pair[2];
        const int outside = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        REQUIRE(unshare(CLONE_NEWUSER) == 0 && geteuid() == OVERFLOWS);
        REQUIRE(connect(outside, (struct sockaddr *)&address, size) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
        CHECK(!cs_peer_is_us_or_root(outside, NULL) && !cs_peer_serves_us(outside, NULL));
        pid_t pid = 0;
        CHECK(cs_peer_is_us_or_root(pair[0], &pid) && cs_peer_serves_us(pair[0], NULL));
        CHECK_IS(pid, getpid());
        end();
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_IS(status, 0);
}
