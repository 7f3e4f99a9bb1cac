/* Runs the commands that are partly written in Python, as modules of the wheel. */
#ifndef CS_TOOLS_MODULE_H
#define CS_TOOLS_MODULE_H

#include <cjson/cJSON.h>

/* Returns CUSTREAM_PYTHON, which the wheel or the user sets, or "python3". */
const char *python_name(void);

/* Returns the options of the command argv[0], by name: a text or true. Words stand at
 * argv[optind]. */
cJSON *module_options(int argc, char **argv);

/* Becomes Python and calls custream.MODULE's command(). Returns, with a complaint, if it fails. */
int module_run(const char *command, const char *module, const cJSON *options, char *const *words);

#endif
