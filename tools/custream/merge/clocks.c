#include "tools/custream/merge/clocks.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/custream/command.h"
#include "tools/custream/show.h"

static const char NAME[] = "custream merge";

/* NULL: the complaint was printed. A clock is a few hundred bytes. */
static char *file_text(const char *path)
{
    enum { MOST = 256 << 20 };
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t length = 0, capacity = 0;
    while (file && length < MOST) {
        text = array_room(text, length + 1, &capacity, 1);
        const size_t got = fread(text + length, 1, capacity - length - 1, file);
        length += got;
        if (!got) break;
    }
    const bool good = file && !ferror(file);
    if (!good) complain(NAME, "%s: %s", path, strerror(errno));
    if (file) fclose(file);
    if (!good) return free(text), NULL;
    text[length] = 0;
    return text;
}

/* What is beyond these is no clock, and no moment: times that are moved by it stay numbers of 64 bits. */
static const double AHEAD_MOST = 9e15, DRIFT_MOST = 1e7, MOMENT_MOST = 9e18;

static bool number_of(const cJSON *in, const char *name, double *number)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(in, name);
    if (!cJSON_IsNumber(found) || !isfinite(found->valuedouble)) return false;
    *number = found->valuedouble;
    return true;
}

static bool jumps_of(const cJSON *in, struct clock *clock)
{
    const cJSON *jump, *jumps = cJSON_GetObjectItemCaseSensitive(in, "jumps");
    cJSON_ArrayForEach(jump, jumps) {
        const cJSON *at = cJSON_GetArrayItem(jump, 0), *size = cJSON_GetArrayItem(jump, 1);
        if (!cJSON_IsNumber(at) || !cJSON_IsNumber(size) || clock->jump_count == CLOCK_JUMPS) return false;
        if (!(fabs(at->valuedouble) <= MOMENT_MOST && fabs(size->valuedouble) <= AHEAD_MOST)) return false;
        clock->jumps[clock->jump_count++] = (struct jump){at->valuedouble, size->valuedouble};
    }
    return cJSON_IsArray(jumps);
}

static bool clock_read(const cJSON *in, struct clock *clock)
{
    double rank = -1, collectives = 0;
    *clock = (struct clock){0};
    const struct {
        const char *name;
        double *number;
    } numbers[] = {{"rank", &rank},          {"offset_ns", &clock->offset_ns}, {"drift_ppb", &clock->drift_ppb}, {"at_ns", &clock->at_ns},
                   {"error_ns", &clock->error_ns}, {"collectives", &collectives}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!number_of(in, numbers[i].name, numbers[i].number)) return false;
    clock->rank = rank >= 0 && rank <= UINT32_MAX ? (uint64_t)rank : UINT64_MAX;
    clock->known = collectives > 0;
    const bool sane = fabs(clock->drift_ppb) <= DRIFT_MOST && fabs(clock->offset_ns) <= AHEAD_MOST && fabs(clock->at_ns) <= MOMENT_MOST && clock->error_ns >= 0 && clock->error_ns <= AHEAD_MOST;
    return sane && clock->rank != UINT64_MAX && jumps_of(in, clock);
}

static int by_rank(const void *left, const void *right)
{
    const struct clock *a = left, *b = right;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

bool clocks_read(struct clocks *clocks, const char *path)
{
    char *text = file_text(path);
    if (!text) return false;
    cJSON *all = cJSON_Parse(text);
    const cJSON *row, *rows = cJSON_GetObjectItemCaseSensitive(all, "clocks");
    double form = 0;
    bool good = number_of(all, "custream_clocks", &form) && form == 1 && cJSON_IsArray(rows);
    clocks->rows = calloc(good ? (size_t)cJSON_GetArraySize(rows) + 1 : 1, sizeof *clocks->rows);
    if (!clocks->rows) out_of_memory();
    if (good) cJSON_ArrayForEach(row, rows) good = good && clock_read(row, &clocks->rows[clocks->count++]);
    qsort(clocks->rows, clocks->count, sizeof *clocks->rows, by_rank);
    cJSON_Delete(all);
    free(text);
    if (!good) complain(NAME, "%s: has no clocks: 'custream fleet --clocks FILE' writes them", path);
    return good;
}

void clocks_free(struct clocks *clocks)
{
    free(clocks->rows);
    *clocks = (struct clocks){0};
}

const struct clock *clock_of(const struct clocks *clocks, uint64_t rank)
{
    const struct clock wanted = {.rank = rank};
    return clocks->count ? bsearch(&wanted, clocks->rows, clocks->count, sizeof wanted, by_rank) : NULL;
}

int64_t clock_ahead(const struct clock *clock, int64_t at)
{
    double ahead = clock->offset_ns + clock->drift_ppb * 1e-9 * ((double)at - clock->at_ns);
    for (int i = 0; i < clock->jump_count; i++) {
        const struct jump *jump = &clock->jumps[i];
        const double since = 0.99 * ((double)at - jump->at_ns); /* with the drift, never faster than time */
        if (jump->size_ns <= 0) ahead += since >= 0 ? jump->size_ns : 0;
        else ahead += since <= 0 ? 0 : since < jump->size_ns ? since : jump->size_ns; /* what it passed over is one moment */
    }
    return llround(ahead);
}
