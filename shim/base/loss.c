#include "shim/base/loss.h"

const struct cs_loss_info cs_loss_info[CS_LOSSES] = {
#define CS_LOSS(constant, key, text) [CS_LOSS_##constant] = {#key, text},
#include "shim/base/loss.def"
#undef CS_LOSS
};
