/* getopt_long by the rows of a command, with complaints that say what was meant. */
#ifndef CS_TOOLS_FLAGS_H
#define CS_TOOLS_FLAGS_H

#include <getopt.h>

#include "tools/custream/commands.h"

/* The flag of the next option of the command that argv[0] names, its value in optarg; -1: words
 * stand at argv[optind]. Help, and what no row allows, ends the program. `order`: '+' the first
 * word ends the options; '-' each word is FLAG_WORD, in its place; 0: words come behind the
 * options. */
int flags_next(int argc, char **argv, char order);

#endif
