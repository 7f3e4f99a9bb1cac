/* Runs the commands that are partly written in Python, as modules of the wheel. */
#ifndef CS_TOOLS_MODULE_H
#define CS_TOOLS_MODULE_H

#include <cjson/cJSON.h>

/* Returns CUSTREAM_PYTHON, which the wheel (python/custream/__main__.py) or the user sets, or
 * "python3". */
const char *python_name(void);

/* Reads all options of the command argv[0]: an object with a text or true for each name. Words
 * stand at argv[optind]. */
cJSON *module_options(int argc, char **argv);

/* Becomes Python, which calls command() of custream.MODULE. Returns only if that failed, with a
 * complaint. */
int module_run(const char *command, const char *module, const cJSON *options, char *const *words);

#endif
