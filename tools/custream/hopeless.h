/* What keeps a run from giving what was asked for, and can be seen before the program is started. */
#ifndef CS_TOOLS_HOPELESS_H
#define CS_TOOLS_HOPELESS_H

#include "shim/policy/settle.h"

/* True after one line on stderr that says what and why: the trace can't be written, a library is not there, or two options cancel each other. */
bool run_hopeless(const struct cs_settled *settled, bool reports);

#endif
