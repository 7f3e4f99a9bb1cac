/* Commands of which a part is a module of the wheel. */
#ifndef CS_TOOLS_MODULE_H
#define CS_TOOLS_MODULE_H

#include <cjson/cJSON.h>

/* Python, as the wheel (python/custream/__main__.py) or the user has set it in CUSTREAM_PYTHON. */
const char *python_name(void);

/* All options of the command argv[0], by name: a text, or true. Words stand at argv[optind]. */
cJSON *module_options(int argc, char **argv);

/* Becomes Python with custream.MODULE's command(). Returns if it cannot, which it says. */
int module_run(const char *command, const char *module, const cJSON *options, char *const *words);

#endif
