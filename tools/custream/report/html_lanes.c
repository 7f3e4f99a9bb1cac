#define _GNU_SOURCE /* qsort_r */
/* The lanes of a device: pictures over the same time, from the device's first work to its last. A
 * lane with few pieces shows each piece, with a title. A lane with more pieces has LANE_COLUMNS
 * columns. A column shows the class that took most of its time, as high as the share of its time
 * that is filled. */
#include "tools/custream/report/inside.h"

enum {
    LANE_COLUMNS = 2000,
    LANE_HEIGHT = 8, /* steps in which a column's height shows how much of it is filled */
    PIECES_SHOWN = 400,
    STREAMS_SHOWN = 32,
    CLASSES = (int)CAUSES > (int)WORK_KINDS ? (int)CAUSES : (int)WORK_KINDS,
};

/* A piece of a lane. Its CSS class is a letter ("c": cause, "k": kind of work) and a number. */
struct piece {
    int64_t begin, end;
    int class;
    uint32_t row; /* the index in run->works or idles->rows */
};

struct lane {
    FILE *file;
    const struct model *of;
    const struct device_usage *span; /* the time that the lane shows */
    char letter;
    struct piece *pieces;
    size_t count, capacity;
};

static void lane_add(struct lane *lane, int64_t begin, int64_t end, int class, size_t row)
{
    array_add(lane->pieces, lane->count, lane->capacity,
        (struct piece){begin, end, class, (uint32_t)row});
}

static double column_of(const struct lane *lane, int64_t time)
{
    const double column = (double)(time - lane->span->begin) * LANE_COLUMNS /
                          (double)(lane->span->end - lane->span->begin);
    return column < 0 ? 0 : column > LANE_COLUMNS ? LANE_COLUMNS : column;
}

static void rectangle_put(const struct lane *lane, int class, double from, double to, int height)
{
    fprintf(lane->file, "<rect class=\"%c%d\" x=\"%.6g\" width=\"%.4g\" y=\"%d\" height=\"%d\"",
        lane->letter, class, from, to - from, LANE_HEIGHT - height, height);
}

/* --- few pieces --- */

static void piece_title(const struct lane *lane, const struct piece *piece)
{
    const struct run *run = &lane->of->run;
    const bool work = lane->letter == 'k';
    html_put(lane->file,
        work ? text_in(run, run->works[piece->row].name) : cause_info[piece->class].title);
    fprintf(lane->file, ": %s, from %s on", SHOWN(UNIT_NS, piece->end - piece->begin),
        SHOWN(UNIT_NS, piece->begin - lane->span->begin));
    const uint32_t next = work ? NONE : lane->of->idles.rows[piece->row].next;
    if (next == NONE) return;
    fputs(", before ", lane->file);
    html_put(lane->file, text_in(run, run->works[next].name));
}

static void pieces_put(const struct lane *lane)
{
    for (size_t i = 0; i < lane->count; i++) {
        const struct piece *piece = &lane->pieces[i];
        const double from = column_of(lane, piece->begin), to = column_of(lane, piece->end);
        rectangle_put(lane, piece->class, from, to - from < 1 ? from + 1 : to, LANE_HEIGHT);
        fputs("><title>", lane->file);
        piece_title(lane, piece);
        fputs("</title></rect>", lane->file);
    }
}

/* --- many pieces --- */

/* The share of each column that each class fills. `part`: the shares of pieces that fill only a
 * part of the column. `full`: 1 for each piece whose full columns begin here, -1 for each whose
 * full columns have ended. */
struct fill {
    double part[LANE_COLUMNS + 1][CLASSES], full[LANE_COLUMNS + 1][CLASSES];
};

static void fill_add(struct fill *fill, int class, double from, double to)
{
    enum {
        LEAST_SHOWN = 16
    }; /* a short piece fills at least 1/16 of a column, so that it is seen */
    const int first = (int)from, last = (int)to;
    if (to - from < 1.0 / LEAST_SHOWN) to = from + 1.0 / LEAST_SHOWN;
    if (first == last) {
        fill->part[first][class] += to - from;
        return;
    }
    fill->part[first][class] += first + 1 - from;
    fill->part[last][class] += to - last;
    fill->full[first + 1][class] += 1;
    fill->full[last][class] -= 1;
}

/* Returns the class that takes most of a column. *height: how many steps of the column are filled;
 * 0: none. `full`: how many pieces of each class fill the column before as a whole; this call
 * changes these numbers to those of `column`. */
static int column_class(const struct fill *fill, int column, double full[CLASSES], int *height)
{
    int most = 0;
    double all = 0, size[CLASSES];
    for (int class = 0; class < CLASSES; class ++) {
        full[class] += fill->full[column][class];
        size[class] = full[class] + fill->part[column][class];
        all += size[class];
        if (size[class] > size[most]) most = class;
    }
    *height = all <= 1e-9 ? 0 : (int)ceil(fmin(all, 1) * LANE_HEIGHT - 1e-9);
    if (all > 1e-9 && !*height) *height = 1;
    return most;
}

static void columns_put(const struct lane *lane)
{
    struct fill *fill = array_zeros(1, sizeof *fill);
    double full[CLASSES] = {0};
    int begun = 0, class = 0, height = 0;
    for (size_t i = 0; i < lane->count; i++)
        fill_add(fill, lane->pieces[i].class, column_of(lane, lane->pieces[i].begin),
            column_of(lane, lane->pieces[i].end));
    for (int column = 0; column <= LANE_COLUMNS; column++) {
        int height_now = 0;
        const int now = column < LANE_COLUMNS ? column_class(fill, column, full, &height_now) : 0;
        if (now == class && height_now == height) continue;
        if (height) rectangle_put(lane, class, begun, column, height), fputs("/>", lane->file);
        begun = column, class = now, height = height_now;
    }
    free(fill);
}

/* --- lanes --- */

/* Draws the pieces and forgets them. */
static void lane_put(struct lane *lane, const char *name, const char *description)
{
    fputs("<div class=\"lane\"><span title=\"", lane->file);
    html_put(lane->file, name);
    fputs("\">", lane->file);
    html_put(lane->file, name);
    fprintf(lane->file,
        "</span><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
        LANE_COLUMNS, LANE_HEIGHT);
    html_put(lane->file, description);
    fputs("\">", lane->file);
    if (lane->count <= PIECES_SHOWN) pieces_put(lane);
    else columns_put(lane);
    fputs("</svg></div>\n", lane->file);
    lane->count = 0;
}

static void idle_lane_put(struct lane *lane, size_t device)
{
    const struct idles *idles = &lane->of->idles;
    lane->letter = 'c';
    for (size_t i = 0; i < idles->count; i++)
        if (idles->rows[i].device == device)
            lane_add(lane, idles->rows[i].begin, idles->rows[i].end, (int)idles->rows[i].cause, i);
    lane_put(
        lane, "idle, by cause", "When the GPU was idle; the tables below have the same in numbers");
}

static int by_works(const void *left, const void *right, void *of)
{
    const struct run *run = of;
    const struct stream *a = &run->streams[*(const uint32_t *)left],
                        *b = &run->streams[*(const uint32_t *)right];
    return ORDER(b->works, a->works) ?: ORDER(a->lane, b->lane);
}

static int by_lane(const void *left, const void *right, void *of)
{
    const struct run *run = of;
    return ORDER(
        run->streams[*(const uint32_t *)left].lane, run->streams[*(const uint32_t *)right].lane);
}

/* Returns the streams of a device that have work: first the STREAMS_SHOWN streams with the most
 * work, in the order of their lanes. *count: how many streams. */
static uint32_t *streams_of(const struct run *run, size_t device, size_t *count)
{
    uint32_t *streams = NULL;
    size_t capacity = 0;
    *count = 0;
    for (size_t s = 0; s < run->stream_count; s++) {
        if (run->streams[s].device == device && run->streams[s].works)
            array_add(streams, *count, capacity, (uint32_t)s);
    }
    if (*count) {
        qsort_r(streams, *count, sizeof *streams, by_works, (void *)run);
        qsort_r(streams, *count < STREAMS_SHOWN ? *count : STREAMS_SHOWN, sizeof *streams, by_lane,
            (void *)run);
    }
    return streams;
}

static void stream_lanes_put(struct lane *lane, const struct groups *by, size_t device)
{
    const struct run *run = &lane->of->run;
    size_t count;
    uint32_t *streams = streams_of(run, device, &count);
    lane->letter = 'k';
    for (size_t s = 0; s < count && s < STREAMS_SHOWN; s++) {
        char description[SHOWN_MAX + 32];
        const struct stream *stream = &run->streams[streams[s]];
        for (uint32_t i = by->begins[streams[s]]; i < by->begins[streams[s] + 1]; i++) {
            const struct work *work = &run->works[by->members[i]];
            lane_add(lane, work->begin, work->end, (int)work->kind, by->members[i]);
        }
        snprintf(
            description, sizeof description, "%s pieces of work", SHOWN(UNIT_COUNT, lane->count));
        lane_put(lane, text_in(run, stream->name), description);
    }
    if (count > STREAMS_SHOWN)
        fprintf(lane->file, "<p>and %zu more streams, with less work each: --csv has all</p>\n",
            count - STREAMS_SHOWN);
    free(streams);
}

static void device_put(FILE *file, const struct model *of, const struct groups *by, size_t device)
{
    const struct device_usage *span = &of->usage.devices[device];
    struct lane lane = {.file = file, .of = of, .span = span};
    if (span->begin >= span->end) return;
    fprintf(file, "<h3>GPU %u ", of->run.devices[device].ordinal);
    html_put(file, text_in(&of->run, of->run.devices[device].name));
    fputs("</h3>\n<div class=\"lanes\">\n", file);
    idle_lane_put(&lane, device);
    stream_lanes_put(&lane, by, device);
    fputs("<div class=\"lane axis\"><span></span><div>", file);
    for (int quarter = 0; quarter <= 4; quarter++)
        fprintf(file, "<span>%s</span>",
            SHOWN(UNIT_NS, (double)(span->end - span->begin) * quarter / 4));
    fputs("</div></div></div>\n", file);
    free(lane.pieces);
}

static void legend_entry(FILE *file, char letter, int class, const char *name)
{
    fprintf(file,
        "<li><svg viewBox=\"0 0 32 %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect "
        "class=\"%c%d\" width=\"32\" height=\"%d\"/></svg>",
        LANE_HEIGHT, letter, class, LANE_HEIGHT);
    html_put(file, name);
    fputs("</li>", file);
}

static void legend_put(FILE *file)
{
    fputs("<ul class=\"legend\">", file);
    for (int cause = 0; cause < CAUSES; cause++)
        legend_entry(file, 'c', cause, cause_info[cause].title);
    for (int kind = 0; kind < WORK_KINDS; kind++)
        legend_entry(file, 'k', kind, work_kind_name[kind]);
    fputs("</ul>\n", file);
}

void lanes_print(FILE *file, const struct model *of)
{
    if (!of->run.work_count) return;
    struct groups by = GROUPS(of->run.stream_count, of->run.works, of->run.work_count, stream);
    fputs("<section id=\"lanes\">\n<h2>Lanes</h2>\n", file);
    legend_put(file);
    for (size_t device = 0; device < of->run.device_count; device++)
        device_put(file, of, &by, device);
    fputs("</section>\n", file);
    groups_free(&by);
}
