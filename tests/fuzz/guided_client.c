/* The client library against a daemon that sends whatever it likes: replies, descriptors, the layout of a ring, records
 * of batches. The library must give an error or a batch all of whose memory can be read; it never crashes or hangs.
 *
 * The daemon is a thread that answers each request as the input says, or hangs up; an answer of zeroes is a good one.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/include/dlclient.h"
#include "proto/frame.h"
#include "proto/left.h"
#include "proto/ring.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/input.h"

#define ACTIONS_MAX   24u
#define BATCHES_MAX   3u
#define N_SAMPLES     7u
#define BATCH_SIZE    2u
#define SLOT_BYTES    4096u
#define CONTROL_BYTES 65536u /* above what so small a ring takes */

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int listen_fd = -1;
static char socket_path[128];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct input script; /* lock: what the daemon does next */

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

struct offer {
        int fds[3];
        Dlp__Attached attached;
};

/* The columns, tensors and times of a good batch. */
static void fill_record(struct dlp_control *control, uint32_t idx_slot, uint64_t step) {
        struct dlp_slot_record *record = dlp_slot_record(control, idx_slot);
        struct dlp_columns columns = dlp_columns(control, idx_slot);
        struct dlp_place *places = dlp_places(control, idx_slot, 0);

        *record = (struct dlp_slot_record){ .sequence = step, .step = step, .n_planned = BATCH_SIZE };
        record->n_samples = BATCH_SIZE;
        record->n_tensors = 2;
        record->tensors[0] = (struct dlp_tensor_record){ .name = "image",
                                                         .dtype = places ? DLP_DTYPE_BYTES : DLP_DTYPE_UINT8,
                                                         .layout = places ? DLP_RAGGED : DLP_DENSE,
                                                         .n_dims = 2,
                                                         .shape = { BATCH_SIZE, places ? -1 : 12 },
                                                         .strides = { 16, 1 } };
        record->tensors[1] = (struct dlp_tensor_record){ .name = "label",
                                                         .dtype = DLP_DTYPE_INT64,
                                                         .n_dims = 1,
                                                         .shape = { BATCH_SIZE },
                                                         .strides = { 8 },
                                                         .offset = 256 };
        for (uint32_t i = 0; i < BATCH_SIZE; i++) {
                columns.indices[i] = (int64_t)(step * BATCH_SIZE + i);
                columns.substitutes[i] = columns.idx_errors[i] = -1;
                if (places)
                        places[i] = (struct dlp_place){ .offset = 16 * i, .n_bytes = 12 };
        }
}

#define OPERATIONS_AT 64u

/* In the place of its first tensor, pictures with operations. */
static void fill_picture(struct dlp_control *control, uint32_t idx_slot) {
        dlp_slot_record(control, idx_slot)->tensors[0] = (struct dlp_tensor_record){ .name = "image",
                                                                                     .dtype = DLP_DTYPE_UINT8,
                                                                                     .layout = DLP_DENSE,
                                                                                     .n_dims = 4,
                                                                                     .shape = { BATCH_SIZE, 2, 2, 3 },
                                                                                     .strides = { 192, 6, 3, 1 },
                                                                                     .offset = 512 };
}

/* Changes some bytes of header or records: where, by how much. */
static void poke(uint8_t *bytes, size_t n_bytes, struct input *input) {
        for (uint32_t n = input_below(input, 6); n > 0; n--) {
                size_t at = ((size_t)input_byte(input) << 8 | input_byte(input)) * 4 % n_bytes;
                uint64_t number = input_number(input);

                memcpy(bytes + at, &number, n_bytes - at < 8 ? n_bytes - at : 8);
        }
}

static int make_memory(uint64_t n_bytes, bool is_sealed) {
        int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0 || ftruncate(fd, (off_t)n_bytes) < 0)
                _exit(2);
        if (is_sealed)
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        return fd;
}

static void spoil_payload(int fd, uint64_t n_bytes, struct input *input) {
        static uint8_t slots[SLOT_BYTES * 4]; /* lock */

        memset(slots, 0, sizeof(slots));
        poke(slots, sizeof(slots), input);
        if (n_bytes > DLP_CLIENT_PAGE_BYTES && n_bytes - DLP_CLIENT_PAGE_BYTES <= sizeof(slots) &&
            pwrite(fd, slots, n_bytes - DLP_CLIENT_PAGE_BYTES, DLP_CLIENT_PAGE_BYTES) < 0)
                _exit(2);
}

/* A ring with some batches in it, damaged as the input says. `how`: bit 0 ragged, 1 not sealed, 2 too short, 3 and 4
 * how many batches, 6 pictures with operations, 7 those damaged as well. */
static struct offer make_offer(struct input *input) {
        uint8_t how = input_byte(input);
        struct dlp_geometry geometry = {
                .n_slots = 2 + (how >> 5 & 1), .batch_size = BATCH_SIZE, .slot_bytes = SLOT_BYTES, .n_ragged = how & 1
        };
        static _Alignas(4096) uint8_t room[CONTROL_BYTES]; /* lock */
        struct dlp_control *control = (void *)room;
        struct offer offer = { .attached = DLP__ATTACHED__INIT };
        uint64_t control_bytes, payload_bytes;
        struct dlp_client_page page = { 0 };

        memset(room, 0, sizeof(room));
        if (dlp_layout_make(&geometry, control, &control_bytes, &payload_bytes) < 0 || control_bytes > CONTROL_BYTES)
                _exit(2);
        for (uint32_t i = 0; i < geometry.n_slots; i++)
                fill_record(control, i, i);
        for (uint32_t i = 0; i < geometry.n_slots && how & 64; i++)
                fill_picture(control, i);
        for (uint32_t i = 0; i < (how >> 3 & 3u) && i < geometry.n_slots; i++)
                dlp_ring_publish(control, &page, i, i);
        poke((uint8_t *)control, control_bytes, input);
        offer.fds[0] = make_memory(control_bytes, !(how & 2));
        offer.fds[1] = make_memory(how & 4 ? 4096 : payload_bytes, true);
        offer.fds[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (pwrite(offer.fds[0], control, control_bytes, 0) != (ssize_t)control_bytes)
                _exit(2);
        if (how & 128 && !(how & 4))
                spoil_payload(offer.fds[1], payload_bytes, input);
        offer.attached.n_samples = N_SAMPLES;
        offer.attached.rank_samples = N_SAMPLES;
        offer.attached.rank_batches = (N_SAMPLES + BATCH_SIZE - 1) / BATCH_SIZE;
        offer.attached.dataset_digest = (char *)(uintptr_t) "c0ffee";
        offer.attached.pipeline = (char *)(uintptr_t) "raw";
        offer.attached.n_slots = geometry.n_slots;
        offer.attached.control_bytes = control_bytes;
        offer.attached.payload_bytes = payload_bytes;
        offer.attached.memory = (char *)(uintptr_t) "plain";
        offer.attached.job = (char *)(uintptr_t) "job";
        return offer;
}

/* Two parts, whose samples may not add up. */
static void add_parts(Dlp__Attached *attached, struct input *input) {
        static Dlp__Part parts[2], *pointers[2]; /* lock */

        for (uint32_t i = 0; i < 2; i++) {
                dlp__part__init(&parts[i]);
                parts[i].name = (char *)(uintptr_t)(i == 0 ? "a" : "b");
                parts[i].digest = attached->dataset_digest;
                pointers[i] = &parts[i];
        }
        parts[0].n_samples = input_below(input, N_SAMPLES + 1);
        parts[1].n_samples = input_byte(input) & 1 ? input_number(input) : N_SAMPLES - parts[0].n_samples;
        attached->parts = pointers;
        attached->n_parts = 2;
}

/* The picture's form and operations, some of which make no sense. */
static void add_form(Dlp__Attached *attached, struct input *input) {
        static Dlp__LeftForm form, *pointers[] = { &form, &form }; /* lock */
        static uint8_t table[3 * 256 * 4];
        uint8_t how = input_byte(input);

        dlp__left_form__init(&form);
        form.tensor = (char *)(uintptr_t)(how & 1 ? "label" : "image");
        form.dtype = how & 2 ? (uint32_t)input_number(input) : DLP_DTYPE_UINT8;
        form.n_channels = how & 4 ? (uint32_t)input_number(input) : 3;
        form.table.data = table;
        form.table.len = how & 8 ? input_below(input, sizeof(table) + 1) : (size_t)3 * 256;
        form.operations_format = how & 16 ? (uint32_t)input_number(input) : DLP_LEFT_OPERATIONS_FORMAT;
        form.operations_at = how & 32 ? input_number(input) : OPERATIONS_AT;
        attached->left_forms = pointers;
        attached->n_left_forms = 1 + (how >> 6 & 1);
}

static void spoil_attached(Dlp__Attached *attached, struct input *input) {
        uint64_t *const FIELDS[] = { &attached->n_samples,     &attached->rank_samples,  &attached->rank_batches,
                                     &attached->control_bytes, &attached->payload_bytes, &attached->stream };

        for (uint32_t n = input_below(input, 3); n > 0; n--)
                *FIELDS[input_below(input, 6)] = input_number(input);
}

/* Spoiled, if the input says so: bit 0 changed bytes, bit 1 fewer descriptors, bit 2 another number of the request, bit
 * 3 another version. Returns false then: the library may go on waiting for its answer, a minute long, so hang up. */
static bool send_reply(int fd, Dlp__Reply *reply, const int *fds, size_t n_fds, struct input *input) {
        static uint8_t bytes[2 * DLP_PACKET_MAX];
        uint8_t how = input_byte(input);
        size_t n_bytes;

        reply->protocol = how & 8 ? (uint32_t)input_number(input) : DLP_PROTOCOL_VERSION;
        if (how & 4)
                reply->id = input_number(input);
        n_bytes = dlp__reply__pack(reply, bytes);
        if (how & 1)
                for (uint32_t n = 1 + input_below(input, 4); n > 0 && n_bytes > 0; n--)
                        bytes[input_byte(input) % n_bytes] ^= (uint8_t)(1 + input_byte(input));
        dlp_frame_send(fd, bytes, n_bytes, fds, how & 2 ? input_below(input, 4) % (n_fds + 1) : n_fds, MSG_DONTWAIT);
        return (how & 15) == 0;
}

static bool answer_attach(int fd, uint64_t id, struct input *input) {
        struct offer offer = make_offer(input);
        Dlp__Reply reply = DLP__REPLY__INIT;
        uint8_t how = input_byte(input);
        bool is_good;

        if (how & 0x80)
                add_parts(&offer.attached, input);
        if (how & 0x40) {
                offer.attached.order_is_made = true;
                offer.attached.sampler = (char *)(uintptr_t)(how & 0x20 ? "stratified(column=label)"
                                                                        : "repeat(n=3) lab");
        }
        if (how & 0x10)
                add_form(&offer.attached, input);
        spoil_attached(&offer.attached, input);
        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_ATTACHED;
        reply.attached = &offer.attached;
        is_good = send_reply(fd, &reply, offer.fds, 3, input);
        for (int i = 0; i < 3; i++)
                close(offer.fds[i]);
        return is_good;
}

static void fill_numbers(uint64_t *const *numbers, size_t n, struct input *input) {
        for (size_t i = 0; i < n; i++)
                *numbers[i] = input_number(input);
}

/* What a job has counted: any numbers. */
static void add_job(Dlp__JobsReply *jobs, struct input *input) {
        static Dlp__Job job, *job_pointers[] = { &job }; /* lock */
        static Dlp__Rank rank, *rank_pointers[] = { &rank, &rank };
        static Dlp__Waiting waiting;
        static Dlp__Stage stage, *stage_pointers[] = { &stage };
        static Dlp__WaitReason reason;
        static Dlp__Node node;
        uint64_t *const NUMBERS[] = { &job.now_ns,        &job.n_samples,   &job.n_reads,     &job.read_ns,
                                      &job.queued_ns,     &job.worker_ns,   &rank.age_ns,     &rank.n_samples,
                                      &waiting.n_batches, &waiting.wait_ns, &waiting.busy_ns, &stage.taken_ns,
                                      &node.now_ns,       &node.cpus_milli, &node.worker_ns,  &node.worker_cpu_ns };
        uint8_t how = input_byte(input);

        dlp__job__init(&job);
        dlp__rank__init(&rank);
        dlp__waiting__init(&waiting);
        dlp__stage__init(&stage);
        dlp__node__init(&node);
        dlp__wait_reason__init(&reason);
        job.name = (char *)(uintptr_t)(how & 1 ? "other" : "job");
        job.failure = (char *)(uintptr_t)(how & 2 ? "failed" : "");
        reason.reason = how & 128 ? DLP_N_WAIT_REASONS : DLP_WAIT_OUTAGE;
        reason.detail = (char *)(uintptr_t) "on \xff hold";
        job.wait_reason = how & 4 ? &reason : NULL;
        job.ranks = rank_pointers;
        job.n_ranks = how >> 3 & 1 ? 2 : 1;
        rank.waiting = how & 16 ? NULL : &waiting;
        stage.name = (char *)(uintptr_t)(how & 32 ? "color_jitter" : "decode");
        job.stages = stage_pointers;
        job.n_stages = 1;
        node.n_workers = input_byte(input);
        node.read_depth = input_byte(input);
        rank.n_slots = input_byte(input);
        fill_numbers(NUMBERS, sizeof(NUMBERS) / sizeof(NUMBERS[0]), input);
        jobs->jobs = job_pointers;
        jobs->n_jobs = how & 64 ? 0 : 1;
        jobs->node = how & 128 ? NULL : &node;
        jobs->next = (uint32_t)input_number(input);
}

static bool answer_other(int fd, const Dlp__Request *request, struct input *input) {
        static char NAMES[][16] = { "a", "", "\xff", "long long long" },
                    *names[] = { NAMES[0], NAMES[1], NAMES[2], NAMES[3] };
        Dlp__ClassesReply classes = DLP__CLASSES_REPLY__INIT;
        Dlp__SamplesReply samples = DLP__SAMPLES_REPLY__INIT;
        Dlp__JobsReply jobs = DLP__JOBS_REPLY__INIT;
        Dlp__Sought sought = DLP__SOUGHT__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        reply.id = request->id;
        if (request->body_case == DLP__REQUEST__BODY_CLASSES) {
                reply.body_case = DLP__REPLY__BODY_CLASSES;
                reply.classes = &classes;
                classes.names = names;
                classes.n_names = input_below(input, 5);
                classes.n_classes = input_byte(input) & 1 ? (uint32_t)input_number(input) : (uint32_t)classes.n_names;
                classes.next = (uint32_t)input_number(input);
        } else if (request->body_case == DLP__REQUEST__BODY_SAMPLES) {
                reply.body_case = DLP__REPLY__BODY_SAMPLES;
                reply.samples = &samples;
                samples.names = names;
                samples.n_names = input_below(input, 5);
                samples.numbers.data = (uint8_t *)NAMES;
                samples.numbers.len = input_below(input, sizeof(NAMES));
                samples.dtype = input_byte(input);
        } else if (request->body_case == DLP__REQUEST__BODY_JOBS) {
                reply.body_case = DLP__REPLY__BODY_JOBS;
                reply.jobs = &jobs;
                add_job(&jobs, input);
        } else {
                reply.body_case = DLP__REPLY__BODY_SOUGHT;
                reply.sought = &sought;
                sought.stream = input_byte(input);
        }
        return send_reply(fd, &reply, NULL, 0, input);
}

static bool answer_error(int fd, uint64_t id, struct input *input) {
        Dlp__Error error = DLP__ERROR__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        char text[100];

        error.code = (uint32_t)input_number(input);
        error.retry = input_byte(input) & 1;
        error.text = (char *)(uintptr_t)input_text(input, text, sizeof(text));
        reply.id = input_byte(input) & 1 ? 0 : id;
        reply.error = &error;
        return send_reply(fd, &reply, NULL, 0, input) && reply.id == id;
}

/* Returns false to hang up. After the script's end it does: whoever waits for an answer is not kept. */
static bool answer(int fd, const Dlp__Request *request, struct input *input) {
        const uint8_t *bytes;
        size_t n_bytes;

        if (input->n == 0)
                return false;
        switch (input_below(input, 8)) {
        default:
                if (request->body_case == DLP__REQUEST__BODY_ATTACH)
                        return answer_attach(fd, request->id, input);
                return answer_other(fd, request, input);
        case 5:
                return answer_error(fd, request->id, input);
        case 6: /* wake-ups and farewells, then whatever comes next */
                dlp_frame_send(fd, "", 1, NULL, 0, MSG_DONTWAIT);
                bytes = input_bytes(input, input_byte(input), &n_bytes);
                dlp_frame_send(fd, bytes, n_bytes, NULL, 0, MSG_DONTWAIT);
                return answer(fd, request, input);
        case 7:
                return false;
        }
}

static void serve(int fd) {
        static uint8_t packet[DLP_PACKET_MAX];

        for (bool goes_on = true; goes_on;) {
                ssize_t n = dlp_frame_receive(fd, packet, sizeof(packet), NULL, 0, NULL, 0);
                Dlp__Request *request = n > 0 ? dlp__request__unpack(NULL, (size_t)n, packet) : NULL;

                if (n == -EINTR)
                        continue;
                if (!request)
                        break;
                pthread_mutex_lock(&lock);
                goes_on = answer(fd, request, &script);
                pthread_mutex_unlock(&lock);
                dlp__request__free_unpacked(request, NULL);
        }
        close(fd);
}

static void *daemon_main(void *nothing) {
        for (;;) {
                int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

                if (fd >= 0)
                        serve(fd);
        }
        return NULL;
}

/* ---- the client ---------------------------------------------------------------------------------------------- */

static volatile uint64_t sum; /* of what was read, so that no read is left out */

static void read_bytes(const void *bytes, uint64_t n_bytes) {
        const uint8_t *at = bytes;

        for (uint64_t i = 0; i < n_bytes; i += i + 64 < n_bytes ? 64 : 1)
                sum += at[i];
}

/* The first and the last element along each dimension are enough: what lies between them is mapped, too. */
static void read_tensor(const struct dlc_tensor *tensor, uint32_t n_samples) {
        const uint8_t *last = tensor->data;

        if (strlen(tensor->name) >= DLP_TENSOR_NAME_MAX || !dlc_dtype_name(tensor->dtype))
                abort();
        if (tensor->places) {
                for (uint32_t i = 0; i < n_samples; i++)
                        read_bytes((const uint8_t *)tensor->data + tensor->places[i].offset, tensor->places[i].n_bytes);
                return;
        }
        for (uint32_t i = 0; i < tensor->n_dims; i++)
                last += (tensor->shape[i] - 1) * tensor->strides[i];
        read_bytes(tensor->data, dlc_dtype_bytes(tensor->dtype));
        read_bytes(last, dlc_dtype_bytes(tensor->dtype));
}

/* All of what a device would be told to read, with operations that it can do. */
static void read_operations(const struct dlc_left_form *form, const struct dlc_tensor *tensor) {
        if (strcmp(form->tensor, tensor->name) != 0 || form->operations_at == 0)
                return;
        for (int64_t i = 0; i < tensor->shape[0]; i++) {
                const uint8_t *sample = (const uint8_t *)tensor->data + i * tensor->strides[0];
                struct dlc_left_operations left;

                memcpy(&left, sample + form->operations_at, sizeof(left));
                if (left.n_operations > DLC_LEFT_OPERATIONS_MAX || left.flips > 3)
                        abort();
                read_bytes(sample, (uint64_t)tensor->strides[0]);
        }
}

static void read_batch(struct dlc_loader *loader, const struct dlc_batch *batch) {
        struct dlc_left_form form;

        for (uint32_t k = 0; dlc_get_left_form(loader, k, &form, sizeof(form)) == 0; k++)
                for (uint32_t i = 0; i < batch->n_tensors; i++)
                        read_operations(&form, &batch->tensors[i]);
        for (uint32_t i = 0; i < batch->n_tensors; i++)
                read_tensor(&batch->tensors[i], batch->n_samples);
        read_bytes(batch->indices, batch->n_samples * sizeof(int64_t));
        if (batch->substitutes)
                read_bytes(batch->substitutes, batch->n_samples * sizeof(int64_t));
        for (uint32_t i = 0; i <= batch->n_samples; i++) {
                const char *text = dlc_sample_error(loader, batch, i);

                if (text && strlen(text) >= DLP_SLOT_ERROR_BYTES)
                        abort();
        }
}

static void read_diagnosis(const struct dlc_diagnosis *diagnosis) {
        read_bytes(diagnosis->limit, strlen(diagnosis->limit) + 1);
        read_bytes(diagnosis->verdict, strlen(diagnosis->verdict) + 1);
        read_bytes(diagnosis->advice, strlen(diagnosis->advice) + 1);
        if (!(diagnosis->wait_share >= 0 && diagnosis->wait_share <= 1) || !isfinite(diagnosis->samples_per_second) ||
            !isfinite(diagnosis->predicted_samples_per_second) || !isfinite(diagnosis->seconds))
                abort();
}

static void read_order(struct dlc_loader *loader) {
        int64_t samples[64];
        uint64_t n, n_all;

        if (dlc_epoch_length(loader, 1, &n, &n_all) == 0 && n <= 64 && dlc_epoch_order(loader, 1, samples, n) == 0)
                read_bytes(samples, n * sizeof(*samples));
}

static void act(struct dlc_loader *loader, struct input *input, const struct dlc_batch **held, uint32_t *n_held) {
        const uint64_t listed[3] = { 0, 1, N_SAMPLES };
        const char *const *names;
        uint64_t epoch, position, numbers[3];
        const struct dlc_batch *batch;
        struct dlc_diagnosis diagnosis;
        struct dlc_part part;
        uint32_t dtype;

        switch (input_below(input, 8)) {
        case 0:
        case 1:
                if (*n_held < BATCHES_MAX && dlc_next(loader, input_byte(input) & 1, &batch) == 0) {
                        read_batch(loader, batch);
                        held[(*n_held)++] = batch;
                }
                break;
        case 2:
                if (*n_held > 0 && dlc_release(loader, held[--*n_held]) < 0)
                        abort();
                break;
        case 3:
                dlc_seek(loader, input_below(input, 3), input_below(input, N_SAMPLES + 2));
                break;
        case 4:
                for (uint32_t i = 0; dlc_get_part(loader, i, &part, sizeof(part)) == 0; i++)
                        read_bytes(part.name, strlen(part.name) + 1);
                for (int64_t i = 0, n = dlc_n_classes(loader); i < n; i++)
                        read_bytes(dlc_class_name(loader, (uint64_t)i), 1);
                if (dlc_sample_names(loader, listed, 3, &names) == 0)
                        for (uint32_t i = 0; i < 3; i++)
                                read_bytes(names[i], strlen(names[i]) + 1);
                if (dlc_sample_numbers(loader, "label", listed, 3, numbers, &dtype) == 0)
                        read_bytes(numbers, 3 * dlc_dtype_bytes(dtype));
                break;
        case 5:
                dlc_get_cursor(loader, &epoch, &position);
                if (dlc_diagnose(loader, &diagnosis, sizeof(diagnosis)) == 0)
                        read_diagnosis(&diagnosis);
                break;
        case 6:
                dlc_set_epoch(loader, input_below(input, 3));
                read_order(loader);
                break;
        default:
                for (uint32_t i = 0; i < *n_held; i++)
                        read_batch(loader, held[i]);
        }
        if (strlen(dlc_error(loader)) > 4096 || strlen(dlc_last_error()) > 4096)
                abort();
}

static void run(struct input *input) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        const struct dlc_batch *held[BATCHES_MAX];
        struct dlc_loader *loader = NULL;
        uint8_t how = input_byte(input);
        uint32_t n_held = 0;

        options.dataset = "numbers";
        options.socket = socket_path;
        options.batch_size = BATCH_SIZE;
        options.job = "job";
        options.rank = 0;
        options.world_size = 1;
        options.open_timeout_ms = 0;
        options.on_error = how & 2 ? "skip" : "fail";
        options.on_restart = how & 1 ? "wait" : "raise";
        options.restart_timeout_ms = 1;
        options.leave_forms = how & 8;
        options.leave_operations = how & 16;
        if (dlc_open(&options, &loader) < 0) {
                if (!dlc_last_error()[0])
                        abort();
                return;
        }
        for (uint32_t i = 0; i < ACTIONS_MAX && input->n > 0; i++)
                act(loader, input, held, &n_held);
        if (how & 4) {
                dlc_detach(loader);
                for (uint32_t i = 0; i < n_held; i++)
                        read_bytes(held[i]->indices, sizeof(int64_t));
        }
        dlc_close(loader);
}

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments) {
        struct sockaddr_un address;
        char path[PATH_MAX];
        pthread_t thread;

        signal(SIGPIPE, SIG_IGN);
        snprintf(socket_path, sizeof(socket_path), "%.100s", folder_path("socket", path));
        listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (listen_fd < 0 || dlp_socket_address(socket_path, &address) < 0 ||
            bind(listen_fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(listen_fd, 16) < 0 ||
            pthread_create(&thread, NULL, daemon_main, NULL) != 0)
                _exit(2);
        return 0;
}

/* The first byte says how much of the rest is the client's; the daemon has what follows. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct input client = { data, n_bytes };
        size_t n_client = input_byte(&client);

        if (n_client > client.n)
                n_client = client.n;
        pthread_mutex_lock(&lock);
        script = (struct input){ client.at + n_client, client.n - n_client };
        pthread_mutex_unlock(&lock);
        client.n = n_client;
        run(&client);
        pthread_mutex_lock(&lock); /* the data are gone after this */
        script = (struct input){ 0 };
        pthread_mutex_unlock(&lock);
        return 0;
}
