/* The shim's reader of policies on the cJSON that the command is linked to. */
#include "shim/policy/cjson_api.h"

#include <stddef.h>

const struct cs_cjson *cs_cjson(void)
{
    static const struct cs_cjson linked = {
        .ParseWithOpts = cJSON_ParseWithOpts, .Delete = cJSON_Delete};
    return &linked;
}
