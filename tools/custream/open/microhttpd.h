/*
 * libmicrohttpd, opened when it is needed: Debian's brings GnuTLS along, which every `custream run` would load and start, and the other subcommands work
 * where it is not installed.
 */
#ifndef CS_OPEN_MICROHTTPD_H
#define CS_OPEN_MICROHTTPD_H

#include <microhttpd.h>
#include <stdbool.h>

/* The functions that we call, `start` for MHD_start_daemon. */
#define MICROHTTPD_CALLS(CALL)                                                                                                                       \
    CALL(start, MHD_start_daemon) CALL(stop, MHD_stop_daemon) CALL(run, MHD_run) CALL(timeout, MHD_get_timeout) CALL(info, MHD_get_daemon_info)      \
    CALL(header_get, MHD_lookup_connection_value) CALL(header_add, MHD_add_response_header) CALL(of_buffer, MHD_create_response_from_buffer)         \
    CALL(of_file, MHD_create_response_from_fd64)                     \
    CALL(of_callback, MHD_create_response_from_callback) CALL(queue, MHD_queue_response) CALL(destroy, MHD_destroy_response)

#define MICROHTTPD_MEMBER(member, name) __typeof__(&name) member;
struct microhttpd {
    MICROHTTPD_CALLS(MICROHTTPD_MEMBER)
};
#undef MICROHTTPD_MEMBER

/* False: it is not installed, or lacks a function; dlerror() says which. */
bool microhttpd_open(struct microhttpd *mhd);

#endif
