/* base/number_rows.h: every number that the daemon shows, a row each. What counts, what is sent, what `dlctl status`,
 * `jobs`, `top` and `web` show and what Prometheus scrapes is made of these rows.
 *
 *     ROW(name, KIND, unit, WHERE, metric, help)
 *
 * `name` is the key in JSON, and the field of the structs that are made here. `unit` is for people; "ns", "ms",
 * "thousandths" and "millionths" also say by what Prometheus' seconds and ratios differ. `metric` is Prometheus' name;
 * "": it is not scraped. Names follow Prometheus' advice: base units (seconds, bytes), `_total` for counters. What
 * begins with dataloaderd_node_ is counted for all jobs since the daemon's start, those that have ended included, and
 * never decreases. The other counters belong to a job or to one of its ranks, and go with it: a job that comes again
 * under the same name begins at 0.
 *
 * WHERE:
 *     SCRAPED   in the metrics alone; without a name there, nowhere
 *     FIELD     clients compute with it, so the message of its scope has a field of this name (proto/dataloader.proto)
 *     LISTED    sent with its row: every client shows it as it is, also one that is older than the number
 *     WATCHED   the same, and `dlctl top` shows it beside what it computes, unless it is 0
 *
 * The rows whose list ends in _COUNTERS are counted by whoever includes them (pipeline/counters.h,
 * pipeline/jobs/tally.h, pipeline/feed.h); the others are looked up when somebody asks (ctl/number_values.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* clang-format off */

/* ---- the daemon ---- */

#define PROCESS_NUMBERS(ROW)                                                                                           \
        ROW(cpu_ns, COUNTER, "ns", SCRAPED, "process_cpu_seconds_total", "CPU time of the daemon, of all its threads.") \
        ROW(resident_bytes, GAUGE, "bytes", SCRAPED, "process_resident_memory_bytes", "Memory of the daemon that is in RAM.") \
        ROW(virtual_bytes, GAUGE, "bytes", SCRAPED, "process_virtual_memory_bytes", "Address space of the daemon.")     \
        ROW(n_fds, GAUGE, "", SCRAPED, "process_open_fds", "Open file descriptors.")                                    \
        ROW(n_fds_max, GAUGE, "", SCRAPED, "process_max_fds", "Limit of open file descriptors.")                        \
        ROW(started_unix, GAUGE, "", SCRAPED, "process_start_time_seconds", "When the daemon started, in seconds since 1970.")

#define NODE_STATE(ROW)                                                                                                \
        ROW(is_draining, GAUGE, "", SCRAPED, "dataloaderd_draining", "1 while the daemon completes what is begun, to end.") \
        ROW(n_connections, GAUGE, "", SCRAPED, "dataloaderd_connections", "Connections to the daemon's socket.")        \
        ROW(n_jobs, GAUGE, "jobs", SCRAPED, "dataloaderd_jobs", "Jobs that are being served.")                          \
        ROW(n_workers, GAUGE, "threads", FIELD, "dataloaderd_workers", "Threads that decode.")                          \
        ROW(cpus_milli, GAUGE, "thousandths", FIELD, "dataloaderd_worker_cpus", "CPUs that workers may use: affinity, quota, ceiling.") \
        ROW(memory_limit, GAUGE, "bytes", SCRAPED, "dataloaderd_memory_limit_bytes", "The setting memory_limit.")       \
        ROW(memory_used, GAUGE, "bytes", SCRAPED, "dataloaderd_memory_used_bytes", "Of that, reserved: rings, orders, indexes, buffers.") \
        ROW(memory_buffers, GAUGE, "bytes", SCRAPED, "dataloaderd_memory_read_buffers_bytes", "Of memory used: read buffers.") \
        ROW(memory_scratch, GAUGE, "bytes", SCRAPED, "dataloaderd_memory_scratch_bytes", "Of memory used: scratch of the workers.") \
        ROW(memory_held, GAUGE, "bytes", SCRAPED, "dataloaderd_memory_held_bytes", "Of memory used: kept by clients that have left.") \
        ROW(read_depth, GAUGE, "samples", FIELD, "dataloaderd_read_depth", "Samples that may be under way at once.")    \
        ROW(n_reading, GAUGE, "samples", FIELD, "dataloaderd_reads_in_progress", "Samples that are being read now.")    \
        ROW(cache_used, GAUGE, "bytes", SCRAPED, "dataloaderd_cache_used_bytes", "Held in cache_dir: what was fetched, and what was unpacked.") \
        ROW(cache_limit, GAUGE, "bytes", SCRAPED, "dataloaderd_cache_limit_bytes", "The most that cache_dir may hold.") \
        ROW(origin_first_byte_ns, GAUGE, "ns", SCRAPED, "dataloaderd_origin_first_byte_seconds", "How long the slower half of the requests to an origin waits for the first byte, at least.") \
        ROW(origin_horizon_ns, GAUGE, "ns", SCRAPED, "dataloaderd_origin_horizon_seconds", "How far ahead what ranks need is to be asked of an origin: fetch_ahead, or longer where answers are late.") \
        ROW(storage_bytes, COUNTER, "bytes", FIELD, "dataloaderd_node_storage_read_bytes_total", "Bytes that the kernel fetched from storage for the daemon: the rest was in the page cache.") \
        ROW(worker_ns, COUNTER, "ns", FIELD, "dataloaderd_node_worker_seconds_total", "Time of workers with samples and batches.")

#define NODE_COUNTERS(ROW)                                                                                             \
        ROW(n_samples, COUNTER, "samples", FIELD, "dataloaderd_node_samples_total", "Samples decoded or copied.")       \
        ROW(n_batches, COUNTER, "batches", LISTED, "dataloaderd_node_batches_total", "Batches made ready.")             \
        ROW(n_sample_errors, COUNTER, "samples", LISTED, "dataloaderd_node_damaged_samples_total", "Samples that could not be read or decoded, each time counted.") \
        ROW(n_substituted, COUNTER, "samples", WATCHED, "dataloaderd_node_substituted_samples_total", "Samples served in place of a damaged one.") \
        ROW(n_skipped, COUNTER, "samples", WATCHED, "dataloaderd_node_skipped_samples_total", "Damaged samples left out of their batch.") \
        ROW(n_failed_jobs, COUNTER, "jobs", WATCHED, "dataloaderd_node_failed_jobs_total", "Jobs ended by a damaged sample.") \
        ROW(n_dropped, COUNTER, "samples", LISTED, "dataloaderd_node_dropped_samples_total", "Samples whose rank left or seeked before they were decoded.") \
        ROW(n_bytes_read, COUNTER, "bytes", FIELD, "dataloaderd_node_read_bytes_total", "Bytes of encoded samples that were read.") \
        ROW(n_reads, COUNTER, "reads", FIELD, "dataloaderd_node_reads_total", "Reads of files or of parts of shards.")  \
        ROW(n_reads_past_cache, COUNTER, "reads", LISTED, "dataloaderd_node_uncached_reads_total", "Of these, past the page cache.") \
        ROW(n_reads_slow, COUNTER, "reads", WATCHED, "dataloaderd_node_slow_reads_total", "Of these, given up by io_uring and decided by pread().") \
        ROW(n_cache_hits, COUNTER, "reads", WATCHED, "dataloaderd_node_cache_hits_total", "Reads of datasets that lie elsewhere of which all was in cache_dir.") \
        ROW(n_cache_misses, COUNTER, "reads", WATCHED, "dataloaderd_node_cache_misses_total", "Those that had to wait for their origin.") \
        ROW(origin_bytes, COUNTER, "bytes", WATCHED, "dataloaderd_node_origin_bytes_total", "Bytes that origins sent.") \
        ROW(peer_bytes, COUNTER, "bytes", WATCHED, "dataloaderd_node_peer_bytes_total", "Bytes that other nodes sent in place of an origin (peers).") \
        ROW(peer_sent_bytes, COUNTER, "bytes", WATCHED, "dataloaderd_node_peer_sent_bytes_total", "Bytes that other nodes got here.") \
        ROW(n_peer_failures, COUNTER, "chunks", WATCHED, "dataloaderd_node_peer_failures_total", "Chunks that another node was asked for and did not give, so that they came from their origin.") \
        ROW(n_origin_requests, COUNTER, "requests", LISTED, "dataloaderd_node_origin_requests_total", "Requests to origins, without listings.") \
        ROW(n_origin_retries, COUNTER, "requests", WATCHED, "dataloaderd_node_origin_retries_total", "Of these, tries after the first.") \
        ROW(n_origin_pauses, COUNTER, "pauses", WATCHED, "dataloaderd_node_origin_pauses_total", "Times that an origin was left alone because it asked for that (429, 503).") \
        ROW(cache_evicted_bytes, COUNTER, "bytes", WATCHED, "dataloaderd_node_cache_evicted_bytes_total", "Bytes that were removed from cache_dir to make room.") \
        ROW(n_jpeg_own, COUNTER, "pictures", LISTED, "", "JPEG pictures decoded by the daemon's own decoder.")          \
        ROW(n_jpeg_libjpeg, COUNTER, "pictures", LISTED, "", "JPEG pictures decoded by libjpeg-turbo: those that the daemon's own decoder does not handle, or, with decoder = libjpeg, all.") \
        ROW(n_jpeg_handed_over, COUNTER, "pictures", LISTED, "", "Of these, begun by the daemon's own decoder and handed over, nearly always because they are damaged.") \
        ROW(n_shared, COUNTER, "pictures", WATCHED, "dataloaderd_node_shared_pictures_total", "Pictures cut from one that was decoded for another view or crop as well, so that its file was not decoded again.") \
        ROW(n_decoder_ends, COUNTER, "processes", WATCHED, "dataloaderd_node_decoder_ends_total", "Processes of decoders that ended over a sample, or were killed because they hung (isolation = process).") \
        ROW(n_scratch_waits, COUNTER, "samples", WATCHED, "dataloaderd_node_scratch_waits_total", "Large pictures that waited for scratch memory (memory_limit).") \
        ROW(decode_ns, COUNTER, "ns", LISTED, "", "Time of workers with decoding and augmenting.")                      \
        ROW(collate_ns, COUNTER, "ns", LISTED, "", "Time of workers with completing batches.")                          \
        ROW(worker_cpu_ns, COUNTER, "ns", FIELD, "dataloaderd_node_worker_cpu_seconds_total", "CPU time of workers: less than their time if CPUs are short.") \
        ROW(read_ns, COUNTER, "ns", FIELD, "dataloaderd_node_read_seconds_total", "From requesting bytes of a sample until they were there, summed over the reads.") \
        ROW(queued_ns, COUNTER, "ns", FIELD, "dataloaderd_node_queued_seconds_total", "Time that samples waited for a worker, summed over the samples.")

#define NODE_NUMBERS(ROW) NODE_STATE(ROW) NODE_COUNTERS(ROW)

/* ---- a dataset ---- */

#define DATASET_NUMBERS(ROW)                                                                                           \
        ROW(is_ready, GAUGE, "", SCRAPED, "dataloaderd_dataset_ready", "1 if the dataset can be served.")               \
        ROW(has_failed, GAUGE, "", SCRAPED, "dataloaderd_dataset_failed", "1 if the dataset could not be opened.")      \
        ROW(n_samples, GAUGE, "samples", FIELD, "dataloaderd_dataset_samples", "Samples of the dataset.")               \
        ROW(n_bytes, GAUGE, "bytes", FIELD, "dataloaderd_dataset_bytes", "Bytes of all its stored fields.")             \
        ROW(n_errors, GAUGE, "samples", FIELD, "dataloaderd_dataset_damaged_samples", "Entries in its ledger of damaged samples, earlier runs included.") \
        ROW(is_unreadable, GAUGE, "", SCRAPED, "dataloaderd_dataset_unreadable", "1 while it cannot be read (a dead mount, a server), and jobs wait for it.") \
        ROW(indexing_micro, GAUGE, "millionths", SCRAPED, "dataloaderd_dataset_indexing_ratio", "How much of it is indexed, while it is.") \
        ROW(indexing_ms, GAUGE, "ms", SCRAPED, "dataloaderd_dataset_indexing_seconds", "How long that has taken.")      \
        ROW(staging_at_work, GAUGE, "", SCRAPED, "dataloaderd_staging_active", "1 while a staging of the dataset is running.") \
        ROW(staging_failed, GAUGE, "", SCRAPED, "dataloaderd_staging_failed", "1 if the last staging failed.")

/* The last staging that was heard of; the message Staging has these. */
#define STAGING_NUMBERS(ROW)                                                                                           \
        ROW(n_bytes_total, GAUGE, "bytes", FIELD, "dataloaderd_staging_bytes", "Bytes to be staged, of all nodes together.") \
        ROW(n_bytes_done, GAUGE, "bytes", FIELD, "dataloaderd_staging_done_bytes", "Of these, in place.")               \
        ROW(n_bytes_origin, GAUGE, "bytes", FIELD, "dataloaderd_staging_origin_bytes", "Bytes fetched from the origin.") \
        ROW(n_files_total, GAUGE, "files", FIELD, "dataloaderd_staging_files", "Files to be staged.")                   \
        ROW(n_files_done, GAUGE, "files", FIELD, "dataloaderd_staging_done_files", "Of these, in place on the node that has fewest.") \
        ROW(n_retries, GAUGE, "", FIELD, "dataloaderd_staging_retries", "Requests that the staging repeated.")          \
        ROW(n_errors, GAUGE, "", FIELD, "dataloaderd_staging_errors", "Errors that the staging met.")                   \
        ROW(n_nodes, GAUGE, "", FIELD, "dataloaderd_staging_nodes", "Nodes that take part.")

/* ---- a job ---- */

#define JOB_STATE(ROW)                                                                                                 \
        ROW(world, GAUGE, "ranks", SCRAPED, "dataloaderd_job_world_size", "Ranks of the job on all nodes.")             \
        ROW(n_ranks, GAUGE, "ranks", SCRAPED, "dataloaderd_job_ranks", "Ranks of the job on this node.")                \
        ROW(is_on_hold, GAUGE, "", SCRAPED, "dataloaderd_job_on_hold", "1 while the job waits for a dataset that cannot be read.") \
        ROW(has_failed, GAUGE, "", SCRAPED, "dataloaderd_job_failed", "1 if the job has ended with an error.")          \
        ROW(order_micro, GAUGE, "millionths", SCRAPED, "dataloaderd_job_order_ratio", "How much of the order of an epoch is made, while it is.") \
        ROW(n_errors, COUNTER, "samples", FIELD, "dataloaderd_damaged_samples_total", "Damaged samples that the job met, each counted once.") \
        ROW(worker_ns, COUNTER, "ns", FIELD, "dataloaderd_worker_seconds_total", "Time of workers that samples of the job have taken.") \
        ROW(other_ns, COUNTER, "ns", FIELD, "", "Other threads' time that all requests of its user have taken: for orders, columns, indexes.") \
        ROW(step_wait_ns, COUNTER, "ns", FIELD, "", "Of each step the longest wait of a rank of this node, summed.")

#define JOB_COUNTERS(ROW)                                                                                              \
        ROW(n_tokens, COUNTER, "tokens", FIELD, "dataloaderd_tokens_total", "Tokens of text, in whole batches.") \
        ROW(n_samples, COUNTER, "samples", FIELD, "dataloaderd_decoded_samples_total", "Samples decoded or copied for the job.") \
        ROW(n_reads, COUNTER, "reads", FIELD, "dataloaderd_reads_total", "Reads of files or of parts of shards.")       \
        ROW(n_bytes_read, COUNTER, "bytes", FIELD, "dataloaderd_read_bytes_total", "Bytes of encoded samples that were read.") \
        ROW(read_ns, COUNTER, "ns", FIELD, "dataloaderd_read_seconds_total", "From requesting bytes of a sample until they were there, summed over the reads.") \
        ROW(fetch_ns, COUNTER, "ns", FIELD, "dataloaderd_fetch_seconds_total", "Of the time of reads: until bytes that lie elsewhere were here.") \
        ROW(queued_ns, COUNTER, "ns", FIELD, "dataloaderd_queued_seconds_total", "Time that samples waited for a worker, summed over the samples.") \
        ROW(serving_ns, COUNTER, "ns", SCRAPED, "", "Time of workers with its samples, without completing batches.")    \
        ROW(n_shared, COUNTER, "pictures", WATCHED, "dataloaderd_shared_pictures_total", "Pictures cut from one that was decoded for another view or crop as well.") \
        ROW(n_texts_cut, COUNTER, "texts", FIELD, "dataloaderd_cut_texts_total", "Texts cut by max_length of tokens(); a sample that is served again after a restart counts again.") \
        ROW(n_tokens_cut, COUNTER, "tokens", FIELD, "dataloaderd_cut_tokens_total", "About how many tokens were left out of them.")

#define JOB_NUMBERS(ROW) JOB_STATE(ROW) JOB_COUNTERS(ROW)

/* ---- a rank ---- */

#define RANK_STATE(ROW)                                                                                                \
        ROW(age_ns, GAUGE, "ns", FIELD, "", "Time since it attached.")                                                  \
        ROW(epoch, GAUGE, "", FIELD, "dataloaderd_client_epoch", "Epoch of the batch that it takes next.")              \
        ROW(step, GAUGE, "", FIELD, "dataloaderd_client_step", "Number of that batch in its epoch.")                    \
        ROW(n_slots, GAUGE, "batches", FIELD, "dataloaderd_ring_slots", "Batches that the rank's ring has room for.")   \
        ROW(n_ready, GAUGE, "batches", FIELD, "dataloaderd_ring_ready_batches", "Of these, ready.")                     \
        ROW(n_filling, GAUGE, "batches", FIELD, "dataloaderd_ring_filling_batches", "Of these, being made.")            \
        ROW(n_leased, GAUGE, "batches", FIELD, "dataloaderd_ring_leased_batches", "Of these, in use by the trainer.")   \
        ROW(ring_bytes, GAUGE, "bytes", FIELD, "dataloaderd_ring_bytes", "Memory of the ring.")                         \
        ROW(ahead_ns, GAUGE, "ns", WATCHED, "dataloaderd_client_ahead_seconds", "How far ahead what it needs has been asked of an origin that is elsewhere.") \
        ROW(n_released, COUNTER, "batches", SCRAPED, "", "Batches that came back since it attached: n_batches of Rank.")

#define RANK_COUNTERS(ROW)                                                                                             \
        ROW(n_samples, COUNTER, "samples", FIELD, "dataloaderd_samples_total", "Samples in batches that were made ready for the rank.") \
        ROW(n_substituted, COUNTER, "samples", FIELD, "dataloaderd_substituted_samples_total", "Of these, in place of a damaged one.") \
        ROW(n_skipped, COUNTER, "samples", FIELD, "dataloaderd_skipped_samples_total", "Damaged samples left out of their batch.") \
        ROW(n_samples_again, COUNTER, "samples", FIELD, "dataloaderd_replayed_samples_total", "Samples that dlctl diagnose --confirm had served again, which are in no other counter of samples.")

/* What its client says (proto/meter.h); the message Waiting has these. */
#define WAITING_NUMBERS(ROW)                                                                                           \
        ROW(n_batches, COUNTER, "batches", FIELD, "dataloaderd_client_batches_total", "Batches that next() handed to the trainer.") \
        ROW(n_waits, COUNTER, "batches", FIELD, "dataloaderd_client_waits_total", "Of these without the first, asked for before they were ready.") \
        ROW(wait_ns, COUNTER, "ns", FIELD, "dataloaderd_client_wait_seconds_total", "Time that the trainer waited in next() after its first batch.") \
        ROW(busy_ns, COUNTER, "ns", FIELD, "dataloaderd_client_busy_seconds_total", "Time that it did not.")            \
        ROW(empty_ns, COUNTER, "ns", FIELD, "dataloaderd_ring_empty_seconds_total", "Time in which no batch was ready, asked for or not.") \
        ROW(waiting_ns, GAUGE, "ns", FIELD, "dataloaderd_client_waiting_seconds", "For how long the trainer has been waiting now.") \
        ROW(first_wait_ns, GAUGE, "ns", FIELD, "dataloaderd_client_first_batch_seconds", "How long it waited for its first batch.")

#define RANK_NUMBERS(ROW) RANK_COUNTERS(ROW) WAITING_NUMBERS(ROW) RANK_STATE(ROW)

/* clang-format on */

enum number_kind {
        NUMBER_COUNTER,
        NUMBER_GAUGE,
};

enum number_where {
        NUMBER_SCRAPED,
        NUMBER_FIELD,
        NUMBER_LISTED,
        NUMBER_WATCHED,
};

struct number_row {
        const char *name, *unit, *metric, *help;
        enum number_kind kind;
        enum number_where where;
};

/* For arrays of rows, */
#define NUMBER_ROW(name, kind, unit, where, metric, help) { #name, unit, metric, help, NUMBER_##kind, NUMBER_##where },

/* and for structs that have a value for each. */
#define NUMBER_VALUE(name, kind, unit, where, metric, help)   uint64_t name;
#define NUMBER_COUNTED(name, kind, unit, where, metric, help) _Atomic uint64_t name;

#define NUMBER_UNKNOWN UINT64_MAX /* a value that is not known: it is left out */
