/* The contract: layout, packets and the ring, each proven from both of its sides. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "proto/layout.h"
#include "proto/ring.h"
#include "tests/support/suite.h"

/* ---- layout -------------------------------------------------------------------------------------------------- */

static struct dlp_control *make_control(const struct dlp_geometry *geometry, uint64_t *ret_control_bytes,
                                        uint64_t *ret_payload_bytes) {
        struct dlp_control *control;
        uint64_t n_bytes;

        ck_assert_int_eq(dlp_layout_make(geometry, NULL, &n_bytes, ret_payload_bytes), 0);
        control = aligned_alloc(4096, n_bytes);
        ck_assert_ptr_nonnull(control);
        memset(control, 0, n_bytes);
        ck_assert_int_eq(dlp_layout_make(geometry, control, ret_control_bytes, ret_payload_bytes), 0);
        ck_assert_uint_eq(n_bytes, *ret_control_bytes);
        return control;
}

static const struct dlp_geometry GEOMETRIES[] = {
        { .n_slots = 1, .batch_size = 1, .slot_bytes = 1 },
        { .n_slots = 4, .batch_size = 64, .slot_bytes = 64 * 224 * 224 * 3 },
        { .n_slots = 4, .batch_size = 64, .slot_bytes = 1 << 20, .n_ragged = 1 },
        { .n_slots = DLP_SLOTS_MAX, .batch_size = 7, .slot_bytes = 4097, .n_ragged = DLP_TENSORS_MAX },
        { .n_slots = DLP_SLOTS_MAX, .batch_size = DLP_BATCH_MAX, .slot_bytes = DLP_PAYLOAD_MAX / 128 },
};

/* Everything that a record's accessor gives lies in the control page, and no two overlap. */
START_TEST(each_part_of_a_ring_has_its_own_place) {
        const struct dlp_geometry *geometry = &GEOMETRIES[_i];
        uint64_t control_bytes, payload_bytes, end = sizeof(struct dlp_control);
        struct dlp_control *control = make_control(geometry, &control_bytes, &payload_bytes);
        const uint8_t *base = (const uint8_t *)control;

        ck_assert_int_eq(dlp_layout_check(control, control_bytes, payload_bytes), 0);
        for (uint32_t i = 0; i < geometry->n_slots; i++) {
                ck_assert_uint_ge((uint64_t)((uint8_t *)dlp_slot_record(control, i) - base), end);
                end = (uint64_t)((uint8_t *)(dlp_slot_record(control, i) + 1) - base);
        }
        for (uint32_t i = 0; i < geometry->n_slots; i++) {
                struct dlp_columns columns = dlp_columns(control, i);

                ck_assert_uint_ge((uint64_t)((uint8_t *)columns.indices - base), end);
                ck_assert_ptr_eq(columns.substitutes, columns.indices + geometry->batch_size);
                ck_assert_ptr_eq(columns.idx_errors, columns.substitutes + geometry->batch_size);
                end = (uint64_t)((uint8_t *)(columns.idx_errors + geometry->batch_size) - base);
        }
        for (uint32_t i = 0; i < geometry->n_slots; i++) {
                for (uint32_t k = 0; k < geometry->n_ragged; k++) {
                        ck_assert_uint_ge((uint64_t)((uint8_t *)dlp_places(control, i, k) - base), end);
                        end = (uint64_t)((uint8_t *)(dlp_places(control, i, k) + geometry->batch_size) - base);
                }
                ck_assert_ptr_null(dlp_places(control, i, geometry->n_ragged));
        }
        for (uint32_t i = 0; i < geometry->n_slots; i++)
                for (uint32_t k = 0; k < DLP_SLOT_ERRORS_MAX; k++) {
                        ck_assert_uint_ge((uint64_t)((uint8_t *)dlp_error_text(control, i, k) - base), end);
                        end = (uint64_t)((uint8_t *)dlp_error_text(control, i, k) - base) + DLP_SLOT_ERROR_BYTES;
                }
        ck_assert_uint_le(end, control_bytes);

        end = DLP_CLIENT_PAGE_BYTES;
        for (uint32_t i = 0; i < geometry->n_slots; i++) {
                ck_assert_uint_ge(dlp_slot_offset(control, i), end);
                ck_assert_uint_eq(dlp_slot_offset(control, i) % DLP_SLOT_ALIGN, 0);
                end = dlp_slot_offset(control, i) + geometry->slot_bytes;
        }
        ck_assert_uint_le(end, payload_bytes);
        free(control);
}
END_TEST

START_TEST(a_ring_of_more_than_the_largest_is_refused) {
        struct dlp_geometry geometry = { .n_slots = 4, .batch_size = 1, .slot_bytes = DLP_PAYLOAD_MAX };
        uint64_t control_bytes = 1, payload_bytes = 2;

        ck_assert_int_eq(dlp_layout_make(&geometry, NULL, &control_bytes, &payload_bytes), -EOVERFLOW);
        geometry.slot_bytes = UINT64_MAX;
        ck_assert_int_eq(dlp_layout_make(&geometry, NULL, &control_bytes, &payload_bytes), -EOVERFLOW);
        ck_assert_uint_eq(control_bytes, 1);
        ck_assert_uint_eq(payload_bytes, 2);
}
END_TEST

START_TEST(no_damaged_header_is_taken_for_a_ring) {
        uint64_t control_bytes, payload_bytes;
        struct dlp_control *control = make_control(&GEOMETRIES[2], &control_bytes, &payload_bytes), good = *control;
        uint8_t *bytes = (uint8_t *)control;
        const size_t generation = offsetof(struct dlp_control, generation);
        const size_t end = offsetof(struct dlp_control, errors_offset) + sizeof(control->errors_offset);

        /* Any bit of the constant part, but those of the generation, which may be anything. */
        for (size_t i = 0; i < end; i++)
                for (int bit = 0; bit < 8; bit++) {
                        if (i >= generation && i < generation + sizeof(control->generation))
                                continue;
                        bytes[i] ^= (uint8_t)(1u << bit);
                        ck_assert_msg(dlp_layout_check(control, control_bytes, payload_bytes) < 0, "byte %zu bit %d", i,
                                      bit);
                        *control = good;
                }
        control->layout_version = DLP_LAYOUT_VERSION + 1;
        ck_assert_int_eq(dlp_layout_check(control, control_bytes, payload_bytes), -EPROTONOSUPPORT);
        *control = good;
        for (uint64_t n = 0; n < control_bytes; n += 97)
                ck_assert_int_eq(dlp_layout_check(control, n, payload_bytes), -EPROTO);
        ck_assert_int_eq(dlp_layout_check(control, control_bytes, payload_bytes - 1), -EPROTO);
        ck_assert_int_eq(dlp_layout_check(control, control_bytes, 2 * payload_bytes), 0); /* larger files are fine */
        free(control);
}
END_TEST

START_TEST(dtypes_have_names_and_sizes) {
        for (uint32_t i = 0; i < DLP_N_DTYPES; i++) {
                ck_assert_ptr_nonnull(dlp_dtype_name(i));
                ck_assert_uint_gt(dlp_dtype_bytes(i), 0);
        }
        ck_assert_str_eq(dlp_dtype_name(DLP_DTYPE_BFLOAT16), "bfloat16");
        ck_assert_uint_eq(dlp_dtype_bytes(DLP_DTYPE_FLOAT64), 8);
        ck_assert_ptr_null(dlp_dtype_name(DLP_N_DTYPES));
        ck_assert_uint_eq(dlp_dtype_bytes(UINT32_MAX), 0);
}
END_TEST

/* ---- packets ------------------------------------------------------------------------------------------------- */

struct pair {
        int ends[2];
};

static struct pair pair_new(void) {
        struct pair pair;

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.ends), 0);
        return pair;
}

static void pair_close(struct pair *pair) {
        close(pair->ends[0]);
        close(pair->ends[1]);
}

START_TEST(packets_arrive_whole_and_apart) {
        static uint8_t sent[DLP_PACKET_MAX], received[DLP_PACKET_MAX];
        const size_t sizes[] = { 1, 2, 1000, DLP_PACKET_MAX - 1, DLP_PACKET_MAX };
        struct pair pair = pair_new();

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                memset(sent, (int)i + 1, sizes[i]);
                ck_assert_int_eq(dlp_frame_send(pair.ends[0], sent, sizes[i], NULL, 0, MSG_DONTWAIT), 0);
        }
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                ck_assert_int_eq(dlp_frame_receive(pair.ends[1], received, sizeof(received), NULL, 0, NULL, 0),
                                 (ssize_t)sizes[i]);
                ck_assert_uint_eq(received[0], i + 1);
                ck_assert_uint_eq(received[sizes[i] - 1], i + 1);
        }
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], received, sizeof(received), NULL, 0, NULL, MSG_DONTWAIT),
                         -EAGAIN);
        close(pair.ends[0]);
        pair.ends[0] = dup(0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], received, sizeof(received), NULL, 0, NULL, 0), 0);
        ck_assert_int_eq(dlp_frame_send(pair.ends[1], sent, 1, NULL, 0, 0), -EPIPE); /* and no signal */
        pair_close(&pair);
}
END_TEST

START_TEST(packets_of_a_wrong_size_are_refused) {
        static uint8_t large[DLP_PACKET_MAX + 1], small[16];
        struct pair pair = pair_new();

        ck_assert_int_eq(dlp_frame_send(pair.ends[0], large, sizeof(large), NULL, 0, 0), -EMSGSIZE);
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], large, 0, NULL, 0, 0), -EMSGSIZE);
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], large, 17, NULL, 0, 0), 0);
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], large, 16, NULL, 0, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], small, sizeof(small), NULL, 0, NULL, 0), -EMSGSIZE);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], small, sizeof(small), NULL, 0, NULL, 0), 16);
        pair_close(&pair);
}
END_TEST

static int lowest_fd(void) {
        int fd = dup(0);

        close(fd);
        return fd;
}

START_TEST(descriptors_arrive_or_are_closed) {
        struct pair pair = pair_new();
        int fds[DLP_FDS_MAX], received[DLP_FDS_MAX], pipes[2], lowest;
        uint8_t byte = 7, in[8];
        size_t n_fds = 99;

        ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
        for (size_t i = 0; i < DLP_FDS_MAX; i++)
                fds[i] = pipes[1];
        lowest = lowest_fd();

        ck_assert_int_eq(dlp_frame_send(pair.ends[0], &byte, 1, fds, DLP_FDS_MAX + 1, 0), -EMSGSIZE);
        for (size_t wanted = 1; wanted <= DLP_FDS_MAX; wanted++) {
                ck_assert_int_eq(dlp_frame_send(pair.ends[0], &byte, 1, fds, wanted, 0), 0);
                ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), received, DLP_FDS_MAX, &n_fds, 0), 1);
                ck_assert_uint_eq(n_fds, wanted);
                for (size_t i = 0; i < n_fds; i++) {
                        ck_assert_int_eq(fcntl(received[i], F_GETFD), FD_CLOEXEC);
                        ck_assert_int_eq(write(received[i], &byte, 1), 1);
                        close(received[i]);
                }
        }
        /* More than there is room for: the rest must not stay open here. */
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], &byte, 1, fds, DLP_FDS_MAX, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), received, 2, &n_fds, 0), 1);
        ck_assert_uint_eq(n_fds, 2);
        close(received[0]);
        close(received[1]);
        /* Not expected at all: refused, and the next packet is fine. */
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], &byte, 1, fds, 1, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), NULL, 0, NULL, 0), -EPROTO);
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], &byte, 1, NULL, 0, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), received, DLP_FDS_MAX, &n_fds, 0), 1);
        ck_assert_uint_eq(n_fds, 0);
        /* With a packet that is too long. */
        ck_assert_int_eq(dlp_frame_send(pair.ends[0], "0123456789", 10, fds, 2, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), received, DLP_FDS_MAX, &n_fds, 0), -EMSGSIZE);

        ck_assert_int_eq(lowest_fd(), lowest);
        close(pipes[0]);
        close(pipes[1]);
        pair_close(&pair);
}
END_TEST

START_TEST(messages_survive_the_way_and_are_no_wake_ups) {
        static uint8_t in[DLP_PACKET_MAX];
        struct pair pair = pair_new();
        Dlp__Request request = DLP__REQUEST__INIT, *received;
        Dlp__Seek seek = DLP__SEEK__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        const uint8_t wake = DLP_WAKE_BYTE;
        ssize_t n;

        request.protocol = DLP_PROTOCOL_VERSION;
        request.id = UINT64_MAX;
        request.client = (char *)(uintptr_t) "test";
        request.body_case = DLP__REQUEST__BODY_SEEK;
        request.seek = &seek;
        seek.epoch = DLP_EPOCH_MAX;
        ck_assert_int_eq(dlp_request_send(pair.ends[0], &request, NULL, 0, 0), 0);
        n = dlp_frame_receive(pair.ends[1], in, sizeof(in), NULL, 0, NULL, 0);
        ck_assert_int_gt(n, 1);
        received = dlp__request__unpack(NULL, (size_t)n, in);
        ck_assert_ptr_nonnull(received);
        ck_assert_uint_eq(received->id, UINT64_MAX);
        ck_assert_uint_eq(received->seek->epoch, DLP_EPOCH_MAX);
        dlp__request__free_unpacked(received, NULL);

        ck_assert_int_eq(dlp_frame_send(pair.ends[0], &wake, 1, NULL, 0, 0), 0);
        ck_assert_int_eq(dlp_frame_receive(pair.ends[1], in, sizeof(in), NULL, 0, NULL, 0), 1);
        ck_assert_uint_eq(in[0], DLP_WAKE_BYTE);
        ck_assert_ptr_null(dlp__reply__unpack(NULL, 1, in)); /* field 0 is none */

        reply.error = &(Dlp__Error){ PROTOBUF_C_MESSAGE_INIT(&dlp__error__descriptor), 1, NULL, 0 };
        reply.error->text = malloc(DLP_PACKET_MAX + 1);
        memset(reply.error->text, 'x', DLP_PACKET_MAX);
        reply.error->text[DLP_PACKET_MAX] = '\0';
        ck_assert_int_eq(dlp_reply_send(pair.ends[0], &reply, NULL, 0, 0), -EMSGSIZE);
        free(reply.error->text);
        pair_close(&pair);
}
END_TEST

START_TEST(socket_paths_have_a_limit) {
        char path[DLP_SOCKET_PATH_MAX + 2];
        struct sockaddr_un address;

        memset(path, 'x', sizeof(path));
        path[DLP_SOCKET_PATH_MAX] = '\0';
        ck_assert_int_eq(dlp_socket_address(path, &address), 0);
        ck_assert_str_eq(address.sun_path, path);
        path[DLP_SOCKET_PATH_MAX] = 'x';
        path[DLP_SOCKET_PATH_MAX + 1] = '\0';
        ck_assert_int_eq(dlp_socket_address(path, &address), -ENAMETOOLONG);
        ck_assert_int_eq(dlp_socket_address("", &address), -EINVAL);
}
END_TEST

/* ---- the ring ------------------------------------------------------------------------------------------------ */

/* A ring in one mapping, with a thread on each side of it. Sleeping goes through eventfds, as it goes through socket
 * and eventfd between processes. */
struct ring {
        struct dlp_control *control;
        struct dlp_client_page *page;
        uint8_t *payload;
        uint64_t control_bytes, payload_bytes;
        int wake, event;
        uint64_t n_batches;
        uint32_t max_held; /* by the consumer at a time */
        unsigned seed;
        uint64_t n_wakes, n_events; /* of the producer's and the consumer's own side */
};

static struct ring ring_new(uint32_t n_slots, uint64_t n_batches) {
        struct dlp_geometry geometry = { .n_slots = n_slots, .batch_size = 4, .slot_bytes = 4096 };
        struct ring ring = { .n_batches = n_batches, .seed = n_slots };

        ring.control = make_control(&geometry, &ring.control_bytes, &ring.payload_bytes);
        ring.payload = aligned_alloc(4096, ring.payload_bytes);
        memset(ring.payload, 0, ring.payload_bytes);
        ring.page = (struct dlp_client_page *)ring.payload;
        ring.wake = eventfd(0, EFD_CLOEXEC);
        ring.event = eventfd(0, EFD_CLOEXEC);
        ck_assert_int_ge(ring.wake, 0);
        ck_assert_int_ge(ring.event, 0);
        return ring;
}

static void ring_free(struct ring *ring) {
        close(ring->wake);
        close(ring->event);
        free(ring->control);
        free(ring->payload);
}

static uint64_t *slot_words(struct ring *ring, uint32_t idx_slot) {
        return (uint64_t *)(void *)(ring->payload + dlp_slot_offset(ring->control, idx_slot));
}

/* Check's own assertions note each passed one in a file; millions of them would be the whole test. */
static void demand(bool holds, const char *what, uint64_t sequence) {
        if (!holds)
                ck_abort_msg("%s of batch %llu", what, (unsigned long long)sequence);
}

/* Word i of a batch: no two batches have one in common. */
static uint64_t identity(uint64_t sequence, uint64_t i) {
        return sequence * 1000 + i;
}

static void ring_wake(int fd) {
        uint64_t one = 1;

        demand(write(fd, &one, sizeof(one)) == sizeof(one), "waking", 0);
}

static void ring_sleep(int fd) {
        uint64_t count;

        demand(read(fd, &count, sizeof(count)) == sizeof(count), "sleeping", 0);
}

/* The first slot that is free, or n_slots. */
static uint32_t ring_find_free(struct ring *ring, const uint64_t *published, const uint64_t *word_before) {
        for (uint32_t i = 0; i < ring->control->n_slots; i++) {
                int r = published[i] == 0 ? 1 : dlp_ring_released(ring->page, i, word_before[i], published[i] - 1);

                demand(r >= 0, "the release", published[i]);
                if (r > 0)
                        return i;
        }
        return ring->control->n_slots;
}

static void *produce(void *userdata) {
        struct ring *ring = userdata;
        uint64_t published[DLP_SLOTS_MAX] = { 0 }, word_before[DLP_SLOTS_MAX] = { 0 };
        const uint32_t n_slots = ring->control->n_slots;

        for (uint64_t sequence = 0; sequence < ring->n_batches; sequence++) {
                uint32_t idx_slot = ring_find_free(ring, published, word_before);

                while (idx_slot == n_slots) {
                        dlp_ring_want_release(ring->control, true);
                        idx_slot = ring_find_free(ring, published, word_before);
                        if (idx_slot == n_slots) {
                                ring_sleep(ring->event); /* an old wake-up is harmless: look again */
                                idx_slot = ring_find_free(ring, published, word_before);
                        }
                        dlp_ring_want_release(ring->control, false);
                }
                for (uint64_t i = 0; i < 8; i++)
                        slot_words(ring, idx_slot)[i] = identity(sequence, i);
                dlp_slot_record(ring->control, idx_slot)->sequence = sequence;
                word_before[idx_slot] = published[idx_slot];
                published[idx_slot] = sequence + 1;
                if (dlp_ring_publish(ring->control, ring->page, sequence, idx_slot)) {
                        ring->n_wakes++;
                        ring_wake(ring->wake);
                }
        }
        return NULL;
}

struct lent {
        uint64_t sequence;
        uint32_t idx_slot;
};

static void ring_give_back(struct ring *ring, struct lent *held, uint32_t *n_held, uint32_t victim) {
        for (uint64_t i = 0; i < 8; i++) /* nobody wrote to it in the meantime */
                demand(slot_words(ring, held[victim].idx_slot)[i] == identity(held[victim].sequence, i), "a word",
                       held[victim].sequence);
        if (dlp_ring_release(ring->control, ring->page, held[victim].sequence, held[victim].idx_slot)) {
                ring->n_events++;
                ring_wake(ring->event);
        }
        held[victim] = held[--*n_held];
}

static void consume(struct ring *ring) {
        struct lent held[DLP_SLOTS_MAX];
        uint32_t n_held = 0;

        for (uint64_t sequence = 0; sequence < ring->n_batches; sequence++) {
                uint32_t idx_slot;

                while (dlp_ring_wait_begin(ring->control, ring->page, sequence))
                        ring_sleep(ring->wake);
                atomic_store(&ring->page->waiting, DLP_WAKE_NOBODY);
                demand(dlp_ring_ready(ring->control, sequence), "being ready", sequence);
                idx_slot = dlp_ring_slot(ring->control, sequence);
                demand(idx_slot < ring->control->n_slots, "the slot", sequence);
                demand(dlp_slot_record(ring->control, idx_slot)->sequence == sequence, "the record", sequence);
                dlp_ring_take(ring->page, sequence);
                held[n_held++] = (struct lent){ sequence, idx_slot };
                while (n_held > 0 && (n_held >= ring->max_held || rand_r(&ring->seed) % 3 == 0))
                        ring_give_back(ring, held, &n_held, (uint32_t)rand_r(&ring->seed) % n_held);
        }
        while (n_held > 0)
                ring_give_back(ring, held, &n_held, 0);
}

static void hand_over(uint32_t n_slots, uint32_t max_held, uint64_t n_batches) {
        struct ring ring = ring_new(n_slots, n_batches);
        pthread_t producer;

        ring.max_held = max_held;
        ck_assert_int_eq(pthread_create(&producer, NULL, produce, &ring), 0);
        consume(&ring);
        pthread_join(producer, NULL);
        ck_assert_uint_eq(dlp_ring_taken(ring.control, ring.page), n_batches);
        ck_assert(!dlp_ring_ready(ring.control, n_batches));
        ring_free(&ring);
}

/* Each depth is another balance of sleeping producers and sleeping consumers. A lost wake-up would hang: Check ends it.
 */
START_TEST(batches_change_hands_without_loss_in_any_order_of_release) {
        static const struct {
                uint32_t depth;
                uint64_t n_batches; /* in a shallow ring each hand-over is a switch between threads */
        } runs[] = {
                { 1, 20000 }, { 2, 20000 }, { 3, 20000 }, { 4, 50000 }, { 16, 300000 }, { DLP_SLOTS_MAX, 1000000 }
        };
        uint64_t n_batches = runs[_i].n_batches;

        n_batches = suite_rounds((unsigned)n_batches);
        hand_over(runs[_i].depth, 1, n_batches);
        hand_over(runs[_i].depth, runs[_i].depth, n_batches);
}
END_TEST

START_TEST(both_sides_are_woken_only_if_they_sleep) {
        struct ring ring = ring_new(2, 0);

        ck_assert(!dlp_ring_publish(ring.control, ring.page, 0, 1));
        ck_assert(dlp_ring_ready(ring.control, 0));
        ck_assert_uint_eq(dlp_ring_slot(ring.control, 0), 1);
        ck_assert(!dlp_ring_wait_begin(ring.control, ring.page, 0)); /* it is there: do not sleep */
        atomic_store(&ring.page->waiting, DLP_WAKE_NOBODY);
        ck_assert(dlp_ring_wait_begin(ring.control, ring.page, 1));
        ck_assert(dlp_ring_publish(ring.control, ring.page, 1, 0)); /* wake, once */
        dlp_ring_take(ring.page, 0);
        ck_assert_uint_eq(dlp_ring_taken(ring.control, ring.page), 1);

        ck_assert_int_eq(dlp_ring_released(ring.page, 1, 0, 0), 0);
        ck_assert(!dlp_ring_release(ring.control, ring.page, 0, 1));
        ck_assert_int_eq(dlp_ring_released(ring.page, 1, 0, 0), 1);
        dlp_ring_want_release(ring.control, true);
        ck_assert(dlp_ring_release(ring.control, ring.page, 1, 0));
        dlp_ring_want_release(ring.control, false);
        ck_assert(!dlp_ring_publish(ring.control, ring.page, 2, 0)); /* the flag was taken */
        ring_free(&ring);
}
END_TEST

START_TEST(what_a_scribbling_client_says_is_not_believed) {
        struct ring ring = ring_new(2, 0);

        dlp_ring_publish(ring.control, ring.page, 0, 0);
        ring.page->released[0] = 2; /* of a batch that it never had */
        ck_assert_int_eq(dlp_ring_released(ring.page, 0, 0, 0), -EPROTO);
        ring.page->released[0] = UINT64_MAX;
        ck_assert_int_eq(dlp_ring_released(ring.page, 0, 0, 0), -EPROTO);
        ring.page->n_taken = UINT64_MAX;
        ck_assert_uint_eq(dlp_ring_taken(ring.control, ring.page), 1);
        ring.control->queue[0] = 2; /* and the client does not believe a damaged page */
        ck_assert_uint_eq(dlp_ring_slot(ring.control, 0), 2);
        ring.control->queue[0] = UINT32_MAX;
        ck_assert_uint_eq(dlp_ring_slot(ring.control, 0), 2);
        ring_free(&ring);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("proto");
        TCase *layout = tcase_create("layout"), *frame = tcase_create("frame"), *ring = tcase_create("ring");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(layout, each_part_of_a_ring_has_its_own_place, 0,
                            sizeof(GEOMETRIES) / sizeof(GEOMETRIES[0]));
        tcase_add_test(layout, a_ring_of_more_than_the_largest_is_refused);
        tcase_add_test(layout, no_damaged_header_is_taken_for_a_ring);
        tcase_add_test(layout, dtypes_have_names_and_sizes);
        suite_add_tcase(suite, layout);
        tcase_add_test(frame, packets_arrive_whole_and_apart);
        tcase_add_test(frame, packets_of_a_wrong_size_are_refused);
        tcase_add_test(frame, descriptors_arrive_or_are_closed);
        tcase_add_test(frame, messages_survive_the_way_and_are_no_wake_ups);
        tcase_add_test(frame, socket_paths_have_a_limit);
        suite_add_tcase(suite, frame);
        tcase_add_loop_test(ring, batches_change_hands_without_loss_in_any_order_of_release, 0, 6);
        tcase_add_test(ring, both_sides_are_woken_only_if_they_sleep);
        tcase_add_test(ring, what_a_scribbling_client_says_is_not_believed);
        tcase_set_timeout(ring, 120);
        suite_add_tcase(suite, ring);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
