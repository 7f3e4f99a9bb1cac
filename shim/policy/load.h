/*
 * The policy of this process: from the environment and the policy file that it names.
 */
#ifndef CS_POLICY_LOAD_H
#define CS_POLICY_LOAD_H

#include "shim/policy/policy.h"

/* After cs_options_read, once, by the activating thread: options that the file gives are in force, and cs_policy_now is the policy where there is one to keep
 * to. What is wrong is a line on stderr: a file with a mistake changes nothing at all, options that contradict each other go back to their defaults. */
void cs_policy_load(void);

/* Puts another policy in the place of the one in force: options and rules of this JSON, and the environment's options. False, with the reason in one line
 * ("policy: ..."), where it has a mistake, names an option that can't change in a running process, or one to which the environment gives another value, or where
 * 4 MiB of different policies are kept: nothing has changed then. One caller at a time. errno and dlerror stay as they are. */
bool cs_policy_replace(const char *json, char *error, size_t room);

/* Has the trace tell of rules that were used for no stream; says so on stderr. */
void cs_policy_tell(void);
void cs_policy_say(void);

#endif
