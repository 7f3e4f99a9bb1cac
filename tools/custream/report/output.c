#include "tools/custream/program.h"
#include "tools/custream/report/inside.h"

#include <errno.h>
#include <unistd.h>

/* --- where the report goes --- */

int output_add(struct output *output, enum form form, const char *to)
{
    static const char *const names[FORMS] = {"text", "--json", "--csv", "--html"};
    if (!to) to = "-";
    if (!*to) return complain(output->command, "%s= needs the name of a file", names[form]);
    output->to[form] = to;
    for (int other = 0; other < FORMS; other++)
        if (other != (int)form && output->to[other] && !strcmp(to, output->to[other]))
            return complain(output->command, "%s and %s cannot both go to %s", names[other],
                names[form], strcmp(to, "-") ? to : "standard output");
    return STATUS_OK;
}

static bool is_stdout(const char *to) { return to && !strcmp(to, "-"); }

int output_judge(struct output *output, char *const *files, int file_count)
{
    bool taken = false;
    for (int form = 0; form < FORMS; form++) {
        for (int i = 0; output->to[form] && i < file_count; i++)
            if (is_same_file(output->to[form], files[i]))
                return complain(output->command,
                    "%s: is the trace itself; a report needs a file of its own", files[i]);
        taken |= is_stdout(output->to[form]);
    }
    if (!taken) output->to[FORM_TEXT] = "-";
    return STATUS_OK;
}

/* --- writing the report --- */

/* Whether to print colours. NO_COLOR counts if it is set and not empty (https://no-color.org). */
static bool wants_color(const struct output *output)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !output->no_color && !(no_color && *no_color) && isatty(STDOUT_FILENO) && terminal &&
           strcmp(terminal, "dumb");
}

static int form_print(
    const struct output *output, printer *put, const struct print *print, const char *to)
{
    if (is_stdout(to)) {
        put(stdout, print);
        return STATUS_OK;
    }
    FILE *file = fopen(to, "w");
    if (!file) return complain(output->command, "%s: cannot be written: %s", to, strerror(errno));
    put(file, print);
    const bool failed = ferror(file);
    errno = 0;
    if (!fclose(file) && !failed) return STATUS_OK;
    return complain(
        output->command, "%s: cannot be written: %s", to, errno ? strerror(errno) : "write error");
}

/* Standard output comes last, since its reader may stop early (| head), which ends the process. The
 * first form that cannot be written ends the loop, too. */
int output_print(const struct output *output, printer *const printers[FORMS], struct print *print)
{
    int status = STATUS_OK;
    print->columns = columns_of_terminal();
    print->color = wants_color(output);
    for (int to_stdout = 0; to_stdout < 2; to_stdout++)
        for (int form = 0; form < FORMS && status == STATUS_OK; form++)
            if (output->to[form] && is_stdout(output->to[form]) == to_stdout)
                status = form_print(output, printers[form], print, output->to[form]);
    return status;
}
