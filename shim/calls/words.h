/*
 * Words for values that are enumerators of cuda.h: shim/calls/words.def.
 */
#ifndef CS_CALLS_WORDS_H
#define CS_CALLS_WORDS_H

#include "shim/base/compiler.h"

enum cs_words {
#define WORDS(set, kind, prefix) CS_WORDS_##set,
#define WORD(enumerator)
#include "shim/calls/words.def"
#undef WORD
#undef WORDS
    CS_WORDS_COUNT
};

/* "DISABLE_TIMING|INTERPROCESS (6)": the words, then the number. Bits without a word are a number among the words: "NON_BLOCKING|0x10 (0x11)". */
enum { CS_WORDS_ROOM = 192 };
void cs_words_put(enum cs_words set, cs_u64 value, char text[CS_WORDS_ROOM]);

#endif
