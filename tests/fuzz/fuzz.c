/*
 * What reads files of others, for libFuzzer: FUZZ=TARGET chooses. An input is a file, as far as a
 * reader takes one. Each reader must come to an end, without an error of the sanitizers'
 * (docs/tests.md).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yyjson.h>

#include "shim/base/json.h"
#include "shim/base/options.h"
#include "shim/policy/settle.h"
#include "tools/custream/command.h"
#include "tools/custream/convert/rows.h"
#include "tools/custream/merge/clocks.h"
#include "tools/custream/trace/reader.h"

static int input = -1;
static char path[64], out_folder[] = "/tmp/custream-fuzz-XXXXXX",
                      out_path[64]; /* path leads to the input */

static int call(int (*command)(int, char **), char **words)
{
    int count = 0;
    while (words[count]) count++;
    optind = 0; /* for the next command line */
    return command(count, words);
}

/* --- the targets --- */

static const char *nothing(enum cs_option id) { return id == CS_OPTION_COUNT ? "" : NULL; }

static void policy(const char *text, size_t length)
{
    struct cs_policy_file file;
    struct cs_settled settled;
    struct cs_contradiction found;
    char error[CS_POLICY_LINE];
    if (!cs_policy_file_parse(&file, "policy.json", text, length, false, error, sizeof error))
        return;
    cs_settle(&settled, &file, nothing);
    cs_settled_contradicts(&settled, &found, error, sizeof error);
    cs_policy_file_finish(&file);
}

static void check(const char *text, size_t length)
{
    (void)text, (void)length;
    call(command_check, (char *[]){"check", path, NULL});
}

static void report(const char *text, size_t length)
{
    (void)text, (void)length;
    call(command_report, (char *[]){"report", "--json", path, NULL});
}

static void put_nowhere(void *to, const char *text, size_t length)
{
    (void)to, (void)text, (void)length;
}

/* Both ways. */
static void convert(const char *text, size_t length)
{
    char error[256];
    (void)text, (void)length;
    rows_convert(path, ROWS_PACKETS | ROWS_WHOLE, put_nowhere, NULL, error);
    rows_convert(path, ROWS_WHOLE, put_nowhere, NULL, error);
}

static void recover(const char *text, size_t length)
{
    (void)text, (void)length;
    unlink(out_path);
    call(command_recover, (char *[]){"recover", path, "-o", out_path, NULL});
}

static void inspect(const char *text, size_t length)
{
    (void)text, (void)length;
    call(command_inspect, (char *[]){"inspect", "--json", path, NULL});
}

/* What the library writes for a text is a string for the strictest reader. */
static void writer(const char *text, size_t length)
{
    static char line[6 * 4096 + 2];
    if (length > 4096) length = 4096;
    const size_t n = (size_t)(cs_put_string(line, text, length) - line);
    yyjson_doc *doc = yyjson_read(line, n, 0);
    if (n > 6 * length + 2 || !doc) abort();
    yyjson_doc_free(doc);
}

/* Times that are moved by a clock stay numbers of 64 bits. */
static void clocks(const char *text, size_t length)
{
    static const int64_t moments[] = {INT64_MIN, 0, INT64_C(1790000000000000000), INT64_MAX};
    struct clocks all = {0};
    (void)text, (void)length;
    if (clocks_read(&all, path))
        for (size_t i = 0; i < all.count; i++)
            for (size_t at = 0; at < sizeof moments / sizeof *moments; at++)
                if (llabs(clock_ahead(&all.rows[i], moments[at])) > INT64_C(1000000000000000000))
                    abort();
    clocks_free(&all);
}

static const struct target {
    const char *name;
    void (*run)(const char *text, size_t length); /* a zero byte stands behind the text */
} targets[] = {{"policy", policy}, {"check", check}, {"report", report}, {"convert", convert},
    {"recover", recover}, {"inspect", inspect}, {"clocks", clocks}, {"writer", writer}};
static const struct target *chosen;

static void clean_up(void)
{
    unlink(path);
    unlink(out_path);
    rmdir(out_folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("FUZZ");
    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (name && !strcmp(targets[i].name, name)) chosen = &targets[i];
    if (!chosen || !mkdtemp(out_folder))
        fprintf(stderr, "FUZZ=%s is no target\n", name ? name : ""), exit(2);
    snprintf(out_path, sizeof out_path, "%s/out.json", out_folder);
    atexit(clean_up);
    cs_options_read();
    input = memfd_create("input", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", input);
    char *link = strdup(path);
    snprintf(path, sizeof path, "%s/in.json", out_folder);
    if (!link || symlink(link, path)) abort();
    free(link);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (ftruncate(input, 0) || pwrite(input, data, size, 0) != (ssize_t)size) abort();
    chosen->run(text, size);
    fflush(stdout);
    free(text);
    return 0;
}
