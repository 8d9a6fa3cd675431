/* fetch/late/curl_functions.h: the functions of libcurl that we call. A further one is a row here and a line in curl_late.h. */
#pragma once

#include <curl/curl.h>

#include "proto/late/late.h"

#define CURL_FUNCTIONS(ROW)                                                                                            \
        ROW(curl_easy_cleanup)                                                                                         \
        ROW(curl_easy_getinfo)                                                                                         \
        ROW(curl_easy_init)                                                                                            \
        ROW(curl_easy_pause)                                                                                           \
        ROW(curl_easy_perform)                                                                                         \
        ROW(curl_easy_reset)                                                                                           \
        ROW(curl_easy_setopt)                                                                                          \
        ROW(curl_easy_strerror)                                                                                        \
        ROW(curl_free)                                                                                                 \
        ROW(curl_getdate)                                                                                              \
        ROW(curl_global_init)                                                                                          \
        ROW(curl_multi_add_handle)                                                                                     \
        ROW(curl_multi_assign)                                                                                         \
        ROW(curl_multi_cleanup)                                                                                        \
        ROW(curl_multi_info_read)                                                                                      \
        ROW(curl_multi_init)                                                                                           \
        ROW(curl_multi_perform)                                                                                        \
        ROW(curl_multi_remove_handle)                                                                                  \
        ROW(curl_multi_setopt)                                                                                         \
        ROW(curl_multi_socket_action)                                                                                  \
        ROW(curl_slist_append)                                                                                         \
        ROW(curl_slist_free_all)                                                                                       \
        ROW(curl_url)                                                                                                  \
        ROW(curl_url_cleanup)                                                                                          \
        ROW(curl_url_get)                                                                                              \
        ROW(curl_url_set)

struct curl_late {
        CURL_FUNCTIONS(LATE_MEMBER)
};

/* Before anything else of libcurl is called. Returns 0; -ELIBACC with a sentence (`why` may be NULL). Any thread. */
int curl_load(struct why *why);

/* The functions, once the library is loaded. */
const struct curl_late *curl_late(void);
