/* dlctl/forecast/forecast.h: what an order of samples fetches from an origin through a node's cache, computed.
 *
 * By the daemon's own rules (proto/fetching.h): what is needed within the horizon is asked for in the order of first
 * need, in chunks; a small part of a chunk that is due before its chunk can have its turn is a request of its own as
 * well. What is there stays while the cache has room. Of one that cannot hold all, as much as passes through, and an
 * eighth at most, is for what is needed next, and no more than that is asked for ahead. When it is full, small parts of
 * chunks come alone, unless much of the chunk is needed soon; the rest passes through, and stays in place of what all
 * jobs need later, if there are several.
 *
 * The origin is a queue: a number of connections, of which each request takes one for the latency and for its bytes,
 * and one link for all bytes. So times are those of an origin that always answers alike. No clock, no daemon, no
 * random numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A part of a sample: chunks that follow each other. */
struct forecast_part {
        uint32_t chunk, n_chunks;
        uint32_t n_bytes; /* of the sample in them; UINT32_MAX: that or more */
};

/* Where the samples of a dataset lie. */
struct forecast_places {
        uint64_t n_samples;
        uint64_t *starts; /* first part of each sample, and the number of all */
        struct forecast_part *parts;
        uint64_t n_chunks;
        uint32_t *chunk_bytes;
        uint64_t n_bytes; /* of all chunks */
};

struct forecast_terms {
        uint64_t cache_bytes;
        double rate;      /* samples/s that are taken at most, of all jobs together; 0: as fast as they come */
        double latency_s; /* from asking to the first byte */
        double bandwidth; /* bytes/s of the link; 0: no limit */
        uint32_t n_connections;
        uint32_t n_jobs;  /* of as many reads each */
        double horizon_s; /* ahead is asked for so long, at the pace of the reads: at least the first batches, */
        uint64_t horizon; /* and for this number of samples at most */
};

/* The reads of an epoch, one after the other. */
struct forecast_reads {
        uint64_t n;
        uint64_t n_first;                                    /* of the first batches of all ranks, of all jobs */
        uint64_t (*next)(void *userdata, uint32_t *ret_job); /* the sample, and whose it is */
        /* The job's read number k, ascending from 0, of this epoch (0) or the next one; asked for with several jobs. */
        uint64_t (*foreseen)(void *userdata, uint32_t job, uint32_t idx_epoch, uint64_t k);
        void (*progress)(void *userdata, uint64_t n_reads); /* now and then; may be NULL */
        void *userdata;
};

struct forecast_epoch {
        uint64_t n_reads;
        uint64_t n_hits;     /* of these, without a request of their own */
        uint64_t n_requests; /* for chunks and pieces, */
        uint64_t n_pieces;   /* and of these, for pieces */
        uint64_t n_bytes;    /* that come from the origin */
        double seconds, first_batch_seconds;
};

struct forecast;

/* An empty cache; both outlive it. Returns 0 or -ENOMEM. */
int forecast_new(const struct forecast_places *places, const struct forecast_terms *terms,
                 struct forecast **ret_forecast);
void forecast_free(struct forecast *forecast);

/* One epoch of all jobs, with what the ones before have left in the cache. */
void forecast_epoch(struct forecast *forecast, const struct forecast_reads *reads, struct forecast_epoch *ret_epoch);
