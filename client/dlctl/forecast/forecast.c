#include "client/dlctl/forecast/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/fetching.h"

#define PACE_READS    512.0    /* that a pace is the mean of: some batches */
#define READS_A_SIGHT 1048576u /* between two words about how far it is */

enum forecast_state {
        CHUNK_ABSENT,
        CHUNK_STAYS,
        CHUNK_PASSES, /* there, until nobody has it marked */
};

/* When a job needs what: the first read of each chunk in this epoch, and in the next one. */
struct forecast_uses {
        uint32_t *first[2];
        struct dlp_uses_place place;
};

/* A read that was asked for and not made. */
struct forecast_ahead {
        uint64_t sample;
        uint32_t job;
        double ready; /* when all of it is there */
};

struct forecast {
        const struct forecast_places *places;
        struct forecast_terms terms;
        uint8_t *states;               /* of each chunk */
        uint64_t *marked;              /* bytes of it that are needed by reads that were asked for and not made */
        double *here;                  /* when it is there, in seconds of this epoch */
        struct forecast_ahead *ahead;  /* a ring of `horizon` */
        struct forecast_uses *uses;    /* of each job; NULL: there is one, or all has room */
        bool is_short;                 /* not all of the dataset has room */
        uint64_t n_bytes, n_passing;   /* held, and of these what passes */
        uint64_t n_marked, n_reserved; /* and what of the cache is for what comes next */
        uint64_t dice, next_victim;
        double *connections;             /* when each is free */
        double link;                     /* when it has sent what was asked for */
        double urgent;                   /* the same of what is asked for before the queue */
        double answered[DLP_QUEUED_MAX]; /* when the last requests are, */
        uint64_t n_asked;                /* and how many there were */
        double pace;                     /* seconds that a read takes, smoothed */
};

static bool make_uses(struct forecast *f) {
        uint64_t n = f->places->n_chunks + 1;

        if (f->terms.n_jobs < 2 || !f->is_short || 2 * n * sizeof(uint32_t) > DLP_USES_BYTES_MAX)
                return true;
        f->uses = calloc(f->terms.n_jobs, sizeof(*f->uses));
        for (uint32_t j = 0; f->uses && j < f->terms.n_jobs; j++)
                for (uint32_t i = 0; i < 2; i++)
                        if (!(f->uses[j].first[i] = malloc(n * sizeof(uint32_t))))
                                return false;
        return f->uses != NULL;
}

int forecast_new(const struct forecast_places *places, const struct forecast_terms *terms,
                 struct forecast **ret_forecast) {
        struct forecast *f = calloc(1, sizeof(*f));
        uint64_t n = places->n_chunks + 1; /* never an allocation of 0 bytes */

        if (!f)
                return -ENOMEM;
        f->places = places;
        f->terms = *terms;
        f->is_short = places->n_bytes > terms->cache_bytes;
        f->states = calloc(n, sizeof(*f->states));
        f->marked = calloc(n, sizeof(*f->marked));
        f->here = calloc(n, sizeof(*f->here));
        f->ahead = calloc(terms->horizon, sizeof(*f->ahead));
        f->connections = calloc(terms->n_connections, sizeof(*f->connections));
        if (!f->states || !f->marked || !f->here || !f->ahead || !f->connections || !make_uses(f)) {
                forecast_free(f);
                return -ENOMEM;
        }
        *ret_forecast = f;
        return 0;
}

void forecast_free(struct forecast *f) {
        if (!f)
                return;
        for (uint32_t j = 0; f->uses && j < f->terms.n_jobs; j++) {
                free(f->uses[j].first[0]);
                free(f->uses[j].first[1]);
        }
        free(f->uses);
        free(f->states);
        free(f->marked);
        free(f->here);
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

/* ---- what stays -------------------------------------------------------------------------------------------------- */

static bool is_full(const struct forecast *f, uint64_t n_bytes) {
        return f->n_bytes - f->n_passing + n_bytes + (f->is_short ? f->n_reserved : 0) > f->terms.cache_bytes;
}

static void forecast_drop(struct forecast *f, uint64_t chunk) {
        f->n_bytes -= f->places->chunk_bytes[chunk];
        if (f->states[chunk] == CHUNK_PASSES)
                f->n_passing -= f->places->chunk_bytes[chunk];
        f->states[chunk] = CHUNK_ABSENT;
}

static bool forecast_may_go(const void *userdata, uint64_t chunk) {
        const struct forecast *f = userdata;

        return f->states[chunk] == CHUNK_STAYS && f->marked[chunk] == 0;
}

static uint64_t forecast_next_use(const void *userdata, uint64_t chunk) {
        const struct forecast *f = userdata;
        uint64_t soonest = UINT64_MAX;

        for (uint32_t j = 0; j < f->terms.n_jobs; j++) {
                const struct forecast_uses *uses = &f->uses[j];
                uint64_t ns = dlp_next_use(&uses->place, uses->first[0][chunk], uses->first[1][chunk]);

                soonest = ns < soonest ? ns : soonest;
        }
        return soonest;
}

/* What is needed last, and later than in soonest_ns. */
static bool forecast_make_room(struct forecast *f, uint64_t soonest_ns) {
        const struct dlp_victims victims = {
                .n_chunks = f->places->n_chunks, .may_go = forecast_may_go, .next_use = forecast_next_use, .userdata = f
        };
        uint64_t victim = f->uses ? dlp_choose_victim(&victims, soonest_ns, &f->dice) : UINT64_MAX;

        if (victim == UINT64_MAX)
                return false;
        forecast_drop(f, victim);
        return true;
}

/* Anything. */
static bool make_any_room(struct forecast *f) {
        for (uint64_t i = 0; i < f->places->n_chunks; i++) {
                uint64_t chunk = f->next_victim++ % f->places->n_chunks;

                if (!forecast_may_go(f, chunk))
                        continue;
                forecast_drop(f, chunk);
                return true;
        }
        return false;
}

static void reserve_more(struct forecast *f) {
        uint64_t n = dlp_reserve(f->terms.cache_bytes, f->n_passing > f->n_marked ? f->n_passing : f->n_marked);

        if (!f->is_short || n <= f->n_reserved)
                return;
        f->n_reserved = n;
        while (is_full(f, 0) && (forecast_make_room(f, 0) || make_any_room(f)))
                ;
}

static void forecast_keep(struct forecast *f, uint64_t chunk) {
        uint64_t n_bytes = f->places->chunk_bytes[chunk];

        f->states[chunk] = is_full(f, n_bytes) ? CHUNK_PASSES : CHUNK_STAYS;
        f->n_bytes += n_bytes;
        if (f->states[chunk] == CHUNK_STAYS)
                return;
        f->n_passing += n_bytes;
        reserve_more(f);
}

/* Does nobody have it marked any more? */
static void forecast_pass(struct forecast *f, uint64_t chunk) {
        uint64_t n_bytes = f->places->chunk_bytes[chunk];

        if (f->states[chunk] != CHUNK_PASSES || f->marked[chunk] > 0)
                return;
        while (is_full(f, n_bytes))
                if (!f->uses || !forecast_make_room(f, forecast_next_use(f, chunk))) {
                        forecast_drop(f, chunk);
                        return;
                }
        f->states[chunk] = CHUNK_STAYS;
        f->n_passing -= n_bytes;
}

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* A part of a chunk that waits its turn, and would come too late with it: it is asked for at once, before the queue. */
static bool is_late(const struct forecast *f, double here, double due, double now) {
        return f->terms.bandwidth > 0 && here - now > due &&
               (here - now - f->terms.latency_s) * f->terms.bandwidth > (double)DLP_FLYING_BYTES;
}

static double ask_urgently(struct forecast *f, double now, uint32_t n_bytes, struct forecast_epoch *epoch) {
        double takes = (double)n_bytes / f->terms.bandwidth;

        bool is_left_out = n_bytes >= DLP_LEFT_OUT_BYTES; /* its chunk has a hole more, and comes sooner by as much */

        f->urgent = (f->urgent > now + f->terms.latency_s ? f->urgent : now + f->terms.latency_s) + takes;
        f->link += is_left_out ? 0 : takes;
        epoch->n_pieces++;
        epoch->n_requests += is_left_out ? 2 : 1;
        epoch->n_bytes += is_left_out ? 0 : n_bytes;
        forecast_note(f, f->urgent);
        return f->urgent;
}

/* Of a sample, in one of its chunks: about. */
static uint32_t bytes_in_chunk(const struct forecast_part *part) {
        return part->n_bytes / part->n_chunks;
}

/* Read number `read` is foreseen while number `at` is made. Returns when its part of the chunk is there. */
static double see_chunk(struct forecast *f, const struct forecast_part *part, uint64_t chunk, uint64_t read,
                        uint64_t at, double now, struct forecast_epoch *epoch) {
        uint32_t n_chunk = f->places->chunk_bytes[chunk], n_bytes = bytes_in_chunk(part);
        bool is_piece = dlp_is_piece(n_bytes, n_chunk);

        f->marked[chunk] += n_bytes;
        f->n_marked += n_bytes;
        if (f->states[chunk] == CHUNK_ABSENT) {
                if (is_piece && !dlp_is_dense(f->marked[chunk], n_chunk) && is_full(f, n_chunk)) {
                        reserve_more(f);
                        epoch->n_pieces++;
                        return forecast_ask(f, now, n_bytes, epoch);
                }
                f->here[chunk] = forecast_ask(f, now, n_chunk, epoch);
                forecast_keep(f, chunk);
        }
        if (is_piece && is_late(f, f->here[chunk], (double)(read - at) * f->pace, now))
                return ask_urgently(f, now, n_bytes, epoch);
        return f->here[chunk];
}

static double see(struct forecast *f, uint64_t sample, uint64_t read, uint64_t at, double now,
                  struct forecast_epoch *epoch) {
        const struct forecast_places *places = f->places;
        uint64_t n_before = epoch->n_requests;
        double ready = now;

        for (uint64_t i = places->starts[sample]; i < places->starts[sample + 1]; i++)
                for (uint32_t k = 0; k < places->parts[i].n_chunks; k++) {
                        double here = see_chunk(f, &places->parts[i], places->parts[i].chunk + (uint64_t)k, read, at,
                                                now, epoch);

                        ready = here > ready ? here : ready;
                }
        epoch->n_hits += epoch->n_requests == n_before;
        return ready;
}

static void forecast_read(struct forecast *f, const struct forecast_ahead *ahead) {
        const struct forecast_places *places = f->places;

        if (f->uses)
                f->uses[ahead->job].place.k++;
        for (uint64_t i = places->starts[ahead->sample]; i < places->starts[ahead->sample + 1]; i++)
                for (uint32_t k = 0; k < places->parts[i].n_chunks; k++) {
                        uint64_t chunk = places->parts[i].chunk + (uint64_t)k;

                        f->marked[chunk] -= bytes_in_chunk(&places->parts[i]);
                        f->n_marked -= bytes_in_chunk(&places->parts[i]);
                        forecast_pass(f, chunk);
                }
}

/* Of one of the two epochs of a job's uses. */
static void foresee(struct forecast *f, const struct forecast_reads *reads, uint32_t job, uint32_t idx_epoch) {
        const struct forecast_places *places = f->places;
        uint32_t *first = f->uses[job].first[idx_epoch];

        memset(first, 0xff, (places->n_chunks + 1) * sizeof(*first)); /* DLP_USE_NEVER */
        for (uint64_t k = 0; k < reads->n / f->terms.n_jobs; k++) {
                uint64_t sample = reads->foreseen(reads->userdata, job, idx_epoch, k);

                for (uint64_t i = places->starts[sample]; i < places->starts[sample + 1]; i++)
                        for (uint32_t c = 0; c < places->parts[i].n_chunks; c++)
                                if (first[places->parts[i].chunk + c] == DLP_USE_NEVER)
                                        first[places->parts[i].chunk + c] = (uint32_t)k;
        }
}

/* Is there room for one more read, n_ahead after the one that is made? */
static bool has_room_ahead(const struct forecast *f, uint64_t n_ahead, uint64_t n_first, double now) {
        if (n_ahead < n_first) /* a batch of each rank is under way in any case */
                return true;
        if ((double)n_ahead * f->pace > f->terms.horizon_s)
                return false;
        if (f->n_asked >= DLP_QUEUED_MAX && f->answered[f->n_asked % DLP_QUEUED_MAX] > now)
                return false;
        return !f->is_short || dlp_may_mark(f->terms.cache_bytes, f->n_marked);
}

static void forecast_begin(struct forecast *f, const struct forecast_reads *reads, uint64_t n_first) {
        for (uint64_t i = 0; i < f->places->n_chunks; i++)
                f->here[i] = 0;
        for (uint32_t j = 0; f->uses && j < f->terms.n_jobs; j++) {
                f->uses[j].place = (struct dlp_uses_place){ .n_samples = (uint32_t)(reads->n / f->terms.n_jobs),
                                                            .sample_ns = 1 };
                foresee(f, reads, j, 0);
                foresee(f, reads, j, 1);
        }
        memset(f->connections, 0, f->terms.n_connections * sizeof(*f->connections));
        f->link = f->urgent = 0;
        f->n_asked = 0;
        f->pace = f->terms.rate > 0 ? 1 / f->terms.rate : (double)DLP_MAKING_GUESS_NS / 1e9 / (double)n_first;
}

void forecast_epoch(struct forecast *f, const struct forecast_reads *reads, struct forecast_epoch *ret_epoch) {
        struct forecast_epoch epoch = { .n_reads = reads->n };
        uint64_t n_seen = 0;
        double now = 0, ready, end;

        forecast_begin(f, reads, reads->n_first > 0 ? reads->n_first : 1);
        for (uint64_t k = 0; k < reads->n; k++) {
                const struct forecast_ahead *ahead = &f->ahead[k % f->terms.horizon];

                for (; n_seen < reads->n && n_seen < k + f->terms.horizon &&
                       (n_seen == k || has_room_ahead(f, n_seen - k, reads->n_first, now));
                     n_seen++) {
                        struct forecast_ahead *seen = &f->ahead[n_seen % f->terms.horizon];

                        seen->sample = reads->next(reads->userdata, &seen->job);
                        seen->ready = see(f, seen->sample, n_seen, k, now, &epoch);
                }
                forecast_read(f, ahead);
                ready = ahead->ready;
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
