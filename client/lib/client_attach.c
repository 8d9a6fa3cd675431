/* From terms to a mapped ring: the request, its answer with three descriptors (the daemon's page, read-only for us; the
 * rank's payload; the event that signals a release), and in between the wait for the dataset's index. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/daemon/silent.h"
#include "client/lib/loader.h"
#include "proto/base/cleanup.h"
#include "proto/version.h"

#define ASK_AGAIN_NS  100000000ull /* polling this slowly costs nothing, and building a large index takes seconds */
#define ASK_FIRST_NS  4000000ull   /* a small one is there at once: the first pause, and each is twice as long */
#define TELL_AFTER_NS 100000000ull /* nobody wants to read of shorter waits */
#define SILENT_MS     3000         /* an answer that takes longer is looked into */
#define CONNECTS_MAX  5

#define CONTROL 0 /* indices of the descriptors, in the order in which they arrive */
#define PAYLOAD 1
#define EVENT   2

void dli_descriptors_close(struct dli_descriptors *descriptors) {
        for (int i = 0; i < DLI_N_DESCRIPTORS; i++)
                closep(&descriptors->fd[i]);
}

/* ---- the request --------------------------------------------------------------------------------------------- */

/* The resolved terms, and the position at which to begin. */
struct message {
        Dlp__Request request;
        Dlp__Attach attach;
        char *part_digests[DLP_PARTS_MAX];
};

static bool takes_operations(const struct dlc_options *options) {
        return options->leave_forms && options->leave_operations;
}

static void message_make(struct message *message, struct dlc_loader *loader) {
        const struct dlc_options *options = &loader->options;
        Dlp__Attach *attach = &message->attach;

        dlp__request__init(&message->request);
        dlp__attach__init(attach);
        if (loader->sources.datasets.has_path) {
                attach->sources = loader->sources.pointers;
                attach->n_sources = loader->sources.datasets.n;
        } else {
                attach->dataset = (char *)(uintptr_t)options->dataset; /* protobuf-c packs without writing */
        }
        attach->job = (char *)(uintptr_t)options->job;
        attach->pipeline = (char *)(uintptr_t)options->pipeline;
        attach->partition = (char *)(uintptr_t)options->partition;
        attach->dealing = (char *)(uintptr_t)options->dealing;
        attach->order = (char *)(uintptr_t)options->order;
        attach->on_error = (char *)(uintptr_t)options->on_error;
        attach->world = (uint32_t)options->world_size;
        attach->rank = (uint32_t)options->rank;
        attach->batch_size = (uint32_t)options->batch_size;
        attach->seed = options->seed;
        attach->shuffle = options->shuffle;
        attach->drop_last = options->drop_last;
        attach->first_epoch = options->first_epoch;
        attach->first_position = options->first_position;
        attach->n_epochs = options->n_epochs;
        attach->n_slots = (uint32_t)options->n_slots;
        attach->max_errors = options->max_errors;
        attach->draws = options->draws;
        attach->shuffle_buffer = (uint32_t)options->shuffle_buffer;
        attach->pid = (uint32_t)getpid();
        attach->sampler = (char *)(uintptr_t)options->sampler;
        attach->columns = loader->columns.pointers;
        attach->n_columns = loader->columns.n;
        attach->columns_digest = loader->columns.digest;
        attach->takes_replays = true;
        attach->leave_forms = options->leave_forms;
        attach->near_device = (char *)(uintptr_t)(options->near_device ? options->near_device : "");
        attach->leave_operations = takes_operations(options) ? DLP_LEFT_OPERATIONS_FORMAT : 0;
        loader->connection.sent_fd = loader->columns.fd;
        message->request.body_case = DLP__REQUEST__BODY_ATTACH;
        message->request.attach = attach;
}

struct question {
        const struct dlc_options *options;
        uint64_t deadline_ns; /* when to give up */
        uint64_t pause_ns;    /* before asking again */
        uint64_t began_ns;
};

/* The daemon is still preparing what we need. Reports this and waits a moment; if the connection ends, the wait ends
 * early. */
static int wait_to_ask(struct dlc_loader *loader, struct question *question) {
        const struct dlc_options *options = question->options;
        uint64_t now = clock_now_ns(), until = now + question->pause_ns;
        int r;

        if (now >= question->deadline_ns) {
                struct why waited_for = loader->reason;

                return why_set(&loader->reason, -ETIMEDOUT, "gave up after open_timeout_ms=%d: %s",
                               options->open_timeout_ms, waited_for.text);
        }
        if (now - question->began_ns >= TELL_AFTER_NS)
                dli_progress_tell(loader, &loader->connection.progress, loader->reason.text);
        question->pause_ns = 2 * question->pause_ns < ASK_AGAIN_NS ? 2 * question->pause_ns : ASK_AGAIN_NS;
        r = dli_connection_wait(&loader->connection, until < question->deadline_ns ? until : question->deadline_ns);
        if (r < 0)
                return why_set(&loader->reason, r, "interrupted while the daemon was getting ready");
        return r > 0 ? dli_connection_drain(&loader->connection, &loader->reason) : 0;
}

/* As dli_connection_call(). It may take as long as making a large ring does; a daemon that is stopped is told of before
 * that, as it needs somebody's help. */
static int client_attach_call(struct dlc_loader *loader, Dlp__Request *request, Dlp__Reply **ret_reply, int *ret_fds,
                              size_t n_fds) {
        struct dli_connection *connection = &loader->connection;
        uint64_t deadline_ns = dli_deadline(DLI_ANSWER_TIMEOUT_MS), look_ns;
        int r = dli_connection_send(connection, request, &loader->reason);

        if (r < 0)
                return r;
        for (;;) {
                look_ns = dli_deadline(SILENT_MS);
                r = dli_connection_answer(connection, look_ns < deadline_ns ? look_ns : deadline_ns, &loader->reason,
                                          ret_reply, ret_fds, n_fds);
                if (r != -ETIMEDOUT || clock_now_ns() >= deadline_ns)
                        return r;
                if (dli_daemon_is_stopped(connection->socket))
                        dli_progress_tell(loader, &connection->progress, loader->reason.text);
        }
}

static int client_attach_ask(struct dlc_loader *loader, Dlp__Reply **ret_reply,
                             struct dli_descriptors *ret_descriptors) {
        const struct dlc_options *options = &loader->options;
        struct question question = { .options = options,
                                     .deadline_ns = dli_deadline(options->open_timeout_ms),
                                     .pause_ns = ASK_FIRST_NS,
                                     .began_ns = clock_now_ns() };
        struct message message;
        int r;

        message_make(&message, loader);
        for (;;) {
                r = client_attach_call(loader, &message.request, ret_reply, ret_descriptors->fd, DLI_N_DESCRIPTORS);
                if (r != DLI_ASK_AGAIN)
                        return r;
                r = wait_to_ask(loader, &question);
                if (r < 0)
                        return r;
        }
}

int dli_attach_ask(struct dlc_loader *loader) {
        struct message message;
        int r = dli_sources_look(&loader->sources, &loader->restart.reason);

        if (r < 0)
                return r;
        message_make(&message, loader);
        message.attach.first_epoch = loader->epoch;
        message.attach.first_position = loader->plan.base;
        message.attach.first_step = loader->step;
        message.attach.digest = loader->digest;
        message.attach.leave_forms = loader->forms.n >
                                     0; /* a daemon that knew nothing of it finished pictures itself */
        message.attach.leave_operations = dli_forms_have_operations(&loader->forms) ? DLP_LEFT_OPERATIONS_FORMAT : 0;
        message.attach.part_digests = message.part_digests;
        message.attach.n_part_digests = dli_parts_digests(loader, message.part_digests);
        /* As many epochs as the old request would have prepared. If a seek went beyond them, only this epoch. */
        if (loader->prepared_until != UINT64_MAX)
                message.attach.n_epochs = loader->prepared_until > loader->epoch
                                                  ? loader->prepared_until - loader->epoch
                                                  : 1;
        return dli_connection_send(&loader->connection, &message.request, &loader->restart.reason);
}

/* ---- taking over the reply ----------------------------------------------------------------------------------- */

/* Texts of a message that are not set arrive as "". What has been known since dlc_open() must not have changed. */
static int keep_texts(struct dlc_loader *loader, const Dlp__Attached *attached) {
        struct dlc_info *info = &loader->info;
        struct dlp_order_choice choice;

        if (!loader->digest) {
                loader->digest = strdup(attached->dataset_digest);
                loader->pipeline = strdup(attached->pipeline);
                loader->job = strdup(attached->job);
                loader->sampler = strdup(attached->sampler);
                loader->dataset = strdup(attached->dataset[0] ? attached->dataset : loader->options.dataset);
                if (!loader->digest || !loader->pipeline || !loader->job || !loader->sampler || !loader->dataset)
                        return why_set(&loader->reason, -ENOMEM, "no memory for a loader");
                info->dataset_samples = attached->n_samples;
                loader->is_stream = attached->n_samples == DLP_UNKNOWN;
                info->is_stream = loader->is_stream;
                info->is_made = loader->is_made = attached->order_is_made;
                loader->deals_batches = attached->deals_batches;
                loader->has_units = attached->has_units;
                info->dataset_digest = loader->digest;
                info->pipeline = loader->pipeline;
                info->job = loader->job;
                info->sampler = loader->sampler;
                snprintf(loader->blocks_digest, sizeof(loader->blocks_digest), "%s", attached->blocks_digest);
                info->blocks_digest = loader->blocks_digest;
                choice = dli_order_choice(&loader->options);
                dlp_order_choice_print(&choice, loader->order);
                info->order = loader->order;
                info->columns_digest = loader->columns.digest;
                info->dataset = loader->dataset;
                info->uses_batch_size = attached->uses_batch_size;
                if (attached->doubt[0] && !loader->warning.text[0])
                        why_set(&loader->warning, 0, "%s", attached->doubt);
                return dli_parts_keep(loader, attached);
        }
        if (strcmp(attached->blocks_digest, loader->blocks_digest) != 0)
                return why_set(
                        &loader->reason, -ESTALE,
                        "%s: while the daemon was away, the dataset's samples were distributed over other shards, "
                        "so its order of blocks is another; open a new loader",
                        loader->options.dataset);
        if ((loader->is_stream ? attached->n_samples == DLP_UNKNOWN : attached->n_samples == info->dataset_samples) &&
            strcmp(attached->dataset_digest, loader->digest) == 0)
                return 0;
        return why_set(&loader->reason, -ESTALE,
                       "%s: the dataset changed while the daemon was away: was %s with %llu samples, is %s "
                       "with %llu; open a new loader",
                       loader->options.dataset, loader->digest, (unsigned long long)info->dataset_samples,
                       attached->dataset_digest, (unsigned long long)attached->n_samples);
}

static int client_attach_map_ring(struct dlc_loader *loader, const Dlp__Attached *attached,
                                  struct dli_descriptors *descriptors, struct dli_ring **ret_ring) {
        struct dli_offer offer = {
                .control_bytes = attached->control_bytes,
                .payload_bytes = attached->payload_bytes,
                .n_slots = attached->n_slots,
                .batch_size = loader->has_units ? 0 : (uint32_t)loader->options.batch_size,
                .memory = attached->memory,
                .control_fd = descriptors->fd[CONTROL],
                .payload_fd = descriptors->fd[PAYLOAD],
                .release_event = &descriptors->fd[EVENT],
        };
        uint32_t version;
        int r = dli_ring_new(&offer, &loader->reason, ret_ring, &version);

        if (r == -EPROTONOSUPPORT)
                return why_set(&loader->reason, r,
                               "%s knows memory layout %u, the daemon at %s uses %u: install the same version of both",
                               loader->connection.client, DLP_LAYOUT_VERSION, loader->connection.path, version);
        return r;
}

/* The loader takes batches from the new ring from now on; the older rings stay in the list after it. */
static void install_ring(struct dlc_loader *loader, struct dli_ring *ring) {
        struct dli_ring *older = dli_ring_of(loader);
        struct dlc_info *info = &loader->info;

        ring->older = older;
        ring->n_before = older ? older->n_before + older->sequence : 0;
        info->memory = ring->memory;
        info->n_slots = ring->n_slots;
        info->batch_size = (uint32_t)loader->options.batch_size;
        info->memory_base = (uint8_t *)ring->payload_mapping.base + ring->control->slots_offset;
        info->memory_bytes = ring->control->slot_bytes * ring->n_slots;
        atomic_store_explicit(&loader->ring, ring, memory_order_release); /* dlc_release() must see it whole */
}

static int client_attach_take_over(struct dlc_loader *loader, const Dlp__Attached *attached,
                                   struct dli_descriptors *descriptors) {
        const struct dlc_options *options = &loader->options;
        struct dlc_info *info = &loader->info;
        struct dlp_epoch_terms terms;
        struct dlp_epoch_plan whole;
        struct dli_ring *ring;
        int r;

        if ((attached->n_samples > DLP_SAMPLES_MAX && attached->n_samples != DLP_UNKNOWN) ||
            options->first_position > attached->n_samples)
                return why_set(&loader->reason, -EPROTO,
                               "the daemon at %s says that %s has %llu samples, which is impossible",
                               loader->connection.path, options->dataset, (unsigned long long)attached->n_samples);
        r = keep_texts(loader, attached);
        if (r == 0)
                r = dli_forms_keep(&loader->forms, takes_operations(&loader->options), attached, &loader->reason);
        if (r < 0)
                return r;
        r = client_attach_map_ring(loader, attached, descriptors, &ring);
        if (r < 0)
                return r;
        ring->stream = attached->stream;
        loader->answers_waits = attached->answers_waits;
        install_ring(loader, ring);

        info->socket = loader->connection.path;
        snprintf(loader->ticket, sizeof(loader->ticket), "%s", attached->ticket);
        info->ticket = loader->ticket;

        /* A signal must not end the call: an interrupted seek would leave us without the new stream's number. */
        loader->connection.interruptible = false;
        loader->state = DLI_ATTACHED;
        if (loader->is_made && info->epoch_units > 0) /* known before the daemon was away */
                return 0;
        terms = dli_epoch_terms(loader);
        whole = dlp_epoch_plan_make(&terms, info->rank, 0);
        info->epoch_units = terms.n_positions;
        info->epoch_samples = whole.n_samples;
        info->epoch_batches = whole.n_batches;
        return 0;
}

int dli_attach_take_over(struct dlc_loader *loader, const Dlp__Reply *reply, struct dli_descriptors *descriptors) {
        if (reply->body_case == DLP__REPLY__BODY_ATTACHED)
                return client_attach_take_over(loader, reply->attached, descriptors);
        return why_set(&loader->reason, -EPROTO, "the daemon at %s answered another question", loader->connection.path);
}

/* ---- attaching ----------------------------------------------------------------------------------------------- */

static int keep_options(struct dlc_loader *loader, const struct dlc_options *resolved) {
        struct dlc_options *options = &loader->options;

        if (dli_options_keep(options, resolved) < 0)
                return why_set(&loader->reason, -ENOMEM, "no memory for a loader");
        loader->info.rank = (uint32_t)options->rank;
        loader->info.world_size = (uint32_t)options->world_size;
        loader->prepared_until = UINT64_MAX;
        if (options->n_epochs > 0 && options->n_epochs <= DLP_EPOCH_MAX)
                loader->prepared_until = options->first_epoch + options->n_epochs;
        return 0;
}

/* A private daemon may be ending just now, because nobody was connected: then another one is started. */
static int client_attach_connect_and_ask(struct dlc_loader *loader, Dlp__Reply **ret_reply,
                                         struct dli_descriptors *ret_descriptors) {
        int r;

        for (int i = 0; i < CONNECTS_MAX; i++) {
                dli_connection_close(&loader->connection);
                r = dli_daemon_connect(&loader->daemon, &loader->connection, loader->options.socket,
                                       loader->sources.datasets.has_path, "libdlclient " DLP_FULL_VERSION,
                                       &loader->reason);
                if (r < 0)
                        break;
                r = client_attach_ask(loader, ret_reply, ret_descriptors);
                if (loader->daemon.kind != DLI_DAEMON_PRIVATE || (r != -ECONNRESET && r != -ESHUTDOWN))
                        break;
        }
        if (r == -ENOENT || r == -ECONNREFUSED)
                dli_sources_hint(&loader->sources, r, &loader->reason);
        return r;
}

int dli_attach(struct dlc_loader *loader, const struct dlc_options *options) {
        _cleanup_(dli_descriptors_close) struct dli_descriptors descriptors = { { -1, -1, -1 } };
        Dlp__Reply *reply = NULL;
        int r;

        r = keep_options(loader, options);
        if (r == 0)
                r = dli_sources_make(options->dataset, &loader->sources, &loader->reason);
        if (r == 0)
                r = dli_columns_make(options, &loader->columns, &loader->reason);
        if (r < 0)
                return r;
        loader->options.columns = NULL; /* the caller's: copied */
        r = client_attach_connect_and_ask(loader, &reply, &descriptors);
        if (r < 0)
                return r;
        r = dli_attach_take_over(loader, reply, &descriptors);
        dlp__reply__free_unpacked(reply, NULL);
        if (r == 0)
                dli_cursor_set(loader, options->first_epoch, options->first_position);
        if (r == 0 && loader->is_stream) /* which may have ended already */
                dli_cursor_learn(loader);
        return r;
}
