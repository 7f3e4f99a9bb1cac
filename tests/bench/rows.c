/*
 * How fast the rows of a trace are read, as by every command that asks for rows: rows TRACE
 *
 * All lines are per second of processor time of the one thread that reads.
 *   read_json_rows_per_second       rows of a JSON trace
 *   read_packets_rows_per_second    rows of a trace in Perfetto's own format
 *   read_packets_events_per_second  the same rows as TrackEvents: a slice is two, its begin and its
 *                                   end; metadata is none; any other row is one
 */
#include <string.h>

#include "tests/bench/bench.h"
#include "tools/custream/trace/row.h"

enum { ROUNDS = 3 };

struct count {
    const struct texts *texts;
    uint64_t rows, events;
};

static void count_row(void *of, const struct trace_row *row)
{
    struct count *const count = of;
    const char phase = *text_of(count->texts, row_word(row, KEY_PH));
    count->rows++;
    count->events += phase == 'X' ? 2 : phase != 'M';
}
static void skip_fact(void *of, const struct trace_fact *fact) { (void)of, (void)fact; }

int main(int argc, char **argv)
{
    double rows[ROUNDS], events[ROUNDS];
    char error[256];
    if (argc != 2) return 2;
    const bool packets = strstr(argv[1], ".pftrace");
    for (int i = 0; i < ROUNDS; i++) {
        struct texts texts;
        struct count count = {.texts = &texts};
        const struct trace_sink sink = {.of = &count, .row = count_row, .fact = skip_fact};
        const double from = seconds(CLOCK_THREAD_CPUTIME_ID);
        texts_init(&texts);
        if (trace_read(argv[1], &texts, &sink, error) != TRACE_WHOLE) return 2;
        const double took = seconds(CLOCK_THREAD_CPUTIME_ID) - from;
        rows[i] = (double)count.rows / took;
        events[i] = (double)count.events / took;
        texts_free(&texts);
    }
    line(packets ? "read_packets_rows_per_second" : "read_json_rows_per_second",
        median(rows, ROUNDS), "rows/s");
    if (packets) line("read_packets_events_per_second", median(events, ROUNDS), "TrackEvents/s");
    return 0;
}
