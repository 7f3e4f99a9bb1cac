#include "tools/custream/json_row.h"

#include "shim/base/json.h"
#include "tools/custream/command.h"

void json_text_put(const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *const end = at + strlen(text);
    while (at < end) {
        const int length = cs_utf8_length(at, end);
        if (length) fwrite(at, 1, (size_t)length, stdout);
        else fputs("\xef\xbf\xbd", stdout);
        at += length ? length : 1;
    }
}

void json_row_put(const struct json_member *members, size_t count)
{
    cJSON *row = cJSON_CreateObject();
    for (size_t i = 0; i < count; i++)
        if (!cJSON_AddItemToObject(row, members[i].name, members[i].value)) out_of_memory();
    char *text = cJSON_PrintUnformatted(row);
    if (!text) out_of_memory();
    json_text_put(text);
    cJSON_free(text);
    cJSON_Delete(row);
}
