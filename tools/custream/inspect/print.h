/* What `custream inspect` says, for people and for programs. `tree` of a script: NULL. */
#ifndef CS_INSPECT_PRINT_H
#define CS_INSPECT_PRINT_H

#include "tools/custream/inspect/verdict.h"

enum { INSPECT_VERSION = 1 }; /* of the JSON: grows when a member goes away or means something else */

extern const char *const subject_name[]; /* by enum subject */
extern const char *const use_name[USES];
extern const char *const level_name[API_LEVELS];

void inspect_print(const struct verdict *verdict, const struct tree *tree);
void inspect_write(const struct verdict *verdict, const struct tree *tree);

#endif
