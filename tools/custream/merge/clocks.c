#include "tools/custream/merge/clocks.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <yyjson.h>

#include "tools/custream/command.h"

static const char NAME[] = "custream merge";

/* The largest numbers that a file of clocks may have, so that moved times fit 64 bits. */
static const double AHEAD_MOST = 9e15, DRIFT_MOST = 1e7, MOMENT_MOST = 9e18;

static bool number_of(yyjson_val *value, double most, double *number)
{
    *number = yyjson_get_num(value);
    return yyjson_is_num(value) && fabs(*number) <= most;
}

static bool clock_read(yyjson_val *in, struct clock *clock)
{
    double rank, collectives;
    *clock = (struct clock){0};
    const struct {
        const char *name;
        double most, *number;
    } numbers[] = {{"rank", UINT32_MAX, &rank}, {"offset_ns", AHEAD_MOST, &clock->offset_ns},
        {"drift_ppb", DRIFT_MOST, &clock->drift_ppb}, {"at_ns", MOMENT_MOST, &clock->at_ns},
        {"error_ns", AHEAD_MOST, &clock->error_ns}, {"collectives", DBL_MAX, &collectives}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!number_of(yyjson_obj_get(in, numbers[i].name), numbers[i].most, numbers[i].number))
            return false;
    if (rank < 0 || clock->error_ns < 0) return false;
    clock->rank = (uint64_t)rank;
    clock->known = collectives > 0;
    yyjson_val *jumps = yyjson_obj_get(in, "jumps"), *jump;
    size_t i, count;
    yyjson_arr_foreach(jumps, i, count, jump) {
        if (i == CLOCK_JUMPS ||
            !number_of(yyjson_arr_get(jump, 0), MOMENT_MOST, &clock->jumps[i].at_ns) ||
            !number_of(yyjson_arr_get(jump, 1), AHEAD_MOST, &clock->jumps[i].size_ns))
            return false;
        clock->jump_count++;
    }
    return yyjson_is_arr(jumps);
}

COMPARES(by_rank, struct clock, ORDER(a->rank, b->rank))

bool clocks_read(struct clocks *clocks, const char *path)
{
    yyjson_read_err error = {0};
    yyjson_doc *doc = yyjson_read_file(path, YYJSON_READ_ALLOW_INVALID_UNICODE, NULL, &error);
    yyjson_val *all = yyjson_doc_get_root(doc), *row, *rows = yyjson_obj_get(all, "clocks");
    size_t i, count;
    if (error.code == YYJSON_READ_ERROR_FILE_OPEN || error.code == YYJSON_READ_ERROR_FILE_READ)
        return complained(NAME, "%s: %s", path, strerror(errno));
    bool good = yyjson_get_num(yyjson_obj_get(all, "custream_clocks")) == 1 && yyjson_is_arr(rows);
    clocks->rows = calloc(yyjson_arr_size(rows) + 1, sizeof *clocks->rows);
    if (!clocks->rows) out_of_memory();
    if (good)
        yyjson_arr_foreach(rows, i, count, row)
            good = good && clock_read(row, &clocks->rows[clocks->count++]);
    qsort(clocks->rows, clocks->count, sizeof *clocks->rows, by_rank);
    yyjson_doc_free(doc);
    if (!good)
        complain(NAME, "%s: has no clocks: 'custream fleet --clocks FILE' writes them", path);
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
    return clocks->count ? bsearch(&wanted, clocks->rows, clocks->count, sizeof wanted, by_rank)
                         : NULL;
}

int64_t clock_ahead(const struct clock *clock, int64_t at)
{
    double ahead = clock->offset_ns + clock->drift_ppb * 1e-9 * ((double)at - clock->at_ns);
    for (int i = 0; i < clock->jump_count; i++) {
        const struct jump *jump = &clock->jumps[i];
        /* The factor 0.99 leaves room for the drift: `ahead` has to grow more slowly than time
         * passes. */
        const double since = 0.99 * ((double)at - jump->at_ns);
        /* times that a jump forward passed over become nearly one moment */
        if (jump->size_ns <= 0) ahead += since >= 0 ? jump->size_ns : 0;
        else ahead += since <= 0 ? 0 : since < jump->size_ns ? since : jump->size_ns;
    }
    return llround(ahead);
}
