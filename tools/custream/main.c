/* The custream command: picks the subcommand. */
#include "tools/custream/command.h"
#include "tools/custream/commands.h"
#include "tools/custream/near.h"

#include <malloc.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} subcommands[] = {
#define COMMAND(name, place, summary) {#name, command_##name},
#define ROW(...)
#include "tools/custream/commands.def"
};

/* Returns the command that a word means, which may be --version or --help. */
static const char *meant(const char *name)
{
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) return "version";
    return !strcmp(name, "--help") || !strcmp(name, "-h") ? "help" : name;
}

int command_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("custream " CUSTREAM_VERSION_STRING);
    return STATUS_OK;
}

static int unknown(const char *name)
{
    char room[SHOWN_ROOM];
    const char *word = name + strspn(name, "-");
    struct near near = {.typed = word, .length = strlen(word)};
    for (size_t i = 0; i < CS_COUNT(subcommands); i++) near_look(&near, subcommands[i].name);
    return near_complain(&near, "custream", "command", shown(room, name, strlen(name)), "", "");
}

int command_help(int argc, char **argv)
{
    static char room[1 << 16];
    /* The output goes out in one write, since stdio forgets why an earlier write has failed. */
    setvbuf(stdout, room, _IOFBF, sizeof room);
    const struct command_row *asked = argc > 1 ? command_find(meant(argv[1])) : NULL;
    if (asked) command_put(asked);
    else if (argc < 2) commands_put();
    else if (!strcmp(argv[1], "--json")) commands_write();
    else return unknown(argv[1]);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    /* Fixes the threshold. Otherwise malloc raises it and then keeps the memory of large tables
     * that were freed. */
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    if (argc < 2) {
        fputs("custream: which command? 'custream help' lists them\n", stderr);
        return STATUS_UNUSABLE;
    }
    if (!strcmp(argv[1], "--complete")) command_complete(argc - 2, argv + 2), leave(STATUS_OK);
    for (size_t i = 0; i < CS_COUNT(subcommands); i++)
        if (!strcmp(subcommands[i].name, meant(argv[1])))
            leave(subcommands[i].run(argc - 1, argv + 1));
    return unknown(argv[1]);
}
