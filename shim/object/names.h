/*
 * Names, each kept once: kernels, libraries, threads. A record carries the number; the writer finds the text.
 *
 * Reading is lock-free. Adding takes a lock and may map memory, so it happens the first time a kernel or library is seen, never on an
 * ordinary recorded call. Texts are never freed; there are at most 65,535 of them, later ones share number 1, "(more names than custream keeps)".
 */
#ifndef CS_OBJECT_NAMES_H
#define CS_OBJECT_NAMES_H

#include "shim/base/compiler.h"

typedef cs_u32 cs_name; /* 0: none */

cs_name cs_name_add(const char *text);      /* any thread; copies the text; equal texts give equal numbers */
const char *cs_name_text(cs_name name);     /* "" for 0 */
void cs_names_before_fork(void);
void cs_names_after_fork(void);

#endif
