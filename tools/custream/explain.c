/* custream explain: prints the page of a finding, which is a section of docs/findings.md. The
 * command contains that file, so that both say the same. */
#include <strings.h>

#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/near.h"

static const char NAME[] = "custream explain";

extern const char findings_page[] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n"
        ".globl findings_page\n"
        ".hidden findings_page\n"
        "findings_page: .incbin \"docs/findings.md\"\n"
        ".byte 0\n"
        ".popsection\n");

int command_explain(int argc, char **argv)
{
    static const char mark[] = "\n## ";
    char room[SHOWN_ROOM];
    flags_next(argc, argv, 0);
    const char *id = optind < argc ? argv[optind] : NULL;
    if (argc - optind > 1) return complain(NAME, "takes one finding, as CS104");
    for (const char *at = findings_page, *next; (at = strstr(at, mark)); at = next) {
        at += strlen(mark);
        next = strstr(at, mark) ?: at + strlen(at);
        const size_t length = strcspn(at, ":");
        if (strncmp(at, "CS", 2)) continue;
        if (!id) printf("%.*s\n", (int)strcspn(at, "\n"), at);
        else if (strlen(id) == length && !strncasecmp(at, id, length))
            return printf("%.*s\n", (int)(next - at), at), STATUS_OK;
    }
    if (!id) return STATUS_OK;
    return complain(
        NAME, "'%s': no such finding; 'custream explain' lists them", shown(room, id, strlen(id)));
}
