/*
 * What wrappers ask a policy, around the driver's call: which stream the call is to mean, what a new stream is to be, what comes before and after.
 *
 * Only reached where CS_MODE_STEER is set. Everything runs on the application's thread, inside its call, with the thread marked as inside, so that what
 * is asked of the driver here is not recorded. No lock is held. errno is kept by the slow ones; the driver's answer is never hidden, unless a policy
 * refuses (`strict`) or waits for the operation itself (`sync`), whose error is then the call's.
 */
#ifndef CS_POLICY_STEER_H
#define CS_POLICY_STEER_H

#include "shim/calls/calls.h"
#include "shim/object/stream.h"
#include "shim/policy/policy.h"

/* One call, as its row describes it. */
struct cs_steered {
    cs_u16 call;
    enum cs_kind kind;
    bool of_sibling, has_sibling; /* handle 0 is the per-thread default stream; there is another form of the call, and this driver has it */
    const void *caller;           /* the wrapper's return address */
};

/* What came of it, for the rest of the wrapper. */
struct cs_steer {
    const struct cs_policy *policy; /* NULL: none is in force any more */
    bool no_stream;                 /* the call takes none: it makes or ends one, or has nothing to do with them */
    bool flip;                      /* the other form is to be called: what handle 0 means changes */
    bool redirected;                /* the call goes to another default stream than it asked for */
    bool waits;                     /* the operation is to be waited for */
    bool per_thread;                /* what handle 0 means in the call as it is made */
    CUstream asked, stream;         /* where the program sends it, and where it goes */
    cs_u16 rule;                    /* index + 1 of the one that a default stream matched; 0 none */
    const struct cs_change *set;    /* what that one sets; it may be of a policy before */
    bool captures;                  /* STREAMS=serial: it is captured, as far as that was looked at */
    CUstream own, carrier;          /* likewise: once it is made, the work of the carrier waits for that of the stream; 0 none */
    bool accepted;                  /* the driver has, whatever the program is told of it */
};

/* Before the call: the handle to give to the driver in place of `stream`. The second for calls that use the default stream without naming it; the third
 * for those whose handle stands behind a pointer of the application's, which is looked at without being relied on. Then: no stream at all; and a hook has
 * refused the call, so that no policy does anything for it. */
CUstream cs_steer_stream(struct cs_steer *steer, struct cs_thread *thread, CUstream stream, const struct cs_steered *how);
void cs_steer_default(struct cs_steer *steer, struct cs_thread *thread, const struct cs_steered *how);
void cs_steer_field(struct cs_steer *steer, struct cs_thread *thread, const CUstream *stream, const struct cs_steered *how);
void cs_steer_nothing(struct cs_steer *steer);
void cs_steer_refused(struct cs_steer *steer, bool of_sibling);

/* In place of the first, where there is no policy: only hooks are asked. */
CS_HOT CUstream cs_steer_leaves(struct cs_steer *steer, CUstream stream, bool of_sibling)
{
    *steer = (struct cs_steer){.per_thread = of_sibling, .asked = stream, .stream = stream};
    return stream;
}

/* What handle 0 means for a thread that has used a default stream in its context before. UNDECIDED: it takes one of the above to tell. */
CS_HOT enum cs_default_mode cs_steer_decided(const struct cs_policy *policy, const struct cs_thread *thread)
{
    return !policy || policy->asks_caller || thread->context_epoch != cs_load(&cs_context_epoch) ? CS_DEFAULT_UNDECIDED
                                                                                                  : (enum cs_default_mode)thread->default_mode;
}

/* After it: the answer that the application gets. */
CUresult cs_steer_done(struct cs_steer *steer, CUresult result);

/* A stream waits for an event, or has recorded one: the handle to wait on, and what is to be known of the event. */
CUstream cs_steer_wait(struct cs_steer *steer, CUstream stream, CUevent event);
void cs_steer_recorded(const struct cs_steer *steer, cs_ref event);

/* The call goes to the stream that the program named after all; the handle. */
CUstream cs_steer_leave(struct cs_steer *steer);

/* A delay that a policy has put in. Told to `cs_steer_delayed`, if that is set, on the thread that was delayed. */
struct cs_delayed {
    cs_u64 begin, end; /* ticks */
    cs_u32 us;         /* as drawn */
    cs_u16 call;       /* enum cs_call, before which it stood */
    bool on_stream;    /* a host function on the stream; else the calling thread slept */
    cs_ref stream;
};
typedef void cs_delayed_fn(const struct cs_delayed *delayed);
extern cs_delayed_fn *_Atomic cs_steer_delayed;

/* The stream's object is known: whether this call on it is to be left out of the trace. Its creation and end never are. */
bool cs_steer_mutes(const struct cs_steer *steer, cs_ref stream);

/* cuLaunchKernelEx: its configuration as it is to be, in `copy` where it changes. */
struct cs_launch_copy {
    CUlaunchConfig config;
    CUlaunchAttribute attributes[32];
};
const CUlaunchConfig *cs_steer_config(const struct cs_steer *steer, const CUlaunchConfig *config, struct cs_launch_copy *copy);

/* A stream is being created. */
struct cs_creation {
    const struct cs_policy *policy;
    struct cs_hooked *hook; /* what hooks are asked by */
    struct cs_thread *thread;
    const void *caller;
    cs_u16 call;
    CUgreenCtx green;
    unsigned flags_asked, flags;
    int priority_asked, priority;
    bool priority_ruled; /* a rule has set it: the option has no say any more */
    cs_u16 rule;         /* index + 1 of the rule that matched; 0 none */
    cs_name library;
    struct cs_stream_set *set; /* the pool that it is to be in; NULL none */
    cs_ref shared, made; /* the stream that is shared instead of making one, the one that was made for the pool; 0 none */
    CUstream handle;     /* of the shared one */
};
struct cs_hooked;
void cs_steer_creation(struct cs_creation *creation, struct cs_thread *thread, cs_u16 call, const void *caller, unsigned flags, int priority, CUgreenCtx green,
                       struct cs_hooked *hook);
CUresult cs_steer_create(struct cs_creation *creation, CUstream *out);            /* in place of the driver's call */
cs_ref cs_steer_created(struct cs_creation *creation, CUstream stream, cs_u64 end); /* after it succeeded; the stream's object */

/* Before a destroy: whether the stream is shared, so that this destroy only takes a share back, with `answer`, and the driver's call is not to be made. */
bool cs_steer_destroys_share(CUstream stream, CUresult *answer);

/* Before a capture begins: how many share the stream; more than 1 is said. */
cs_u32 cs_steer_captures(CUstream stream);

/* cuStreamSetAttribute: the attribute as it is to be, in `copy` where it changes; false: refused. */
bool cs_steer_attribute(struct cs_thread *thread, CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue **value, CUstreamAttrValue *copy);

/* cuCtxGetStreamPriorityRange: what programs are told of the range. NULL where they did not ask. */
void cs_steer_range(int *least, int *greatest);

/* The program has given a stream a name: the rules that ask for one are tried, unless one has matched the stream before. The thread may be NULL, then
 * default streams are left out. */
void cs_steer_named(struct cs_thread *thread, CUstream stream, cs_name name);

#endif
