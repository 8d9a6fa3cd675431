#include "daemon/store/cache/peers/peer_asks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define ANSWER_NS 3000000000ull /* then an answer must have begun */
#define STALL_S   20u           /* while the owner waits for its origin nothing comes */
#define ASKED_MAX 4u            /* nodes, one after the other */

/* A node that does not have the origin open is not asked for it; twice as long each time. Those of a run begin within
 * seconds. */
#define ABSENT_NS      500000000ull
#define ABSENT_MOST_NS 20000000000ull

/* The job's piece is the chunk's, but of this file. */
struct peer_ask {
        struct plan_file file;
        const struct plan_file *of_origin;
        const char *urls[1];
        char url[PEERS_URL_SIZE + 64];
};

uint32_t peer_asks_owner(struct cached *cached, uint64_t chunk) {
        struct cache *cache = cached->cache;

        return cache->peers ? peers_owner(cache->peers, cached->name_hash, chunk, cached->peers_until_ns) : 0;
}

bool peer_asks_send(struct flight *flight) {
        struct cached *cached = flight->cached;
        struct peer_ask *ask = cached->cache->peer_fetcher ? malloc(sizeof(*ask)) : NULL;
        struct chunk_place place = cached_place(cached, flight->chunk);
        size_t n;

        if (ask && !flight->is_chunk && !(flight->piece.into = malloc(flight->piece.n_bytes)))
                free(TAKE_PTR(ask));
        if (!ask)
                return false;
        cached->cache->n_peer_buffer_bytes += flight->piece.into ? flight->piece.n_bytes : 0;
        peers_begin(cached->cache->peers, flight->peer, ask->url);
        n = strlen(ask->url);
        snprintf(ask->url + n, sizeof(ask->url) - n, "/%s/%s/%" PRIu64, flight->is_urgent ? "now" : "soon",
                 cached->name, place.idx_file);
        ask->urls[0] = ask->url;
        ask->of_origin = place.file;
        ask->file = (struct plan_file){
                .path = place.file->path, .n_bytes = place.file->n_bytes, .urls = ask->urls, .n_urls = 1
        };
        flight->ask = ask;
        flight->piece.file = &ask->file;
        flight->job.idx_mirror = 0;
        fetcher_submit(cached->cache->peer_fetcher, &flight->job);
        return true;
}

/* What was wrong with the node; NULL: nothing, even if it did not give the chunk. An answer that ends before its bytes
 * (-EBADMSG) says that the origin failed. */
static const char *judge(const struct flight *flight) {
        switch (flight->job.result) {
        case 0:
                return "it sent other bytes than it says, or says nothing of them";
        case -ENOENT:
        case -EPROTO:
        case -EBADMSG:
        case -ECANCELED:
                return NULL;
        default:
                return flight->job.why.text;
        }
}

/* Who is asked next: another node, if this one has failed, or has not opened the origin; 0: the origin. */
static uint32_t choose_again(struct flight *flight) {
        struct cached *cached = flight->cached;
        int result = flight->job.result;

        if (result == -ENOENT) {
                uint64_t absent_ns = ABSENT_NS << cached->n_absent[flight->peer];

                cached->peers_until_ns[flight->peer] = clock_now_ns() + absent_ns;
                cached->n_absent[flight->peer] += absent_ns < ABSENT_MOST_NS;
        }
        if (result == -EPROTO || result == -EBADMSG || result == -ECANCELED || ++flight->n_asked >= ASKED_MAX)
                return 0;
        return peer_asks_owner(cached, flight->chunk);
}

static void ask_next(struct flight *flight) {
        uint32_t peer = choose_again(flight);

        if (peer == 0)
                flight_leave_peer(flight);
        else
                flight->peer = peer;
        flight->job.idx_mirror = flight->cached->texts[CACHED_MIRROR] ? 1 : 0;
        flight->job.is_urgent = flight->is_urgent;
        flight_submit(flight);
}

/* Are these the bytes that the node has noted, or read? What was held back is written then. */
static bool has_come(struct flight *flight) {
        struct fetch_piece *piece = &flight->piece;
        uint64_t digest;

        if (flight->job.result < 0 || !piece->has_xxh3)
                return false;
        if (!piece->into)
                landing_end(flight);
        digest = piece->into ? XXH3_64bits(piece->into, piece->n_bytes) : XXH3_64bits_digest(flight->digested);
        if (digest != piece->xxh3)
                return false;
        if (piece->into) {
                flight->job.result = landing_take(piece, 0, piece->into, piece->n_bytes);
                landing_end(flight);
        }
        return true;
}

/* On the fetcher's thread. */
static void peer_done(struct fetch_job *job) {
        struct flight *flight = job->userdata;
        struct cached *cached = flight->cached;
        struct cache *cache = cached->cache;
        bool is_over;

        flight->piece.file = flight->ask->of_origin;
        is_over = has_come(flight);
        peers_end(cache->peers, flight->peer, is_over || flight->write_error < 0 ? NULL : judge(flight));
        is_over = is_over || flight->write_error < 0; /* no other node could help that */
        pthread_mutex_lock(&cache->lock);
        free(TAKE_PTR(flight->ask));
        cache->n_peer_buffer_bytes -= flight->piece.into ? flight->piece.n_bytes : 0;
        free(TAKE_PTR(flight->piece.into));
        if (is_over)
                cached->n_absent[flight->peer] = 0;
        cache->counts.n_peer_failures += !is_over && job->result != -ECANCELED;
        if (!is_over && cached->fetcher && !cache->is_cancelled) {
                ask_next(flight);
        } else {
                if (!is_over)
                        job->result = why_set(&job->why, -ECANCELED, "canceled");
                flight_leave_peer(flight);
                keeper_land(flight);
        }
        pthread_mutex_unlock(&cache->lock);
}

int cache_join(struct cache *cache, struct peers *peers, struct why *why) {
        const struct http_options http = { .peer_key = peers_key(peers), .stall_s = STALL_S, .n_tries = 1 };
        struct fetcher_options options = { .n_connections = PEER_FLYING_MAX,
                                           .answer_ns = ANSWER_NS,
                                           .done = peer_done };
        int r = http_new(&http, &cache->peer_http, why);

        options.http = cache->peer_http;
        if (r == 0)
                r = fetcher_start(&options, &cache->peer_fetcher, why);
        if (r == 0)
                cache->peers = peers;
        return r;
}

void peer_asks_stop(struct cache *cache) {
        struct fetcher *fetcher;

        pthread_mutex_lock(&cache->lock);
        fetcher = cache->peer_fetcher;
        if (fetcher) {
                peer_asks_count(cache, &cache->counts);
                cache->peer_fetcher = NULL;
        }
        pthread_mutex_unlock(&cache->lock);
        fetcher_stop(fetcher);
        http_free(TAKE_PTR(cache->peer_http));
}

void peer_asks_count(struct cache *cache, struct cache_counts *counts) {
        struct fetcher_counts fetched;

        if (!cache->peer_fetcher)
                return;
        fetcher_counts(cache->peer_fetcher, &fetched);
        counts->n_peer_fetched += fetched.n_bytes;
}
