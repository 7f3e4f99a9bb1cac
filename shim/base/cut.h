/* The table cut.def, which is constant. */
#ifndef CS_BASE_CUT_H
#define CS_BASE_CUT_H

enum cs_cut {
    CS_CUT_NONE, /* the range is as the program made it */
#define CS_CUT(constant, key, text) CS_CUT_##constant,
#include "shim/base/cut.def"
#undef CS_CUT
    CS_CUTS
};

extern const struct cs_cut_info {
    const char *key, *text;
} cs_cut_info[CS_CUTS];

#endif
