/*
 * Names, each kept once: kernels, libraries, threads, ranges. A record carries the number; the writer finds the text.
 *
 * Finding a text that is kept takes no lock and allocates nothing. Adding one takes a lock and may map memory: that happens the first time a kernel,
 * a library or a range's text is seen. Texts are never freed; there are at most 65,535 of them, later ones share number 1, "(more names than custream
 * keeps)".
 */
#ifndef CS_OBJECT_NAMES_H
#define CS_OBJECT_NAMES_H

#include "shim/base/compiler.h"

typedef cs_u32 cs_name; /* 0: none; below 65,536 */

cs_name cs_name_add(const char *text);      /* any thread; copies the text; equal texts give equal numbers. 0: in a signal handler that came while its thread added one */
cs_name cs_name_add_guest(const char *text); /* likewise, for texts of which a program may make any number: they leave a quarter of the numbers to others */
const char *cs_name_text(cs_name name);     /* "" for 0 */
void cs_names_keep(void); /* those that there are go into the file of rings; later ones go there by themselves */
void cs_names_after_fork_in_child(void);

#endif
