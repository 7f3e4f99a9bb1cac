/*
 * tool_open PATTERN [hold | empty]: opens a trace as the shim does and prints the name it got, or
 * why not. It writes the head of a trace into it, unless it is to be left `empty`; with `hold` the
 * file stays open until stdin ends, as a process that runs on keeps it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/environment.h"
#include "shim/base/options.h"
#include "shim/out/path.h"

static const char head[] = "{\"schemaVersion\":2,\"displayTimeUnit\":\"ns\","
                           "\"baseTimeNanoseconds\":1,\n\"metadata\":{\"tool\":\"custream 0\"}}\n";

int main(int argc, char **argv)
{
    char path[PATH_MAX], byte;
    if (argc < 2) return 2;
    cs_options_read();
    cs_environment_read();
    int fd = cs_path_open(argv[1], path, sizeof path);
    if (fd < 0) return printf("%s: %s\n", path, cs_path_why()), 1;
    printf("%s\n", path);
    fflush(stdout);
    if (argc > 2 && !strcmp(argv[2], "empty")) return 0;
    if (write(fd, head, sizeof head - 1) != sizeof head - 1) return 2;
    while (argc > 2 && read(0, &byte, 1) > 0) {}
    return 0;
}
