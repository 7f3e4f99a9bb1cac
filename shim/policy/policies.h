/*
 * The policies, one file each, in the order in which a new stream passes them. A policy is added by its file and its rows here: one in the chain of
 * creations, if it has a say there, and its calls in steer.c where it changes operations.
 */
#ifndef CS_POLICY_POLICIES_H
#define CS_POLICY_POLICIES_H

#include "shim/policy/steer.h"

/* Each may change what is asked of the driver, or refuse with a CUDA error. */
typedef CUresult cs_creation_fn(struct cs_creation *creation);
#define CS_CREATION_CHAIN(POLICY) POLICY(cs_rules_create) POLICY(cs_priority_create) POLICY(cs_shares_create)
#define CS_DECLARED_(function) cs_creation_fn function;
CS_CREATION_CHAIN(CS_DECLARED_)
#undef CS_DECLARED_

/* rule.c: the first rule that matches a default stream, as this thread meets it from this caller; 0 none, else index + 1. */
cs_u16 cs_rule_of_default(const struct cs_policy *policy, struct cs_thread *thread, const void *caller);

/* Whether it has been decided before which default stream handle 0 means for this thread; by which rule goes into `steer`. Else default_stream.c decides, when
 * the thread first uses one in a context, and for each call where the caller matters. */
static inline bool cs_default_decided(struct cs_steer *steer, const struct cs_thread *thread)
{
    if (!cs_steer_decided(steer->policy, thread)) return false;
    steer->rule = thread->default_rule;
    steer->set = thread->default_set;
    return true;
}
enum cs_default_mode cs_default_of(struct cs_steer *steer, struct cs_thread *thread, const void *caller);

/* priority.c: what the option makes of a priority; false: it is out of the range, and the policy is strict. `least` and `greatest`: the device's. */
bool cs_priority_change(const struct cs_priority *rule, int asked, int least, int greatest, int *given);
bool cs_priority_of_device(int *least, int *greatest); /* of the current context's; false where it can't be told */

/* shares.c: a creation is given a stream that is there, or room for a new one; that one has been made, and *out may become another's; a destroy takes a share
 * back, with the answer to it, unless the stream is in no pool; how many share one on which a capture begins. */
void cs_shares_made(struct cs_creation *creation, CUstream *out);
bool cs_shares_destroys(CUstream stream, CUresult *answer);
cs_u32 cs_shares_captures(CUstream stream);

/* serial.c: a stream was made; where the work of one with a handle goes, and that of the default ones; what is to be done after the call. */
void cs_serial_created(struct cs_creation *creation, struct cs_stream *stream);
CUstream cs_serial_stream(struct cs_steer *steer, struct cs_thread *thread, CUstream stream, const struct cs_steered *how);
CUstream cs_serial_default(struct cs_steer *steer, struct cs_thread *thread, CUstream stream, const struct cs_steered *how);
void cs_serial_done(const struct cs_steer *steer);

/* steer.c: the object of a stream that was just created, with all that policies have to say of it. */
cs_ref cs_creation_object(struct cs_creation *creation, CUstream stream, cs_u64 ticks);

/* jitter.c: delays before an operation; numbers for streams and threads that do not depend on who comes first. */
void cs_jitter_before(const struct cs_steer *steer, struct cs_thread *thread, const struct cs_steered *how);
void cs_jitter_created(struct cs_stream *stream);
cs_u32 cs_jitter_draw(const struct cs_jitter *jitter, cs_u32 who, cs_u32 n, bool on_stream); /* microseconds; 0: not delayed */

#endif
