/* custream diff: makes a report of each run on either side, and prints the differences. */
#include <sys/stat.h>

#include "tools/custream/command.h"
#include "tools/custream/diff/diff.h"
#include "tools/custream/flags.h"

static const char NAME[] = "custream diff";
static printer *const printers[FORMS] = {
    [FORM_TEXT] = print_diff_text, [FORM_JSON] = print_diff_json, [FORM_CSV] = print_csv};

struct request {
    struct output output;
    struct conditions conditions;
    struct {
        char **files;
        int count;
    } sides[SIDES];
    bool after; /* --after was given */
};

/* --- options --- */

static void file_add(struct request *request, enum side side, char *file)
{
    request->sides[side].files[request->sides[side].count++] = file;
}

/* Checks that each side has files. Two files without --after are one side each. */
static int sides_judge(struct request *request)
{
    int *before = &request->sides[BEFORE].count;
    if (!request->after && *before == 2)
        file_add(request, AFTER, request->sides[BEFORE].files[--*before]);
    if (*before && request->sides[AFTER].count) return STATUS_OK;
    if (request->after)
        return complain(NAME, "no file %s --after: it stands between the files of the two sides",
            *before ? "behind" : "in front of");
    if (!*before) return complain(NAME, "which files? 'custream help diff' says more");
    if (*before == 1) return complain(NAME, "one file, where two are compared");
    return complain(NAME,
        "%d files, where two are compared: --after stands in front of those of the second side",
        *before);
}

static int request_read(struct request *request, int argc, char **argv)
{
    int flag, status = STATUS_OK;
    while (status == STATUS_OK && (flag = flags_next(argc, argv, '-')) != -1) {
        if (flag == FLAG_WORD) file_add(request, request->after ? AFTER : BEFORE, optarg);
        else if (flag == FLAG_AFTER) request->after = true;
        else if (flag == FLAG_FAIL_IF)
            status = conditions_add(&request->conditions, NAME, optarg, true);
        else if (flag == FLAG_NO_COLOR) request->output.no_color = true;
        else
            status = output_add(&request->output, flag == FLAG_JSON ? FORM_JSON : FORM_CSV, optarg);
    }
    for (; optind < argc; optind++)
        file_add(request, request->after ? AFTER : BEFORE, argv[optind]); /* behind "--" */
    if (status == STATUS_OK) status = sides_judge(request);
    for (int side = 0; side < SIDES && status == STATUS_OK; side++)
        status =
            output_judge(&request->output, request->sides[side].files, request->sides[side].count);
    return status;
}

/* --- runs --- */

/* Moves the files of files[0]'s run to the front. Returns how many; 1 if it has no time base. */
static int run_gather(char **files, struct identity *identities, int count)
{
    int parts = 1;
    for (int i = 1; i < count && identities[0].base; i++) {
        if (identities[i].pid != identities[0].pid || identities[i].base != identities[0].base)
            continue;
        char *file = files[i];
        const struct identity identity = identities[i];
        memmove(files + parts + 1, files + parts, (size_t)(i - parts) * sizeof *files);
        memmove(
            identities + parts + 1, identities + parts, (size_t)(i - parts) * sizeof *identities);
        files[parts] = file;
        identities[parts++] = identity;
    }
    return parts;
}

/* Reads the identities of a side's files if there are several. A single file may be a pipe. */
static int identities_read(char *const *files, struct identity *identities, int count)
{
    char error[256];
    for (int i = 0; count > 1 && i < count; i++) {
        struct stat of;
        const bool is_stdin = !strcmp(files[i], "-");
        if (is_stdin || (!stat(files[i], &of) && (S_ISFIFO(of.st_mode) || S_ISSOCK(of.st_mode))))
            return complain(NAME,
                "%s: no regular file; of several files on a side each is read twice",
                is_stdin ? "standard input" : files[i]);
        if (!run_identify(files[i], &identities[i], error))
            return complain(NAME, "%s: %s", files[i], error);
    }
    return STATUS_OK;
}

static int side_read(struct comparison *comparison, const struct request *request, enum side side)
{
    char **files = request->sides[side].files;
    const int count = request->sides[side].count;
    struct identity *identities = array_zeros((size_t)count, sizeof *identities);
    int status = identities_read(files, identities, count);
    for (int i = 0, parts; i < count && status == STATUS_OK; i += parts) {
        struct made made;
        parts = run_gather(files + i, identities + i, count - i);
        if (!made_make(&made, NAME, files + i, parts)) status = STATUS_UNUSABLE;
        else comparison_add(comparison, side, &made, (unsigned)parts), made_free(&made);
    }
    free(identities);
    return status;
}

static int sides_compare(const struct request *request)
{
    struct comparison comparison;
    struct report report = {0};
    int status = STATUS_OK;
    comparison_init(&comparison);
    for (int side = 0; side < SIDES && status == STATUS_OK; side++)
        status = side_read(&comparison, request, (enum side)side);
    if (status == STATUS_OK) {
        comparison_end(&comparison);
        diff_tables(&report, &comparison);
        status = output_print(&request->output, printers, &(struct print){.report = &report});
    }
    if (status == STATUS_OK)
        status = conditions_judge(
            &request->conditions, NAME, &comparison.reports[BEFORE], &comparison.reports[AFTER]);
    report_free(&report);
    comparison_free(&comparison);
    return status;
}

int command_diff(int argc, char **argv)
{
    struct request request = {.output.command = NAME};
    for (int side = 0; side < SIDES; side++)
        request.sides[side].files = array_zeros((size_t)argc + 1, sizeof(char *));
    int status = request_read(&request, argc, argv);
    if (status == STATUS_OK) status = sides_compare(&request);
    conditions_free(&request.conditions);
    for (int side = 0; side < SIDES; side++) free(request.sides[side].files);
    return status;
}
