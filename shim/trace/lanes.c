#define _GNU_SOURCE
#include "shim/trace/lanes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/environment.h"
#include "shim/object/given.h"
#include "shim/out/path.h"
#include "shim/trace/stream_life.h"
#include "shim/trace/thread_row.h"

static cs_u32 host_pid;
static bool device_announced[CS_GPU_PIDS];

cs_u32 cs_host_pid(void) { return host_pid; }

/* The files with threads' names, which may change later: kept open, so that a program that shuts itself in sees no more than a read. */
enum { KEPT = 64 };
static struct {
    cs_u32 tid; /* 0: none */
    int fd;
} kept[KEPT];

/* Of the process: "rank 3 · train.py". Made once, so that a later part opens no file for it. */
static char title[300];
static void title_make(void)
{
    char name[256];
    int world, rank = cs_process_rank(&world), n = 0;
    cs_process_shown_name(name);
    if (rank >= 0) n = snprintf(title, sizeof title, "rank %d · ", rank);
    snprintf(title + n, sizeof title - (size_t)n, "%s", name);
}

cs_u32 cs_lanes_files;

void cs_lanes_begin(bool part)
{
    cs_lanes_files++;
    host_pid = (cs_u32)getpid();
    if (host_pid < CS_GPU_PIDS) host_pid += CS_HOST_PID_SHIFT;
    memset(device_announced, 0, sizeof device_announced);
    for (int i = 0; !part && i < KEPT; i++) kept[i].tid = 0; /* in a fork's child the parent's numbers are none */
    if (!part) cs_thread_rows_begin(), title_make();
    for (struct cs_thread *t = part ? cs_load_acq(&cs_threads) : NULL; t; t = t->next) {
        struct cs_thread_row *row = cs_thread_row(t);
        row->announced = false;
        row->part_since_ns = row->last_end_ns;
    }
    cs_stream_lives_begin(part);
}

void cs_lane_process(void)
{
    char label[300];
    cs_commit(cs_args_end(cs_meta_name(cs_draft(), CS_META_PROCESS, cs_host_lane(host_pid), title)));
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

void cs_lane_thread(const struct cs_thread *thread, bool again)
{
    struct cs_thread_row *row = cs_thread_row(thread);
    char name[16], shown[600];
    if (row->announced && !again) return;
    comm_of(thread, name);
    bool done = cs_load_acq(&thread->state) == CS_THREAD_DONE;
    if (!*name || done) cs_thread_comm(thread, name);
    cs_name given = done ? thread->given : cs_given_thread_name(thread->tid);
    if (row->announced && given == row->given_shown && (!*name || !strcmp(name, row->name))) return;
    memcpy(row->name, name, sizeof name);
    row->given_shown = given;
    row->announced = true;
    snprintf(shown, sizeof shown, "%s%s", given ? cs_name_text(given) : *name ? name : "thread", row->is_driver ? " (callbacks)" : "");
    cs_commit(cs_args_end(cs_meta_name(cs_draft(), CS_META_THREAD, cs_host_lane(thread->tid), shown)));
}

void cs_thread_shown_name(cs_u32 tid, char *name, size_t size)
{
    const struct cs_thread *thread = cs_load_acq(&cs_threads);
    char comm[CS_THREAD_COMM] = "";
    while (thread && thread->tid != tid) thread = thread->next;
    if (thread) cs_thread_comm(thread, comm);
    if (thread && thread->tid != tid) *comm = 0, thread = NULL; /* another thread has taken it over meanwhile */
    const cs_name given = thread && cs_load_acq(&thread->state) == CS_THREAD_DONE ? thread->given : cs_given_thread_name(tid);
    const struct cs_thread_row *row = thread ? cs_thread_row(thread) : NULL;
    snprintf(name, size, "%s", given ? cs_name_text(given) : row && row->announced && *row->name ? row->name : comm);
}

void cs_lane_named(cs_u32 tid, const char *name)
{
    const struct cs_lane lane = cs_host_lane(tid);
    cs_commit(cs_args_end(cs_meta_name(cs_draft(), CS_META_THREAD, lane, name)));
    cs_commit(cs_meta_order(cs_draft(), CS_META_THREAD, lane, tid));
}

void cs_lane_named_of_gpu(cs_u32 device, cs_u32 tid, const char *name, bool again)
{
    const struct cs_lane lane = cs_lane_at(device, tid);
    const cs_u32 stream = cs_lane_stream_of(tid);
    if (!again) cs_lane_device((int)device);
    struct cs_draft e = cs_meta_name(cs_draft(), CS_META_THREAD, lane, name);
    cs_commit(cs_args_end(cs_arg_uint(e, "cs.stream", stream < CS_LANE_LEGACY ? 0 : stream)));
    if (!again) cs_commit(cs_meta_order(cs_draft(), CS_META_THREAD, lane, tid));
}

void cs_lane_device(int device)
{
    char name[300];
    if (device < 0 || device >= CS_GPU_PIDS || device_announced[device]) return;
    device_announced[device] = true;
    const struct cs_lane lane = cs_lane_at((cs_u32)device, cs_lane_tid(CS_LANE_LEGACY, CS_LANE_WORK, 0));
    snprintf(name, sizeof name, "GPU %d %s", device, cs_device_name(device));
    cs_commit(cs_args_end(cs_meta_name(cs_draft(), CS_META_PROCESS, lane, name)));
    cs_commit(cs_meta_order(cs_draft(), CS_META_PROCESS, lane, 5000000 + (cs_u32)device));
}
