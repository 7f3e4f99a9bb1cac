/* The end of a file whose process is no more. */
#ifndef CS_TOOLS_WATCH_FINISH_H
#define CS_TOOLS_WATCH_FINISH_H

#include <stdbool.h>

struct file_id {
    unsigned long long device, inode;
};

/* What the file's trailer says. `by`: if the trace is not complete that is written into it first, and a file that is torn gets a whole end (recover/mend.h);
 * NULL: it is left as it is. `rings`: its memfd of rings, -1: it has none. NULL: the file is not there,
 * is another one by now (the part that follows is not), or has no trailer. */
struct cJSON;
struct cJSON *finish_file(const char *path, struct file_id id, const char *by, int rings);

/* Whether the path leads to that file. */
bool finish_is_there(const char *path, struct file_id id);

/* The trailer of a file that is open; NULL: it has none. */
struct cJSON *finish_trailer(int fd);

/* The trailer of the part before `part` of the trace at `path`, if that part stands beside it; NULL where it does not. `fd`: of the trace. */
struct cJSON *finish_part_before(const char *path, int fd);

#endif
