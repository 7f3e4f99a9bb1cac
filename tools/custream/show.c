#define _GNU_SOURCE /* wcwidth */
#include "shim/base/json.h"
#include "tools/custream/command.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { COLUMNS_DEFAULT = 100, COLUMNS_MIN = 20, COLUMNS_MAX = 10000, COMPLAINT_MAX = 16 << 10 };

/* Shows one to three digits before the point. Times in us and more have four digits in all. */
static void scaled_show(
    char out[SHOWN_MAX], double value, double step, const char *const *units, int last)
{
    int unit = 0;
    double size = fabs(value);
    while (unit < last && size >= (step > 1000 ? 1023.95 : 999.95)) size /= step, unit++;
    const int decimals = !unit ? 0 : step > 1000 ? 1 : size < 9.9995 ? 3 : size < 99.995 ? 2 : 1;
    snprintf(out, SHOWN_MAX, "%s%.*f %s", value < 0 ? "-" : "", decimals, size, units[unit]);
}

static void count_show(char out[SHOWN_MAX], double value)
{
    char digits[SHOWN_MAX];
    if (fabs(value) >= 1e15 || value != floor(value)) {
        snprintf(out, SHOWN_MAX, "%.*f", fabs(value) >= 1e15 ? 0 : 2, value);
        return;
    }
    const int length = snprintf(digits, sizeof digits, "%.0f", fabs(value));
    if (value < 0) *out++ = '-';
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) *out++ = ',';
        *out++ = digits[i];
    }
    *out = 0;
}

const char *value_show(char out[SHOWN_MAX], enum unit unit, double value)
{
    static const char *const times[] = {"ns", "us", "ms", "s"}, *const sizes[] = {"B", "KiB", "MiB",
                                                                    "GiB", "TiB"};
    char size[SHOWN_MAX];
    if (!isfinite(value) || fabs(value) > 1e20) return strcpy(out, "-");
    switch (unit) {
    case UNIT_CHANGE_NS:
    case UNIT_CHANGE_SHARE:
        snprintf(out, SHOWN_MAX, "%s%.*s", value > 0 ? "+" : "", SHOWN_MAX - 2,
            value_show(size, unit == UNIT_CHANGE_NS ? UNIT_NS : UNIT_SHARE, value));
        break;
    case UNIT_NS: scaled_show(out, value, 1000, times, 3); break;
    case UNIT_BYTES: scaled_show(out, value, 1024, sizes, 4); break;
    case UNIT_SHARE:
        snprintf(out, SHOWN_MAX, value > 0 && value < 0.0005 ? "<0.1 %%" : "%.1f %%", value * 100);
        break;
    case UNIT_GBPS: snprintf(out, SHOWN_MAX, "%.2f GB/s", value); break;
    case UNIT_COUNT:
    case UNIT_TEXT: count_show(out, value); break;
    }
    return out;
}

const char *value_exact(char out[SHOWN_MAX], double value)
{
    if (!isfinite(value)) return strcpy(out, "");
    if (value == 0) return strcpy(out, "0"); /* also for -0 */
    snprintf(out, SHOWN_MAX, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.15g", value);
    return out;
}

void line_add(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(line->at, line->left, format, args);
    va_end(args);
    const size_t put = length < 0 ? 0 : length < (long)line->left ? (size_t)length : line->left - 1;
    line->at += put;
    line->left -= put;
}

const char *glyph_next(const char *at, struct glyph *glyph)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const char replacement[] = "\xef\xbf\xbd";
    const unsigned char *bytes = (const unsigned char *)at;
    if (!*at) return NULL;
    const int length = cs_utf8_length(bytes, bytes + strnlen(at, 4));
    wchar_t character = bytes[0] & first[length];
    for (int i = 1; i < length; i++) character = character << 6 | (bytes[i] & 0x3f);
    /* Characters that turn the direction of the text make a name look like another one. */
    const bool turns = (character >= 0x202a && character <= 0x202e) ||
                       (character >= 0x2066 && character <= 0x2069);
    if (character < 0x20 || (character >= 0x7f && character < 0xa0) || turns) {
        *glyph = (struct glyph){replacement, sizeof replacement - 1, 1};
        return at + (length ? length : 1);
    }
    const int columns = character < 0x80 ? 1 : wcwidth(character);
    *glyph = (struct glyph){at, length, columns < 0 ? 1 : columns};
    return at + length;
}

static int columns_until(const char *text, const char *end)
{
    struct glyph glyph;
    int columns = 0;
    while (text < end && (text = glyph_next(text, &glyph))) columns += glyph.columns;
    return columns;
}

static void put_until(FILE *file, const char *text, const char *end)
{
    struct glyph glyph;
    while (text < end && (text = glyph_next(text, &glyph)))
        fwrite(glyph.bytes, 1, (size_t)glyph.length, file);
}

void text_clean(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text)) *text = '?';
}

bool text_ends(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcmp(text + length - tail, ending);
}

bool text_is_one_of(const char *text, const char *const *those, size_t count)
{
    while (count && strcmp(text, those[count - 1])) count--;
    return count;
}

int text_columns(const char *text) { return columns_until(text, text + strlen(text)); }
void text_put(FILE *file, const char *text) { put_until(file, text, text + strlen(text)); }

int text_put_cut(FILE *file, const char *text, int columns, enum cut cut)
{
    struct glyph glyph;
    const int all = text_columns(text), head = cut == CUT_MIDDLE ? columns / 2 : columns - 1,
              tail = columns - head - 1;
    int passed = 0, put = 0;
    bool told = false;
    if (all <= columns) {
        text_put(file, text);
        return all;
    }
    for (; (text = glyph_next(text, &glyph)); passed += glyph.columns) {
        if (passed + glyph.columns <= head || passed >= all - tail) {
            fwrite(glyph.bytes, 1, (size_t)glyph.length, file);
            put += glyph.columns;
        } else if (!told) {
            fputs("…", file);
            put++;
            told = true;
        }
    }
    return put;
}

void text_put_wrapped(FILE *file, const char *text, int columns, int indent, int used)
{
    for (bool first = true; *(text += strspn(text, " \n")); first = false) {
        const char *end = text + strcspn(text, " \n");
        const int wide = columns_until(text, end);
        if (!first && used + 1 + wide > columns) {
            fprintf(file, "\n%*s", indent, "");
            used = indent;
        } else if (!first) {
            fputc(' ', file);
            used++;
        }
        put_until(file, text, end);
        used += wide;
        text = end;
    }
    fputc('\n', file);
}

int columns_of_terminal(void)
{
    struct winsize window;
    const char *text = getenv("COLUMNS");
    const bool known =
        isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) && window.ws_col;
    const long columns = known ? window.ws_col : text ? strtol(text, NULL, 10) : 0;
    if (columns <= 0) return COLUMNS_DEFAULT;
    return columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : (int)columns;
}

int complain(const char *command, const char *format, ...)
{
    char line[COMPLAINT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "%s: ", command);
    text_put(stderr, line);
    fputc('\n', stderr);
    return STATUS_UNUSABLE;
}

/* --- memory --- */

void out_of_memory(void)
{
    fputs("custream: out of memory\n", stderr);
    exit(STATUS_UNUSABLE);
}

void *array_room(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *moved = reallocarray(array, wanted, size);
    if (!moved) out_of_memory();
    *capacity = wanted;
    return moved;
}

void *array_zeros(size_t count, size_t size)
{
    void *room = calloc(count ? count : 1, size);
    if (!room) out_of_memory();
    return room;
}

void free_each(void *const *pointers, size_t count)
{
    for (size_t i = 0; i < count; i++) free(pointers[i]);
}

char *kept(const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) out_of_memory();
    return copy;
}

uint32_t *array_none(size_t count)
{
    uint32_t *array = array_zeros(count, sizeof *array);
    for (size_t i = 0; i < count; i++) array[i] = UINT32_MAX;
    return array;
}
