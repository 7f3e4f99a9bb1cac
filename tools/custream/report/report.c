/* custream report: has a report made of the files of one run, and prints it. Options are judged before any file is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/append.h"
#include "tools/custream/command.h"
#include "tools/custream/flags.h"
#include "tools/custream/report/fail_if.h"
#include "tools/custream/report/make.h"
#include "tools/custream/report/output.h"

static const char NAME[] = "custream report";
static printer *const printers[FORMS] = {print_text, print_json, print_csv, print_html};

/* What was asked for. */
struct request {
    struct output output;
    struct conditions conditions;
    const char **sections;
    size_t section_count, section_capacity;
    bool brief;
    char **files;
    int file_count;
};

/* --- options --- */

static int section_add(struct request *request, const char *key)
{
    request->sections = array_room(request->sections, request->section_count, &request->section_capacity, sizeof *request->sections);
    request->sections[request->section_count++] = key;
    return STATUS_OK;
}

/* What takes more than one option to see. */
static int request_judge(struct request *request)
{
    if (!request->file_count) return complain(NAME, "which file? 'custream help report' says more");
    const int status = output_judge(&request->output, request->files, request->file_count);
    if (status == STATUS_OK && request->section_count && !request->output.to[FORM_TEXT])
        return complain(NAME, "--section is of the text, and another form takes standard output");
    if (status == STATUS_OK && request->brief && (request->section_count || !request->output.to[FORM_TEXT]))
        return complain(NAME, "--brief is of the whole text: give it without --section, --json and --csv");
    return status;
}

static int request_read(struct request *request, int argc, char **argv)
{
    enum { OPTION_FORM = 'A', OPTION_FAIL = 'f', OPTION_SECTION = 's', OPTION_NO_COLOR = 'n', OPTION_BRIEF = 'b' };
    static const struct option options[] = {{"json", optional_argument, NULL, OPTION_FORM + FORM_JSON},
                                            {"csv", optional_argument, NULL, OPTION_FORM + FORM_CSV},
                                            {"html", required_argument, NULL, OPTION_FORM + FORM_HTML},
                                            {"fail-if", required_argument, NULL, OPTION_FAIL},
                                            {"section", required_argument, NULL, OPTION_SECTION},
                                            {"brief", no_argument, NULL, OPTION_BRIEF},
                                            {"no-color", no_argument, NULL, OPTION_NO_COLOR},
                                            {0}};
    int option, status = STATUS_OK;
    while (status == STATUS_OK && (option = flags_next(argc, argv, "", options, NULL)) != -1) {
        if (option == OPTION_FAIL) status = conditions_add(&request->conditions, NAME, optarg, false);
        else if (option == OPTION_SECTION) status = section_add(request, optarg);
        else if (option == OPTION_BRIEF) request->brief = true;
        else if (option == OPTION_NO_COLOR) request->output.no_color = true;
        else if (option == '?') status = STATUS_UNUSABLE;
        else status = output_add(&request->output, (enum form)(option - OPTION_FORM), optarg);
    }
    request->files = argv + optind;
    request->file_count = argc - optind;
    return status == STATUS_OK ? request_judge(request) : status;
}

/* --- printing --- */

static int sections_judge(const struct request *request, const struct report *report)
{
    for (size_t s = 0; s < request->section_count; s++) {
        char keys[CONDITION_MAX] = "";
        size_t n = 0;
        if (report_find(report, request->sections[s])) continue;
        for (size_t t = 0; t < report->table_count; t++) n = cs_append(keys, sizeof keys, n, "%s%s", t ? ", " : "", report->tables[t].key);
        return complain(NAME, "--section='%.100s': no such table; allowed: %s", request->sections[s], keys);
    }
    return STATUS_OK;
}

static int report_print(const struct request *request, const struct made *made)
{
    struct print print = {.report = &made->report,
                          .of = &made->of,
                          .files = request->files,
                          .file_count = request->file_count,
                          .sections = request->sections,
                          .section_count = (int)request->section_count,
                          .brief = request->brief};
    int status = sections_judge(request, &made->report);
    if (status == STATUS_OK) status = output_print(&request->output, printers, &print);
    return status == STATUS_OK ? conditions_judge(&request->conditions, NAME, NULL, &made->report) : status;
}

void report_usage(void)
{
    puts("usage: custream report [OPTION...] FILE...\n\n"
         "Says why the GPU was idle, what that costs, and what to change. Then come tables of streams,\n"
         "kernels, copies, calls and ranges. FILE is a trace (.json, .pftrace). Several files are the\n"
         "parts of one run.\n\n"
         "  --json[=FILE]        write JSON to standard output or to FILE\n"
         "  --csv[=FILE]         write CSV to standard output or to FILE\n"
         "  --html=FILE          write one page with lanes and sortable tables; it needs no network\n"
         "  --section=TABLE      only this table, as text; may be repeated\n"
         "  --brief              the text without tables: the run and the findings\n"
         "  --fail-if=CONDITION  exit with 3 if the condition holds; may be repeated. Examples:\n"
         "                       'idle_host > 20%', 'gpu_idle > 5ms', 'default_stream_work > 0',\n"
         "                       'finding CS101'\n"
         "  --no-color           no colours, as with NO_COLOR in the environment\n\n"
         "Text goes to standard output, unless JSON or CSV goes there. docs/report.md has every table,\n"
         "column and metric.\n\n"
         "Exit status: 0 reported; 2 wrong usage, or a file cannot be read or is not a trace; 3 a\n"
         "condition holds.");
}

int command_report(int argc, char **argv)
{
    struct request request = {.output.command = NAME};
    struct made made;
    argv[0] = (char[]){"custream report"};
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        report_usage();
        return STATUS_OK;
    }
    int status = request_read(&request, argc, argv);
    if (status == STATUS_OK) {
        const bool read = made_make(&made, NAME, request.files, request.file_count);
        status = read ? report_print(&request, &made) : STATUS_UNUSABLE;
        if (read) made_free(&made);
    }
    conditions_free(&request.conditions);
    free(request.sections);
    return status;
}
