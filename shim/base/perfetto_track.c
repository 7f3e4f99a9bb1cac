/*
 * Tracks, as the file tells of them, and sequences: which track is understood where an event names none (perfetto.h).
 */
#include <stdio.h>

#include "shim/base/perfetto_inside.h"

/* --- sequences --- */

static char *put_clock(char *at, cs_u32 clock, cs_u64 ns, bool steps)
{
    char *start = cs_pf_nest(at, 1);
    at = cs_pf_uint(cs_pf_uint(start, 1, clock), 2, ns);
    return cs_pf_nested(start, steps ? cs_pf_uint(at, 3, 1) : at);
}

static char *put_defaults(char *at, cs_u64 track)
{
    char *part = cs_pf_nest(at, CS_PF_DEFAULTS), *event;
    at = cs_pf_uint(part, CS_PF_CLOCK_ID, CS_PF_CLOCK_STEPS);
    if (track) event = cs_pf_nest(at, CS_PF_TRACK_EVENT), at = cs_pf_nested(event, cs_pf_uint(event, CS_PF_TRACK_UUID, track));
    return cs_pf_nested(part, at);
}

void cs_pf_sequence_begins(struct cs_pf *pf, unsigned sequence, cs_u64 track)
{
    char *packet, *at = cs_pf_uint(cs_pf_uint(cs_pf_news(pf, &packet), CS_PF_SEQUENCE, sequence), CS_PF_SEQUENCE_FLAGS, 1);
    at = put_defaults(at, track);
    char *part = cs_pf_nest(at, CS_PF_CLOCK_SNAPSHOT);
    at = put_clock(put_clock(part, CS_PF_CLOCK_STEPS, 0, true), CS_PF_CLOCK_BOOT, 0, false);
    if (sequence == CS_PF_HOST) at = put_clock(at, CS_PF_CLOCK_REAL, pf->wall_ns, false);
    at = cs_pf_nested(part, cs_pf_uint(at, 2, CS_PF_CLOCK_BOOT));
    cs_pf_news_end(pf, packet, at);
}

/* --- tracks --- */

/* A track by what it is of: its number, and whether it is new. Where it cannot be kept it has one from the key, and is new each time. */
static cs_u64 track_of(struct cs_pf *pf, const void *what, size_t n, bool *is_new)
{
    const struct cs_pf_text text = {what, n, 0, NULL, NULL};
    const cs_u32 number = cs_pf_number(pf, CS_PF_KNOWS_TRACK, what, n, is_new);
    return number ? number : cs_pf_key_of(&text, cs_pf_of(CS_PF_KNOWS_TRACK, 0)) >> 16 | (cs_u64)1 << 40;
}

static char *track_begin(struct cs_pf *pf, char **packet, char **track, cs_u64 uuid)
{
    char *at = cs_pf_uint(cs_pf_news(pf, packet), CS_PF_SEQUENCE, CS_PF_OTHER);
    return cs_pf_uint(*track = cs_pf_nest(at, CS_PF_TRACK), CS_PF_UUID, uuid);
}

static void track_end(struct cs_pf *pf, char *packet, char *track, char *at) { cs_pf_news_end(pf, packet, cs_pf_nested(track, at)); }

struct lane_key {
    cs_u32 what, pid, tid;
};

static cs_u64 process_uuid(struct cs_pf *pf, cs_u32 pid, bool *is_new)
{
    const struct lane_key key = {1, pid, 0};
    return track_of(pf, &key, sizeof key, is_new);
}

static cs_u64 thread_uuid(struct cs_pf *pf, cs_u32 pid, cs_u32 tid, bool *is_new)
{
    const struct lane_key key = {2, pid, tid};
    return track_of(pf, &key, sizeof key, is_new);
}

/* Where a row stands among the others: by its number, which for a GPU says what belongs together (base/lane.h). A reader takes what the first descriptor of a
 * track says. */
static cs_u32 thread_rank(cs_u32 tid) { return tid & INT32_MAX; }
static cs_u32 process_rank(const struct cs_pf *pf, cs_u32 pid) { return pid < pf->gpu_pids ? pid + 1 : 0; }

static void thread_tell(struct cs_pf *pf, cs_u64 uuid, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *more, size_t more_n,
                        const cs_i64 *order)
{
    char text[sizeof CS_PF_MORE_MARK + CS_PF_MORE], *packet, *track, *at = track_begin(pf, &packet, &track, uuid), *thread = cs_pf_nest(at, CS_PF_THREAD);
    at = cs_pf_uint(cs_pf_uint(thread, CS_PF_PID, pid), CS_PF_TID, tid);
    if (order) at = cs_pf_uint(at, CS_PF_SORT, (cs_u64)*order);
    if (name) at = cs_pf_put_text(at, CS_PF_THREAD_NAME, name, n);
    at = cs_pf_uint(cs_pf_nested(thread, at), CS_PF_RANK, thread_rank(tid));
    if (more_n && more_n <= CS_PF_MORE) {
        memcpy(text, CS_PF_MORE_MARK, sizeof CS_PF_MORE_MARK - 1);
        memcpy(text + sizeof CS_PF_MORE_MARK - 1, more, more_n);
        at = cs_pf_bytes(at, CS_PF_DESCRIPTION, text, sizeof CS_PF_MORE_MARK - 1 + more_n);
    }
    track_end(pf, packet, track, at);
}

static cs_u32 lane_sequence(struct cs_pf *pf, cs_u32 pid, cs_u32 tid, cs_u64 track)
{
    const struct lane_key key = {4, pid, tid};
    bool is_new;
    const cs_u32 number = cs_pf_number(pf, CS_PF_KNOWS_LANE, &key, sizeof key, &is_new);
    if (!number || number > CS_PF_LANES) return 0;
    if (is_new) cs_pf_sequence_begins(pf, CS_PF_LANE + number - 1, track);
    return CS_PF_LANE + number - 1;
}

const struct cs_pf_lane *cs_pf_lane(struct cs_pf *pf, cs_u32 pid, cs_u32 tid)
{
    struct cs_pf_lane *lane = &pf->lanes[(tid / 100 * 7 + tid + pid * 37) % CS_COUNT(pf->lanes)]; /* a GPU's streams are a hundred apart */
    if (CS_LIKELY(lane->track && lane->sequence && lane->tid == tid && lane->pid == pid)) return lane;
    bool is_new;
    const cs_u64 track = thread_uuid(pf, pid, tid, &is_new);
    if (is_new) thread_tell(pf, track, pid, tid, NULL, 0, NULL, 0, NULL);
    *lane = (struct cs_pf_lane){pid, tid, lane_sequence(pf, pid, tid, track), track};
    return lane;
}

static void process_tell(struct cs_pf *pf, cs_u64 uuid, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *label, size_t label_n, const cs_i64 *order)
{
    char text[32], *packet, *track, *at = track_begin(pf, &packet, &track, uuid), *process = cs_pf_nest(at, CS_PF_PROCESS);
    at = cs_pf_uint(process, CS_PF_PID, pid);
    if (order) at = cs_pf_uint(at, CS_PF_SORT, (cs_u64)*order);
    if (name) at = cs_pf_put_text(at, CS_PF_PROCESS_NAME, name, n);
    if (label) at = cs_pf_put_text(at, CS_PF_LABEL, label, label_n);
    at = cs_pf_uint(cs_pf_nested(process, at), CS_PF_RANK, process_rank(pf, pid));
    snprintf(text, sizeof text, "tid %u", tid);
    if (tid != pid) at = cs_pf_literal(at, CS_PF_DESCRIPTION, text); /* of the row that the JSON form has for it */
    track_end(pf, packet, track, at);
}

static cs_u64 process_track(struct cs_pf *pf, cs_u32 pid)
{
    bool is_new;
    const cs_u64 uuid = process_uuid(pf, pid, &is_new);
    if (is_new) process_tell(pf, uuid, pid, pid, NULL, 0, NULL, 0, NULL);
    return uuid;
}

char *cs_pf_thread(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *more, size_t more_n, const cs_i64 *order)
{
    bool is_new;
    thread_tell(pf, thread_uuid(pf, pid, tid, &is_new), pid, tid, name, n, more, more_n, order);
    return cs_pf_news_out(pf, at);
}

char *cs_pf_process(struct cs_pf *pf, char *at, cs_u32 pid, cs_u32 tid, const char *name, size_t n, const char *label, size_t label_n, const cs_i64 *order)
{
    bool is_new;
    process_tell(pf, process_uuid(pf, pid, &is_new), pid, tid, name, n, label, label_n, order);
    return cs_pf_news_out(pf, at);
}

cs_u64 cs_pf_counter_track(struct cs_pf *pf)
{
    char what[12 + sizeof pf->counter.name + 128], name[sizeof pf->counter.name + 130], *packet, *track;
    const struct lane_key key = {3, pf->counter.pid, pf->counter.tid};
    const size_t n = pf->key_length < 128 ? pf->key_length : 128, shown = pf->counter.length + 1 + n;
    bool is_new;
    memcpy(what, &key, sizeof key);
    memcpy(name, pf->counter.name, pf->counter.length);
    name[pf->counter.length] = ' ';
    memcpy(name + pf->counter.length + 1, pf->key, n);
    memcpy(what + sizeof key, name, shown - 1 < sizeof what - sizeof key ? shown : sizeof what - sizeof key);
    what[sizeof key + pf->counter.length] = 0; /* value "b c" of counter "a" has another track than value "c" of "a b" */
    const cs_u64 uuid = track_of(pf, what, sizeof key + shown, &is_new);
    if (!is_new) return uuid;
    const cs_u64 process = process_track(pf, pf->counter.pid);
    char *at = cs_pf_put_text(track_begin(pf, &packet, &track, uuid), CS_PF_TRACK_NAME, name, shown);
    at = cs_pf_uint(at, CS_PF_PARENT, process);
    char *counter = cs_pf_nest(at, CS_PF_COUNTER_TRACK);
    at = cs_pf_nested(counter, cs_pf_put_text(counter, CS_PF_UNIT_NAME, pf->key, n));
    snprintf(what, sizeof what, "tid %u", pf->counter.tid);
    track_end(pf, packet, track, cs_pf_literal(at, CS_PF_DESCRIPTION, what));
    return uuid;
}

/* Others stand by their rank below it (Perfetto 57 and later). */
void cs_pf_root_tell(struct cs_pf *pf)
{
    char *packet, *track, *root = track_begin(pf, &packet, &track, 0);
    track_end(pf, packet, track, cs_pf_uint(cs_pf_uint(root, CS_PF_PROCESS_ORDER, 1), CS_PF_THREAD_ORDER, 1));
}
