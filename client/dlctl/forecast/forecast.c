#include "client/dlctl/forecast/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/fetching.h"

#define NEVER         UINT64_MAX
#define PACE_READS    512.0    /* that a pace is the mean of: some batches */
#define READS_A_SIGHT 1048576u /* between two words about how far it is */

struct forecast {
        const struct forecast_places *places;
        struct forecast_terms terms;
        bool *is_kept;          /* a chunk: it is there, and stays */
        uint64_t *needed;       /* one that passes through: until this read. NEVER: it is not there */
        double *here;           /* when a chunk is there, in seconds of this epoch */
        double *ready;          /* of the reads that were asked for: when all of it is there; a ring of `horizon` */
        uint64_t *ahead;        /* of the same reads: their bytes, */
        uint64_t n_ahead_bytes; /* and of all that were asked for and not made */
        uint64_t reserve_max;   /* of the cache, for these; 0: all of the dataset has room */
        uint64_t reserve;       /* what they take of it */
        double *connections;    /* when each is free */
        double link;            /* when it has sent what was asked for */
        double urgent;          /* the same of what is asked for before the queue */
        double answered[DLP_QUEUED_MAX]; /* when the last requests are, */
        uint64_t n_asked;                /* and how many there were */
        double pace;                     /* seconds that a read takes, smoothed */
        uint64_t n_kept_bytes;
};

/* The bytes of all reads within the horizon. */
static uint64_t reserve_of(const struct forecast_places *places, const struct forecast_terms *terms, uint64_t most) {
        double n_bytes = (double)terms->horizon * (double)places->n_bytes /
                         (double)(places->n_samples > 0 ? places->n_samples : 1);

        return n_bytes < (double)most ? (uint64_t)n_bytes : most;
}

int forecast_new(const struct forecast_places *places, const struct forecast_terms *terms,
                 struct forecast **ret_forecast) {
        struct forecast *f = calloc(1, sizeof(*f));
        uint64_t n = places->n_chunks + 1; /* never an allocation of 0 bytes */

        if (!f)
                return -ENOMEM;
        f->places = places;
        f->terms = *terms;
        f->is_kept = calloc(n, sizeof(*f->is_kept));
        f->needed = calloc(n, sizeof(*f->needed));
        f->here = calloc(n, sizeof(*f->here));
        f->ready = calloc(terms->horizon, sizeof(*f->ready));
        f->ahead = calloc(terms->horizon, sizeof(*f->ahead));
        f->reserve_max = places->n_bytes > terms->cache_bytes ? terms->cache_bytes / DLP_AHEAD_SHARE : 0;
        f->reserve = reserve_of(places, terms, f->reserve_max);
        f->connections = calloc(terms->n_connections, sizeof(*f->connections));
        if (!f->is_kept || !f->needed || !f->here || !f->ready || !f->ahead || !f->connections) {
                forecast_free(f);
                return -ENOMEM;
        }
        *ret_forecast = f;
        return 0;
}

void forecast_free(struct forecast *f) {
        if (!f)
                return;
        free(f->is_kept);
        free(f->needed);
        free(f->here);
        free(f->ready);
        free(f->ahead);
        free(f->connections);
        free(f);
}

/* When a request is answered. */
static void forecast_note(struct forecast *f, double done) {
        f->answered[f->n_asked++ % DLP_QUEUED_MAX] = done;
}

/* A request that is made now. Returns when its last byte is here. */
static double forecast_ask(struct forecast *f, double now, uint64_t n_bytes, struct forecast_epoch *epoch) {
        uint32_t first = 0;
        double done;

        for (uint32_t i = 1; i < f->terms.n_connections; i++)
                if (f->connections[i] < f->connections[first])
                        first = i;
        done = (f->connections[first] > now ? f->connections[first] : now) + f->terms.latency_s;
        if (f->terms.bandwidth > 0) {
                f->link = (f->link > done ? f->link : done) + (double)n_bytes / f->terms.bandwidth;
                done = f->link;
        }
        f->connections[first] = done;
        forecast_note(f, done);
        epoch->n_requests++;
        epoch->n_bytes += n_bytes;
        return done;
}

static bool is_full(const struct forecast *f, uint64_t n_bytes) {
        return f->n_kept_bytes + n_bytes + f->reserve > f->terms.cache_bytes;
}

static void forecast_keep(struct forecast *f, uint64_t chunk, uint64_t read) {
        uint64_t n_bytes = f->places->chunk_bytes[chunk];

        f->is_kept[chunk] = !is_full(f, n_bytes);
        if (f->is_kept[chunk])
                f->n_kept_bytes += n_bytes;
        else
                f->needed[chunk] = read;
}

/* A part of a chunk that waits its turn, and would come too late with it: it is asked for at once, before the queue. */
static bool is_late(const struct forecast *f, double here, double due, double now) {
        return f->terms.bandwidth > 0 && here - now > due &&
               (here - now - f->terms.latency_s) * f->terms.bandwidth > (double)DLP_FLYING_BYTES;
}

static double ask_urgently(struct forecast *f, double now, uint32_t n_bytes, struct forecast_epoch *epoch) {
        double takes = (double)n_bytes / f->terms.bandwidth;

        f->urgent = (f->urgent > now + f->terms.latency_s ? f->urgent : now + f->terms.latency_s) + takes;
        f->link += takes;
        epoch->n_pieces++;
        epoch->n_requests++;
        epoch->n_bytes += n_bytes;
        forecast_note(f, f->urgent);
        return f->urgent;
}

/* Read number `read` is foreseen while number `at` is made. Returns when its part of the chunk is there. */
static double see_chunk(struct forecast *f, const struct forecast_part *part, uint64_t chunk, uint64_t read,
                        uint64_t at, double now, struct forecast_epoch *epoch) {
        uint32_t n_chunk = f->places->chunk_bytes[chunk];
        bool is_small = part->n_bytes <= DLP_PIECE_BYTES && part->n_bytes <= n_chunk / 4;
        bool is_there = f->is_kept[chunk] || (f->needed[chunk] != NEVER && f->needed[chunk] >= at);

        if (is_small && !is_there && is_full(f, n_chunk)) {
                epoch->n_pieces++;
                return forecast_ask(f, now, part->n_bytes, epoch);
        }
        if (!is_there) {
                f->here[chunk] = forecast_ask(f, now, n_chunk, epoch);
                forecast_keep(f, chunk, read);
        } else if (!f->is_kept[chunk]) {
                f->needed[chunk] = read;
        }
        if (is_small && is_late(f, f->here[chunk], (double)(read - at) * f->pace, now))
                return ask_urgently(f, now, part->n_bytes, epoch);
        return f->here[chunk];
}

static double see(struct forecast *f, uint64_t sample, uint64_t read, uint64_t at, double now,
                  struct forecast_epoch *epoch) {
        const struct forecast_places *places = f->places;
        uint64_t n_before = epoch->n_requests;
        double ready = now;

        f->ahead[read % f->terms.horizon] = 0;
        for (uint64_t i = places->starts[sample]; i < places->starts[sample + 1]; i++) {
                f->ahead[read % f->terms.horizon] += places->parts[i].n_bytes;
                for (uint32_t k = 0; k < places->parts[i].n_chunks; k++) {
                        double here = see_chunk(f, &places->parts[i], places->parts[i].chunk + (uint64_t)k, read, at,
                                                now, epoch);

                        ready = here > ready ? here : ready;
                }
        }
        f->n_ahead_bytes += f->ahead[read % f->terms.horizon];
        epoch->n_hits += epoch->n_requests == n_before;
        return ready;
}

/* Is there room for one more read, n_ahead after the one that is made? */
static bool has_room_ahead(const struct forecast *f, uint64_t n_ahead, uint64_t n_first, double now) {
        if (n_ahead >= n_first && (double)n_ahead * f->pace > f->terms.horizon_s)
                return false;
        if (f->n_asked >= DLP_QUEUED_MAX && f->answered[f->n_asked % DLP_QUEUED_MAX] > now)
                return false;
        return f->reserve_max == 0 || f->n_ahead_bytes == 0 || f->n_ahead_bytes + DLP_CHUNK_BYTES <= f->reserve_max;
}

static void forecast_begin(struct forecast *f, uint64_t n_first) {
        for (uint64_t i = 0; i < f->places->n_chunks; i++) {
                f->needed[i] = NEVER;
                f->here[i] = 0;
        }
        memset(f->connections, 0, f->terms.n_connections * sizeof(*f->connections));
        f->link = f->urgent = 0;
        f->n_asked = 0;
        f->n_ahead_bytes = 0;
        f->pace = f->terms.rate > 0 ? 1 / f->terms.rate : (double)DLP_MAKING_GUESS_NS / 1e9 / (double)n_first;
}

void forecast_epoch(struct forecast *f, const struct forecast_reads *reads, struct forecast_epoch *ret_epoch) {
        struct forecast_epoch epoch = { .n_reads = reads->n };
        uint64_t n_seen = 0;
        double now = 0, ready, end;

        forecast_begin(f, reads->n_first > 0 ? reads->n_first : 1);
        for (uint64_t k = 0; k < reads->n; k++) {
                for (; n_seen < reads->n && n_seen < k + f->terms.horizon &&
                       (n_seen == k || has_room_ahead(f, n_seen - k, reads->n_first, now));
                     n_seen++)
                        f->ready[n_seen % f->terms.horizon] = see(f, reads->next(reads->userdata), n_seen, k, now,
                                                                  &epoch);
                f->n_ahead_bytes -= f->ahead[k % f->terms.horizon];
                ready = f->ready[k % f->terms.horizon];
                if (k < reads->n_first && ready > epoch.first_batch_seconds)
                        epoch.first_batch_seconds = ready;
                end = ready > now ? ready : now;
                if (f->terms.rate > 0)
                        end += 1 / f->terms.rate;
                f->pace += (end - now - f->pace) / PACE_READS;
                now = end;
                if (reads->progress && k % READS_A_SIGHT == 0)
                        reads->progress(reads->userdata, k);
        }
        epoch.seconds = now;
        *ret_epoch = epoch;
}
