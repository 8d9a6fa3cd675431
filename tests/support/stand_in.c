#include "tests/support/stand_in.h"

/* Short of everything that makes a daemon hard: one thread a connection does all of it, and fills a slot when it is
 * free. */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/order/dealing.h"
#include "proto/ring.h"
#include "tests/support/temporary.h"

#define SESSIONS_MAX 64

struct session {
        struct stand_in *stand_in;
        pthread_t thread;
        int socket;
        int event;
        int control_fd, payload_fd;
        struct dlp_control *control;
        uint8_t *payload;
        struct dlp_client_page *page;
        uint64_t control_bytes, payload_bytes;

        uint32_t world, rank, batch_size;
        uint64_t rank_samples, rank_batches;
        enum dlp_partition partition;
        bool drop_last;
        uint64_t epoch, base, step, end_epoch, stream, sequence;
        uint64_t slot_sequence[DLP_SLOTS_MAX]; /* 1 + the sequence that was published there; 0: never */
        uint64_t word_before[DLP_SLOTS_MAX];
        bool told_failure;
};

struct stand_in {
        struct stand_in_manners *manners;
        pthread_mutex_t lock; /* what the sessions write into manners, several of which may attach at once */
        char path[DLP_SOCKET_PATH_MAX + 1];
        char folder[64];
        int listener;
        int stop_event; /* readable once all is to end */
        pthread_t thread;
        struct session sessions[SESSIONS_MAX];
        size_t n_sessions;
        _Atomic uint32_t n_attach_attempts;
};

int64_t stand_in_label(int64_t index, uint64_t epoch) {
        return index * STAND_IN_EPOCHS + (int64_t)epoch;
}

uint8_t stand_in_pixel(int64_t index, uint64_t epoch, uint32_t idx_pixel) {
        return (uint8_t)(stand_in_label(index, epoch) + idx_pixel);
}

int64_t stand_in_index(uint64_t n_samples, uint32_t world, uint32_t rank, uint64_t base, uint64_t step) {
        return (int64_t)((base + step * world + rank) % n_samples);
}

/* ---- filling ------------------------------------------------------------------------------------------------- */

static int64_t index_of(const struct session *session, uint32_t n) {
        return stand_in_index(session->stand_in->manners->n_samples, session->world, session->rank, session->base,
                              session->step * session->batch_size + n);
}

static void describe(struct dlp_tensor_record *tensor, const char *name, uint32_t dtype, uint64_t offset) {
        memset(tensor, 0, sizeof(*tensor));
        snprintf(tensor->name, sizeof(tensor->name), "%s", name);
        tensor->dtype = dtype;
        tensor->offset = offset;
}

/* Behind the labels. */
static void describe_ready(struct dlp_tensor_record *tensor, uint64_t labels, uint32_t side) {
        tensor->offset = labels * 2;
        tensor->n_dims = 4;
        tensor->shape[1] = tensor->shape[2] = side;
        tensor->shape[3] = tensor->strides[2] = 3;
        tensor->strides[3] = 1;
        tensor->strides[1] = 3 * (int64_t)side;
        tensor->strides[0] = tensor->strides[1] * side;
}

static void describe_batch(const struct session *session, struct dlp_slot_record *record, uint32_t n_samples) {
        uint64_t labels = ((uint64_t)session->batch_size * STAND_IN_ROW + 255) / 256 * 256;

        memset(record, 0, sizeof(*record));
        record->sequence = session->sequence;
        record->stream = session->stream;
        record->epoch = session->epoch;
        record->step = session->step;
        record->n_samples = n_samples;
        record->n_tensors = 2;
        describe(&record->tensors[0], "image", session->stand_in->manners->ragged ? DLP_DTYPE_BYTES : DLP_DTYPE_UINT8,
                 0);
        if (session->stand_in->manners->ragged) {
                record->tensors[0].layout = DLP_RAGGED;
                record->tensors[0].n_dims = 2;
                record->tensors[0].shape[1] = -1;
                record->tensors[0].strides[1] = 1;
        } else {
                record->tensors[0].n_dims = 3;
                record->tensors[0].shape[1] = 3;
                record->tensors[0].shape[2] = 4;
                record->tensors[0].strides[0] = STAND_IN_ROW;
                record->tensors[0].strides[1] = 4;
                record->tensors[0].strides[2] = 1;
        }
        if (session->stand_in->manners->ready)
                describe_ready(&record->tensors[0], labels, session->stand_in->manners->ready_side);
        record->tensors[0].shape[0] = n_samples;
        describe(&record->tensors[1], "label", DLP_DTYPE_INT64, labels);
        record->tensors[1].n_dims = 1;
        record->tensors[1].shape[0] = n_samples;
        record->tensors[1].strides[0] = 8;
}

/* Sample number `n` of the batch, in place `i`. */
static void fill_sample(struct session *session, struct dlp_slot_record *record, uint32_t idx_slot, uint32_t n,
                        uint32_t i) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        int64_t index = index_of(session, n), served = index;
        struct dlp_columns columns = dlp_columns(session->control, idx_slot);
        uint8_t *slot = session->payload + dlp_slot_offset(session->control, idx_slot);
        uint32_t n_pixels = STAND_IN_PIXELS;
        int64_t label;

        columns.indices[i] = index;
        columns.substitutes[i] = -1;
        columns.idx_errors[i] = -1;
        if (manners->substitute_each && index % manners->substitute_each == 0) {
                served = (index + 1) % (int64_t)manners->n_samples;
                columns.substitutes[i] = served;
                if (record->n_errors < DLP_SLOT_ERRORS_MAX) {
                        columns.idx_errors[i] = (int32_t)record->n_errors;
                        snprintf(dlp_error_text(session->control, idx_slot, record->n_errors), DLP_SLOT_ERROR_BYTES,
                                 "sample %lld is damaged", (long long)index);
                }
                record->n_errors++;
        }
        if (manners->ragged) {
                n_pixels = (uint32_t)(index % (STAND_IN_PIXELS + 1)); /* 0 as well */
                dlp_places(session->control, idx_slot, 0)[i] = (struct dlp_place){ i * STAND_IN_ROW, n_pixels };
        }
        for (uint32_t k = 0; k < n_pixels; k++)
                slot[i * STAND_IN_ROW + k] = stand_in_pixel(served, session->epoch, k);
        label = stand_in_label(served, session->epoch);
        memcpy(slot + record->tensors[1].offset + i * sizeof(label), &label, sizeof(label));
}

static bool is_skipped(const struct session *session, uint32_t n) {
        uint32_t each = session->stand_in->manners->skip_each;

        return each && index_of(session, n) % each == 0;
}

/* As it was asked for: one that blocks sleeps on the futex, one that polls on the socket. */
static void wake(struct session *session, enum dlp_wake how) {
        const uint8_t byte = DLP_WAKE_BYTE;

        if (how == DLP_WAKE_NOBODY)
                return;
        atomic_fetch_add(&session->stand_in->manners->n_wakes, 1);
        if (how == DLP_WAKE_FUTEX)
                dlp_ring_wake(session->control);
        else
                dlp_frame_send(session->socket, &byte, 1, NULL, 0, MSG_DONTWAIT);
}

/* The current epoch's batches, which begins at `base`. */
static void count_batches(struct session *session) {
        uint64_t n = dlp_dealing_count(session->stand_in->manners->n_samples - session->base, session->world,
                                       session->rank, 1, session->partition);

        session->rank_samples = n;
        session->rank_batches = 0;
        if (session->batch_size > 0)
                session->rank_batches = n / session->batch_size + (!session->drop_last && n % session->batch_size > 0);
}

/* Goes on after an epoch's end; what begins at a position may have no batch left. */
static void pass_end(struct session *session) {
        for (int i = 0; i < 2 && session->step >= session->rank_batches; i++) {
                session->epoch++;
                session->base = session->step = 0;
                count_batches(session);
        }
}

static void copy_ready(struct session *session, const struct dlp_slot_record *record, uint32_t idx_slot) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        uint64_t kind = manners->ready_kinds ? session->sequence % manners->ready_kinds : 0;

        memcpy(session->payload + dlp_slot_offset(session->control, idx_slot) + record->tensors[0].offset,
               manners->ready + kind * STAND_IN_READY_STEP, (size_t)record->tensors[0].strides[0] * record->n_samples);
}

static void publish(struct session *session, uint32_t idx_slot) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        struct dlp_slot_record *record = dlp_slot_record(session->control, idx_slot);
        uint64_t n_left = session->rank_samples - session->step * session->batch_size;
        uint32_t n_planned = n_left < session->batch_size ? (uint32_t)n_left : session->batch_size, n_skipped = 0;

        for (uint32_t n = 0; n < n_planned; n++)
                n_skipped += is_skipped(session, n);
        describe_batch(session, record, n_planned - n_skipped);
        record->n_planned = n_planned;
        record->n_skipped = n_skipped;
        record->read_ns = record->n_samples;
        record->queued_ns = 2ull * record->n_samples;
        record->decode_ns = 3ull * record->n_samples;
        if (manners->fail_at && session->sequence >= manners->fail_at) {
                record->status = DLP_BATCH_FAILED;
                snprintf(record->text, sizeof(record->text), "photos: dog/7.jpg is truncated");
                record->n_samples = record->n_tensors = 0;
                session->told_failure = true;
        }
        for (uint32_t n = 0, i = 0; i < record->n_samples; n++)
                if (!is_skipped(session, n))
                        fill_sample(session, record, idx_slot, n, i++);
        if (manners->ready && !(manners->ready_stays && session->slot_sequence[idx_slot] > 0))
                copy_ready(session, record, idx_slot);
        if (manners->spoil)
                manners->spoil(session->control, record, idx_slot);

        session->word_before[idx_slot] = session->slot_sequence[idx_slot];
        session->slot_sequence[idx_slot] = session->sequence + 1;
        wake(session, dlp_ring_publish(session->control, session->page, session->sequence,
                                       manners->false_slot ? manners->false_slot : idx_slot));
        session->sequence++;
        session->step++;
        pass_end(session);
}

/* The first free slot, or n_slots. */
static uint32_t find_free(struct session *session) {
        for (uint32_t i = 0; i < session->control->n_slots; i++) {
                int r;

                if (session->slot_sequence[i] == 0)
                        return i;
                r = dlp_ring_released(session->page, i, session->word_before[i], session->slot_sequence[i] - 1);
                if (r < 0)
                        ck_abort_msg("the client scribbles");
                if (r > 0)
                        return i;
        }
        return session->control->n_slots;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static int make_memory(const char *name, uint64_t n_bytes, bool sealed) {
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(ftruncate(fd, (off_t)n_bytes), 0);
        if (sealed)
                ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
        return fd;
}

static void make_ring(struct session *session, uint32_t n_slots) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        struct dlp_geometry geometry = {
                .n_slots = n_slots,
                .batch_size = session->batch_size,
                .slot_bytes = session->batch_size *
                                      (STAND_IN_ROW * 2 + 8 + 3ull * manners->ready_side * manners->ready_side) +
                              512,
                .n_ragged = manners->ragged,
        };

        ck_assert_int_eq(dlp_layout_make(&geometry, NULL, &session->control_bytes, &session->payload_bytes), 0);
        session->control_fd = make_memory("control", session->control_bytes, !manners->unsealed);
        session->payload_fd = make_memory("payload", session->payload_bytes - (manners->short_payload ? 4096 : 0),
                                          true);
        session->control = mmap(NULL, session->control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, session->control_fd,
                                0);
        session->payload = mmap(NULL, session->payload_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, session->payload_fd,
                                0);
        ck_assert_ptr_ne(session->control, MAP_FAILED);
        ck_assert_ptr_ne(session->payload, MAP_FAILED);
        ck_assert_int_eq(dlp_layout_make(&geometry, session->control, &session->control_bytes, &session->payload_bytes),
                         0);
        if (manners->layout_version)
                session->control->layout_version = manners->layout_version;
        session->page = (struct dlp_client_page *)session->payload;
        session->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void refuse(struct session *session, uint64_t id, uint32_t code, const char *text, bool retry) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Error error = DLP__ERROR__INIT;

        error.code = code;
        error.text = (char *)(uintptr_t)text;
        error.retry = retry;
        if (retry)
                error.progress = (Dlp__Progress *)(uintptr_t)manners->progress;
        reply.protocol = manners->protocol ? manners->protocol : DLP_PROTOCOL_VERSION;
        reply.id = id;
        reply.error = &error;
        dlp_reply_send(session->socket, &reply, NULL, 0, 0);
}

static void note_attach(struct stand_in *stand_in, const Dlp__Attach *attach) {
        struct stand_in_manners *manners = stand_in->manners;

        pthread_mutex_lock(&stand_in->lock);
        snprintf(manners->job, sizeof(manners->job), "%s", attach->job);
        manners->first_epoch = attach->first_epoch;
        manners->first_position = attach->first_position;
        manners->first_step = attach->first_step;
        manners->n_epochs = attach->n_epochs;
        manners->max_errors = attach->max_errors;
        manners->leave_forms = attach->leave_forms;
        snprintf(manners->near_device, sizeof(manners->near_device), "%s", attach->near_device);
        manners->leave_operations = attach->leave_operations;
        pthread_mutex_unlock(&stand_in->lock);
}

static void answer_attach(struct session *session, const Dlp__Request *request) {
        struct stand_in_manners *manners = session->stand_in->manners;
        const Dlp__Attach *attach = request->attach;
        Dlp__Attached attached = DLP__ATTACHED__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        uint32_t n_attempts;
        int fds[3];

        note_attach(session->stand_in, attach);
        n_attempts = atomic_fetch_add(&session->stand_in->n_attach_attempts, 1);
        if (n_attempts < manners->n_retries) {
                refuse(session, request->id, EAGAIN, "photos: indexing, 12 files so far", true);
                return;
        }
        if (manners->refuse_code && (!manners->n_refusals || n_attempts < manners->n_refusals)) {
                refuse(session, request->id, manners->refuse_code, "memory_limit: 9 MiB are needed", false);
                return;
        }

        session->world = attach->world;
        session->rank = attach->rank;
        session->batch_size = attach->batch_size;
        ck_assert_int_eq(dlp_partition_from_name(attach->partition, &session->partition), 0);
        session->drop_last = attach->drop_last;
        count_batches(session);
        attached.rank_samples = session->rank_samples;
        attached.rank_batches = session->rank_batches;
        session->epoch = attach->first_epoch;
        session->base = attach->first_position;
        session->step = attach->first_step;
        count_batches(session);
        pass_end(session);
        session->end_epoch = attach->n_epochs ? attach->first_epoch + attach->n_epochs : UINT64_MAX;
        session->stream = 1;
        make_ring(session, attach->n_slots ? attach->n_slots : manners->n_slots ? manners->n_slots : DLP_SLOTS_DEFAULT);

        attached.n_samples = manners->n_samples;
        attached.dataset_digest = (char *)(uintptr_t)(manners->digest ? manners->digest : "c0ffee");
        attached.pipeline = attach->pipeline;
        attached.n_slots = session->control->n_slots;
        attached.control_bytes = session->control_bytes;
        attached.payload_bytes = session->payload_bytes;
        attached.stream = session->stream;
        attached.memory = (char *)(uintptr_t) "4 KiB pages";
        attached.job = attach->job;
        attached.answers_waits = manners->answers_waits;
        if (attach->leave_forms) {
                attached.left_forms = (Dlp__LeftForm **)(uintptr_t)manners->forms;
                attached.n_left_forms = manners->n_forms;
        }
        reply.protocol = manners->protocol ? manners->protocol : DLP_PROTOCOL_VERSION;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_ATTACHED;
        reply.attached = &attached;
        fds[0] = session->control_fd;
        fds[1] = session->payload_fd;
        fds[2] = session->event;
        usleep(manners->answer_after_ms * 1000);
        atomic_fetch_add(&manners->n_attached, 1);
        dlp_reply_send(session->socket, &reply, fds, 3, 0);
}

static void answer_seek(struct session *session, const Dlp__Request *request) {
        Dlp__Sought sought = DLP__SOUGHT__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        atomic_fetch_add(&session->stand_in->manners->n_seeks, 1);
        session->epoch = request->seek->epoch;
        session->base = request->seek->position;
        session->step = request->seek->step;
        count_batches(session);
        pass_end(session);
        if (session->epoch >= session->end_epoch)
                session->end_epoch = session->epoch + 1;
        sought.stream = ++session->stream;
        reply.protocol = DLP_PROTOCOL_VERSION;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_SOUGHT;
        reply.sought = &sought;
        dlp_reply_send(session->socket, &reply, NULL, 0, 0);
}

static void answer_classes(struct session *session, const Dlp__Request *request) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        uint32_t first = request->classes->first, n_left = manners->n_classes - first;
        Dlp__ClassesReply classes = DLP__CLASSES_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        ck_assert_uint_le(first, manners->n_classes);
        classes.n_names = manners->page_classes && manners->page_classes < n_left ? manners->page_classes : n_left;
        classes.names = (char **)(uintptr_t)(manners->classes + first);
        classes.next = classes.n_names < n_left ? first + (uint32_t)classes.n_names : 0;
        classes.n_classes = manners->n_classes - (manners->bad_classes ? 1 : 0);
        reply.protocol = DLP_PROTOCOL_VERSION;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_CLASSES;
        reply.classes = &classes;
        dlp_reply_send(session->socket, &reply, NULL, 0, 0);
}

static void answer_jobs(struct session *session, const Dlp__Request *request) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        uint32_t first = request->jobs->first;
        Dlp__JobsReply jobs = DLP__JOBS_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        if (first < manners->n_jobs) {
                jobs.jobs = (Dlp__Job **)(uintptr_t)(manners->jobs + first);
                jobs.n_jobs = 1;
                jobs.next = first + 1 < manners->n_jobs ? first + 1 : 0;
        }
        reply.protocol = DLP_PROTOCOL_VERSION;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        dlp_reply_send(session->socket, &reply, NULL, 0, 0);
}

static void answer_wait(struct session *session, const Dlp__Request *request) {
        struct stand_in_manners *manners = session->stand_in->manners;
        Dlp__WaitReply wait = DLP__WAIT_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        atomic_fetch_add(&manners->n_waits, 1);
        wait.progress = (Dlp__Progress *)(uintptr_t)manners->progress;
        reply.protocol = DLP_PROTOCOL_VERSION;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_WAIT;
        reply.wait = &wait;
        dlp_reply_send(session->socket, &reply, NULL, 0, 0);
}

/* Returns false at the connection's end. */
static bool answer(struct session *session) {
        static _Thread_local uint8_t packet[DLP_PACKET_MAX];
        ssize_t n = dlp_frame_receive(session->socket, packet, sizeof(packet), NULL, 0, NULL, MSG_DONTWAIT);
        Dlp__Request *request;

        if (n == -EAGAIN || n == -EINTR)
                return true;
        if (n <= 0)
                return false;
        request = dlp__request__unpack(NULL, (size_t)n, packet);
        ck_assert_ptr_nonnull(request);
        ck_assert_uint_eq(request->protocol, DLP_PROTOCOL_VERSION);
        if (session->stand_in->manners->silent)
                ;
        else if (request->body_case == DLP__REQUEST__BODY_ATTACH)
                answer_attach(session, request);
        else if (request->body_case == DLP__REQUEST__BODY_SEEK)
                answer_seek(session, request);
        else if (request->body_case == DLP__REQUEST__BODY_CLASSES)
                answer_classes(session, request);
        else if (request->body_case == DLP__REQUEST__BODY_JOBS)
                answer_jobs(session, request);
        else if (request->body_case == DLP__REQUEST__BODY_WAIT)
                answer_wait(session, request);
        else
                refuse(session, request->id, EOPNOTSUPP, "only a stand-in", false);
        dlp__request__free_unpacked(request, NULL);
        return true;
}

/* ---- threads ------------------------------------------------------------------------------------------------- */

/* Fills one slot if there is something to fill. Returns what to do next: 1 go on, 0 wait, -1 close. */
static int work(struct session *session) {
        const struct stand_in_manners *manners = session->stand_in->manners;
        uint32_t idx_slot;

        if (!session->control || session->rank_batches == 0 || session->epoch >= session->end_epoch ||
            session->told_failure || manners->short_payload || atomic_load(&manners->hold))
                return 0;
        if (manners->close_at && session->sequence >= manners->close_at) {
                if (manners->farewell)
                        refuse(session, 0, manners->farewell_code ? manners->farewell_code : EPROTO, manners->farewell,
                               false);
                return -1;
        }
        dlp_ring_want_release(session->control, false);
        idx_slot = find_free(session);
        if (idx_slot == session->control->n_slots) {
                dlp_ring_want_release(session->control, true);
                idx_slot = find_free(session);
                if (idx_slot == session->control->n_slots)
                        return 0;
        }
        if (manners->pause_us)
                usleep(manners->pause_us);
        publish(session, idx_slot);
        return 1;
}

static void *session_run(void *userdata) {
        struct session *session = userdata;
        struct stand_in *stand_in = session->stand_in;
        int todo = 0;

        while (todo >= 0) {
                struct pollfd items[3] = {
                        { .fd = session->socket, .events = POLLIN },
                        { .fd = stand_in->stop_event, .events = POLLIN },
                        { .fd = session->event, .events = POLLIN },
                };
                uint64_t count;

                /* 5 ms: `hold` has nothing to poll. */
                ck_assert_int_ge(poll(items, session->control ? 3 : 2, todo > 0 ? 0 : 5), 0);
                if (items[1].revents || (items[0].revents && !answer(session)))
                        break;
                if (session->control && items[2].revents && read(session->event, &count, sizeof(count)) < 0)
                        ck_assert_int_eq(errno, EAGAIN);
                todo = work(session);
        }
        close(session->socket);
        if (session->control) {
                munmap(session->control, session->control_bytes);
                munmap(session->payload, session->payload_bytes);
                close(session->control_fd);
                close(session->payload_fd);
                close(session->event);
        }
        atomic_fetch_sub(&stand_in->manners->n_clients, 1);
        return NULL;
}

static void *listener_run(void *userdata) {
        struct stand_in *stand_in = userdata;

        for (;;) {
                struct pollfd items[2] = {
                        { .fd = stand_in->listener, .events = POLLIN },
                        { .fd = stand_in->stop_event, .events = POLLIN },
                };
                struct session *session = &stand_in->sessions[stand_in->n_sessions];

                if (poll(items, 2, -1) < 0)
                        continue;
                if (items[1].revents)
                        return NULL;
                ck_assert_uint_lt(stand_in->n_sessions, SESSIONS_MAX);
                *session = (struct session){ .stand_in = stand_in };
                session->socket = accept4(stand_in->listener, NULL, NULL, SOCK_CLOEXEC);
                if (session->socket < 0)
                        continue;
                atomic_fetch_add(&stand_in->manners->n_clients, 1);
                ck_assert_int_eq(pthread_create(&session->thread, NULL, session_run, session), 0);
                stand_in->n_sessions++;
        }
}

static void listen_at(struct stand_in *stand_in) {
        struct sockaddr_un address;

        ck_assert_int_eq(dlp_socket_address(stand_in->path, &address), 0);
        stand_in->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(stand_in->listener, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(stand_in->listener, 16), 0);
        stand_in->stop_event = eventfd(0, EFD_CLOEXEC);
        ck_assert_int_eq(pthread_create(&stand_in->thread, NULL, listener_run, stand_in), 0);
}

struct stand_in *stand_in_start(struct stand_in_manners *manners) {
        struct stand_in *stand_in = calloc(1, sizeof(*stand_in));

        ck_assert_ptr_nonnull(stand_in);
        stand_in->manners = manners;
        pthread_mutex_init(&stand_in->lock, NULL);
        temporary_folder(stand_in->folder, sizeof(stand_in->folder));
        snprintf(stand_in->path, sizeof(stand_in->path), "%s/socket", stand_in->folder);
        listen_at(stand_in);
        return stand_in;
}

const char *stand_in_path(const struct stand_in *stand_in) {
        return stand_in->path;
}

void stand_in_kill(struct stand_in *stand_in) {
        uint64_t one = 1;

        if (stand_in->listener < 0)
                return;
        ck_assert_int_eq(write(stand_in->stop_event, &one, sizeof(one)), sizeof(one));
        pthread_join(stand_in->thread, NULL);
        for (size_t i = 0; i < stand_in->n_sessions; i++)
                pthread_join(stand_in->sessions[i].thread, NULL);
        close(stand_in->listener);
        close(stand_in->stop_event);
        stand_in->listener = -1;
        stand_in->n_sessions = 0;
}

void stand_in_revive(struct stand_in *stand_in) {
        ck_assert_int_lt(stand_in->listener, 0);
        unlink(stand_in->path);
        atomic_store(&stand_in->n_attach_attempts, 0);
        listen_at(stand_in);
}

void stand_in_stop(struct stand_in *stand_in) {
        stand_in_kill(stand_in);
        unlink(stand_in->path);
        rmdir(stand_in->folder);
        free(stand_in);
}
