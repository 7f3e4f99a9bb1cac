/*
 * What a policy says, as data: read once from the options and the policy file, then constant.
 *
 * A policy that `custream ctl` brings takes the place of the one in force for streams that are made from then on; what is done to single
 * operations (sync, jitter) begins and ends at once. The old one is never given back, since streams made under it name its rules. If it comes again it is used
 * again. Nothing here knows of CUDA: the command reads policies too, to refuse bad ones.
 */
#ifndef CS_POLICY_POLICY_H
#define CS_POLICY_POLICY_H

#include "shim/base/settings.h"

enum { CS_ANY = INT32_MIN, CS_RULES = 256 };

enum cs_default_mode { CS_DEFAULT_UNDECIDED, CS_DEFAULT_KEEP, CS_DEFAULT_PER_THREAD, CS_DEFAULT_LEGACY };
enum cs_context_kind { CS_CONTEXT_PRIMARY, CS_CONTEXT_CREATED, CS_CONTEXT_GREEN };

/* One of the ordered list; the first that matches a stream wins. Globs as of fnmatch(3), of bytes. */
struct cs_rule {
    struct cs_match {
        const char *library, *thread, *call, *name; /* NULL: any */
        int device, nonblocking, priority, nth, context; /* CS_ANY: any; nth counts from 1 the streams that match all the rest; context: enum cs_context_kind */
    } match;
    struct cs_change {
        int priority, nonblocking, record;  /* CS_ANY: as it is */
        enum cs_default_mode default_stream; /* UNDECIDED: as the option says */
        const char *name;                    /* NULL: none */
    } set;
    _Atomic cs_u32 matched; /* streams that matched all but nth */
    _Atomic bool used;      /* it was the first that matched some stream */
};

struct cs_policy {
    enum cs_default_mode default_stream;
    bool audit;                 /* the default stream is examined */
    bool all_handles;           /* DEFAULT_HANDLES=all */
    bool asks_caller;           /* some rule for default streams asks for the library: each call's caller must be told */
    struct cs_priority priority;
    struct cs_sharing sharing;
    struct cs_jitter jitter;
    struct cs_rule *rules;
    int rule_count;
    cs_u32 number; /* among the policies of the process, from 1 */
    struct cs_policy *before; /* of number - 1 (policy/load.c) */
};

/* The policy in force; NULL: there is none, and nothing is changed. */
CS_HIDDEN extern const struct cs_policy *_Atomic cs_policy_now;

/* Which of the program's calls a policy has to see. */
enum cs_reach {
    CS_REACH_OBJECTS = 1,  /* those that make, change or end what it shapes: streams, their attributes, launches with a priority. Every policy's */
    CS_REACH_DEFAULTS = 2, /* those that use a default stream */
    CS_REACH_CALLS = 4,    /* all */
};
unsigned cs_policy_reach(const struct cs_policy *policy); /* 0: it changes and examines nothing, or is NULL */

/* The policy that valid values of the options (enum cs_option) and rules make. The rules are from then on its own; asks_caller follows from them. */
void cs_policy_make(struct cs_policy *policy, const char *const *value, struct cs_rule *rules, int rule_count);

#endif
