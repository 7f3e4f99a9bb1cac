/* The program that `custream run` is to start: where it is, and whether the loader will honour
 * LD_PRELOAD for it. */
#ifndef CS_TOOLS_PROGRAM_H
#define CS_TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The file that execvp(name) would run. False if there is none on PATH; what is wrong with a file
 * that is there, exec itself says best. */
bool program_find(const char *name, char *path, size_t size);

/* To read it. -1 also for what is no regular file: opening a pipe that nobody writes to would wait
 * for ever. */
int program_open(const char *path);

/*
 * Why the preload library will not get into this program, as the rest of a sentence that begins
 * with its name; NULL if nothing speaks against it. Follows one "#!" line, since the interpreter is
 * what the loader loads. Static text.
 */
const char *program_obstacle(const char *path);

/* hopeless.c: true after one line on stderr that says what keeps a run from giving what was asked
 * for, and why: the trace can't be written, a library is not there, or two options cancel each
 * other. */
struct cs_settled;
bool run_hopeless(const struct cs_settled *settled, bool reports);

#endif
