/* proto/late/mhd_functions.h: the functions of libmicrohttpd that we call. A further one is a row here and a line in mhd_late.h. */
#pragma once

#include <microhttpd.h>

#include "proto/late/late.h"

#define MHD_FUNCTIONS(ROW)                                                                                             \
        ROW(MHD_add_response_footer)                                                                                   \
        ROW(MHD_add_response_header)                                                                                   \
        ROW(MHD_create_response_from_buffer)                                                                           \
        ROW(MHD_create_response_from_callback)                                                                         \
        ROW(MHD_destroy_response)                                                                                      \
        ROW(MHD_get_connection_info)                                                                                   \
        ROW(MHD_get_response_header)                                                                                   \
        ROW(MHD_lookup_connection_value)                                                                               \
        ROW(MHD_queue_response)                                                                                        \
        ROW(MHD_resume_connection)                                                                                     \
        ROW(MHD_set_connection_option)                                                                                 \
        ROW(MHD_start_daemon)                                                                                          \
        ROW(MHD_stop_daemon)                                                                                           \
        ROW(MHD_suspend_connection)

struct mhd_late {
        MHD_FUNCTIONS(LATE_MEMBER)
};

/* Before anything else of libmicrohttpd is called. Returns 0; -ELIBACC with a sentence (`why` may be NULL). Any thread.
 */
int mhd_load(struct why *why);

/* The functions, once the library is loaded. */
const struct mhd_late *mhd_late(void);
