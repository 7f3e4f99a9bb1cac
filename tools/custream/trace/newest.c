#include "tools/custream/trace/newest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/options.h"
#include "tools/custream/command.h"
#include "tools/custream/trace/ends.h"

struct candidate {
    char *name;
    struct timespec written;
    unsigned part; /* 0: the trace has no parts */
    uint64_t base; /* baseTimeNanoseconds, which all parts of a run share */
};

/* Reads the header. False: the file is no trace of ours. A trace whose format is too new is a
 * candidate too; whoever reads its rows refuses it. */
static bool head_read(struct candidate *file)
{
    struct trace_head head = {0};
    const int fd = open(file->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        trace_head(fd, &head);
        close(fd);
    }
    file->part = head.part;
    file->base = head.base;
    return head.ours;
}

COMPARES(newest_first, struct candidate,
    ORDER(b->written.tv_sec, a->written.tv_sec) ?: ORDER(b->written.tv_nsec, a->written.tv_nsec)
        ?: strcmp(a->name, b->name))

COMPARES(by_part, struct candidate, ORDER(a->part, b->part))

bool files_or_newest(const char *command, char ***files, int *count)
{
    static char **names;
    struct candidate *all = NULL;
    size_t found = 0, capacity = 0, taken = 0;
    struct stat about;
    if (*count) return true;
    DIR *folder = opendir(".");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (*entry->d_name == '.' || !cs_trace_extension(entry->d_name)) continue;
        if (stat(entry->d_name, &about) || !S_ISREG(about.st_mode)) continue;
        array_add(
            all, found, capacity, (struct candidate){strdup(entry->d_name), about.st_mtim, 0, 0});
        if (!all[found - 1].name) out_of_memory();
    }
    if (folder) closedir(folder);
    if (found) qsort(all, found, sizeof *all, newest_first);
    for (size_t i = 0; i < found; i++) {
        bool wanted = (!taken || all->part) && head_read(&all[i]) &&
                      (!taken || (all[i].part && all[i].base == all->base));
        for (size_t other = 0; other < taken && wanted; other++)
            wanted = all[other].part != all[i].part; /* else it is an older copy of that part */
        if (!wanted) free(all[i].name);
        else all[taken++] = all[i];
    }
    if (!taken) {
        free(all);
        complain(command,
            "which file? There is no trace of custream's in this folder; 'custream run -- PROGRAM' "
            "writes one");
        return false;
    }
    if (taken == 1) complain(command, "newest trace here: %s", all->name);
    else complain(command, "newest trace here: %s, in %zu parts", all->name, taken);
    qsort(all, taken, sizeof *all, by_part);
    names = array_zeros(taken + 1, sizeof *names);
    for (size_t i = 0; i < taken; i++) names[i] = all[i].name;
    free(all);
    *files = names;
    *count = (int)taken;
    return true;
}
