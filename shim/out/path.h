/*
 * From CUSTREAM_TRACE to an open file that no other process of the run writes to.
 */
#ifndef CS_OUT_PATH_H
#define CS_OUT_PATH_H

#include "shim/base/compiler.h"

/* Executable's file name, at most 255 bytes. */
void cs_process_name(char name[256]);
void cs_process_shown_name(char name[256]); /* as people call it: of an interpreter that runs a script, the script */

/* Its arguments with a space between each two, as far as they fit; "": not known. The writer thread's alone. Source: /proc/self/cmdline. */
enum { CS_COMMAND_LINE = 1024 };
const char *cs_process_command_line(void);

/* Puts what they stand for in the place of %p %e %h %r; `variable` is whose value the pattern is, for who reads that no rank is known. */
void cs_path_expand(const char *variable, const char *pattern, char *path, size_t size);

/* Expands and opens the file for writing, empty and locked, if it is one that a trace may take (base/claim.h). Of several processes of
 * one run that are given one path the first has it; the others get "-PID" before the extension. Returns the descriptor, or -1; cs_path_why then says
 * why. `path` gets the name: where links led to, or what was asked for if there is no file. The writer thread's alone. */
int cs_path_open(const char *pattern, char *path, size_t size);
const char *cs_path_why(void);

/* Whether a file belongs to another process of this run; it is locked for us if it does not. */
struct cs_claim;
bool cs_path_is_taken(const struct cs_claim *claim);

/* Length of the path without what tells its format (options.h). */
size_t cs_path_stem(const char *path);
bool cs_path_is_packets(const char *path); /* a trace in Perfetto's own format, by its name */

#endif
