/* How much of its device a kernel fills: an estimate from its launch, without asking a device. */
#ifndef CS_MODEL_OCCUPANCY_H
#define CS_MODEL_OCCUPANCY_H

#include "tools/custream/model/run.h"

/*
 * Blocks of the launch over the blocks that the device holds at once. 1.0 and more: the kernel alone fills it. NAN: not known, since the work is no kernel, or
 * the trace lacks its shape or the device's number of multiprocessors. The limits of a multiprocessor are
 * the trace's deviceProperties, and where those lack them the ones of compute capability 9.0.
 */
double kernel_fills(const struct run *run, const struct work *work);

#endif
