/* Finds the program that `custream run` starts, and tells whether LD_PRELOAD works for it. */
#ifndef CS_TOOLS_PROGRAM_H
#define CS_TOOLS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the file that execvp(name) would run. False: none is on PATH. */
bool program_find(const char *name, char *path, size_t size);

/* Opens a file for reading; -1 if it is no regular one: reading a pipe might wait for ever. */
int program_open(const char *path);

/* Whether two paths, or an open file and a path, lead to the same file. */
bool is_same_file(const char *a, const char *b);
bool is_file_at(int fd, const char *path);

/* Returns why the library cannot be preloaded into this program, or into the interpreter in its
 * "#!" line; NULL: no reason is known. The text completes a sentence that begins with the program's
 * name. */
const char *program_obstacle(const char *path);

enum { SCRIPT_LINE = 256 }; /* how much of the line the kernel reads */
/* Reads the first line of a file. Returns the words behind its "#!"; NULL: there are none. */
char *script_words(const char *path, char line[SCRIPT_LINE]);

/* hopeless.c: whether the run cannot do what was asked; then a line on stderr says why. */
struct cs_settled;
bool run_hopeless(const struct cs_settled *settled, bool reports);

#endif
