/*
 * Names, each kept once: kernels, libraries, threads, ranges. A record carries the number; the writer finds the text.
 *
 * Finding a text that is kept takes no lock and allocates nothing. Adding one takes a lock and may map memory: that happens the first time a kernel,
 * a library or a range's text is seen. A text of more than 4,095 bytes is cut (cs_name_cut). Texts are never freed; there are at most 65,535 of them, later ones share
 * number 1, "(more names than custream keeps)".
 */
#ifndef CS_OBJECT_NAMES_H
#define CS_OBJECT_NAMES_H

#include "shim/base/compiler.h"

typedef cs_u32 cs_name; /* 0: none; below 65,536 */

cs_name cs_name_add(const char *text);      /* any thread; copies the text; equal texts give equal numbers. 0: in a signal handler that came while its thread added one */
cs_name cs_name_add_guest(const char *text); /* likewise, for texts of which a program may make any number: they leave a quarter of the numbers to others */
const char *cs_name_text(cs_name name);     /* "" for 0 */

/* As much of a text as the room has, with NUL. Of a longer one the end says so, by a number of the whole text, as in "abc#0123456789abcdef...": two texts that differ
 * beyond the room stay two. A room of less than 64 bytes has the dots alone. The length. */
size_t cs_name_cut(char *to, size_t room, const char *text, size_t length);
void cs_name_mark(char *end, const void *whole, size_t bytes); /* the same end, over the 20 bytes before `end`, of a text that was cut there otherwise */

void cs_names_keep(void); /* those that there are go into the file of rings; later ones go there by themselves */
void cs_names_after_fork_in_child(void);

#endif
