/*
 * tool_open PATTERN [hold]: opens a trace as the shim does and prints the name it got, or why not. It writes one byte into it; with `hold` the file stays
 * open until stdin ends, as a process that runs on keeps it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/trace/path.h"

int main(int argc, char **argv)
{
    char path[PATH_MAX], byte;
    int fd = argc > 1 ? cs_path_open(argv[1], path, sizeof path) : -1;
    if (fd < 0) return printf("%s: %s\n", path, strerror(errno)), 1;
    printf("%s\n", path);
    fflush(stdout);
    if (argc > 2 && !strcmp(argv[2], "empty")) return 0;
    if (write(fd, "x", 1) != 1) return 2;
    while (argc > 2 && read(0, &byte, 1) > 0) {}
    return 0;
}
