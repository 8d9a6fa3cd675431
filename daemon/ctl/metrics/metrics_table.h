/* ctl/metrics/metrics_table.h: what the daemon measures, as Prometheus names it, each defined once: number, kind, scale, name,
 * help. The text that is scraped is made from these rows, and a test compares docs/metrics.md with them.
 *
 * Names follow Prometheus' advice: base units (seconds, bytes), `_total` for counters. What begins with
 * dataloaderd_node_ is counted for all jobs since the daemon's start, those that have ended included, and never
 * decreases. The other counters belong to a job or to one of its ranks, and go with it: a job that comes again under
 * the same name begins at 0. */
#pragma once

#include <stdint.h>

#include "proto/layout.h"

enum metric_kind {
        METRIC_COUNTER,
        METRIC_GAUGE,
};

/* What a number has to be divided by. */
enum metric_scale {
        METRIC_ONE,
        METRIC_MILLI,
        METRIC_MICRO,
        METRIC_NANO,
};

#define METRIC_ABSENT UINT64_MAX /* a number that is not known: the line is left out */

/* clang-format off */
#define PROCESS_METRICS(ROW)                                                                                           \
        ROW(cpu_ns, COUNTER, NANO, "process_cpu_seconds_total", "CPU time of the daemon, of all its threads.")          \
        ROW(resident_bytes, GAUGE, ONE, "process_resident_memory_bytes", "Memory of the daemon that is in RAM.")        \
        ROW(virtual_bytes, GAUGE, ONE, "process_virtual_memory_bytes", "Address space of the daemon.")                  \
        ROW(n_fds, GAUGE, ONE, "process_open_fds", "Open file descriptors.")                                            \
        ROW(n_fds_max, GAUGE, ONE, "process_max_fds", "Limit of open file descriptors.")                                \
        ROW(started_unix, GAUGE, ONE, "process_start_time_seconds", "When the daemon started, in seconds since 1970.")

#define NODE_METRICS(ROW)                                                                                              \
        ROW(is_draining, GAUGE, ONE, "dataloaderd_draining", "1 while the daemon completes what is begun, to end.")     \
        ROW(n_connections, GAUGE, ONE, "dataloaderd_connections", "Connections to the daemon's socket.")                \
        ROW(n_jobs, GAUGE, ONE, "dataloaderd_jobs", "Jobs that are being served.")                                      \
        ROW(n_workers, GAUGE, ONE, "dataloaderd_workers", "Threads that decode.")                                       \
        ROW(cpus_milli, GAUGE, MILLI, "dataloaderd_worker_cpus", "CPUs that workers may use: affinity, quota, ceiling.") \
        ROW(memory_limit, GAUGE, ONE, "dataloaderd_memory_limit_bytes", "The setting memory_limit.")                    \
        ROW(memory_used, GAUGE, ONE, "dataloaderd_memory_used_bytes", "Of that, reserved: rings, orders, indexes, buffers.") \
        ROW(memory_buffers, GAUGE, ONE, "dataloaderd_memory_read_buffers_bytes", "Of memory used: read buffers.")       \
        ROW(memory_scratch, GAUGE, ONE, "dataloaderd_memory_scratch_bytes", "Of memory used: scratch of the workers.")  \
        ROW(memory_held, GAUGE, ONE, "dataloaderd_memory_held_bytes", "Of memory used: kept by clients that have left.") \
        ROW(read_depth, GAUGE, ONE, "dataloaderd_read_depth", "Samples that may be under way at once.")                 \
        ROW(n_reading, GAUGE, ONE, "dataloaderd_reads_in_progress", "Samples that are being read now.")                 \
        ROW(n_samples, COUNTER, ONE, "dataloaderd_node_samples_total", "Samples decoded or copied.")                    \
        ROW(n_batches, COUNTER, ONE, "dataloaderd_node_batches_total", "Batches made ready.")                           \
        ROW(n_sample_errors, COUNTER, ONE, "dataloaderd_node_damaged_samples_total", "Samples that could not be read or decoded, each time counted.") \
        ROW(n_substituted, COUNTER, ONE, "dataloaderd_node_substituted_samples_total", "Samples served in place of a damaged one.") \
        ROW(n_skipped, COUNTER, ONE, "dataloaderd_node_skipped_samples_total", "Damaged samples left out of their batch.") \
        ROW(n_dropped, COUNTER, ONE, "dataloaderd_node_dropped_samples_total", "Samples whose rank left or seeked before they were decoded.") \
        ROW(n_failed_jobs, COUNTER, ONE, "dataloaderd_node_failed_jobs_total", "Jobs ended by a damaged sample.")       \
        ROW(n_reads, COUNTER, ONE, "dataloaderd_node_reads_total", "Reads of files or of parts of shards.")             \
        ROW(n_reads_uncached, COUNTER, ONE, "dataloaderd_node_uncached_reads_total", "Of these, past the page cache.")  \
        ROW(n_reads_slow, COUNTER, ONE, "dataloaderd_node_slow_reads_total", "Of these, given up by io_uring and decided by pread().") \
        ROW(n_bytes_read, COUNTER, ONE, "dataloaderd_node_read_bytes_total", "Bytes of encoded samples that were read.") \
        ROW(storage_bytes, COUNTER, ONE, "dataloaderd_node_storage_read_bytes_total", "Bytes that the kernel fetched from storage for the daemon: the rest was in the page cache.") \
        ROW(read_ns, COUNTER, NANO, "dataloaderd_node_read_seconds_total", "From requesting bytes of a sample until they were there, summed over the reads.") \
        ROW(queued_ns, COUNTER, NANO, "dataloaderd_node_queued_seconds_total", "From then until a worker took the sample, summed likewise.") \
        ROW(worker_ns, COUNTER, NANO, "dataloaderd_node_worker_seconds_total", "Time of workers with samples and batches.") \
        ROW(worker_cpu_ns, COUNTER, NANO, "dataloaderd_node_worker_cpu_seconds_total", "CPU time of workers: less than their time if CPUs are short.") \
        ROW(n_scratch_waits, COUNTER, ONE, "dataloaderd_node_scratch_waits_total", "Large pictures that waited for scratch memory.")

#define DATASET_METRICS(ROW)                                                                                           \
        ROW(is_ready, GAUGE, ONE, "dataloaderd_dataset_ready", "1 if the dataset can be served.")                       \
        ROW(has_failed, GAUGE, ONE, "dataloaderd_dataset_failed", "1 if the dataset could not be opened.")              \
        ROW(n_samples, GAUGE, ONE, "dataloaderd_dataset_samples", "Samples of the dataset.")                            \
        ROW(n_bytes, GAUGE, ONE, "dataloaderd_dataset_bytes", "Bytes of all its stored fields.")                        \
        ROW(n_damaged, GAUGE, ONE, "dataloaderd_dataset_damaged_samples", "Entries in its ledger of damaged samples, earlier runs included.") \
        ROW(is_unreadable, GAUGE, ONE, "dataloaderd_dataset_unreadable", "1 while it cannot be read (a dead mount, a server), and jobs wait for it.") \
        ROW(indexing_micro, GAUGE, MICRO, "dataloaderd_dataset_indexing_ratio", "How much of it is indexed, while it is.") \
        ROW(indexing_ms, GAUGE, MILLI, "dataloaderd_dataset_indexing_seconds", "How long that has taken.")              \
        ROW(staging_at_work, GAUGE, ONE, "dataloaderd_staging_active", "1 while a staging of the dataset is running.")  \
        ROW(staging_failed, GAUGE, ONE, "dataloaderd_staging_failed", "1 if the last staging failed.")                  \
        ROW(staging_bytes, GAUGE, ONE, "dataloaderd_staging_bytes", "Bytes to be staged, of all nodes together.")       \
        ROW(staging_done, GAUGE, ONE, "dataloaderd_staging_done_bytes", "Of these, in place.")                          \
        ROW(staging_origin, GAUGE, ONE, "dataloaderd_staging_origin_bytes", "Bytes fetched from the origin.")           \
        ROW(staging_files, GAUGE, ONE, "dataloaderd_staging_files", "Files to be staged.")                              \
        ROW(staging_done_files, GAUGE, ONE, "dataloaderd_staging_done_files", "Of these, in place on the node that has fewest.") \
        ROW(staging_retries, GAUGE, ONE, "dataloaderd_staging_retries", "Requests that the staging repeated.")          \
        ROW(staging_errors, GAUGE, ONE, "dataloaderd_staging_errors", "Errors that the staging met.")                   \
        ROW(staging_nodes, GAUGE, ONE, "dataloaderd_staging_nodes", "Nodes that take part.")

#define JOB_METRICS(ROW)                                                                                               \
        ROW(world, GAUGE, ONE, "dataloaderd_job_world_size", "Ranks of the job on all nodes.")                          \
        ROW(n_ranks, GAUGE, ONE, "dataloaderd_job_ranks", "Ranks of the job on this node.")                             \
        ROW(is_on_hold, GAUGE, ONE, "dataloaderd_job_on_hold", "1 while the job waits for a dataset that cannot be read.") \
        ROW(has_failed, GAUGE, ONE, "dataloaderd_job_failed", "1 if the job has ended with an error.")                  \
        ROW(order_micro, GAUGE, MICRO, "dataloaderd_job_order_ratio", "How much of the order of an epoch is made, while it is.") \
        ROW(n_damaged, COUNTER, ONE, "dataloaderd_damaged_samples_total", "Damaged samples that the job met, each counted once.") \
        ROW(n_decoded, COUNTER, ONE, "dataloaderd_decoded_samples_total", "Samples decoded or copied for the job.")     \
        ROW(n_reads, COUNTER, ONE, "dataloaderd_reads_total", "Reads of files or of parts of shards.")                  \
        ROW(n_bytes_read, COUNTER, ONE, "dataloaderd_read_bytes_total", "Bytes of encoded samples that were read.")     \
        ROW(read_ns, COUNTER, NANO, "dataloaderd_read_seconds_total", "From requesting bytes of a sample until they were there, summed over the reads.") \
        ROW(queued_ns, COUNTER, NANO, "dataloaderd_queued_seconds_total", "From then until a worker took the sample, summed likewise.") \
        ROW(worker_ns, COUNTER, NANO, "dataloaderd_worker_seconds_total", "Time of workers that samples of the job have taken.")

#define RANK_METRICS(ROW)                                                                                              \
        ROW(n_samples, COUNTER, ONE, "dataloaderd_samples_total", "Samples in batches that were made ready for the rank.") \
        ROW(n_samples_again, COUNTER, ONE, "dataloaderd_replayed_samples_total", "Samples that dlctl diagnose --confirm had served again, which are in no other counter of samples.") \
        ROW(n_substituted, COUNTER, ONE, "dataloaderd_substituted_samples_total", "Of these, in place of a damaged one.") \
        ROW(n_skipped, COUNTER, ONE, "dataloaderd_skipped_samples_total", "Damaged samples left out of their batch.")   \
        ROW(n_batches, COUNTER, ONE, "dataloaderd_client_batches_total", "Batches that next() handed to the trainer.")  \
        ROW(n_waits, COUNTER, ONE, "dataloaderd_client_waits_total", "Of these without the first, asked for before they were ready.") \
        ROW(wait_ns, COUNTER, NANO, "dataloaderd_client_wait_seconds_total", "Time that the trainer waited in next() after its first batch.") \
        ROW(busy_ns, COUNTER, NANO, "dataloaderd_client_busy_seconds_total", "Time that it did not.")                   \
        ROW(empty_ns, COUNTER, NANO, "dataloaderd_ring_empty_seconds_total", "Time in which no batch was ready, asked for or not.") \
        ROW(waiting_ns, GAUGE, NANO, "dataloaderd_client_waiting_seconds", "For how long the trainer has been waiting now.") \
        ROW(first_wait_ns, GAUGE, NANO, "dataloaderd_client_first_batch_seconds", "How long it waited for its first batch.") \
        ROW(epoch, GAUGE, ONE, "dataloaderd_client_epoch", "Epoch of the batch that it takes next.")                    \
        ROW(step, GAUGE, ONE, "dataloaderd_client_step", "Number of that batch in its epoch.")                          \
        ROW(n_slots, GAUGE, ONE, "dataloaderd_ring_slots", "Batches that the rank's ring has room for.")                \
        ROW(n_ready, GAUGE, ONE, "dataloaderd_ring_ready_batches", "Of these, ready.")                                  \
        ROW(n_filling, GAUGE, ONE, "dataloaderd_ring_filling_batches", "Of these, being made.")                         \
        ROW(n_leased, GAUGE, ONE, "dataloaderd_ring_leased_batches", "Of these, in use by the trainer.")                \
        ROW(ring_bytes, GAUGE, ONE, "dataloaderd_ring_bytes", "Memory of the ring.")
/* clang-format on */

/* Three that are not numbers of a row: a label, the stages, a histogram. */
#define METRIC_BUILD "dataloaderd_build_info"
#define METRIC_STAGE "dataloaderd_stage_cpu_seconds_total"
#define METRIC_NEXT  "dataloaderd_client_next_seconds"

#define METRIC_BUILD_HELP "1; the label says which version runs."
#define METRIC_STAGE_HELP "Time of workers by what they did, as the clock has it: CPU time, unless CPUs are short."
#define METRIC_NEXT_HELP                                                                                               \
        "How long the trainer waited for each batch but the first. A wait under way is in the sum already."

#define METRIC_FIELD(field, kind, scale, name, help) uint64_t field;

struct process_numbers {
        PROCESS_METRICS(METRIC_FIELD)
};

struct node_numbers {
        NODE_METRICS(METRIC_FIELD)
};

struct dataset_numbers {
        DATASET_METRICS(METRIC_FIELD)
};

struct job_numbers {
        JOB_METRICS(METRIC_FIELD)
};

struct rank_numbers {
        RANK_METRICS(METRIC_FIELD)
};

#undef METRIC_FIELD
