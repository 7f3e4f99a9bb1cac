#include "shim/audit/audit.h"

#include "shim/base/keep.h"
#include "shim/base/options.h"
#include "shim/object/context.h"
#include "shim/object/creator.h"
#include "shim/trace/record.h"

bool cs_audit_on(void)
{
    static _Atomic int known; /* 0 not asked yet, 1 no, 2 yes */
    int on = cs_load(&known);
    if (!on) cs_store(&known, on = cs_option_is(CS_OPTION_DEFAULT_STREAM, "audit") ? 2 : 1);
    return on == 2;
}

void cs_audit_site(struct cs_thread *thread, const void *return_address, bool names_legacy)
{
    CS_KEEP_ERRNO;
    const void *address = cs_creator_place(return_address);
    const cs_ref context = cs_context_current(thread);
    /* Where there is no room: the call's record comes after a later one that tells of the loss, or not at all. */
    cs_record_put_if_room(thread, &(struct cs_record){.call = CS_CALL_SITE, .value = {(uintptr_t)address, names_legacy, context}});
}
