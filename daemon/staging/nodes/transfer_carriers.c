#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/threads/thread.h"
#include "daemon/staging/nodes/transfer_private.h"
#include "proto/base/clock.h"
#include "proto/base/shown/shorten.h"

#define PAGE 4096u

void transfer_heard(struct transfer *transfer, int error, bool is_hopeful, const char *text) {
        transfer->n_hopeful += is_hopeful;
        if (!transfer->has_failed) {
                transfer->has_failed = true;
                transfer->first_error = error;
                why_set(&transfer->first_why, error, "%s", text);
        }
}

void transfer_failed(struct transfer *transfer, int error, bool is_hopeful, const char *text) {
        atomic_fetch_add_explicit(&transfer->options->counts->n_errors, 1, memory_order_relaxed);
        transfer->n_failed++;
        transfer_heard(transfer, error, is_hopeful, text);
        if (transfer->options->say)
                transfer->options->say(transfer->options->userdata, text);
}

/* Single requests are tried again for long; that nothing at all comes is another matter. */
static void listen_to_origin(struct transfer *transfer, const struct fetcher_counts *fetched, bool is_asked) {
        uint64_t now_ns = clock_now_ns();
        char text[DLP_TEXT_MAX];

        if (!is_asked || fetched->n_bytes != transfer->n_heard_bytes || transfer->heard_ns == 0) {
                transfer->n_heard_bytes = fetched->n_bytes;
                transfer->heard_ns = now_ns;
        }
        if (transfer->is_stopping || now_ns - transfer->heard_ns < transfer->options->silence_s * 1000000000ull)
                return;
        transfer->is_stopping = true;
        shorten(text, sizeof(text), "the origin has sent nothing for %u s%s%s", transfer->options->silence_s,
                fetched->last.text[0] ? "; the last word: " : "", fetched->last.text);
        transfer_failed(transfer, -ETIMEDOUT, false, text);
}

void transfer_count(struct transfer *transfer, bool is_asked) {
        struct transfer_counts *counts = transfer->options->counts;
        struct fetcher_counts fetched;

        if (!transfer->fetcher)
                return;
        fetcher_counts(transfer->fetcher, &fetched);
        atomic_store_explicit(&counts->n_bytes_origin, transfer->n_origin_before + fetched.n_bytes,
                              memory_order_relaxed);
        atomic_store_explicit(&counts->n_retries, transfer->n_retries_before + fetched.n_retries, memory_order_relaxed);
        listen_to_origin(transfer, &fetched, is_asked);
}

static void parcel_set_free(struct transfer *transfer, struct parcel *parcel) {
        TAILQ_INSERT_TAIL(parcel->is_source ? &transfer->free_source : &transfer->free_receive, parcel, entry);
        pthread_cond_signal(&transfer->changed);
}

/* ---- what this node brings ---- */

/* What no other node and no later time will change. */
static bool is_final(int error) {
        return error == -ENOENT || error == -EACCES || error == -EINVAL;
}

/* Answers of the origin, however bad, show that it is there. */
static bool is_unanswered(int error) {
        return error == -ETIMEDOUT || error == -ECONNREFUSED || error == -EIO || error == -EHOSTUNREACH ||
               error == -ENETUNREACH;
}

static void parcel_brought(struct transfer *transfer, struct parcel *parcel, int result, const struct why *why) {
        pthread_mutex_lock(&transfer->lock);
        if (result == 0)
                transfer->n_unanswered = 0;
        else if (is_unanswered(result) && ++transfer->n_unanswered >= TRANSFER_UNANSWERED_MAX)
                transfer->is_stopping = true;
        if (result < 0) {
                const struct cluster *cluster = transfer->options->cluster;

                parcel->head->status = transfer->is_stopping ? PARCEL_STOP : PARCEL_FAILED;
                /* The fetcher has tried long enough; but what does not answer here may answer another node. */
                parcel->head->is_hopeful = !is_final(result) &&
                                           !(is_unanswered(result) && cluster_n_nodes(cluster) == 1);
                if (cluster_n_nodes(cluster) > 1)
                        shorten(parcel->head->text, sizeof(parcel->head->text), "%s: %s",
                                cluster_name(cluster, transfer->me), why->text);
                else
                        snprintf(parcel->head->text, sizeof(parcel->head->text), "%s", why->text);
                if (result != -ECANCELED)
                        transfer_failed(transfer, result, parcel->head->is_hopeful, parcel->head->text);
        }
        parcel->is_ready = true;
        pthread_cond_signal(&transfer->changed);
        pthread_mutex_unlock(&transfer->lock);
}

static void on_fetched(struct fetch_job *job) {
        struct parcel *parcel = (struct parcel *)((uint8_t *)job - offsetof(struct parcel, job));

        parcel_brought(job->userdata, parcel, job->result, &job->why);
}

static void fill_pieces(const struct transfer *transfer, struct parcel *parcel) {
        const struct chunk *place = &parcel->place;
        uint64_t at = 0;

        parcel->job = (struct fetch_job){ .pieces = parcel->pieces,
                                          .n_pieces = place->n_files,
                                          .idx_mirror = transfer->round,
                                          .userdata = (void *)transfer };
        for (uint32_t i = 0; i < place->n_files; i++) {
                const struct plan_file *file = plan_file(transfer->options->plan, place->first_file + i);
                uint64_t left = file->n_bytes - place->offset;

                parcel->pieces[i] = (struct fetch_piece){
                        .file = file,
                        .offset = place->offset,
                        .n_bytes = (uint32_t)(left < place->n_bytes - at ? left : place->n_bytes - at),
                        .into = parcel->bytes + at,
                };
                at += parcel->pieces[i].n_bytes;
        }
        assert(at == place->n_bytes);
}

void parcel_bring(struct transfer *transfer, struct parcel *parcel, const struct route *route) {
        parcel->place = chunks_get(transfer->options->chunks, route->chunk);
        parcel->is_ready = false;
        *parcel->head = (struct parcel_head){ .status = PARCEL_WHOLE, .chunk = route->chunk };
        parcel->is_fetched = route->is_fetched;
        if (route->is_fetched && parcel->place.n_files == 1) {
                fill_pieces(transfer, parcel);
                fetcher_submit(transfer->fetcher, &parcel->job);
                return;
        }
        /* From our own disk; or of several files some may lie there already, taken over from the version before. */
        TAILQ_INSERT_TAIL(&transfer->to_read, parcel, to_read);
        pthread_cond_broadcast(&transfer->work);
}

/* Small files that are whole here need not come from the origin: what is left of the pieces does. */
static void read_whole_files(struct transfer *transfer, struct parcel *parcel) {
        uint32_t n_left = 0;
        struct why why;

        for (uint32_t i = 0; i < parcel->job.n_pieces; i++) {
                struct fetch_piece piece = parcel->pieces[i];
                uint64_t idx_file = parcel->place.first_file + i;

                if (!transfer->options->tree || !tree_file_is_whole(transfer->options->tree, idx_file) ||
                    tree_read_file(transfer->options->tree, idx_file, piece.into, &why) < 0)
                        parcel->pieces[n_left++] = piece;
        }
        parcel->job.n_pieces = n_left;
}

static void read_parcel(struct transfer *transfer, struct parcel *parcel) {
        struct why why = { "" };
        int r;

        if (!parcel->is_fetched) {
                r = tree_read(transfer->options->tree, parcel->head->chunk, parcel->bytes, &why);
                parcel_brought(transfer, parcel, r, &why);
                return;
        }
        fill_pieces(transfer, parcel);
        read_whole_files(transfer, parcel);
        if (parcel->job.n_pieces == 0) {
                parcel_brought(transfer, parcel, 0, NULL);
                return;
        }
        pthread_mutex_lock(&transfer->lock);
        if (transfer->fetcher)
                fetcher_submit(transfer->fetcher, &parcel->job);
        r = transfer->fetcher ? 0 : -ECANCELED; /* stopped meanwhile */
        pthread_mutex_unlock(&transfer->lock);
        if (r < 0)
                parcel_brought(transfer, parcel, r, &why);
}

static void *reader_main(void *argument) {
        struct transfer *transfer = argument;
        struct parcel *parcel;

        pthread_mutex_lock(&transfer->lock);
        for (;;) {
                while (!(parcel = TAILQ_FIRST(&transfer->to_read)) && !transfer->is_over)
                        pthread_cond_wait(&transfer->work, &transfer->lock);
                if (!parcel)
                        break;
                TAILQ_REMOVE(&transfer->to_read, parcel, to_read);
                pthread_mutex_unlock(&transfer->lock);
                read_parcel(transfer, parcel);
                pthread_mutex_lock(&transfer->lock);
        }
        pthread_mutex_unlock(&transfer->lock);
        return NULL;
}

/* ---- what this node writes ---- */

void parcel_deliver(struct transfer *transfer, struct parcel *parcel) {
        if (parcel->head->status != PARCEL_WHOLE || !transfer->options->tree || transfer->is_disk_dead) {
                parcel_set_free(transfer, parcel);
                return;
        }
        transfer->n_writing++;
        TAILQ_INSERT_TAIL(&transfer->to_write, parcel, entry);
        pthread_cond_broadcast(&transfer->work);
}

static void write_parcel(struct transfer *transfer, struct parcel *parcel) {
        const struct transfer_options *options = transfer->options;
        struct why why;
        int r;

        if (!tree_is_missing(options->tree, parcel->head->chunk))
                return; /* it went to all, and this node had it */
        r = tree_write(options->tree, parcel->head->chunk, parcel->bytes, &why);
        if (r == 0) {
                atomic_fetch_add_explicit(&options->counts->n_bytes_done, parcel->place.n_bytes, memory_order_relaxed);
                atomic_fetch_add_explicit(&options->counts->n_files_done,
                                          parcel->place.n_files -
                                                  (parcel->place.n_files == 1 &&
                                                   parcel->place.offset + parcel->place.n_bytes <
                                                           plan_file(options->plan, parcel->place.first_file)->n_bytes),
                                          memory_order_relaxed);
                if (options->written)
                        options->written(options->written_userdata, parcel->head->chunk);
                return;
        }
        pthread_mutex_lock(&transfer->lock);
        if (r == TREE_BAD_FILE) {
                transfer_failed(transfer, -EBADMSG, true, why.text);
        } else if (!transfer->is_disk_dead) {
                transfer->is_disk_dead = true;
                transfer_failed(transfer, r, false, why.text);
        }
        pthread_mutex_unlock(&transfer->lock);
}

static void *transfer_carriers_writer_main(void *argument) {
        struct transfer *transfer = argument;
        struct parcel *parcel;

        pthread_mutex_lock(&transfer->lock);
        for (;;) {
                while (!(parcel = TAILQ_FIRST(&transfer->to_write)) && !transfer->is_over)
                        pthread_cond_wait(&transfer->work, &transfer->lock);
                if (!parcel)
                        break;
                TAILQ_REMOVE(&transfer->to_write, parcel, entry);
                pthread_mutex_unlock(&transfer->lock);
                write_parcel(transfer, parcel);
                pthread_mutex_lock(&transfer->lock);
                transfer->n_writing--;
                parcel_set_free(transfer, parcel);
        }
        pthread_mutex_unlock(&transfer->lock);
        return NULL;
}

/* ---- start and stop ---- */

static int make_parcels(struct transfer *transfer, uint32_t n_source) {
        for (uint32_t i = 0; i < TRANSFER_PARCELS; i++) {
                struct parcel *parcel = &transfer->parcels[i];
                void *memory = mmap(NULL, PAGE + CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                    0);

                if (memory == MAP_FAILED)
                        return -ENOMEM;
                parcel->memory = memory;
                parcel->bytes = parcel->memory + PAGE;
                parcel->head = (struct parcel_head *)(parcel->bytes - sizeof(struct parcel_head));
                parcel->is_source = i < n_source;
                if (parcel->is_source) {
                        parcel->pieces = calloc(CHUNK_FILES_MAX, sizeof(*parcel->pieces));
                        if (!parcel->pieces)
                                return -ENOMEM;
                }
                parcel_set_free(transfer, parcel);
        }
        return 0;
}

static void free_parcels(struct transfer *transfer) {
        for (uint32_t i = 0; i < TRANSFER_PARCELS; i++) {
                if (transfer->parcels[i].memory)
                        munmap(transfer->parcels[i].memory, PAGE + CHUNK_BYTES);
                free(transfer->parcels[i].pieces);
        }
}

static void init_lock(struct transfer *transfer) {
        pthread_mutex_init(&transfer->lock, NULL);
        pthread_cond_init(&transfer->changed, NULL);
        pthread_cond_init(&transfer->work, NULL);
        TAILQ_INIT(&transfer->free_source);
        TAILQ_INIT(&transfer->free_receive);
        TAILQ_INIT(&transfer->to_read);
        TAILQ_INIT(&transfer->to_write);
}

static void transfer_carriers_end_threads(struct transfer *transfer) {
        pthread_mutex_lock(&transfer->lock);
        transfer->is_over = true;
        pthread_cond_broadcast(&transfer->work);
        pthread_mutex_unlock(&transfer->lock);
        for (uint32_t i = 0; i < TRANSFER_WRITERS && transfer->writers[i]; i++)
                thread_join(transfer->writers[i]);
        if (transfer->reader)
                thread_join(transfer->reader);
}

/* As many writers as CPUs; two at least, since one may wait for the disk while the other hashes. */
static int transfer_carriers_start_threads(struct transfer *transfer) {
        uint32_t n_writers;
        struct cpus cpus;
        int r = thread_start(&transfer->reader, "peer-reader", reader_main, transfer);

        cpus_find(&cpus);
        n_writers = cpus_n_threads(&cpus) > 2 ? cpus_n_threads(&cpus) : 2;
        for (uint32_t i = 0; i < n_writers && i < TRANSFER_WRITERS && r == 0; i++)
                r = thread_start(&transfer->writers[i], "writer", transfer_carriers_writer_main, transfer);
        return r;
}

int transfer_start(struct transfer *transfer, uint32_t n_source, struct why *why) {
        const struct transfer_options *options = transfer->options;
        struct fetcher_options fetching = { .http = options->http,
                                            .n_connections = options->n_connections,
                                            .done = on_fetched };
        int r;

        init_lock(transfer);
        transfer->me = cluster_node(options->cluster);
        transfer->n_origin_before = atomic_load(&options->counts->n_bytes_origin);
        transfer->n_retries_before = atomic_load(&options->counts->n_retries);
        r = make_parcels(transfer, n_source);
        if (r < 0) {
                why_errno(why, r, "%u chunks of memory", TRANSFER_PARCELS);
        } else if (options->http) {
                r = fetcher_start(&fetching, &transfer->fetcher, why);
        }
        if (r == 0) {
                r = transfer_carriers_start_threads(transfer);
                if (r < 0)
                        why_errno(why, r, "a thread");
        }
        if (r < 0)
                transfer_stop(transfer);
        return r;
}

void transfer_stop(struct transfer *transfer) {
        pthread_mutex_lock(&transfer->lock);
        transfer_count(transfer, false);
        pthread_mutex_unlock(&transfer->lock);
        fetcher_stop(transfer->fetcher); /* what is under way becomes ready, cancelled */
        transfer_carriers_end_threads(transfer);
        free_parcels(transfer);
        pthread_cond_destroy(&transfer->work);
        pthread_cond_destroy(&transfer->changed);
        pthread_mutex_destroy(&transfer->lock);
}
