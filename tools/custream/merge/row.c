#include "tools/custream/merge/row.h"

#include <string.h>

static const struct {
    const char *name;
    size_t length;
} names[ROW_KEYS] = {[ROW_PH] = {"ph", 2},    [ROW_NAME] = {"name", 4}, [ROW_CAT] = {"cat", 3}, [ROW_PID] = {"pid", 3},         [ROW_TID] = {"tid", 3},
                     [ROW_TS] = {"ts", 2},    [ROW_DUR] = {"dur", 3},   [ROW_ID] = {"id", 2},   [ROW_BIND_ID] = {"bind_id", 7}, [ROW_ID2] = {"id2", 3},
                     [ROW_CORRELATION] = {"correlation", 11}, [ROW_ARGS_NAME] = {"name", 4}, [ROW_ARGS_LABELS] = {"labels", 6}, [ROW_STREAM] = {"cs.stream", 9},
                     [ROW_ORIGIN] = {"origin", 6}, [ROW_WAIT_IDS] = {"event_wait_ids", 14}};

struct reading {
    struct row *row;
    bool twice;
};

static void note(struct reading *reading, struct piece name, struct piece value, enum row_key from, enum row_key to)
{
    for (enum row_key key = from; key < to; key++)
        if (names[key].length == name.length && !memcmp(names[key].name, name.at, name.length)) {
            reading->twice |= reading->row->pieces[key].at != NULL;
            reading->row->pieces[key] = value;
        }
}

static void note_arg(void *of, struct piece name, struct piece value) { note(of, name, value, ROW_CORRELATION, ROW_KEYS); }

static void note_member(void *of, struct piece name, struct piece value)
{
    note(of, name, value, ROW_PH, ROW_CORRELATION);
    if (name.length == 4 && !memcmp(name.at, "args", 4)) members_each(value.at, note_arg, of);
}

bool row_read(struct row *row, const char *text, size_t length)
{
    struct reading reading = {.row = row};
    *row = (struct row){.text = text, .length = length};
    members_each(text, note_member, &reading);
    const struct piece ph = row->pieces[ROW_PH];
    if (reading.twice || !ph.at || *ph.at != '"' || ph.length != 3) return false;
    row->ph = ph.at[1];
    return true;
}

void row_put(const struct row *row, struct change *changes, int count, void (*put)(void *of, const char *text, size_t length), void *of)
{
    const char *at = row->text;
    for (int done = 0; done < count; done++) {
        int first = -1;
        for (int i = 0; i < count; i++) {
            const char *stands = row->pieces[changes[i].key].at;
            if (stands >= at && (first < 0 || stands < row->pieces[changes[first].key].at)) first = i;
        }
        const struct piece old = row->pieces[changes[first].key];
        put(of, at, (size_t)(old.at - at));
        const char *text = changes[first].longer ? changes[first].longer : changes[first].text;
        put(of, text, strlen(text));
        at = old.at + old.length;
    }
    put(of, at, (size_t)(row->text + row->length - at));
}
