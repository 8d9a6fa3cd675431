/* From an address to a mapped ring.
 *
 * The daemon hands over three descriptors: its page (read-only for us), the rank's payload, and the event by which a
 * release is told. Nothing of what they hold is believed before it was compared with the files' true sizes. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/lib/cleanup.h"
#include "client/lib/clock.h"
#include "client/lib/loader.h"

#define ASK_AGAIN_MS 100 /* a sleeping client costs nothing, and an index takes seconds */
#define PROGRESS_MS  1000

#define CONTROL       0 /* the descriptors, in the order in which they come */
#define PAYLOAD       1
#define EVENT         2
#define N_DESCRIPTORS 3

struct descriptors {
        int fd[N_DESCRIPTORS];
};

static void descriptors_close(struct descriptors *descriptors) {
        for (int i = 0; i < N_DESCRIPTORS; i++)
                closep(&descriptors->fd[i]);
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

struct question {
        const struct dlc_options *options;
        uint64_t deadline_ns; /* for asking again */
        uint64_t told_ns;     /* when progress was shown last; 0: never */
};

/* The daemon is busy with what we need. Shows that, and waits a moment; the connection's end wakes us early. */
static int wait_to_ask(struct dlc_loader *loader, struct question *question) {
        const struct dlc_options *options = question->options;
        uint64_t now = dli_now_ns(), until = now + ASK_AGAIN_MS * 1000000ull;
        int r;

        if (now >= question->deadline_ns) {
                struct dli_reason waited_for = loader->reason;

                return dli_reason_set(&loader->reason, -ETIMEDOUT, "gave up after open_timeout_ms=%d: %s",
                                      options->open_timeout_ms, waited_for.text);
        }
        if (options->on_progress && (question->told_ns == 0 || now - question->told_ns >= PROGRESS_MS * 1000000ull)) {
                options->on_progress(options->userdata, loader->reason.text);
                question->told_ns = now;
        }
        r = dli_connection_wait(&loader->connection, until < question->deadline_ns ? until : question->deadline_ns);
        if (r < 0)
                return dli_reason_set(&loader->reason, r, "interrupted while the daemon was getting ready");
        return r > 0 ? dli_connection_drain(&loader->connection, &loader->reason) : 0;
}

static int ask(struct dlc_loader *loader, const struct dlc_options *options, Dlp__Reply **ret_reply,
               struct descriptors *ret_descriptors) {
        struct question question = { .options = options, .deadline_ns = dli_deadline(options->open_timeout_ms) };
        Dlp__Attach attach = DLP__ATTACH__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        int r;

        attach.dataset = (char *)(uintptr_t)options->dataset; /* protobuf-c packs without writing */
        attach.job = (char *)(uintptr_t)options->job;
        attach.pipeline = (char *)(uintptr_t)options->pipeline;
        attach.partition = (char *)(uintptr_t)options->partition;
        attach.order = (char *)(uintptr_t)options->order;
        attach.on_error = (char *)(uintptr_t)options->on_error;
        attach.world = (uint32_t)options->world_size;
        attach.rank = (uint32_t)options->rank;
        attach.batch_size = (uint32_t)options->batch_size;
        attach.seed = options->seed;
        attach.shuffle = options->shuffle;
        attach.drop_last = options->drop_last;
        attach.first_epoch = options->first_epoch;
        attach.n_epochs = options->n_epochs;
        attach.n_slots = (uint32_t)options->n_slots;
        attach.pid = (uint32_t)getpid();
        request.body_case = DLP__REQUEST__BODY_ATTACH;
        request.attach = &attach;

        for (;;) {
                r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason,
                                        ret_reply, ret_descriptors->fd, N_DESCRIPTORS);
                if (r != DLI_ASK_AGAIN)
                        return r;
                r = wait_to_ask(loader, &question);
                if (r < 0)
                        return r;
        }
}

/* ---- mapping ------------------------------------------------------------------------------------------------- */

/* Maps a whole file of which at least n_bytes are needed, and which cannot shrink afterwards. */
static int map(int fd, uint64_t n_bytes, int protection, const char *what, struct dli_reason *reason,
               struct dli_mapping *ret_mapping) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat status;
        void *base;

        if (fstat(fd, &status) < 0)
                return dli_reason_errno(reason, -errno, "the daemon's %s memory", what);
        if (seals < 0 || !(seals & F_SEAL_SHRINK) || status.st_size <= 0 || (uint64_t)status.st_size < n_bytes ||
            (uint64_t)status.st_size > 2 * DLP_PAYLOAD_MAX)
                return dli_reason_set(reason, -EPROTO,
                                      "the daemon's %s memory has %lld bytes where %llu were promised, or could shrink",
                                      what, (long long)status.st_size, (unsigned long long)n_bytes);

        base = mmap(NULL, (size_t)status.st_size, protection, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return dli_reason_errno(reason, -errno, "cannot map the daemon's %s memory of %lld bytes", what,
                                        (long long)status.st_size);
        /* A child must not have it: it could write over its parent's batches. Where the kernel cannot do that, the
         * child's calls are refused all the same. */
        (void)madvise(base, (size_t)status.st_size, MADV_DONTFORK);
        *ret_mapping = (struct dli_mapping){ .base = base, .bytes = (uint64_t)status.st_size };
        return 0;
}

static void unmap(struct dli_mapping *mapping) {
        if (mapping->base)
                munmap(mapping->base, mapping->bytes);
        *mapping = (struct dli_mapping){ 0 };
}

static int map_ring(struct dlc_loader *loader, const Dlp__Attached *attached, const struct descriptors *descriptors,
                    uint32_t batch_size) {
        struct dli_reason *reason = &loader->reason;
        const struct dlp_control *control;
        int r;

        if (attached->control_bytes < sizeof(*control) || attached->payload_bytes < DLP_CLIENT_PAGE_BYTES)
                return dli_reason_set(reason, -EPROTO, "the daemon offers a ring of no size");
        r = map(descriptors->fd[CONTROL], attached->control_bytes, PROT_READ, "control", reason,
                &loader->control_mapping);
        if (r < 0)
                return r;
        r = map(descriptors->fd[PAYLOAD], attached->payload_bytes, PROT_READ | PROT_WRITE, "payload", reason,
                &loader->payload_mapping);
        if (r < 0)
                return r;

        control = loader->control_mapping.base;
        r = dlp_layout_check(control, loader->control_mapping.bytes, loader->payload_mapping.bytes);
        if (r == -EPROTONOSUPPORT)
                return dli_reason_set(
                        reason, r,
                        "%s knows memory layout %u, the daemon at %s uses %u: install the same version of both",
                        loader->connection.client, DLP_LAYOUT_VERSION, loader->connection.path,
                        control->layout_version);
        if (r < 0 || control->batch_size != batch_size || control->n_slots != attached->n_slots)
                return dli_reason_set(reason, -EPROTO, "the ring of the daemon at %s is damaged",
                                      loader->connection.path);

        loader->control = control;
        loader->page = loader->payload_mapping.base;
        return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------------------- */

/* Texts of a message come as "" if they are not set. */
static int keep_texts(struct dlc_loader *loader, const Dlp__Attached *attached) {
        const char *texts[] = { attached->dataset_digest, attached->pipeline, attached->job, attached->memory };

        for (size_t i = 0; i < 4; i++) {
                loader->texts[i] = strdup(texts[i]);
                if (!loader->texts[i])
                        return dli_reason_set(&loader->reason, -ENOMEM, "no memory for a loader");
        }
        loader->info.dataset_digest = loader->texts[0];
        loader->info.pipeline = loader->texts[1];
        loader->info.job = loader->texts[2];
        loader->info.memory = loader->texts[3];
        return 0;
}

static int take_over(struct dlc_loader *loader, const struct dlc_options *options, const Dlp__Attached *attached,
                     struct descriptors *descriptors) {
        int r;

        r = map_ring(loader, attached, descriptors, (uint32_t)options->batch_size);
        if (r < 0)
                return r;
        r = keep_texts(loader, attached);
        if (r < 0)
                return r;

        /* A seek that was broken off would leave us without the new stream's number. */
        loader->connection.interruptible = false;
        loader->release_event = take_fd(&descriptors->fd[EVENT]);
        loader->stream = attached->stream;
        loader->epoch = options->first_epoch;
        loader->n_batches = attached->rank_batches;
        loader->prepared_until = UINT64_MAX;
        if (options->n_epochs > 0 && options->n_epochs <= DLP_EPOCH_MAX)
                loader->prepared_until = options->first_epoch + options->n_epochs;

        loader->info.dataset_samples = attached->n_samples;
        loader->info.epoch_samples = attached->rank_samples;
        loader->info.epoch_batches = attached->rank_batches;
        loader->info.rank = (uint32_t)options->rank;
        loader->info.world_size = (uint32_t)options->world_size;
        loader->info.batch_size = loader->control->batch_size;
        loader->info.n_slots = loader->control->n_slots;
        loader->info.memory_base = (uint8_t *)loader->payload_mapping.base + loader->control->slots_offset;
        loader->info.memory_bytes = loader->control->slot_bytes * loader->control->n_slots;
        return 0;
}

int dli_attach(struct dlc_loader *loader, const struct dlc_options *options) {
        _cleanup_(descriptors_close) struct descriptors descriptors = { { -1, -1, -1 } };
        Dlp__Reply *reply = NULL;
        int r;

        r = dli_connection_open(&loader->connection, options->socket, "libdlclient " DLP_VERSION, &loader->reason);
        if (r < 0)
                return r;
        r = ask(loader, options, &reply, &descriptors);
        if (r < 0)
                return r;
        if (reply->body_case == DLP__REPLY__BODY_ATTACHED)
                r = take_over(loader, options, reply->attached, &descriptors);
        else
                r = dli_reason_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                                   loader->connection.path);
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

void dli_detach(struct dlc_loader *loader) {
        dli_connection_close(&loader->connection);
        closep(&loader->release_event);
        loader->release_event = -1;
        for (size_t i = 0; i < 4; i++)
                free(loader->texts[i]);
        /* In the child of a fork these are not mapped, and something else may be in their place. */
        if (dli_loader_check(loader) == 0) {
                unmap(&loader->payload_mapping);
                unmap(&loader->control_mapping);
        }
        unmap(&loader->fork_mapping);
}
