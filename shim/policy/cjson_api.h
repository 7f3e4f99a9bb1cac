/*
 * The functions of cJSON that reading a policy takes. The shim opens the library at run time, and only where a policy is given (cjson_open.c); the command is
 * linked to it. Its allocation hooks are left alone: they may be the application's.
 */
#ifndef CS_POLICY_CJSON_API_H
#define CS_POLICY_CJSON_API_H

#include <cjson/cJSON.h>

struct cs_cjson {
    __typeof__(&cJSON_ParseWithOpts) ParseWithOpts;
    __typeof__(&cJSON_Delete) Delete;
};

/* NULL where the library is missing. dlerror stays as it is. Any thread. */
const struct cs_cjson *cs_cjson(void);

#endif
