/*
 * Whose a file or a process is: the only place that compares user ids. The kernel shows a user whom our user namespace does not map as the overflow uid (65534).
 * Many users have that one number, so it stands for us only where the namespace maps everybody. user_namespaces(7), "Unmapped user and group IDs". Of a file the
 * kernel itself can be asked.
 *
 * Any thread of ours. Reads /proc/self/uid_map, and /proc/sys/kernel/overflowuid where not everybody is mapped; nothing is kept, since a process may enter another
 * namespace. errno is kept.
 */
#ifndef CS_BASE_OWNER_H
#define CS_BASE_OWNER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

bool cs_owner_is_us(uid_t uid);            /* the user whose rights this process has */
bool cs_owner_is_us_or_root(uid_t uid);    /* whose words are taken */
bool cs_owner_serves_us(uid_t uid);        /* whose files and processes we may ask: ours, or anybody's for root */
bool cs_owner_is_one(uid_t uid);           /* one user alone has that number */
bool cs_owner_is_machines_root(uid_t uid); /* and not a user namespace's, who is an ordinary user outside */

/* The same of an open file, also where its owner and we have the number that many have. Whether it is ours, or one of somebody over whose files we have the rights
 * of their owner. */
bool cs_file_is_ours(int fd, uid_t uid);
bool cs_file_serves_us(int fd, uid_t uid);

/* The file that `name` in `at` was as it was asked about: a regular one or a folder. It is opened only where its number says nothing. */
bool cs_name_is_ours(int at, const char *name, const struct stat *file);

/* Who is at the other end of a Unix socket: the same questions of a process. An unmapped peer is us if it is in our own user namespace. `pid` may be NULL. */
bool cs_peer_is_us_or_root(int fd, pid_t *pid);
bool cs_peer_serves_us(int fd, pid_t *pid);

#endif
