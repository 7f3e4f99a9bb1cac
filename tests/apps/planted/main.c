/*
 * planted NAME [mended] [BYTES]: runs one of the programs below, and prints what it planted, and
 * measured on the host, as JSON: of a twin, 0. BYTES is the size of each copy. `planted` alone
 * lists the names, with what each plants.
 */
#include "tests/apps/planted/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name, *cause,
        *finding; /* a cause's key and a finding's id, as the report has them; NULL: none */
    program *run;
} rows[] = {
    {"own_code", "host", NULL, own_code},
    {"blocked_stream", "host", NULL, blocked_stream},
    {"blocked_context", "host", NULL, blocked_context},
    {"blocked_event", "host", NULL, blocked_event},
    {"blocked_copy", "host", NULL, blocked_copy},
    {"frees", "host", "CS106", frees},
    {"launch_bound", "host", "CS107", launch_bound},
    {"event_device", "event", NULL, event_device},
    {"event_chain", "event", NULL, event_chain},
    {"event_gate", "event", NULL, event_gate},
    {"event_host", "event", NULL, event_host},
    {"legacy_holds", "legacy", "CS101", legacy_holds},
    {"holds_legacy", "legacy", "CS101", holds_legacy},
    {"own_order", "order", NULL, own_order},
    {"host_function", "host_function", "CS116", host_function},
    {"graph_edge", "graph_edge", NULL, graph_edge},
    {"memory_value", "memory_value", NULL, memory_value},
    {"unknown", "unknown", NULL, unknown},
    {"copies", "copy_engine", NULL, copies},
    {"device_full", "device_full", NULL, device_full},
    {"legacy_serial", "legacy", "CS101", legacy_serial},
    {"legacy_blocking", "legacy", "CS102", legacy_blocking},
    {"device_sync", "host", "CS103", device_sync},
    {"synchronous_copies", "host", "CS104", synchronous_copies},
    {"pageable_copies", "host", "CS105", pageable_copies},
    {"early_record", NULL, "CS108", early_record},
    {"never_recorded", NULL, "CS108", never_recorded},
    {"wait_for_nothing", NULL, "CS109", wait_for_nothing},
    {"many_events", NULL, "CS110", many_events},
    {"many_streams", NULL, "CS111", many_streams},
    {"priorities", NULL, "CS112", priorities},
    {"spinning", NULL, "CS113", spinning},
    {"one_engine", NULL, "CS114", one_engine},
    {"failing", NULL, "CS115", failing},
};

static void print_text(const char *key, const char *text)
{
    if (text) printf("\"%s\":\"%s\",", key, text);
    else printf("\"%s\":null,", key);
}

static void print_row(const struct row *row)
{
    putchar('{');
    print_text("name", row->name);
    print_text("cause", row->cause);
    print_text("finding", row->finding);
    printf("\"idle_ns\":%lld,\"cost_ns\":%lld}\n", (long long)measured.idle_ns,
        (long long)measured.cost_ns);
}

static int usage(const char *wrong)
{
    fprintf(stderr,
        "planted: %s; use: planted [NAME [mended] [BYTES]], and without a NAME to see what there "
        "is\n",
        wrong);
    return 2;
}

int main(int argc, char **argv)
{
    size_t count = sizeof rows / sizeof *rows;
    const struct row *row = rows;
    bool mended = argc > 2 && !strcmp(argv[2], "mended");
    if (argc < 2) {
        for (; row < rows + count; row++) print_row(row);
        return 0;
    }
    while (row < rows + count && strcmp(row->name, argv[1]) != 0) row++;
    if (row == rows + count) return usage("no program of that name");
    if (argc > 3 + mended) return usage("too many arguments");
    if (argc > 2 + mended && !(copy_bytes = strtoull(argv[2 + mended], NULL, 10)))
        return usage("BYTES is a number above 0");
    device_use(0);
    row->run(mended);
    if (mended) measured = (struct measured){0, 0};
    print_row(row);
    return 0;
}
