/* How the options of the library are named on the command line. */
#ifndef CS_TOOLS_OPTIONS_H
#define CS_TOOLS_OPTIONS_H

#include "shim/base/options.h"

enum { FLAG_ROOM = 64 };

/* TRACE_MAX becomes trace-max. */
void option_flag(char flag[FLAG_ROOM], enum cs_option id);

#endif
