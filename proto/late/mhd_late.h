/* proto/late/mhd_late.h: libmicrohttpd as its own header has it, but loaded when it is needed: see proto/late/late.h. */
#pragma once

#include "proto/late/mhd_functions.h"

#define MHD_add_response_footer           (mhd_late()->MHD_add_response_footer)
#define MHD_add_response_header           (mhd_late()->MHD_add_response_header)
#define MHD_create_response_from_buffer   (mhd_late()->MHD_create_response_from_buffer)
#define MHD_create_response_from_callback (mhd_late()->MHD_create_response_from_callback)
#define MHD_destroy_response              (mhd_late()->MHD_destroy_response)
#define MHD_get_connection_info           (mhd_late()->MHD_get_connection_info)
#define MHD_get_response_header           (mhd_late()->MHD_get_response_header)
#define MHD_lookup_connection_value       (mhd_late()->MHD_lookup_connection_value)
#define MHD_queue_response                (mhd_late()->MHD_queue_response)
#define MHD_resume_connection             (mhd_late()->MHD_resume_connection)
#define MHD_set_connection_option         (mhd_late()->MHD_set_connection_option)
#define MHD_start_daemon                  (mhd_late()->MHD_start_daemon)
#define MHD_stop_daemon                   (mhd_late()->MHD_stop_daemon)
#define MHD_suspend_connection            (mhd_late()->MHD_suspend_connection)
