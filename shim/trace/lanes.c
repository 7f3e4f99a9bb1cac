#define _GNU_SOURCE
#include "shim/trace/lanes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/clock.h"
#include "shim/calls/calls.h"
#include "shim/object/given.h"
#include "shim/trace/output.h"
#include "shim/trace/path.h"

static cs_u32 host_pid;
static bool device_announced[CS_GPU_PIDS];

cs_u32 cs_host_pid(void) { return host_pid; }

/* The files with threads' names, which may change later: kept open, so that a program that shuts itself in sees no more than a read. */
enum { KEPT = 64 };
static struct {
    cs_u32 tid; /* 0: none */
    int fd;
} kept[KEPT];

static cs_u32 files, alive;
cs_u32 cs_lanes_file(void) { return files; }
cs_u32 cs_lanes_alive(void) { return alive; }

void cs_lanes_begin(bool part)
{
    files++;
    alive = 0;
    host_pid = (cs_u32)getpid();
    if (host_pid < CS_GPU_PIDS) host_pid += CS_HOST_PID_SHIFT;
    memset(device_announced, 0, sizeof device_announced);
    for (int i = 0; !part && i < KEPT; i++) kept[i].tid = 0; /* in a fork's child the parent's numbers are none */
    for (struct cs_thread *t = cs_load_acq(&cs_threads); t; t = t->next) t->announced = false, t->part_since_ns = part ? t->last_end_ns : 0;
    for (cs_u32 i = 0; i < cs_load(&cs_streams.high) && i < cs_streams.capacity; i++) {
        struct cs_stream *stream = (struct cs_stream *)cs_pool_slot(&cs_streams, i);
        stream->announced = false;
        if (!part) stream->continued = stream->over = false, stream->shown_from_ns = 0;
    }
}

void cs_lane_process(void)
{
    char name[256], label[300];
    cs_process_name(name);
    cs_commit(cs_meta_name(cs_draft(), CS_META_PROCESS, cs_host_lane(host_pid), name));
    if (host_pid == (cs_u32)getpid()) return;
    snprintf(label, sizeof label, "pid %d", (int)getpid()); /* the real one, in a container where it is small */
    cs_commit(cs_meta_label(cs_draft(), cs_host_lane(host_pid), label));
}

static void comm_of(const struct cs_thread *thread, char name[16])
{
    char file[64], text[32] = "";
    int *fd = &kept[thread->index % KEPT].fd;
    cs_u32 *tid = &kept[thread->index % KEPT].tid;
    ssize_t n = *tid == thread->tid ? pread(*fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0) { /* another thread's, or that one has ended */
        if (*tid) close(*fd);
        snprintf(file, sizeof file, "/proc/self/task/%u/comm", thread->tid);
        *fd = open(file, O_RDONLY | O_CLOEXEC);
        *tid = *fd >= 0 ? thread->tid : 0;
        n = *tid ? pread(*fd, text, sizeof text - 1, 0) : -1;
    }
    if (n > 0 && text[n - 1] == '\n') text[n - 1] = 0;
    memcpy(name, text, 15);
    name[15] = 0;
}

void cs_lane_thread(struct cs_thread *thread, bool again)
{
    char name[16], shown[600];
    if (thread->announced && !again) return;
    comm_of(thread, name);
    bool done = cs_load_acq(&thread->state) == CS_THREAD_DONE;
    if (!*name || done) memcpy(name, thread->comm, sizeof name);
    cs_name given = done ? thread->given : cs_given_thread_name(thread->tid);
    if (thread->announced && given == thread->given_shown && (!*name || !strcmp(name, thread->name))) return;
    memcpy(thread->name, name, sizeof name);
    thread->given_shown = given;
    thread->announced = true;
    snprintf(shown, sizeof shown, "%s%s", given ? cs_name_text(given) : *name ? name : "thread", thread->is_driver ? " (CUDA callbacks)" : "");
    cs_commit(cs_meta_name(cs_draft(), CS_META_THREAD, cs_host_lane(thread->tid), shown));
}

static void stream_name(const struct cs_stream *stream, char *name, size_t size)
{
    int n = snprintf(name, size, "stream %u", stream->lane);
    if (stream->name_shown) n += snprintf(name + n, size - (size_t)n, " '%.128s'", cs_name_text(stream->name_shown));
    switch (stream->origin) {
    case CS_STREAM_LEGACY: snprintf(name + n, size - (size_t)n, " default (legacy)"); return;
    case CS_STREAM_PER_THREAD:
        snprintf(name + n, size - (size_t)n, " default (per-thread, thread %s)", stream->owner);
        return;
    default: break;
    }
    if (stream->priority) n += snprintf(name + n, size - (size_t)n, " prio %d", stream->priority);
    if (stream->flags & CU_STREAM_NON_BLOCKING) n += snprintf(name + n, size - (size_t)n, " non-blocking");
    if (stream->green) n += snprintf(name + n, size - (size_t)n, " green context");
    if (stream->library) n += snprintf(name + n, size - (size_t)n, " (%.100s)", cs_name_text(stream->library));
    if (stream->origin == CS_STREAM_ADOPTED) snprintf(name + n, size - (size_t)n, " adopted");
}

void cs_lane_named(cs_u32 pid, cs_u32 tid, const char *name, cs_u32 order)
{
    cs_commit(cs_meta_name(cs_draft(), CS_META_THREAD, cs_lane_at(pid, tid), name));
    cs_commit(cs_meta_order(cs_draft(), CS_META_THREAD, cs_lane_at(pid, tid), order));
}

void cs_lane_device(int device)
{
    char name[300];
    if (device < 0 || device >= CS_GPU_PIDS || device_announced[device]) return;
    device_announced[device] = true;
    snprintf(name, sizeof name, "GPU %d %s", device, cs_device_name(device));
    cs_commit(cs_meta_name(cs_draft(), CS_META_PROCESS, cs_lane_at((cs_u32)device, 7), name));
    cs_commit(cs_meta_order(cs_draft(), CS_META_PROCESS, cs_lane_at((cs_u32)device, 7), 5000000 + (cs_u32)device));
}

/* What a policy made of the stream: asked and given stand beside each other. */
static struct cs_draft policy_args(struct cs_draft e, struct cs_stream *stream)
{
    char rule[32];
    if (stream->flags_asked != stream->flags) e = cs_arg_uint(e, "requested flags", stream->flags_asked);
    stream->rule_shown = stream->rule;
    snprintf(rule, sizeof rule, "rules[%u]", stream->rule - 1u);
    if (stream->rule) e = cs_arg_word(e, "rule", rule);
    if (stream->steered) e = cs_arg_bool(e, "changed by policy", true);
    if (stream->pool_place) e = cs_arg_uint(e, "pool place", stream->pool_place);
    if (stream->serial) e = cs_arg_word(e, "serial", "its work is the carrier's");
    if (stream->ours) e = cs_arg_word(e, "serial", "carrier");
    if (stream->redirected) e = cs_arg_bool(e, "redirected", true);
    if (cs_load(&stream->muted)) e = cs_arg_bool(e, "recorded", false);
    return e;
}

static const char *const origins[] = {"created", "adopted: first seen in use", "legacy default", "per-thread default"};

static struct cs_draft life_args(struct cs_draft e, struct cs_stream *stream)
{
    e = cs_arg_uint(e, "cs.stream", stream->lane);
    e = cs_arg_word(e, "origin", origins[stream->origin]);
    if (stream->origin <= CS_STREAM_ADOPTED) {
        e = cs_arg_hex(e, "handle", stream->key);
        if (!cs_load_acq(&stream->unasked)) e = cs_arg_uint(e, "flags", stream->flags);
        e = cs_arg_int(e, "priority", stream->priority);
        e = cs_arg_int(e, "requested priority", stream->priority_asked);
    }
    if (stream->call) {
        e = cs_arg_word(e, "created by", cs_call_info[stream->call].name);
        e = cs_arg_text(e, "library", cs_name_text(stream->library), 256);
    }
    e = policy_args(e, stream);
    if (stream->green) e = cs_arg_hex(e, "green context", stream->green);
    if (stream->continued) e = cs_arg_bool(e, "continued", true);
    return cs_arg_uint(e, "thread", stream->tid);
}

void cs_lane_stream(struct cs_stream *stream)
{
    char name[512];
    const struct cs_lane lane = cs_lane_at((cs_u32)stream->device, stream->lane);
    cs_name given = cs_load_acq(&stream->name);
    if (stream->announced && given == stream->name_shown) return;
    bool again = stream->announced;
    stream->announced = true;
    alive += !again;
    if (!stream->shown_from_ns) stream->shown_from_ns = cs_clock_ns(stream->created);
    stream->name_shown = given;
    cs_lane_device(stream->device);
    stream_name(stream, name, sizeof name);
    cs_commit(cs_meta_name(cs_draft(), CS_META_THREAD, lane, name));
    if (again) return;
    cs_commit(cs_meta_order(cs_draft(), CS_META_THREAD, lane, stream->lane));
    struct cs_draft e = cs_life_begins(cs_draft(), "cs_stream", cs_title_given(name, sizeof name), lane, stream->shown_from_ns);
    cs_commit(cs_args_end(life_args(e, stream)));
}

void cs_lane_stream_ended(struct cs_stream *stream, cs_u64 ns)
{
    alive -= stream->announced;
    stream->announced = false;
    stream->continued = true;
    stream->shown_from_ns = ns;
}
