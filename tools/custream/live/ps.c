/* custream ps: lists the processes that listen, and what they record. */
#include "tools/custream/flags.h"
#include "tools/custream/verdict.h"
#include "tools/custream/live/live.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PS_VERSION = 1
}; /* the version of the JSON; grows when a member goes away or changes its meaning */

/* Returns the size of the process's file in bytes; -1: not known. */
static long long file_size(const struct listener *listener)
{
    struct stat about;
    char path[TRACE_ROOM];
    const int fd = listener->answers && *listener->about.trace
                       ? trace_find(listener->peer.pid, listener->about.trace,
                             &(struct file_id){listener->about.device, listener->about.inode}, path)
                       : -1;
    const long long size = fd < 0 || fstat(fd, &about) ? -1 : (long long)about.st_size;
    if (fd >= 0) close(fd);
    return size;
}

/* --- for people --- */

/* Returns a number of bytes as "1.2M", "-" for -1; the caller frees the text. */
static char *size_text(long long bytes)
{
    char text[32];
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1000 && unit < 4; unit++) size /= 1024;
    if (bytes < 0) return kept("-");
    snprintf(text, sizeof text, unit ? "%.*f%c" : "%.*f", unit && size < 10, size, "BKMGT"[unit]);
    return kept(text);
}

enum { PID, RANK, PROGRAM, RECORDING, CALLS, SIZE, FILE_, COLUMNS };

static void cells_make(char *cells[COLUMNS], const struct listener *listener)
{
    char number[32], state[256];
    const struct about *about = &listener->about;
    const bool answers = listener->answers;
    snprintf(number, sizeof number, "%d", listener->peer.pid);
    cells[PID] = kept(number);
    snprintf(number, sizeof number, "%d", about->rank);
    cells[RANK] = kept(answers && about->rank >= 0 ? number : "-");
    cells[PROGRAM] = kept(listener->command);
    if (!answers) snprintf(state, sizeof state, "not known (%.200s)", listener->peer.error);
    else if (about->recording) snprintf(state, sizeof state, "on");
    else snprintf(state, sizeof state, "off (%.200s)", about->why_not);
    cells[RECORDING] = kept(state);
    snprintf(number, sizeof number, "%llu", about->recorded);
    cells[CALLS] = kept(answers ? number : "-");
    cells[SIZE] = size_text(file_size(listener));
    cells[FILE_] = kept(answers && *about->trace ? about->trace : "-");
}

static void line_print(char *const cells[COLUMNS], const int width[COLUMNS])
{
    for (int c = 0; c < FILE_; c++) {
        const bool number = c == PID || c == RANK || c == CALLS || c == SIZE;
        const int blanks = width[c] - text_columns(cells[c]);
        if (number) printf("%*s", blanks, "");
        text_put(stdout, cells[c]);
        printf("%*s", number ? 2 : blanks + 2, "");
    }
    text_put(stdout, cells[FILE_]);
    putchar('\n');
}

static void table_print(const struct listeners *listeners)
{
    char *const heads[COLUMNS] = {"PID", "RANK", "PROGRAM", "RECORDING", "CALLS", "SIZE", "FILE"};
    char *(*rows)[COLUMNS] = array_zeros(listeners->count, sizeof *rows);
    int width[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) width[c] = (int)strlen(heads[c]);
    for (size_t i = 0; i < listeners->count; i++) {
        cells_make(rows[i], listeners->each[i]);
        for (int c = 0; c < COLUMNS; c++)
            if (width[c] < text_columns(rows[i][c])) width[c] = text_columns(rows[i][c]);
    }
    line_print(heads, width);
    for (size_t i = 0; i < listeners->count; i++) {
        line_print(rows[i], width);
        for (int c = 0; c < COLUMNS; c++) free(rows[i][c]);
    }
    free(rows);
}

static cJSON *number_or_null(bool known, double number)
{
    return known ? cJSON_CreateNumber(number) : cJSON_CreateNull();
}

static void listeners_write(const struct listeners *listeners)
{
    printf("{\"custream_ps\":%d,\"tool\":\"custream " CUSTREAM_VERSION_STRING "\",\"processes\":[",
        PS_VERSION);
    for (size_t i = 0; i < listeners->count; i++) {
        const struct listener *listener = listeners->each[i];
        const struct about *about = &listener->about;
        const bool answers = listener->answers;
        const long long size = file_size(listener);
        const struct json_member members[] = {
            {"pid", cJSON_CreateNumber(listener->peer.pid)},
            {"rank", number_or_null(answers && about->rank >= 0, about->rank)},
            {"program", text_or_null(answers ? about->program : NULL)},
            {"command", cJSON_CreateString(listener->command)},
            {"recording", answers ? cJSON_CreateBool(about->recording) : cJSON_CreateNull()},
            {"why_not", text_or_null(answers ? about->why_not : listener->peer.error)},
            {"file", text_or_null(answers ? about->trace : NULL)},
            {"size", number_or_null(size >= 0, (double)size)},
            {"calls", number_or_null(answers, (double)about->recorded)},
            {"lost", number_or_null(answers, (double)about->lost)},
            {"gpu_operations", number_or_null(answers, (double)about->works)},
            {"streams", number_or_null(answers, (double)about->streams)},
            {"gpu_times", text_or_null(answers ? about->gpu : NULL)},
        };
        puts(i ? "," : "");
        json_row_put(members, CS_COUNT(members));
    }
    puts("\n]}");
}

/* --- the command --- */

int command_ps(int argc, char **argv)
{
    struct listeners listeners;
    bool json = false;
    while (flags_next(argc, argv, 0) != -1) json = true;
    if (optind < argc) return complain("custream ps", "takes nothing but --json");
    setlocale(LC_CTYPE, "C.UTF-8");
    listeners_find("custream ps", &listeners);
    if (json) listeners_write(&listeners);
    else if (listeners.count) table_print(&listeners);
    else if (!listeners.left_out)
        complain("custream ps",
            "no process of yours listens; one does once it calls CUDA under 'custream run'");
    const bool all = !listeners.left_out;
    listeners_free(&listeners);
    return all ? STATUS_OK : STATUS_BROKEN;
}
