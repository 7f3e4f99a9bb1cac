#include "shim/base/cut.h"

const struct cs_cut_info cs_cut_info[CS_CUTS] = {
#define CS_CUT(constant, key, text) [CS_CUT_##constant] = {#key, text},
#include "shim/base/cut.def"
#undef CS_CUT
};
