#include "tools/custream/diff/diff.h"

#include <ctype.h>

#include "tools/custream/command.h"

/* Columns whose texts differ from run to run, and what they name. */
enum role { ROLE_SAME, ROLE_THREAD, ROLE_STREAM, ROLE_WORK /* "k on stream 13" */ };
static const struct {
    const char *column;
    enum role role;
} roles[] = {{"thread", ROLE_THREAD}, {"stream", ROLE_STREAM}, {"for", ROLE_WORK}};

static enum role role_of(const struct column *column)
{
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(column->key, roles[i].column)) return roles[i].role;
    return ROLE_SAME;
}

/* Returns the length of the word if it is a number, maybe in brackets; 0: it is not. */
static size_t number_length(const char *word)
{
    const bool bracket = *word == '(';
    const size_t digits = strspn(word + bracket, "0123456789"), length = digits + bracket;
    if (!digits) return 0;
    if (bracket) return word[length] == ')' ? length + 1 : 0;
    return !word[length] || strchr(" ),", word[length]) ? length : 0;
}

/* Copies `text` without the words that are numbers: "main (17)" becomes "main". */
static void name_without_numbers(char out[NAME_MAX_BYTES], const char *text)
{
    size_t n = 0;
    for (const char *at = text; *at && n < NAME_MAX_BYTES - 1;) {
        const size_t skip = at == text || at[-1] == ' ' ? number_length(at) : 0;
        at += skip;
        if (skip && n && out[n - 1] == ' ') n--;
        if (!skip) out[n++] = *at++;
    }
    out[n] = 0;
}

/* --- streams --- */

/* Returns the streams in the order of their first work, then those without work. */
static uint32_t *in_order_of_use(const struct run *run)
{
    uint32_t *order = array_zeros(run->stream_count, sizeof *order);
    bool *seen = array_zeros(run->stream_count, sizeof *seen);
    size_t n = 0;
    for (size_t w = 0; w < run->work_count; w++) {
        const uint32_t stream = run->works[w].stream;
        if (!seen[stream]) seen[stream] = true, order[n++] = stream;
    }
    for (uint32_t s = 0; s < run->stream_count; s++)
        if (!seen[s]) order[n++] = s;
    free(seen);
    return order;
}

#define NUMBER_OF(name) text_number(&names->texts, name, strlen(name))

void names_make(struct names *names, struct report *report, const struct run *run)
{
    /* same: how many streams have a name; before: how many of these are named so far; both by the
     * name without numbers */
    struct numbers same = {0}, before = {0};
    char plain[NAME_MAX_BYTES], as[NAME_MAX_BYTES + 16];
    uint32_t *order = in_order_of_use(run);
    *names = (struct names){0};
    texts_init(&names->texts);
    for (uint32_t s = 0; s < run->stream_count; s++) {
        name_without_numbers(plain, stream_label(report, run, s));
        ++*numbers_at(&same, NUMBER_OF(plain), 0);
    }
    for (size_t i = 0; i < run->stream_count; i++) {
        const char *name = stream_label(report, run, order[i]);
        name_without_numbers(plain, name);
        const text number = NUMBER_OF(plain);
        const uint32_t which = ++*numbers_at(&before, number, 0);
        if (numbers_get(&same, number, 0) > 1) snprintf(as, sizeof as, "%s #%u", plain, which);
        else snprintf(as, sizeof as, "%s", plain);
        *numbers_at(&names->known_as, NUMBER_OF(name), 0) = NUMBER_OF(as);
    }
    numbers_free(&same);
    numbers_free(&before);
    free(order);
}

void names_free(struct names *names)
{
    texts_free(&names->texts);
    numbers_free(&names->known_as);
}

/* Returns the name that the stream has in all runs; NULL: no stream is called `name`. */
static const char *stream_known_as(const struct names *names, const char *name)
{
    const text known_as = numbers_get(&names->known_as, text_find(&names->texts, name), 0);
    return known_as ? text_of(&names->texts, known_as) : NULL;
}

/* --- rows --- */

/* Puts "WORK on STREAM". WORK may contain " on " too. The " on " before a stream's name counts. */
static void put_work(struct line *to, const struct names *names, const char *text)
{
    static const char on[] = " on ";
    for (const char *at = text; (at = strstr(at, on)); at++) {
        const char *as = stream_known_as(names, at + sizeof on - 1);
        if (as) return line_add(to, "%.*s%s%s", (int)(at - text), text, on, as);
    }
    line_add(to, "%s", text);
}

void names_key(
    const struct names *names, const struct table *table, size_t row, char out[NAME_MAX_BYTES])
{
    struct line to = {out, NAME_MAX_BYTES};
    char plain[NAME_MAX_BYTES];
    line_add(&to, "%s", table->key);
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        const struct cell *cell = &table->cells[row * table->column_count + c];
        if (!(column->role & COLUMN_NAMES)) continue;
        const char *text = cell->text ? cell->text : "";
        line_add(&to, "\n");
        if (column->unit != UNIT_TEXT) line_add(&to, "%.0f", cell->number);
        else if (role_of(column) == ROLE_STREAM) {
            const char *as = stream_known_as(names, text);
            if (!as) name_without_numbers(plain, text); /* in a finding, it may name a thread */
            line_add(&to, "%s", as ? as : plain);
        } else if (role_of(column) == ROLE_WORK) put_work(&to, names, text);
        else {
            if (role_of(column) == ROLE_THREAD) name_without_numbers(plain, text), text = plain;
            line_add(&to, "%s", text);
        }
    }
}

void names_label(const struct table *table, size_t row, char out[NAME_MAX_BYTES])
{
    struct line to = {out, NAME_MAX_BYTES};
    *out = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        const char *text = table->cells[row * table->column_count + c].text;
        char plain[NAME_MAX_BYTES];
        if (!(column->role & COLUMN_NAMES) || column->unit != UNIT_TEXT || !text || !*text)
            continue;
        if (role_of(column) == ROLE_THREAD) name_without_numbers(plain, text), text = plain;
        line_add(&to, "%s%s", *out ? ", " : "", text);
    }
}
