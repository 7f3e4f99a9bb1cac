/* The table of tests, and main of the programs that have one. */
#include "tests/api/rows.h"

#include <errno.h>
#include <sys/wait.h>

struct row *rows;

/* In the order of the source. */
void row_add(struct row *row)
{
    struct row **last = &rows;
    while (*last) last = &(*last)->next;
    *last = row;
}

/* Sets one variable of a row's, "NAME=value", or "NAME+=value" for text behind the one it has; 0:
 * it is so already. */
static int set(char *word)
{
    char *value = strchr(word, '='), longer[4096];
    const char *now;

    *value++ = 0;
    if (value[-2] != '+') {
        now = getenv(word);
        return now && strcmp(now, value) == 0 ? 0 : !setenv(word, value, 1);
    }
    value[-2] = 0;
    now = getenv(word);
    if (!now ||
        (strlen(now) >= strlen(value) && strcmp(now + strlen(now) - strlen(value), value) == 0))
        return 0;
    snprintf(longer, sizeof longer, "%s%s", now, value);
    return !setenv(word, longer, 1);
}

/* The driver reads its settings when it is loaded, so a row's stand in the environment before that:
 * the program starts itself again. */
static void settle(const struct row *row)
{
    char text[256], *rest = NULL;
    int changed = 0;

    snprintf(text, sizeof text, "%s", row->settings);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        changed |= set(word);
    if (!changed) return;
    execl(program_invocation_name, program_invocation_name, row->id, (char *)NULL);
    perror(program_invocation_name);
    exit(2);
}

static int run_here(const struct row *row)
{
    settle(row);
    alarm(patience(20));
    row->run();
    return failures != 0;
}

static int run_apart(const struct row *row)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        execl(program_invocation_name, program_invocation_name, row->id, (char *)NULL);
        _exit(2);
    }
    waitpid(child, &status, 0);
    if (status) fprintf(stderr, "row %s, %s: failed\n", row->id, row->title);
    else printf("%s\n", row->id), fflush(stdout); /* a child must not have it too */
    return status != 0;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    int found = 0, bad = 0;

    for (struct row *row = rows; row; row = row->next) {
        if (wanted && strcmp(wanted, row->id) == 0) return run_here(row);
        if (wanted && strcmp(wanted, "list") != 0) continue;
        if (wanted) printf("%s\t%s\n", row->id, row->title);
        else bad += run_apart(row);
        found++;
    }
    if (!found) fprintf(stderr, "%s: no such row\n", wanted ? wanted : "none");
    return bad || !found;
}
