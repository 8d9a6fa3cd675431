/* A daemon and its clients, step by step as the input says: requests, damaged ones, descriptors, clients that hang up,
 * do not read, fork, die, scribble on the page that they share.
 *
 * After each input everybody hangs up, and all that they held has to come back; then the next client is served. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/ctl/ctl_server.h"
#include "proto/base/cleanup.h"
#include "proto/frame.h"
#include "proto/layout.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/outside.h"

#define ACTIONS_MAX 160u
#define PROCESSES   2u /* children an input: a fork is slow */
#define RESTARTS    2u
#define FLOOD       48u /* requests whose replies are not read: more than a socket's buffer holds */
#define WORKERS_TOP 3u  /* a daemon may be asked for 4,096, or for as many as there are CPUs */

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static struct inside inside;
static struct connection connections[CONNECTIONS];
static uint32_t n_processes, n_restarts;

/* ---- requests ------------------------------------------------------------------------------------------------ */

static const char *choose_text(struct input *input, const char *const *texts, uint32_t n_texts, char *room,
                               size_t size) {
        uint8_t choice = input_byte(input);

        return choice >= 0xf0 ? input_text(input, room, size) : texts[choice % n_texts];
}

#define CHOOSE_TEXT(input, room, ...)                                                                                  \
        ((char *)(uintptr_t)choose_text((input), (const char *const[]){ __VA_ARGS__ },                                 \
                                        sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), (room),         \
                                        sizeof(room)))

static uint64_t small_or_number(struct input *input, uint64_t plain, uint64_t top) {
        uint8_t choice = input_byte(input);

        if (choice < 0xc0)
                return choice == 0 ? plain : choice % (top + 1);
        return input_number(input);
}

/* ---- samplers and their columns ------------------------------------------------------------------------------ */

#define COLUMNS       3u /* one more than there is memory for */
#define COLUMN_VALUES 12u

/* The memory of two columns, made as `how` says: 0 as it should be, else one seal less, a hole, none, or a terminal. */
static int columns_memory(uint32_t how) {
        static const int SEALS[] = { F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW };
        double weights[COLUMN_VALUES];
        int64_t numbers[COLUMN_VALUES];
        int fd, seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

        if (how == 5)
                return -1;
        if (how == 6)
                return fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        for (uint32_t i = 0; i < COLUMN_VALUES; i++) {
                weights[i] = 0.5 * i;
                numbers[i] = (i * 5) % COLUMN_VALUES;
        }
        fd = memfd_create("columns", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || pwrite(fd, weights, sizeof(weights), 0) < 0 ||
            pwrite(fd, numbers, sizeof(numbers), sizeof(weights)) < 0 || (how == 4 && ftruncate(fd, 1 << 20) < 0))
                abort();
        if (how > 0 && how < 4)
                seals &= ~SEALS[how - 1];
        if (fcntl(fd, F_ADD_SEALS, seals) < 0)
                abort();
        return fd;
}

/* Returns the memory that is to be sent along, or -1. */
static int fill_columns(Dlp__Attach *attach, struct input *input) {
        static Dlp__Column columns[COLUMNS];
        static Dlp__Column *pointers[COLUMNS];
        static char names[COLUMNS][300];
        static const uint32_t DTYPES[] = { DLP_DTYPE_FLOAT64, DLP_DTYPE_INT64 };

        attach->n_columns = small_or_number(input, 2, COLUMNS) % (COLUMNS + 1);
        attach->columns = pointers;
        for (uint32_t i = 0; i < attach->n_columns; i++) {
                dlp__column__init(&columns[i]);
                pointers[i] = &columns[i];
                columns[i].name = i % 2 ? CHOOSE_TEXT(input, names[i], "i", "w", "")
                                        : CHOOSE_TEXT(input, names[i], "w", "i", "label");
                columns[i].dtype = (uint32_t)small_or_number(input, DTYPES[i % 2], 20);
                columns[i].offset = small_or_number(input, i * sizeof(double) * COLUMN_VALUES, 255);
                columns[i].n_values = small_or_number(input, COLUMN_VALUES, 13);
        }
        return columns_memory(input_byte(input) % 8 % 7);
}

static int fill_sampler(Dlp__Attach *attach, struct input *input) {
        static char sampler[5000], digest[300];

        attach->sampler = CHOOSE_TEXT(
                input, sampler, "weighted(column=w)", "subset(column=i)", "random(replacement=true, n=30)",
                "random_split(0.5, 0.5, part=1)", "repeat(3)", "length_grouped(i)", "stratified(label)",
                "buckets(column=i, edges=4:12, sizes=4:2)", "max_tokens(column=i, tokens=20)",
                "grouped(column=i, edges=3:6)", "mix(files=1, pictures=2, n=20)", "mix(files=1, pictures=0, how=blend)",
                "repeat_factor(i, t=0.5)", "class_balanced(i, n=9)", "curriculum(w, stages=0.5, epochs=3)",
                "numpy_shuffle(seed=1)", "weighted(column=w, n=3) buckets(column=i, edges=12, sizes=1000000)",
                "random(n=1000000000000)");
        attach->columns_digest = CHOOSE_TEXT(input, digest, "one", "two", "");
        return fill_columns(attach, input);
}

/* ---- bodies -------------------------------------------------------------------------------------------------- */

/* Returns a descriptor to send along, which is then closed, or -1. */
static int fill_attach(Dlp__Attach *attach, struct input *input) {
        static char dataset[200], job[200], pipeline[5000], partition[64], order[64], on_error[64];
        static const char *const DEALINGS[] = { "", "batch", "chunk", "strided" };
        /* Of none of them the node is known here. */
        static const char *const DEVICES[] = { "", "0000:00:00.0", "", "FFFFFFFF:FF:1F.7" };
        static const double SHARES[] = { 0, 0.5, 1, 3, -1, 1e300 };

        attach->dataset = CHOOSE_TEXT(input, dataset, "files", "pictures", "gone", "nothing", "", "files + pictures",
                                      "pictures + files", "files + gone", " +  + ", "files + files");
        attach->job = CHOOSE_TEXT(input, job, "one", "two", "three", "");
        attach->pipeline = CHOOSE_TEXT(input, pipeline, "raw", "decode", "random_resized_crop(8) hflip(0.5)",
                                       "center_crop(4)", "resize(8) to(float32, chw)", "resize(5000, 5000)", "none(");
        attach->world = (uint32_t)small_or_number(input, 1, 4);
        attach->rank = (uint32_t)small_or_number(input, 0, 4);
        attach->batch_size = (uint32_t)small_or_number(input, 2, 40);
        attach->n_slots = (uint32_t)small_or_number(input, 0, 8);
        attach->on_error = CHOOSE_TEXT(input, on_error, "skip", "substitute", "fail", "");
        attach->takes_replays = true;
        attach->partition = CHOOSE_TEXT(input, partition, "pad", "drop", "exact", "");
        attach->order = CHOOSE_TEXT(input, order, "torch", "tdperm", "buffer", "blocks(window=3)", "");
        attach->first_epoch = small_or_number(input, 0, 3);
        attach->first_position = small_or_number(input, 0, 12);
        attach->first_step = small_or_number(input, 0, 3);
        attach->n_epochs = small_or_number(input, 1, 3);
        attach->seed = input_byte(input);
        attach->shuffle = attach->seed & 1;
        attach->drop_last = attach->seed & 2;
        attach->leave_forms = attach->seed & 0x10;
        attach->near_device = (char *)(uintptr_t)DEVICES[attach->seed >> 4 & 3];
        attach->leave_operations = attach->seed >> 5 & 3;
        attach->dealing = (char *)(uintptr_t)DEALINGS[attach->seed >> 2 & 3];
        attach->max_errors = SHARES[input_below(input, sizeof(SHARES) / sizeof(SHARES[0]))];
        return attach->seed >= 0xc0 ? fill_sampler(attach, input) : -1;
}

struct bodies {
        Dlp__Attach attach;
        Dlp__Seek seek;
        Dlp__StatusRequest status;
        Dlp__DatasetsRequest datasets;
        Dlp__JobsRequest jobs;
        Dlp__ErrorsRequest errors;
        Dlp__ClassesRequest classes;
        Dlp__WorkersRequest workers;
        Dlp__SamplesRequest samples;
        Dlp__MetricsRequest metrics;
        Dlp__ReplayRequest replay;
        Dlp__PlacesRequest places;
};

/* Returns a descriptor to send along, or -1. */
static int fill_body(Dlp__Request *request, struct bodies *bodies, uint32_t kind, struct input *input) {
        static char dataset[200];
        static uint64_t listed[3];
        int fd = -1;

        switch (kind) {
        case 0:
                dlp__attach__init(&bodies->attach);
                fd = fill_attach(&bodies->attach, input);
                request->body_case = DLP__REQUEST__BODY_ATTACH;
                request->attach = &bodies->attach;
                break;
        case 1:
                dlp__seek__init(&bodies->seek);
                bodies->seek.epoch = small_or_number(input, 0, 3);
                bodies->seek.step = small_or_number(input, 0, 8);
                bodies->seek.position = small_or_number(input, 0, 12);
                request->body_case = DLP__REQUEST__BODY_SEEK;
                request->seek = &bodies->seek;
                break;
        case 2:
                dlp__status_request__init(&bodies->status);
                request->body_case = DLP__REQUEST__BODY_STATUS;
                request->status = &bodies->status;
                break;
        case 3:
                dlp__datasets_request__init(&bodies->datasets);
                bodies->datasets.first = (uint32_t)small_or_number(input, 0, 4);
                request->body_case = DLP__REQUEST__BODY_DATASETS;
                request->datasets = &bodies->datasets;
                break;
        case 4:
                dlp__jobs_request__init(&bodies->jobs);
                bodies->jobs.first = (uint32_t)small_or_number(input, 0, 4);
                request->body_case = DLP__REQUEST__BODY_JOBS;
                request->jobs = &bodies->jobs;
                bodies->jobs.own = bodies->jobs.first % 3 == 2;
                break;
        case 5:
                dlp__errors_request__init(&bodies->errors);
                bodies->errors.dataset = CHOOSE_TEXT(input, dataset, "", "pictures", "files", "gone", "nothing");
                bodies->errors.first = small_or_number(input, 0, 4);
                request->body_case = DLP__REQUEST__BODY_ERRORS;
                request->errors = &bodies->errors;
                break;
        case 6:
                dlp__classes_request__init(&bodies->classes);
                bodies->classes.first = (uint32_t)small_or_number(input, 0, 3);
                request->body_case = DLP__REQUEST__BODY_CLASSES;
                request->classes = &bodies->classes;
                break;
        case 7:
                dlp__samples_request__init(&bodies->samples);
                bodies->samples.field = CHOOSE_TEXT(input, dataset, "", "label", "image", "nothing");
                for (size_t i = 0; i < 3; i++)
                        listed[i] = small_or_number(input, 0, 12);
                bodies->samples.blocks = input_below(input, 4) == 0;
                bodies->samples.samples = listed;
                bodies->samples.n_samples = input_below(input, 4);
                request->body_case = DLP__REQUEST__BODY_SAMPLES;
                request->samples = &bodies->samples;
                break;
        case 8:
                dlp__metrics_request__init(&bodies->metrics);
                bodies->metrics.text = small_or_number(input, 0, 4);
                bodies->metrics.first = small_or_number(input, 0, 40000);
                request->body_case = DLP__REQUEST__BODY_METRICS;
                request->metrics = &bodies->metrics;
                break;
        case 9:
                dlp__replay_request__init(&bodies->replay);
                bodies->replay.job = CHOOSE_TEXT(input, dataset, "one", "two", "three", "");
                bodies->replay.n_batches = (uint32_t)small_or_number(input, 0, 20);
                bodies->replay.end = input_byte(input) & 1;
                request->body_case = DLP__REQUEST__BODY_REPLAY;
                request->replay = &bodies->replay;
                break;
        case 10:
                dlp__places_request__init(&bodies->places);
                bodies->places.dataset = CHOOSE_TEXT(input, dataset, "", "pictures", "files", "gone", "nothing");
                bodies->places.first = small_or_number(input, 0, 12);
                bodies->places.blocks = input_byte(input) & 1;
                request->body_case = DLP__REQUEST__BODY_PLACES;
                request->places = &bodies->places;
                break;
        default:
                dlp__workers_request__init(&bodies->workers);
                bodies->workers.change = input_byte(input) & 1;
                bodies->workers.n_workers = 1 + input_below(input, WORKERS_TOP);
                request->body_case = DLP__REQUEST__BODY_WORKERS;
                request->workers = &bodies->workers;
        }
        return fd;
}

/* It may ask for thousands of threads: that is allowed, and slow. */
static bool asks_for_many_workers(const uint8_t *bytes, size_t n_bytes) {
        Dlp__Request *request = dlp__request__unpack(NULL, n_bytes, bytes);
        bool asks = request && request->body_case == DLP__REQUEST__BODY_WORKERS && request->workers->change &&
                    (request->workers->n_workers == 0 || request->workers->n_workers > WORKERS_TOP);

        if (request)
                dlp__request__free_unpacked(request, NULL);
        return asks;
}

static void damage(uint8_t *bytes, size_t *n_bytes, struct input *input) {
        for (uint32_t n = 1 + input_below(input, 4); n > 0 && *n_bytes > 0; n--)
                bytes[(input_byte(input) + 256u * (n & 1u)) % *n_bytes] ^= (uint8_t)(1 + input_byte(input));
        if (input_byte(input) & 1)
                *n_bytes = input_byte(input) % (*n_bytes + 1);
}

/* `how`: bit 0 another version of the protocol, bit 1 damaged, bit 2 with descriptors. */
static void request(struct connection *connection, uint32_t kind, uint8_t how, struct input *input) {
        static uint8_t bytes[2 * DLP_PACKET_MAX];
        Dlp__Request message = DLP__REQUEST__INIT;
        _cleanup_(closep) int fd = -1;
        struct bodies bodies;
        size_t n_bytes;

        message.protocol = how & 1 ? (uint32_t)input_number(input) : DLP_PROTOCOL_VERSION;
        message.id = ++connection->id;
        message.client = (char *)(uintptr_t)(how & 8 ? "\x1b[31m\xff" : "fuzz");
        fd = fill_body(&message, &bodies, kind, input);
        n_bytes = dlp__request__pack(&message, bytes);
        if (how & 2) {
                damage(bytes, &n_bytes, input);
                if (asks_for_many_workers(bytes, n_bytes))
                        return;
        }
        connection_send(connection, bytes, n_bytes, fd < 0 ? STDERR_FILENO : fd,
                        how & 4 ? 1 + input_below(input, 8) : fd >= 0);
}

static void send_bytes(struct connection *connection, struct input *input) {
        static const uint8_t ZEROES[DLP_PACKET_MAX + 2];
        const uint8_t *bytes;
        size_t n_bytes;

        if (input_byte(input) & 1) { /* around the largest packet */
                connection_send(connection, ZEROES, DLP_PACKET_MAX - 2 + input_below(input, 5), -1, 0);
                return;
        }
        bytes = input_bytes(input, input_byte(input), &n_bytes);
        if (!asks_for_many_workers(bytes, n_bytes))
                connection_send(connection, bytes, n_bytes, -1, 0);
}

static void flood(struct connection *connection, struct input *input) {
        static const uint32_t KINDS[] = { 2, 3, 4, 5 };
        uint32_t kind = KINDS[input_below(input, 4)], n = input_below(input, FLOOD);
        struct input nothing = { 0 };

        while (n-- > 0) {
                request(connection, kind, 0, &nothing);
                if (n % 8 == 0)
                        inside_step(&inside);
        }
}

/* As the library does: asks, waits, maps. */
static void attach_well(struct connection *connection, struct input *input) {
        if (connection->fd < 0)
                connection_open(connection, &inside, false);
        request(connection, 0, 0, input);
        if (connection->is_deaf)
                return;
        connection_await(connection, &inside);
        while (connection_read(connection))
                ;
}

/* ---- what is done with a ring -------------------------------------------------------------------------------- */

/* What people are shown: batches taken and waited for. */
static void claim(struct dlp_client_page *page, uint64_t value) {
        atomic_store(&page->n_taken, value);
        atomic_store(&page->n_batches, value + 1);
        atomic_store(&page->n_waits, value);
        atomic_store(&page->wait_ns, value << 32);
        atomic_store(&page->waiting_since_ns, value << 20);
        atomic_store(&page->first_ns, value << 16);
        atomic_store(&page->waits[value % DLP_WAIT_BUCKETS], value);
}

static void scribble(struct connection *connection, struct input *input) {
        struct dlp_client_page *page = connection_page(connection);
        uint32_t where = input_below(input, DLP_SLOTS_MAX + 4);
        uint64_t value = small_or_number(input, 0, 20);

        if (!page)
                return;
        if (where == 0)
                atomic_store(&page->waiting, (uint32_t)value);
        else if (where == 1)
                claim(page, value);
        else if (where == 2) /* anywhere in the slots, which are its own */
                memset(connection->payload + DLP_CLIENT_PAGE_BYTES, (int)value,
                       connection->payload_bytes > 65536 ? 4096 : connection->payload_bytes - DLP_CLIENT_PAGE_BYTES);
        else
                atomic_store(&page->released[(where - 3) % DLP_SLOTS_MAX], value);
}

/* Takes the next batch, if it is there, looks at it, and perhaps gives it back. */
static void eat(struct connection *connection, struct input *input) {
        struct dlp_client_page *page = connection_page(connection);
        uint8_t how = input_byte(input);
        uint32_t idx_slot;

        if (!page)
                return;
        for (int i = 0; i < (how & 2 ? 200 : 1) && !dlp_ring_ready(connection->control, connection->sequence); i++) {
                inside_step(&inside);
                usleep(20);
        }
        if (!dlp_ring_ready(connection->control, connection->sequence))
                return;
        idx_slot = dlp_ring_slot(connection->control, connection->sequence);
        if (idx_slot >= connection->control->n_slots ||
            dlp_slot_record(connection->control, idx_slot)->sequence != connection->sequence)
                abort();
        dlp_ring_take(page, connection->sequence);
        if (!(how & 1) && dlp_ring_release(connection->control, page, connection->sequence, idx_slot) &&
            write(connection->release_fd, &(uint64_t){ 1 }, 8) < 0 && errno != EAGAIN)
                abort();
        connection->sequence++;
}

/* What a client may try with the descriptors that it was given. Nothing of it may trouble the daemon. */
static void abuse_descriptors(struct connection *connection, struct input *input) {
        int fd = input_byte(input) & 1 ? connection->payload_fd : connection->control_fd;
        static const int SEALS[] = { F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL };
        uint64_t word = UINT64_MAX - 1;

        if (!connection->control)
                return;
        switch (input_below(input, 7)) {
        case 0:
                if (ftruncate(fd, (off_t)small_or_number(input, 0, 200)) == 0)
                        abort();
                break;
        case 1:
                if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20) == 0 &&
                    fd == connection->control_fd)
                        abort();
                break;
        case 2:
                if (pwrite(connection->control_fd, "x", 1, input_byte(input)) == 1)
                        abort();
                break;
        case 3:
                if (fcntl(fd, F_ADD_SEALS, SEALS[input_below(input, 4)]) == 0)
                        abort();
                break;
        case 4:
                fcntl(connection->release_fd, F_SETFL, input_byte(input) & 1 ? 0 : O_NONBLOCK);
                break;
        case 5:
                fcntl(connection->release_fd, F_SETFL, O_NONBLOCK);
                if (write(connection->release_fd, &word, sizeof(word)) < 0 && errno != EAGAIN)
                        abort();
                break;
        default:
                if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, connection->control_fd, 0) != MAP_FAILED)
                        abort();
        }
}

/* ---- actions ------------------------------------------------------------------------------------------------- */

static void open_by_other(struct connection *connection) {
        if (n_processes++ < PROCESSES)
                connection_open(connection, &inside, true);
}

static void restart(struct input *input) {
        if (n_restarts++ >= RESTARTS)
                return;
        if (input_byte(input) & 1) {
                server_drain(&inside.server);
                for (uint32_t n = input_below(input, 8); n > 0; n--)
                        inside_step(&inside);
                server_is_busy(&inside.server);
        }
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                if (input_byte(input) & 1)
                        connection_drop(&connections[i]);
        inside_restart(&inside);
}

static void hang_up(struct connection *connection, struct input *input) {
        switch (input_below(input, 6)) {
        case 0:
                connection_drop(connection);
                break;
        case 1:
                shutdown(connection->fd, SHUT_WR);
                break;
        case 2:
                shutdown(connection->fd, SHUT_RD);
                break;
        case 3: /* somebody else has it still */
                if (connection->copy < 0 && connection->fd >= 0)
                        connection->copy = fcntl(connection->fd, F_DUPFD_CLOEXEC, 0);
                break;
        case 4:
                connection_end_process(connection);
                break;
        default:
                connection_unmap(connection);
        }
}

static void act(struct input *input) {
        uint8_t action = input_byte(input);
        struct connection *connection = &connections[input_below(input, CONNECTIONS)];

        switch (action % 16) {
        case 0:
        case 1:
                attach_well(connection, input);
                break;
        case 2:
                if (connection->fd < 0)
                        connection_open(connection, &inside, false);
                break;
        case 3:
                open_by_other(connection);
                break;
        case 4:
        case 5:
                request(connection, input_below(input, 12), 0, input);
                break;
        case 6:
                request(connection, input_below(input, 12), input_byte(input), input);
                break;
        case 7:
                send_bytes(connection, input);
                break;
        case 8:
                connection_read(connection);
                break;
        case 9:
                hang_up(connection, input);
                break;
        case 10:
                flood(connection, input);
                break;
        case 11:
                scribble(connection, input);
                break;
        case 12:
        case 13:
                eat(connection, input);
                break;
        case 14:
                if (action & 16)
                        restart(input);
                else
                        abuse_descriptors(connection, input);
                break;
        default:
                for (uint32_t n = input_below(input, 8); n > 0; n--)
                        inside_step(&inside);
        }
        if (!(action & 32))
                inside_step(&inside);
}

/* The daemon serves whoever comes next, whatever the last ones did. */
static void serve_next(void) {
        struct connection next;
        struct input nothing = { 0 };

        connection_init(&next);
        connection_open(&next, &inside, false);
        request(&next, 2, 0, &nothing);
        connection_await(&next, &inside);
        if (!connection_read(&next))
                abort();
        connection_drop(&next);
}

int LLVMFuzzerInitialize(int *n_arguments, char ***arguments) {
        outside_prepare();
        inside_start(&inside);
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                connection_init(&connections[i]);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct input input = { data, n_bytes };

        n_processes = n_restarts = 0;
        for (uint32_t i = 0; i < ACTIONS_MAX && input.n > 0; i++)
                act(&input);
        for (uint32_t i = 0; i < CONNECTIONS; i++)
                connection_drop(&connections[i]);
        inside_settle(&inside);
        serve_next();
        inside_settle(&inside);
        return 0;
}
