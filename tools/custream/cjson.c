/* Gives the shim's reader of policies the cJSON that the command is linked with. */
#include "shim/policy/cjson_api.h"

#include <stddef.h>

const struct cs_cjson *cs_cjson(void)
{
    static const struct cs_cjson linked = {
        .ParseWithOpts = cJSON_ParseWithOpts, .Delete = cJSON_Delete};
    return &linked;
}
