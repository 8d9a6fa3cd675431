/* pipeline/counters.h: the counters of the hot path, each defined once: name, unit, prose. Status is made
 * from the table; a new counter is a new row. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define PIPELINE_COUNTERS(ROW)                                                                                         \
        ROW(n_samples, "samples", "decoded (or copied) into a slot")                                                   \
        ROW(n_batches, "batches", "published to a rank")                                                               \
        ROW(n_sample_errors, "samples", "that could not be read or decoded")                                           \
        ROW(n_substituted, "samples", "served in place of a damaged one")                                              \
        ROW(n_skipped, "samples", "left out of their batch because they are damaged")                                  \
        ROW(n_failed_jobs, "jobs", "ended by a damaged sample, as on_error = fail asks for")                           \
        ROW(n_dropped, "samples", "whose rank seeked or left before they were decoded")                                \
        ROW(n_bytes_read, "bytes", "of encoded samples")                                                               \
        ROW(n_reads, "reads", "of files or of parts of shards")                                                        \
        ROW(n_reads_past_cache, "reads", "of these, past the page cache")                                              \
        ROW(n_reads_slow, "reads", "of these, given up by io_uring and decided by pread()")                            \
        ROW(n_jpeg_own, "pictures", "JPEG, decoded by our own decoder")                                                \
        ROW(n_jpeg_libjpeg, "pictures", "JPEG, decoded by libjpeg-turbo")                                              \
        ROW(n_jpeg_handed_over, "pictures", "of these, begun by our own decoder and handed over")                      \
        ROW(n_shared, "pictures", "cut from one that was decoded for another view or crop as well")                    \
        ROW(n_decoder_ends, "processes",                                                                               \
            "of decoders that ended over a sample, or were killed as they hung: isolation")                            \
        ROW(n_scratch_waits, "samples", "large pictures that waited for scratch memory")                               \
        ROW(decode_ns, "ns", "of worker time spent decoding and augmenting")                                           \
        ROW(collate_ns, "ns", "of worker time spent completing batches")                                               \
        ROW(worker_cpu_ns, "ns", "of CPU time that workers took: less than their time if CPUs are short")              \
        ROW(read_ns, "ns", "from requesting a sample's bytes until they were there, summed over the reads")            \
        ROW(queued_ns, "ns", "from then until a worker took the sample, summed likewise")

struct counters {
#define ROW(name, unit, prose) _Atomic uint64_t name;
        PIPELINE_COUNTERS(ROW)
#undef ROW
};

/* Counters synchronise nothing, so they are relaxed. Each thread that counts has its own set, so that no cache line
 * moves from worker to worker for a number that is rarely read. */
#define counter_add(counter, n) atomic_fetch_add_explicit((counter), (n), memory_order_relaxed)
#define counter_get(counter)    atomic_load_explicit((counter), memory_order_relaxed)

static inline void counters_add(struct counters *sum, struct counters *more) {
#define ROW(name, unit, prose) counter_add(&sum->name, counter_get(&more->name));
        PIPELINE_COUNTERS(ROW)
#undef ROW
}
