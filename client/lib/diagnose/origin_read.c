#include "client/lib/diagnose/origin_read.h"

#include <stdio.h>

void dli_origin_read(const Dlp__Origin *message, struct dlp_origin *ret_origin) {
        *ret_origin = (struct dlp_origin){ .n_answers = message->n_answers,
                                           .first_byte_ns = message->first_byte_ns,
                                           .first_byte_late_ns = message->first_byte_late_ns,
                                           .horizon_ns = message->horizon_ns,
                                           .bytes_per_second = message->bytes_per_second,
                                           .n_requests = message->n_requests,
                                           .n_retries = message->n_retries,
                                           .n_paused = message->n_paused,
                                           .n_ahead = message->n_ahead,
                                           .ahead_bytes = message->ahead_bytes,
                                           .n_connections = message->n_connections,
                                           .n_files = message->n_files,
                                           .total_bytes = message->total_bytes,
                                           .cached_bytes = message->cached_bytes,
                                           .cache_bytes = message->cache_bytes,
                                           .cache_limit = message->cache_limit };
        snprintf(ret_origin->url, sizeof(ret_origin->url), "%s", message->url);
        snprintf(ret_origin->trouble, sizeof(ret_origin->trouble), "%s", message->trouble);
}
