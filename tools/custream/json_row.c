#include "tools/custream/json_row.h"

#include <stdio.h>

#include "tools/custream/command.h"

void json_row_put(const struct json_member *members, size_t count)
{
    cJSON *row = cJSON_CreateObject();
    for (size_t i = 0; i < count; i++)
        if (!cJSON_AddItemToObject(row, members[i].name, members[i].value)) out_of_memory();
    char *text = cJSON_PrintUnformatted(row);
    if (!text) out_of_memory();
    fputs(text, stdout);
    cJSON_free(text);
    cJSON_Delete(row);
}
