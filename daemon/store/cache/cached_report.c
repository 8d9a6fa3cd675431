/* How an origin answers, and how much of it is here. */
#include <stdio.h>

#include "daemon/store/cache/cache_private.h"
#include "daemon/store/record/url.h"

/* Each flight of the cache is looked at: there are some thousands at most. */
static void count_ahead(const struct cached *cached, struct dlp_origin *origin) {
        const struct flight *flight;

        origin->cached_bytes = cached->n_bytes;
        for (uint32_t i = 0; i < FLIGHT_BUCKETS; i++)
                LIST_FOREACH(flight, &cached->cache->buckets[i], in_bucket) {
                        if (flight->cached != cached || flight->phase == FLIGHT_LANDED)
                                continue;
                        origin->n_ahead++;
                        origin->ahead_bytes += flight->piece.n_bytes;
                        if (flight->is_chunk && flight->has_place) /* counts as held, and is not here yet */
                                origin->cached_bytes -= flight->piece.n_bytes;
                }
}

void cached_report(struct cached *cached, struct dlp_origin *ret_origin) {
        struct cache *cache = cached->cache;
        struct fetcher_counts fetched = { 0 };

        *ret_origin = (struct dlp_origin){ .n_files = plan_n_files(cached->plan),
                                           .total_bytes = plan_n_bytes(cached->plan),
                                           .n_connections = cached->n_connections };
        url_show(cached->texts[0], ret_origin->url);
        pthread_mutex_lock(&cache->lock);
        if (cached->fetcher)
                fetcher_counts(cached->fetcher, &fetched);
        count_ahead(cached, ret_origin);
        snprintf(ret_origin->trouble, sizeof(ret_origin->trouble), "%s",
                 fetched.last.text[0] ? fetched.last.text : cached->lost.text);
        ret_origin->cache_bytes = cache->n_bytes;
        ret_origin->cache_limit = cache->limit;
        pthread_mutex_unlock(&cache->lock);
        ret_origin->n_answers = fetched.latency.n_answers;
        ret_origin->first_byte_ns = fetched.latency.first_byte_median_ns;
        ret_origin->first_byte_late_ns = fetched.latency.first_byte_p999_ns;
        ret_origin->horizon_ns = dlp_horizon_ns(cache->options.ahead_s, fetched.latency.first_byte_p999_ns);
        ret_origin->bytes_per_second = fetched.latency.bytes_per_s;
        ret_origin->n_requests = fetched.n_requests;
        ret_origin->n_retries = fetched.n_retries;
        ret_origin->n_paused = fetched.n_paused;
}
