/* The custream command: what its subcommands share. It is a process of its own and is never linked into the shim, so it may exit. */
#ifndef CS_TOOLS_COMMAND_H
#define CS_TOOLS_COMMAND_H

#include <stddef.h>

/* What every subcommand returns, to the shell in the end. `run` adds env(1)'s 126 and 127. */
enum command_status {
    STATUS_OK = 0,
    STATUS_BROKEN = 1,   /* check: a trace was read and breaks a rule; ctl: the process refused */
    STATUS_UNUSABLE = 2, /* wrong usage, or a file that cannot be read as a trace at all */
    STATUS_CONDITION = 3, /* report, diff: what --fail-if asks for holds */
    STATUS_NOT_EXECUTABLE = 126,
    STATUS_NOT_FOUND = 127,
};

/* Each is called with its own name as argv[0]. */
int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_report(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_export(int argc, char **argv);
int command_fleet(int argc, char **argv);
int command_recover(int argc, char **argv);
int command_open(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_record(int argc, char **argv);
int command_dump(int argc, char **argv);
int command_hang(int argc, char **argv);
int command_trigger(int argc, char **argv);
int command_ctl(int argc, char **argv);
int command_options(int argc, char **argv);

void run_usage(void);
void check_usage(void);
void report_usage(void);
void diff_usage(void);
void merge_usage(void);
void convert_usage(void);
void export_usage(void);
void fleet_usage(void);
void recover_usage(void);
void open_usage(void);
void inspect_usage(void);
void ps_usage(void);
void record_usage(void);
void dump_usage(void);
void hang_usage(void);
void trigger_usage(void);
void ctl_usage(void);
void options_usage(void);

/* Says so, and exits. */
void out_of_memory(void) __attribute__((noreturn));
/* Room for one more element of `size` bytes, or out_of_memory(). Returns the array, moved or not. */
void *array_room(void *array, size_t count, size_t *capacity, size_t size);

#endif
