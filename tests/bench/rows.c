/*
 * How fast the rows of a trace are read, as by every command that asks for rows: rows TRACE
 *
 *   read_rows_per_second  over the processor time of the one thread that reads
 */
#include <string.h>

#include "tests/bench/bench.h"
#include "tools/custream/trace/row.h"

enum { ROUNDS = 3 };

static uint64_t rows;

static void count_row(void *of, const struct trace_row *row)
{
    (void)of, (void)row;
    rows++;
}
static void skip_fact(void *of, const struct trace_fact *fact) { (void)of, (void)fact; }

int main(int argc, char **argv)
{
    double rate[ROUNDS];
    char error[256];
    if (argc != 2) return 2;
    for (int i = 0; i < ROUNDS; i++) {
        struct texts texts;
        const struct trace_sink sink = {.row = count_row, .fact = skip_fact};
        const double from = seconds(CLOCK_THREAD_CPUTIME_ID);
        rows = 0;
        texts_init(&texts);
        if (trace_read(argv[1], &texts, &sink, error) != TRACE_WHOLE) return 2;
        rate[i] = (double)rows / (seconds(CLOCK_THREAD_CPUTIME_ID) - from);
        texts_free(&texts);
    }
    line(strstr(argv[1], ".pftrace") ? "read_packets_rows_per_second" : "read_json_rows_per_second",
        median(rate, ROUNDS), "rows/s");
    return 0;
}
