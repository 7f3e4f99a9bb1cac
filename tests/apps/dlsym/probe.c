/*
 * Preloaded behind the shim (or without it): at the end of each process, one line into the file
 * that PROBE_OUT names: how many threads there are, and which libraries are mapped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int each(struct dl_phdr_info *info, size_t size, void *line)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    (void)size;
    if (*info->dlpi_name && strlen(line) < 15000)
        sprintf((char *)line + strlen(line), " %s", slash ? slash + 1 : info->dlpi_name);
    return 0;
}

static int thread_count(void)
{
    int threads = -2; /* . and .. */
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks)) threads++;
    if (tasks) closedir(tasks);
    return threads;
}

__attribute__((destructor)) static void at_end(void)
{
    static char line[16384];
    const char *out = getenv("PROBE_OUT");
    int threads = thread_count();
    for (int i = 0; i < 500 && threads > 1; i++, threads = thread_count())
        usleep(1000); /* a thread that was joined is in /proc a little longer */
    snprintf(line, sizeof line, "%d", threads);
    dl_iterate_phdr(each, line);
    strcat(line, "\n");
    int fd = out ? open(out, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (fd < 0) return;
    ssize_t ignored = write(fd, line, strlen(line));
    (void)ignored;
    close(fd);
}
