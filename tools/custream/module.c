#include "tools/custream/module.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/compiler.h"
#include "tools/custream/command.h"
#include "tools/custream/show.h"

static const char PROGRAM[] = "import importlib, sys\n"
                              "name, module = sys.argv[1:3]\n"
                              "try:\n"
                              "    command = importlib.import_module('custream.' + module).command\n"
                              "except ImportError:\n"
                              "    print(name + ': python3 has no module custream: install the wheel with its extra \"fleet\"', file=sys.stderr)\n"
                              "    sys.exit(2)\n"
                              "sys.exit(command(sys.argv[3:]))\n";

int module_run(const char *command, const char *module, int argc, char **argv)
{
    char *python = getenv("CUSTREAM_PYTHON"), own[PATH_MAX]; /* set by the wheel (python/custream/__main__.py) */
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    const char *const begin[] = {python && *python ? python : "python3", "-c", PROGRAM, command, module, own};
    const char **words = calloc(CS_COUNT(begin) + (size_t)argc + 1, sizeof *words);
    if (!words) out_of_memory();
    if (length >= 0) {
        own[length] = 0;
        memcpy(words, begin, sizeof begin);
        for (int i = 1; i < argc; i++) words[CS_COUNT(begin) + (size_t)i - 1] = argv[i];
        execvp(words[0], (char **)(uintptr_t)words);
    }
    complain(command, "%s: %s", length < 0 ? "/proc/self/exe" : begin[0], strerror(errno));
    free(words);
    return STATUS_UNUSABLE;
}
