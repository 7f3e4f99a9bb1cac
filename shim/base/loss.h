/* The table loss.def, which is constant. */
#ifndef CS_BASE_LOSS_H
#define CS_BASE_LOSS_H

enum cs_loss {
#define CS_LOSS(constant, key, text) CS_LOSS_##constant,
#include "shim/base/loss.def"
#undef CS_LOSS
    CS_LOSSES
};

extern const struct cs_loss_info {
    const char *key, *text;
} cs_loss_info[CS_LOSSES];

#endif
