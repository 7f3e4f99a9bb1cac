/* Reads options by the rows of a command, with complaints that guess what was meant. */
#ifndef CS_TOOLS_FLAGS_H
#define CS_TOOLS_FLAGS_H

#include <getopt.h>

#include "tools/custream/commands.h"

/* Returns the flag of the next option of the command that argv[0] names, with its value in optarg.
 * -1: no option is left, and words stand at argv[optind]. --help ends the program, and so does an
 * option that no row allows.
 *
 * `order`: '+' the first word ends the options; '-' each word is returned in its place, as
 * FLAG_WORD; 0: words may stand anywhere, and are moved behind the options. */
int flags_next(int argc, char **argv, char order);

#endif
