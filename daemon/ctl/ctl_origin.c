#include "daemon/ctl/ctl_origin.h"

Dlp__Origin *tell_origin(Dlp__Origin *message, const struct dlp_origin *origin) {
        dlp__origin__init(message);
        message->url = (char *)(uintptr_t)origin->url;
        message->n_answers = origin->n_answers;
        message->first_byte_ns = origin->first_byte_ns;
        message->first_byte_late_ns = origin->first_byte_late_ns;
        message->horizon_ns = origin->horizon_ns;
        message->bytes_per_second = origin->bytes_per_second;
        message->n_requests = origin->n_requests;
        message->n_retries = origin->n_retries;
        message->n_paused = origin->n_paused;
        message->trouble = (char *)(uintptr_t)origin->trouble;
        message->n_ahead = origin->n_ahead;
        message->ahead_bytes = origin->ahead_bytes;
        message->n_connections = origin->n_connections;
        message->n_files = origin->n_files;
        message->total_bytes = origin->total_bytes;
        message->cached_bytes = origin->cached_bytes;
        message->cache_bytes = origin->cache_bytes;
        message->cache_limit = origin->cache_limit;
        return message;
}
