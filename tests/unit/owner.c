/* Whose a user id is, in user namespaces (base/owner.h). Needs the right to make user namespaces.
 */
#define _GNU_SOURCE
#include "shim/base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/unit/check.h"

enum { OVERFLOWS = 65534 };

/* Without what the leak checker does at an ordinary end: it may not look into a process that has
 * changed its user. */
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
    CHECK(cs_owner_is_us(OVERFLOWS) && cs_owner_serves_us(OVERFLOWS) && !cs_owner_serves_us(1234) &&
          !cs_owner_is_us(1234));
    end();
}

TEST(where_nobody_is_mapped)
{
    REQUIRE(unshare(CLONE_NEWUSER) == 0);
    REQUIRE(geteuid() == OVERFLOWS);
    CHECK(!cs_owner_is_us(OVERFLOWS) && !cs_owner_is_us_or_root(OVERFLOWS) &&
          !cs_owner_serves_us(OVERFLOWS) && !cs_owner_is_one(OVERFLOWS));
    CHECK(cs_owner_is_one(1000) && !cs_owner_is_us(1000));
    end();
}

/* Enters a namespace of that map, as `uid`. A process that stays behind writes the map, since more
 * than one line needs rights there. */
static void enter(const char *map, uid_t uid)
{
    char path[64];
    int gate[2];
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)getpid());
    REQUIRE(pipe(gate) == 0);
    const pid_t stays = fork();
    if (!stays) {
        REQUIRE(read(gate[0], &(char){0}, 1) == 1);
        write_text(path, map);
        _exit(0);
    }
    REQUIRE(unshare(CLONE_NEWUSER) == 0 && write(gate[1], "", 1) == 1 &&
            waitpid(stays, NULL, 0) == stays);
    REQUIRE(setresuid(uid, uid, uid) == 0 && geteuid() == uid);
}

static int file_of(const char *name, uid_t uid)
{
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0666);
    REQUIRE(fd >= 0 && fchown(fd, uid, uid) == 0 && fchmod(fd, 0666) == 0 && chmod(".", 0755) == 0);
    return fd;
}

static bool name_is_ours(const char *name)
{
    struct stat file;
    REQUIRE(stat(name, &file) == 0);
    CHECK_IS(file.st_uid, OVERFLOWS);
    return cs_name_is_ours(AT_FDCWD, name, &file);
}

/* A container of 65536 users, and the last but one of them: its number is that of all who are not
 * there. */
TEST(where_the_number_of_the_unmapped_is_mapped)
{
    if (geteuid()) return;
    const int own = file_of("own", 100000 + OVERFLOWS), others = file_of("others", 4711);
    REQUIRE(mkdir("folder", 0700) == 0 && chown("folder", 100000 + OVERFLOWS, 0) == 0);
    CHECK(cs_owner_is_machines_root(0) && !cs_owner_is_machines_root(4711));
    enter("0 100000 65536\n", OVERFLOWS);
    CHECK(!cs_owner_is_machines_root(0));
    errno = EBADF;
    CHECK(cs_file_is_ours(own, OVERFLOWS) && cs_file_serves_us(own, OVERFLOWS) &&
          !cs_file_is_ours(others, OVERFLOWS) && !cs_file_serves_us(others, OVERFLOWS));
    CHECK(name_is_ours("own") && !name_is_ours("others") && name_is_ours("folder"));
    CHECK(!(fcntl(own, F_GETFL) & O_NOATIME));
    CHECK_IS(errno, EBADF);
    CHECK(!cs_owner_is_us(OVERFLOWS) &&
          !cs_owner_is_one(OVERFLOWS)); /* the number alone says nothing */
    end();
}

TEST(a_file_where_nobody_is_mapped)
{
    if (geteuid()) return;
    const int own = file_of("mine", 1234), others = file_of("another", 4711);
    REQUIRE(
        setresuid(1234, 1234, 1234) == 0 && unshare(CLONE_NEWUSER) == 0 && geteuid() == OVERFLOWS);
    CHECK(cs_file_is_ours(own, OVERFLOWS) && !cs_file_is_ours(others, OVERFLOWS) &&
          name_is_ours("mine") && !name_is_ours("another"));
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
    CHECK(cs_owner_is_us(1000) && cs_owner_serves_us(1000) && !cs_owner_is_us(OVERFLOWS) &&
          !cs_owner_is_one(OVERFLOWS));
    end();
}

static int socket_at(const char *name, struct sockaddr_un *address, socklen_t *size)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                        (size_t)snprintf(address->sun_path + 1, 100, "custream-unit-%s-%d", name,
                            (int)getpid()));
    return socket(AF_UNIX, SOCK_SEQPACKET, 0);
}

TEST(a_peer_in_another_namespace_is_not_us)
{
    struct sockaddr_un address;
    socklen_t size;
    const int listener = socket_at("peer", &address, &size);
    REQUIRE(listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 &&
            listen(listener, 4) == 0);
    const pid_t child = fork();
    if (!child) {
        /* Its own user namespace: all others have the number that it has itself. */
        int pair[2];
        const int outside = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        REQUIRE(unshare(CLONE_NEWUSER) == 0 && geteuid() == OVERFLOWS);
        REQUIRE(connect(outside, (struct sockaddr *)&address, size) == 0 &&
                socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
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
