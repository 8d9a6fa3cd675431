/* A rank asks for its ring: the request is checked, the rank joins its job, the ring's memory is made in the
 * background, and the ring is handed over. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/sources.h"
#include "daemon/ctl/users/access.h"
#include "daemon/ring/numa.h"
#include "proto/base/cleanup.h"
#include "proto/base/nearest.h"
#include "proto/base/text.h"

struct attach {
        struct session *session;
        uint64_t id; /* of the request */
        struct catalog_waiter waiter;
        Dlp__Attach *wish; /* a copy */
        const char *at;    /* in the names of its datasets: those before it have been checked */
        int columns_fd;    /* memory of the sampler's columns; -1: there are none */
        struct sampling *sampling;
        struct stream_options options;
        struct pipeline *pipeline;
        struct stream *stream;
        struct why why;
        int result;
};

/* ---- checking the terms -------------------------------------------------------------------------------------- */

static int check_name(const char *field, const char *value, size_t max, struct why *why) {
        size_t n = strlen(value);

        if (n == 0)
                return why_set(why, -EINVAL, "%s: is empty; a name of 1 to %u bytes is needed", field,
                               DLP_NAME_MAX - 1);
        if (n >= max)
                return why_set(why, -EINVAL, "%s: is %zu bytes long, %zu are allowed", field, n, max - 1);
        if (!text_is_printable(value))
                return why_set(why, -EINVAL, "%s: \"%s\" has control characters or is not UTF-8", field, value);
        return 0;
}

static int check_number(const char *field, uint64_t value, uint64_t min, uint64_t max, struct why *why) {
        if (value >= min && value <= max)
                return 0;
        return why_set(why, -EINVAL, "%s: %llu is out of range; %llu to %llu are allowed", field,
                       (unsigned long long)value, (unsigned long long)min, (unsigned long long)max);
}

static int check_numbers(const Dlp__Attach *wish, struct why *why) {
        int r;

        r = check_number("world_size", wish->world, 1, DLP_WORLD_MAX, why);
        if (r < 0)
                return r;
        if (wish->rank >= wish->world)
                return why_set(why, -EINVAL, "rank: %u is out of range; with world_size %u, 0 to %u are allowed",
                               wish->rank, wish->world, wish->world - 1);
        r = check_number("batch_size", wish->batch_size, 1, DLP_BATCH_MAX, why);
        if (r < 0)
                return r;
        if (wish->n_slots > 0) {
                r = check_number("slots", wish->n_slots, DLP_SLOTS_MIN, DLP_SLOTS_MAX, why);
                if (r < 0)
                        return r;
        }
        return check_number("first_epoch", wish->first_epoch, 0, DLP_EPOCH_MAX, why);
}

static int refuse_choice(const char *option, const char *value, const char *choices, struct why *why) {
        struct nearest nearest;

        return why_set(why, -EINVAL, "%s: \"%s\" is not known%s; choose one of: %s", option, value,
                       nearest_in(&nearest, value, strlen(value), choices), choices);
}

static int read_terms(const Dlp__Attach *wish, struct job_terms *terms, struct why *why) {
        int r;

        /* One name has been compared with those of the configuration, and the names of several with the limit. */
        r = check_name("dataset", wish->dataset,
                       strstr(wish->dataset, " + ") || wish->dataset[0] == '/' ? DLP_DATASET_MAX : DLP_NAME_MAX, why);
        if (r == 0)
                r = check_name("job", wish->job, DLP_NAME_MAX, why);
        if (r == 0)
                r = check_numbers(wish, why);
        if (r < 0)
                return r;
        if (wish->dealing[0] && dlp_dealing_from_name(wish->dealing, &terms->dealing) < 0)
                return refuse_choice("dealing", wish->dealing, dlp_dealings, why);
        if (dlp_partition_from_name(wish->partition, &terms->partition) < 0)
                return refuse_choice("partition", wish->partition, "pad drop exact", why);
        if (on_error_from_name(wish->on_error, &terms->on_error) < 0)
                return refuse_choice("on_error", wish->on_error, "fail substitute skip", why);
        if (dlp_order_kind_from_name(wish->order, &terms->order) < 0)
                return refuse_choice("order", wish->order, dlp_order_kinds, why);
        r = max_errors_check(wish->max_errors, why);
        if (r < 0)
                return r;
        if (wish->max_errors > 0 && terms->on_error == ON_ERROR_FAIL)
                return why_set(why, -EINVAL,
                               "max_errors: with on_error \"fail\" the first damaged sample ends the job; ask for "
                               "\"substitute\" or \"skip\"");
        if (strlen(wish->pipeline) >= DLP_PIPELINE_MAX)
                return why_set(why, -EINVAL, "pipeline: is longer than %u bytes", DLP_PIPELINE_MAX - 1);

        snprintf(terms->dataset, sizeof(terms->dataset), "%s", wish->dataset);
        terms->world = wish->world;
        terms->batch_size = wish->batch_size;
        terms->seed = wish->seed;
        terms->draws = wish->draws;
        terms->shuffle_buffer = wish->shuffle_buffer;
        terms->max_errors = wish->max_errors + 0.0; /* turns -0 into 0 */
        terms->shuffle = wish->shuffle;
        terms->drop_last = wish->drop_last;
        return 0;
}

/* The order of the shuffling, once it is known what the dataset is. Terms that ask for the same order must be equal. */
static int settle_order(struct job_terms *terms, const struct source *source, struct why *why) {
        bool has_buffer;

        if (source->growth && terms->shuffle && terms->order == DLP_ORDER_TDPERM)
                return why_set(why, -EINVAL,
                               "order: \"tdperm\" needs to know how many samples there are, and %s is a "
                               "stream; leave it out: a stream has a shuffle buffer",
                               terms->dataset);
        if (source->growth)
                terms->order = DLP_ORDER_BUFFER; /* "torch" is what clients send who ask for nothing */
        if (source->growth && terms->max_errors > 0 && terms->max_errors < 1)
                return why_set(why, -EINVAL,
                               "max_errors: %g is a share of a number that is not known, as %s is a "
                               "stream; give a number of samples",
                               terms->max_errors, terms->dataset);
        has_buffer = terms->shuffle && terms->order == DLP_ORDER_BUFFER;
        if (terms->shuffle_buffer > 0 && terms->shuffle && !has_buffer)
                return why_set(why, -EINVAL,
                               "shuffle_buffer: is for streams, and for the order \"buffer\"; the order "
                               "\"%s\" shuffles all samples",
                               dlp_order_kind_name(terms->order));
        if (terms->shuffle_buffer > DLP_BUFFER_MAX)
                return why_set(why, -EINVAL,
                               "shuffle_buffer: %u is out of range; 1 to %u samples are allowed, or 0 for "
                               "the usual %u",
                               terms->shuffle_buffer, DLP_BUFFER_MAX, DLP_BUFFER_DEFAULT);
        if (!has_buffer)
                terms->shuffle_buffer = 0;
        else if (terms->shuffle_buffer == 0)
                terms->shuffle_buffer = DLP_BUFFER_DEFAULT;
        return 0;
}

/* Does the sampler end with this step already? That of a state does, in its normal spelling. */
static bool ends_with_step(const char *sampler, const char *step) {
        _cleanup_(freep) struct dlp_order_text *text = malloc(sizeof(*text));
        char normal[DLP_SAMPLER_MAX];
        size_t n, n_sampler = strlen(sampler);
        struct why why;

        if (!text || dlp_order_text_parse(step, text, &why) < 0 || dlp_order_text_print(text, normal, &why) < 0)
                return false;
        n = strlen(normal);
        return n_sampler >= n && strcmp(sampler + n_sampler - n, normal) == 0 &&
               (n_sampler == n || sampler[n_sampler - n - 1] == ' ');
}

/* Rows of packed fields are filled by a step of the order, after those that the trainer asks for. */
static int add_packing(const char *sampler, const struct programs *programs, const struct source *source,
                       char ret_text[2 * DLP_SAMPLER_MAX]) {
        const struct program *program = programs_first(programs);
        const struct packing_terms *pack;
        uint32_t idx;
        size_t n = (size_t)snprintf(ret_text, 2 * DLP_SAMPLER_MAX, "%s", sampler);

        pack = program_packing(program, &idx);
        if (!pack || n >= DLP_SAMPLER_MAX)
                return n >= DLP_SAMPLER_MAX ? -EINVAL : 0;
        n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, " pack(size=%u, column=%s, strategy=%s",
                              pack->size, source->schema.fields[codec_field(program_codec(program, idx))].name,
                              PACKING_STRATEGIES[pack->strategy]);
        if (pack->on_long)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", long=%s", PACKING_LONG[pack->on_long]);
        if (pack->rows)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", rows=%u", pack->rows);
        if (pack->bins)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", bins=%u", pack->bins);
        if (pack->max_samples)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", max_samples=%u", pack->max_samples);
        if (pack->shuffle)
                n += (size_t)snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ", shuffle=%s",
                                      PACKING_SHUFFLE[pack->shuffle]);
        snprintf(ret_text + n, 2 * DLP_SAMPLER_MAX - n, ")");
        if (ends_with_step(sampler, ret_text + strlen(sampler) + 1))
                ret_text[strlen(sampler)] = '\0';
        return 0;
}

/* What makes the order of its epochs, if the wish asks for more than shuffling. */
static int settle_sampling(struct attach *attach, const Dlp__Attach *wish, const struct source *source,
                           struct job_terms *terms, struct why *why) {
        struct sampling_column columns[SAMPLING_COLUMNS_MAX];
        const struct dlp_step *grouper;
        char text[2 * DLP_SAMPLER_MAX];
        int r;

        if (wish->n_columns > SAMPLING_COLUMNS_MAX)
                return why_set(why, -EINVAL, "columns: %zu; at most %u are allowed", wish->n_columns,
                               SAMPLING_COLUMNS_MAX);
        for (size_t i = 0; i < wish->n_columns; i++)
                columns[i] = (struct sampling_column){ .name = wish->columns[i]->name,
                                                       .dtype = wish->columns[i]->dtype,
                                                       .offset = wish->columns[i]->offset,
                                                       .n_values = wish->columns[i]->n_values };
        if (wish->n_columns > 0 && attach->columns_fd < 0)
                return why_set(why, -EINVAL, "columns: their memory did not come with the request");
        if (strlen(wish->columns_digest) >= sizeof(terms->columns))
                return why_set(why, -EINVAL, "columns: a digest of at most %zu bytes is allowed",
                               sizeof(terms->columns) - 1);
        if (add_packing(wish->sampler, attach->options.programs, source, text) < 0)
                return why_set(why, -EINVAL, "sampler: is longer than %u bytes", DLP_SAMPLER_MAX - 1);
        r = sampling_new(text, attach->columns_fd, columns, (uint32_t)wish->n_columns, &attach->sampling, why);
        if (r < 0)
                return r;
        terms->is_made = attach->sampling->text.n_steps > 0;
        if (!terms->is_made)
                return 0;
        if (source->growth)
                return why_set(why, -EINVAL, "sampler: it needs to know how many samples there are, and %s is a stream",
                               terms->dataset);
        if (source->n_samples == 0)
                return why_set(why, -EINVAL, "sampler: %s has no samples", terms->dataset);
        if (terms->shuffle && terms->order == DLP_ORDER_BUFFER)
                return why_set(why, -EINVAL, "sampler: the order \"buffer\" cannot be combined with one");
        grouper = dlp_order_text_grouper(&attach->sampling->text);
        if (grouper && !grouper->type->is_batch && terms->on_error == ON_ERROR_SUBSTITUTE)
                return why_set(
                        why, -EINVAL,
                        "on_error: \"substitute\" cannot be combined with packs: another sample has another length; "
                        "ask for \"skip\"");
        terms->repeats = attach->sampling->text.steps[0].type->repeats;
        terms->uses_batch_size = dlp_order_text_uses_batch_size(&attach->sampling->text);
        terms->has_units = grouper != NULL;
        terms->deals_batches = grouper && grouper->type->is_batch;
        snprintf(terms->columns, sizeof(terms->columns), "%s", wish->columns_digest);
        r = dlp_order_text_print(&attach->sampling->text, terms->sampler, why);
        return r < 0 ? r : sampling_check(attach->sampling, source, why);
}

/* ---- making the ring and sending it -------------------------------------------------------------------------- */

static void attach_work(void *userdata) {
        struct attach *attach = userdata;

        attach->result = pipeline_make_stream(attach->pipeline, &attach->options, &attach->stream, &attach->why);
}

static void attach_touch(void *userdata) {
        struct attach *attach = userdata;

        pipeline_touch_stream(attach->pipeline, attach->stream);
}

static void attach_free(void *userdata) {
        struct attach *attach = userdata;

        if (attach->wish)
                dlp__attach__free_unpacked(attach->wish, NULL);
        closep(&attach->columns_fd);
        sampling_unref(attach->sampling);
        if (!attach->stream) { /* otherwise the stream owns them now */
                job_unref(attach->options.job);
                catalog_dataset_unref(attach->options.dataset);
                programs_free(attach->options.programs);
                if (attach->options.wake_socket >= 0)
                        close(attach->options.wake_socket);
        }
        free(attach);
}

/* 64 parts of 128 bytes of name and 64 of digest: far below a packet. */
struct told_parts {
        Dlp__Part messages[DLP_PARTS_MAX], *pointers[DLP_PARTS_MAX];
};

static void tell_parts(Dlp__Attached *attached, const struct source *source, struct told_parts *parts) {
        for (uint32_t k = 0; k < source->n_parts; k++) {
                Dlp__Part *message = &parts->messages[k];

                dlp__part__init(message);
                message->name = (char *)(uintptr_t)source->parts[k].name;
                message->digest = (char *)(uintptr_t)source->parts[k].source->digest;
                message->n_samples = source->parts[k].source->n_samples;
                parts->pointers[k] = message;
        }
        attached->parts = parts->pointers;
        attached->n_parts = source->n_parts;
}

static bool decodes(const struct stream *stream) {
        const struct program *program = programs_first(stream->programs);

        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (codec_decodes(program_codec(program, i)))
                        return true;
        return false;
}

/* A trainer learns at its beginning of files that will end it or be left out. One rank tells it. */
static void tell_doubt(const struct stream *stream, struct why *ret_text) {
        const struct catalog_dataset *dataset = stream->dataset;
        bool ends = stream->job->terms.on_error == ON_ERROR_FAIL;

        ret_text->text[0] = '\0';
        if (stream->rank > 0 || !decodes(stream))
                return;
        for (uint32_t i = 0; i < dataset->n_parts && !dataset->doubt.text[0]; i++)
                if (dataset->parts[i]->doubt.text[0])
                        dataset = dataset->parts[i];
        if (dataset->doubt.text[0])
                why_set(ret_text, 0, "dataset %s: %s%s", dataset->name, dataset->doubt.text,
                        ends ? "; the first one that is needed ends the job, unless on_error says otherwise" : "");
}

static void hand_over(struct session *session, uint64_t id, struct stream *stream) {
        struct ring *ring = stream->ring;
        int fds[] = { ring->control_segment.lent_fd, ring->payload_segment.lent_fd, stream->release_fd };
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Attached attached = DLP__ATTACHED__INIT;
        struct told_parts parts;
        struct why doubt;

        attached.n_samples = stream->n_samples;
        attached.rank_samples = stream->whole.n_samples;
        attached.rank_batches = stream->whole.n_batches;
        attached.dataset_digest = stream->job->terms.digest;
        attached.pipeline = stream->job->terms.pipeline;
        attached.n_slots = ring->n_slots;
        attached.control_bytes = ring->control_segment.n_bytes;
        attached.payload_bytes = ring->payload_segment.n_bytes;
        attached.stream = 0;
        attached.memory = (char *)(uintptr_t)ring->payload_segment.obtained;
        attached.job = stream->job->name;
        attached.dataset = stream->job->terms.dataset;
        tell_parts(&attached, dataset_source(stream->dataset->dataset), &parts);
        attached.order_is_made = stream->job->terms.is_made;
        attached.deals_batches = stream->job->terms.deals_batches;
        attached.uses_batch_size = stream->job->terms.uses_batch_size;
        attached.has_units = stream->job->terms.has_units;
        attached.sampler = stream->job->terms.sampler;
        tell_doubt(stream, &doubt);
        attached.doubt = doubt.text;
        attached.answers_waits = true;
        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_ATTACHED;
        reply.attached = &attached;
        session_reply(session, &reply, fds, 3);
        ring_was_sent(ring);
}

/* Sets the job's weight from the current configuration; a reload takes effect when the next rank attaches. Of several
 * datasets the heaviest one counts. */
static void weigh_job(struct server *server, struct job *job) {
        struct catalog *catalog = server->options.catalog;
        char name[DLP_DATASET_MAX];
        const char *at = NULL;
        uint32_t weight = 0;

        while (catalog_next_name(catalog, job->terms.dataset, &at, name)) {
                const struct catalog_entry *entry = catalog_find(catalog, name, NULL);

                if (entry && entry->weight > weight)
                        weight = entry->weight;
        }
        if (weight > 0)
                atomic_store_explicit(&job->share.weight, weight, memory_order_relaxed);
}

/* Leaves the job before the refusal is sent: a client that reads the refusal may try again at once. */
static void leave_job(struct session *session) {
        job_leave(session->job, session->member);
        session->job = NULL;
        session->member = NULL;
}

static void attach_done(void *userdata) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        struct background *background = session->server->options.background;
        struct stream *stream = attach->stream;

        session->state = SESSION_OPEN;
        if (session->closed) { /* the client left while its memory was being made */
                session_give_back(session);
                stream_free(stream);
        } else if (session->server->draining) {
                session_close(session, "the daemon is stopping");
                stream_free(stream);
        } else if (attach->result < 0) {
                leave_job(session);
                session_listen(session, true);
                session_refuse(session, attach->id, attach->result, attach->why.text);
        } else {
                session->state = SESSION_ATTACHED;
                session->stream = stream;
                pipeline_add(attach->pipeline, stream);
                session_listen(session, true);
                log_info("ctl", "rank attached job=%s rank=%u/%u dataset=%s pid=%d user=%s memory=%s",
                         session->job->name, stream->rank, session->job->terms.world, stream->dataset->name,
                         session->peer.pid, session_user(session), stream->ring->payload_segment.obtained);
                hand_over(session, attach->id,
                          stream); /* may close the session; the stream stays until its memory has been touched */
                if (background_run(background, attach_touch, attach_free, attach) == 0)
                        return;
                pipeline_skip_touching(attach->pipeline, stream);
        }
        attach_free(attach);
}

/* The version that the rank's job is served from, if the job exists or existed until the daemon restarted: a new
 * version of the dataset is only for new jobs. */
static const char *digest_of_job(const struct job *job, const Dlp__Attach *wish) {
        return job && strcmp(job->terms.dataset, wish->dataset) == 0 ? job->terms.digest : wish->digest;
}

/* ---- the request --------------------------------------------------------------------------------------------- */

/* Checks everything that can be refused without waiting. What it acquires is kept in attach->options and the
 * session. */
static int attach_prepare(struct attach *attach, const Dlp__Attach *wish, struct why *why) {
        struct session *session = attach->session;
        struct server *server = session->server;
        struct user *user;
        struct job_terms terms = { 0 };
        struct job *job;
        const struct source *source;
        uint32_t pid = session->peer.pid > 0 ? (uint32_t)session->peer.pid : wish->pid;
        int r;

        if (session->state != SESSION_OPEN)
                return why_set(why, -EISCONN, "attach: this connection is attached already; open another one");
        if (server->draining)
                return why_set(why, -ESHUTDOWN, "attach: the daemon is stopping");
        r = read_terms(wish, &terms, why);
        if (r < 0)
                return r;
        r = access_find_datasets(session, wish->dataset, why);
        if (r < 0)
                return r;
        job = access_find_job(session, wish->job, wish->dataset);
        r = catalog_get_joined(server->options.catalog, wish->dataset, digest_of_job(job, wish), wish->part_digests,
                               wish->n_part_digests, &attach->options.dataset, why);
        if (r < 0)
                return r;
        source = dataset_source(attach->options.dataset->dataset);
        r = programs_parse(wish->pipeline, source, server->options.tokenizers, &attach->options.programs, why);
        if (r < 0)
                return r;
        snprintf(terms.pipeline, sizeof(terms.pipeline), "%s", program_text(programs_first(attach->options.programs)));
        snprintf(terms.digest, sizeof(terms.digest), "%s", source->digest);
        terms.n_samples = source->n_samples;
        r = settle_order(&terms, source, why);
        if (r == 0)
                r = settle_sampling(attach, wish, source, &terms, why);
        if (r < 0)
                return r;

        attach->options.first = (struct cursor){ .epoch = wish->first_epoch,
                                                 .position = wish->first_position,
                                                 .step = wish->first_step };
        r = cursor_check(&attach->options.first, &terms, wish->rank, source->n_samples, why);
        if (r < 0)
                return r;

        attach->options.wake_socket = fcntl(session->fd, F_DUPFD_CLOEXEC, 0);
        if (attach->options.wake_socket < 0)
                return why_errno(why, -errno, "attach");
        r = quota_descriptor(session, attach->options.wake_socket, why);
        if (r == 0 && !job)
                r = quota_job(session, why);
        if (r < 0)
                return r;
        r = quota_user(session, &user, &attach->options.budget);
        if (r < 0)
                return why_errno(why, r, "attach");
        r = job_join(&server->jobs, job, user, wish->job, &terms, terms.is_made ? attach->sampling : NULL, wish->rank,
                     pid, &session->job, &session->member, why);
        if (r < 0)
                return r;
        session->member->process = session->process;
        weigh_job(server, session->job);
        r = job_place(session->job, session->member, &attach->options.first, why);
        if (r < 0) {
                leave_job(session);
                return r;
        }
        attach->options.job = job_ref(session->job);
        attach->options.rank = wish->rank;
        attach->options.n_epochs = wish->n_epochs;
        attach->options.n_slots = wish->n_slots ? wish->n_slots : server->options.default_slots;
        attach->options.numa_node = numa_node_of_process(session->peer.pid);
        return 0;
}

/* How far the first of its datasets is that cannot be served yet. */
static bool find_progress(struct catalog *catalog, const char *text, struct dlp_progress *ret_progress) {
        char name[DLP_DATASET_MAX];
        const char *at = NULL;

        while (catalog_next_name(catalog, text, &at, name)) {
                struct catalog_entry *entry = catalog_find(catalog, name, NULL);

                if (entry && entry->state != CATALOG_READY && catalog_progress(entry, ret_progress))
                        return true;
        }
        return false;
}

/* The dataset's folder has been checked: the request can begin. */
static void attach_begin(struct attach *attach, const Dlp__Attach *wish) {
        struct session *session = attach->session;
        uint64_t id = attach->id;
        struct dlp_progress progress;
        bool is_known = false;
        struct why why;
        int r = attach_prepare(attach, wish, &why);

        if (r == 0) {
                session_listen(session, false);
                session->state = SESSION_ATTACHING;
                r = background_run(session->server->options.background, attach_work, attach_done, attach);
                if (r == 0)
                        return;
                session->state = SESSION_OPEN;
                session_listen(session, true);
                leave_job(session);
                why_errno(&why, r, "attach");
        }
        if (r == -EAGAIN)
                is_known = find_progress(session->server->options.catalog, wish->dataset, &progress);
        attach_free(attach);
        if (r == -EAGAIN)
                session_refuse_for_now(session, id, r, why.text, is_known ? &progress : NULL);
        else
                session_refuse(session, id, r, why.text);
}

/* The folders of its datasets are checked one after the other. */
static void attach_check(struct attach *attach) {
        struct session *session = attach->session;
        struct catalog *catalog = session->server->options.catalog;
        char name[DLP_DATASET_MAX];

        while (session->state == SESSION_OPEN && catalog_next_name(catalog, attach->wish->dataset, &attach->at, name))
                if (catalog_check(catalog, name, &attach->waiter) == 1) {
                        session_listen(session, false);
                        session->state = SESSION_ATTACHING;
                        return;
                }
        attach_begin(attach, attach->wish);
}

/* The check of a folder has ended, or takes too long. */
static void attach_checked(struct catalog_waiter *waiter, bool late) {
        struct attach *attach = (struct attach *)((uint8_t *)waiter - offsetof(struct attach, waiter));
        struct session *session = attach->session;
        uint64_t id = attach->id;
        struct why why;

        session->state = SESSION_OPEN;
        if (session->closed) { /* the client has left meanwhile */
                session_give_back(session);
                attach_free(attach);
                return;
        }
        session_listen(session, true);
        if (!late) {
                attach_check(attach);
                return;
        }
        why_set(&why, 0, "dataset %s: its folder does not answer (a dead mount?); asking again", attach->wish->dataset);
        attach_free(attach);
        session_refuse_for_now(session, id, -EAGAIN, why.text, NULL);
}

/* Jobs are compared by the text that names their datasets. */
static int normalize(struct catalog *catalog, Dlp__Attach *wish, const char *names, struct why *why) {
        char text[DLP_DATASET_MAX], *copy;
        int r = catalog_normal_text(catalog, names, text, why);

        if (r < 0 || strcmp(text, wish->dataset) == 0)
                return r;
        copy = strdup(text);
        if (!copy)
                return why_set(why, -ENOMEM, "attach: out of memory");
        if (wish->dataset != protobuf_c_empty_string)
                free(wish->dataset);
        wish->dataset = copy;
        return 0;
}

/* Its paths have been found. */
static void attach_found(void *userdata, int result, const char *text, const struct why *found_why) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        uint64_t id = attach->id;
        struct why why = *found_why;

        if (result == 0)
                result = normalize(session->server->options.catalog, attach->wish, text, &why);
        if (result == 0) {
                attach_check(attach);
                return;
        }
        attach_free(attach);
        if (result != -ECANCELED)
                session_refuse(session, id, result, why.text);
}

/* Begins with what has to be waited for. Returns 0, and the attach goes on by itself; or an errno. */
static int attach_start(struct attach *attach, struct why *why) {
        struct session *session = attach->session;
        Dlp__Attach *wish = attach->wish;
        int r;

        if (wish->n_sources > 0 && session->state == SESSION_OPEN)
                return sources_find(session, wish->sources, wish->n_sources, attach_found, attach, why);
        r = normalize(session->server->options.catalog, wish, wish->dataset, why);
        if (r == 0)
                attach_check(attach);
        return r;
}

static Dlp__Attach *copy_of(const Dlp__Attach *wish) {
        size_t n = dlp__attach__get_packed_size(wish);
        uint8_t *bytes = malloc(n ? n : 1);
        Dlp__Attach *copy = NULL;

        if (bytes)
                copy = dlp__attach__unpack(NULL, dlp__attach__pack(wish, bytes), bytes);
        free(bytes);
        return copy;
}

void handle_attach(struct session *session, const Dlp__Request *request) {
        struct attach *attach = calloc(1, sizeof(*attach));
        struct why why;
        int r;

        if (attach)
                attach->wish = copy_of(request->attach);
        if (!attach || !attach->wish) {
                free(attach);
                session_refuse(session, request->id, -ENOMEM, "attach: out of memory");
                return;
        }
        session->takes_replays = request->attach->takes_replays;
        attach->session = session;
        attach->id = request->id;
        attach->pipeline = session->server->options.pipeline;
        attach->options.wake_socket = -1;
        attach->columns_fd = take_fd(&session->sent_fd);
        attach->waiter.done = attach_checked;
        r = attach_start(attach, &why);
        if (r < 0) {
                attach_free(attach);
                session_refuse(session, request->id, r, why.text);
        }
}
