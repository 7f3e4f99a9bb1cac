/*
 * Places in the program: which function of which module an address lies in.
 *
 * Names come from the module's file (.symtab, which has functions that are not exported too, unless it was stripped), else from what the loader has
 * in memory. A file is opened when the first of its addresses is met and stays mapped. Any thread; takes no lock; errno is
 * kept.
 */
#ifndef CS_BASE_PLACE_H
#define CS_BASE_PLACE_H

#include "shim/base/compiler.h"

/* The function that a return address lies in: the loader's or the file's own text, "" where there is none. Walks the whole table. */
const char *cs_place_function(const void *return_address);

/* As people and addr2line read it: "app+0x1234 (function+0x10)". The offset lies in the call itself and is the address that the file has for it. ""
 * where no module holds it. */
void cs_place_text(const void *return_address, char *text, size_t size);

#endif
