/* The audit of the default stream: its rows, and what the trailer says that it found. */
#include "tools/custream/check/check.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <yyjson.h>

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

bool audit_row_judge(struct check *check, uint64_t line, yyjson_val *args)
{
    const char *verdict = yyjson_get_str(yyjson_obj_get(args, "verdict"));
    if (!verdict || (strcmp(verdict, "hazard") && strcmp(verdict, "nobody needed it")))
        return check_breach(check, line, 8, "a cs_audit row without a known args.verdict");
    check->hazards += !strcmp(verdict, "hazard");
    return true;
}

/* How often the listed pairs were met; negative: one of them is not as it should be. */
static double listed(const cJSON *hazards)
{
    double sum = 0;
    const cJSON *hazard;
    cJSON_ArrayForEach(hazard, hazards) {
        bool named = cJSON_IsString(member(member(hazard, "first"), "operation")) &&
                     cJSON_IsString(member(member(hazard, "second"), "operation"));
        if (!named || number(hazard, "count") < 1) return -1;
        sum += number(hazard, "count");
    }
    return sum;
}

bool audit_judge(struct check *check, uint64_t line, const cJSON *trailer)
{
    const cJSON *audit = member(trailer, "defaultStreamAudit"), *hazards = member(audit, "hazards");
    const char *verdict = cJSON_GetStringValue(member(audit, "verdict"));
    double lost = number(audit, "lost_orders"), sum = listed(hazards);
    if (!audit)
        return !check->hazards || check_breach(check, line, 10,
                                      "cs_audit rows, and no defaultStreamAudit in the trailer");
    if (!verdict ||
        (strcmp(verdict, "safe") && strcmp(verdict, "not safe") && strcmp(verdict, "cannot tell") &&
            strcmp(verdict, "nothing on the default stream")))
        return check_breach(check, line, 10, "defaultStreamAudit has no known verdict");
    if (!strcmp(verdict, "cannot tell") &&
        !cJSON_IsString(cJSON_GetArrayItem(member(audit, "doubts"), 0)))
        return check_breach(
            check, line, 10, "defaultStreamAudit cannot tell, and does not say why");
    if (!cJSON_IsArray(hazards) || sum < 0)
        return check_breach(
            check, line, 10, "defaultStreamAudit: a hazard has two named operations and a count");
    if ((lost > 0) != !strcmp(verdict, "not safe"))
        return check_breach(check, line, 10,
            "defaultStreamAudit: lost_orders is %.15g, and the verdict \"%s\"", lost, verdict);
    if (sum > lost || (double)check->hazards > lost)
        return check_breach(check, line, 10,
            "defaultStreamAudit: lost_orders is %.15g; its hazards have %.15g, the cs_audit rows "
            "%llu",
            lost, sum, (unsigned long long)check->hazards);
    return true;
}
