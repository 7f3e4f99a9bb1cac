/* getopt_long whose complaints say what was meant, from the table of options that it reads by. */
#ifndef CS_TOOLS_FLAGS_H
#define CS_TOOLS_FLAGS_H

#include <getopt.h>

/* What an option allows, for who gave it without a value; NULL: nothing is known of that. */
typedef const char *flag_allowed(int option);

/* As getopt_long, and the answer '?' comes after one line on stderr. argv[0] is "custream COMMAND". `allowed` may be NULL. */
int flags_next(int argc, char **argv, const char *shorts, const struct option *table, flag_allowed *allowed);

#endif
