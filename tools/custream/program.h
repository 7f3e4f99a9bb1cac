/* The program that `custream run` starts: where it is, and whether LD_PRELOAD works for it. */
#ifndef CS_TOOLS_PROGRAM_H
#define CS_TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The file that execvp(name) would run. False: none is on PATH. */
bool program_find(const char *name, char *path, size_t size);

/* To read it; -1 also for no regular file: a pipe would wait for ever. */
int program_open(const char *path);

/* Why the library will not get into this program, or the interpreter in its "#!" line, as the rest
 * of a sentence that begins with its name; NULL: nothing is known. */
const char *program_obstacle(const char *path);

/* hopeless.c: true after a line on stderr that says what keeps a run from what was asked. */
struct cs_settled;
bool run_hopeless(const struct cs_settled *settled, bool reports);

#endif
