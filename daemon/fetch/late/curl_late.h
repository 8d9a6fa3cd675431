/* fetch/late/curl_late.h: libcurl as its own header has it, but loaded when it is needed: see proto/late/late.h.
 *
 * Three are macros that check the types of what they are given. They stay, and what they call leads to functions of
 * ours. */
#pragma once

#include "daemon/fetch/late/curl_functions.h"

#define curl_easy_cleanup        (curl_late()->curl_easy_cleanup)
#define curl_easy_init           (curl_late()->curl_easy_init)
#define curl_easy_pause          (curl_late()->curl_easy_pause)
#define curl_easy_perform        (curl_late()->curl_easy_perform)
#define curl_easy_reset          (curl_late()->curl_easy_reset)
#define curl_easy_strerror       (curl_late()->curl_easy_strerror)
#define curl_free                (curl_late()->curl_free)
#define curl_getdate             (curl_late()->curl_getdate)
#define curl_global_init         (curl_late()->curl_global_init)
#define curl_multi_add_handle    (curl_late()->curl_multi_add_handle)
#define curl_multi_assign        (curl_late()->curl_multi_assign)
#define curl_multi_cleanup       (curl_late()->curl_multi_cleanup)
#define curl_multi_info_read     (curl_late()->curl_multi_info_read)
#define curl_multi_init          (curl_late()->curl_multi_init)
#define curl_multi_perform       (curl_late()->curl_multi_perform)
#define curl_multi_remove_handle (curl_late()->curl_multi_remove_handle)
#define curl_multi_socket_action (curl_late()->curl_multi_socket_action)
#define curl_slist_append        (curl_late()->curl_slist_append)
#define curl_slist_free_all      (curl_late()->curl_slist_free_all)
#define curl_url                 (curl_late()->curl_url)
#define curl_url_cleanup         (curl_late()->curl_url_cleanup)
#define curl_url_get             (curl_late()->curl_url_get)
#define curl_url_set             (curl_late()->curl_url_set)

CURLcode(curl_easy_getinfo)(CURL *easy, CURLINFO info, ...) __asm__("curl_late_getinfo");
CURLcode(curl_easy_setopt)(CURL *easy, CURLoption option, ...) __asm__("curl_late_setopt");
CURLMcode(curl_multi_setopt)(CURLM *multi, CURLMoption option, ...) __asm__("curl_late_multi_setopt");
