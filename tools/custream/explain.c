#define _GNU_SOURCE /* memmem, strchrnul */
/* custream explain: prints the page of a finding, which is a section of docs/findings.md. The
 * command contains that file, so that both say the same. */
#include <ctype.h>
#include <strings.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/near.h"

static const char NAME[] = "custream explain", HEADING[] = "\n## CS";

extern const char findings_page[] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n"
        ".globl findings_page\n"
        ".hidden findings_page\n"
        "findings_page: .incbin \"docs/findings.md\"\n"
        ".byte 0\n"
        ".popsection\n");

/* Returns the next heading of a finding, at its id; NULL: there is none. */
static const char *heading_next(const char *at)
{
    const char *found = strstr(at, HEADING);
    return found ? found + sizeof HEADING - 1 - strlen("CS") : NULL;
}

/* Copies a line without its marks: "**" goes, and "[text](page.md)" becomes "text (docs/page.md)".
 */
static void marks_drop(FILE *to, const char *at, const char *end)
{
    while (at < end) {
        const char *close = *at == '[' ? memmem(at, (size_t)(end - at), "](", 2) : NULL,
                   *last = close ? memchr(close, ')', (size_t)(end - close)) : NULL;
        if (!strncmp(at, "**", 2)) at += 2;
        else if (last) {
            fprintf(to, "%.*s (docs/%.*s)", (int)(close - at - 1), at + 1, (int)(last - close - 2),
                close + 2);
            at = last + 1;
        } else fputc(*at++, to);
    }
}

/* Prints the paragraph at `at`, in lines as wide as the terminal. Returns what is behind it. */
static const char *paragraph_put(const char *at, const char *end)
{
    const bool item = !strncmp(at, "- ", 2);
    const char *last = at;
    while (last < end && *last != '\n' && (last == at || strncmp(last, "- ", 2)) &&
           strncmp(last, "```", 3))
        last = strchrnul(last, '\n') + 1;
    char *joined = array_zeros((size_t)(last - at) + 1, 1), *text = NULL;
    size_t length = 0, size;
    for (const char *from = at; from < last; from++)
        if (*from != '\n') joined[length++] = *from;
        else if (from + 1 < last) {
            joined[length++] = ' ';
            while (from[1] == ' ') from++;
        }
    FILE *clean = open_memstream(&text, &size);
    if (!clean) out_of_memory();
    marks_drop(clean, joined, joined + length);
    if (fclose(clean)) out_of_memory();
    text_put_wrapped(stdout, text, columns_of_terminal(), item ? 2 : 0, 0);
    free(text);
    free(joined);
    return last;
}

static void section_put(const char *at)
{
    const char *next = strstr(at, "\n## "), *end = next ? next : at + strlen(at);
    while (at < end)
        if (!strncmp(at, "```", 3)) {
            for (at = strchrnul(at, '\n') + 1; at < end && strncmp(at, "```", 3);) {
                const char *line = strchrnul(at, '\n');
                printf("    %.*s\n", (int)(line - at), at);
                at = line + 1;
            }
            at = strchrnul(at, '\n') + 1;
        } else if (*at == '\n') putchar(*at++);
        else at = paragraph_put(at, end);
}

int command_explain(int argc, char **argv)
{
    char room[SHOWN_ROOM];
    flags_next(argc, argv, 0);
    if (argc - optind > 1) return complain(NAME, "takes one finding, as CS104");
    const char *id = optind < argc ? argv[optind] : NULL;
    for (const char *at = findings_page; (at = heading_next(at));) {
        const size_t length = strcspn(at, ":");
        if (!id)
            printf("%.*s  %.*s\n", (int)length, at, (int)strcspn(at + length + 2, "\n"),
                at + length + 2);
        else if (strlen(id) == length && !strncasecmp(at, id, length)) {
            section_put(at);
            return STATUS_OK;
        }
    }
    return id ? complain(NAME, "'%s': no such finding; 'custream explain' lists them",
                    shown(room, id, strlen(id)))
              : STATUS_OK;
}
