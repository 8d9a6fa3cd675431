/* A rank's ring over real memfds, from the daemon's side: what a client can and cannot do to it, and that batches come
 * out in the order in which their slots were taken, whoever completes them. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/threads/fair_queue.h"
#include "daemon/ring/batch_ring.h"
#include "daemon/ring/step_waits.h"
#include "proto/base/clock.h"
#include "proto/frame.h"
#include "proto/meter.h"
#include "proto/ring.h"
#include "tests/support/stuck_sweeper.h"

#define LIMIT (1ull << 30)
#define BATCH 4u

static struct budget budget;
static struct lent_list left;

static void setup(void) {
        lent_list_init(&left);
}

static void teardown(void) {
        lent_list_fini(&left);
}

static struct ring_options options_of(uint32_t n_slots, uint64_t slot_bytes, bool sparse) {
        return (struct ring_options){
                .geometry = { .n_slots = n_slots, .batch_size = BATCH, .slot_bytes = slot_bytes, .n_ragged = sparse },
                .memory = { .numa_node = -1, .sparse = sparse, .n_threads = 2 },
                .budget = &budget,
                .held = &left,
                .generation = 77,
                .whose = "rank 0 of job \"test\"",
        };
}

static struct ring *make_ring(uint32_t n_slots, uint64_t slot_bytes, bool sparse) {
        struct ring_options options = options_of(n_slots, slot_bytes, sparse);
        struct ring *ring;
        struct why why;

        budget = (struct budget){ .limit_bytes = LIMIT };
        if (ring_new(&options, &ring, &why) < 0)
                ck_abort_msg("%s", why.text);
        return ring;
}

static void free_ring(struct ring *ring) {
        ring_free(ring);
        ck_assert_uint_eq(budget_used(&budget), 0);
}

static struct slot *take(struct ring *ring) {
        struct slot *slot = NULL;

        ck_assert_int_eq(ring_take(ring, &slot), 0);
        return slot;
}

static void release(struct ring *ring, const struct slot *slot) {
        dlp_ring_release(ring->control, ring->page, slot->sequence, slot->idx);
}

static uint64_t n_published(const struct ring *ring) {
        return atomic_load(&ring->control->n_published);
}

/* ---- what a client can do to it ------------------------------------------------------------------------------ */

START_TEST(a_client_can_neither_write_nor_resize_what_is_the_daemons) {
        struct ring *ring = make_ring(4, 10000, _i);
        int control = ring->control_segment.fd, payload = ring->payload_segment.fd;
        size_t n_bytes = ring->control_segment.n_bytes;
        void *map;

        ck_assert_ptr_eq(mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0), MAP_FAILED);
        ck_assert_int_eq(errno, EPERM);
        ck_assert_int_eq(pwrite(control, "x", 1, 0), -1);
        ck_assert_int_eq(fallocate(control, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
        map = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, control, 0);
        ck_assert_ptr_ne(map, MAP_FAILED);
        ck_assert_int_eq(mprotect(map, n_bytes, PROT_READ | PROT_WRITE), -1);
        ck_assert_int_eq(dlp_layout_check(map, n_bytes, ring->payload_segment.n_bytes), 0);
        ck_assert_uint_eq(((struct dlp_control *)map)->generation, 77);
        munmap(map, n_bytes);

        for (int i = 0; i < 2; i++) {
                int fd = i ? control : payload;

                ck_assert_int_eq(ftruncate(fd, 0), -1);
                ck_assert_int_eq(errno, EPERM);
                ck_assert_int_eq(ftruncate(fd, 1 << 30), -1);
                ck_assert_int_eq(fallocate(fd, 0, 0, 1 << 30), -1);
                ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
                ck_assert_int_eq(errno, EPERM);
        }
        map = mmap(NULL, ring->payload_segment.n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, payload, 0);
        ck_assert_ptr_ne(map, MAP_FAILED); /* its own memory it may write, GPUs want that */
        munmap(map, ring->payload_segment.n_bytes);
        free_ring(ring);
}
END_TEST

/* What its word may be made to hold; `sequence` is of the batch that it holds or may hold. */
static uint64_t scribble(int how, uint64_t sequence) {
        const uint64_t WORDS[] = { UINT64_MAX, sequence, sequence + 2, 1ull << 63, 0 };

        return WORDS[how];
}

START_TEST(what_no_client_writes_is_an_error_and_not_a_free_slot) {
        struct ring *ring = make_ring(2, 100, false);
        struct slot *slots[2], *none = NULL;

        for (uint32_t i = 0; i < 6; i++) { /* an honest past */
                struct slot *slot = take(ring);

                ring_complete(ring, slot);
                release(ring, slot);
        }
        slots[0] = take(ring);
        slots[1] = take(ring);
        ring_complete(ring, slots[0]);
        ring_complete(ring, slots[1]);
        ck_assert_int_eq(ring_take(ring, &none), RING_NO_SLOT);
        atomic_store(&ring->page->released[slots[1]->idx], scribble(_i, slots[1]->sequence));
        ck_assert_int_eq(ring_take(ring, &none), -EPROTO);
        ck_assert_ptr_null(none);
        free_ring(ring);
}
END_TEST

START_TEST(a_hole_in_the_payload_costs_the_daemon_nothing_but_an_error) {
        struct ring *ring = make_ring(2, 100000, false);
        struct slot *slot = take(ring), *none;

        ring_complete(ring, slot);
        release(ring, slot);
        slot = take(ring);
        ring_complete(ring, slot);
        slot = take(ring); /* slot 0 again: its word holds an old release, which the hole takes away */
        ring_complete(ring, slot);
        ck_assert_int_eq(fallocate(ring->payload_segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                   (off_t)ring->payload_segment.n_bytes),
                         0);
        memset(slot->base, 0xa5, 100000);
        ck_assert_int_eq(ring_take(ring, &none), -EPROTO);
        free_ring(ring);
}
END_TEST

/* ---- order --------------------------------------------------------------------------------------------------- */

/* Pages that are reserved on this machine while the test runs. Returns how many there were before, or -1. */
static long reserve_huge_pages(long n_more) {
        FILE *file = fopen("/proc/sys/vm/nr_hugepages", "r+e");
        long n = -1;

        if (!file)
                return -1;
        if (fscanf(file, "%ld", &n) == 1) {
                rewind(file);
                fprintf(file, "%ld\n", n + n_more);
        }
        fclose(file);
        return n;
}

/* After a hole a hugetlb page can be somebody else's, and the daemon's next write to it a SIGBUS. */
START_TEST(a_ring_that_wants_huge_pages_has_none_that_a_client_could_take_away) {
        struct ring_options options = options_of(4, 4ull << 20, false);
        long n_before = reserve_huge_pages(16);
        struct ring *ring;
        struct statfs status;
        struct why why;

        budget = (struct budget){ .limit_bytes = LIMIT };
        options.memory.huge_pages = SEGMENT_TRY;
        ck_assert_int_eq(ring_new(&options, &ring, &why), 0);
        ck_assert_int_eq(fstatfs(ring->payload_segment.fd, &status), 0);
        ring_free(ring);
        if (n_before >= 0)
                reserve_huge_pages(-16);
        ck_assert_int_ne(status.f_type, HUGETLBFS_MAGIC);
        ck_assert_uint_eq(budget.used_bytes, 0);
}
END_TEST

START_TEST(batches_are_published_in_the_order_in_which_their_slots_were_taken) {
        static const uint32_t ORDERS[][5] = {
                { 0, 1, 2, 3, 4 }, { 4, 3, 2, 1, 0 }, { 1, 0, 3, 4, 2 }, { 2, 4, 0, 1, 3 }, { 3, 0, 4, 1, 2 },
        };
        struct ring *ring = make_ring(5, 100, false);

        for (uint64_t round = 0; round < 3; round++) {
                bool complete[5] = { false };
                struct slot *slots[5];

                for (uint32_t i = 0; i < 5; i++) {
                        slots[i] = take(ring);
                        ck_assert_uint_eq(slots[i]->sequence, round * 5 + i);
                }
                for (uint32_t i = 0; i < 5; i++) {
                        uint64_t n = 0;

                        ring_complete(ring, slots[ORDERS[_i][i]]);
                        complete[ORDERS[_i][i]] = true;
                        while (n < 5 && complete[n])
                                n++;
                        ck_assert_uint_eq(n_published(ring), round * 5 + n);
                }
                for (uint32_t i = 0; i < 5; i++) {
                        uint32_t idx_slot = dlp_ring_slot(ring->control, round * 5 + i);

                        ck_assert_uint_eq(idx_slot, slots[i]->idx);
                        ck_assert_uint_eq(dlp_slot_record(ring->control, idx_slot)->sequence, round * 5 + i);
                        release(ring, slots[i]);
                }
        }
        free_ring(ring);
}
END_TEST

START_TEST(slots_are_given_back_in_any_order_and_only_once_released) {
        struct ring *ring = make_ring(4, 100, false);
        struct slot *slots[4], *none, *again;

        for (uint32_t i = 0; i < 4; i++)
                ring_complete(ring, slots[i] = take(ring));
        for (uint32_t i = 0; i < 4; i++) {
                struct slot *freed = slots[(i * 3 + 2) % 4];
                uint64_t n_before = ring->n_released;

                ck_assert_int_eq(ring_take(ring, &none), RING_NO_SLOT);
                release(ring, freed);
                again = take(ring);
                ck_assert_ptr_eq(again, freed);
                ck_assert_uint_eq(again->sequence, 4 + i);
                ck_assert_uint_eq(ring->n_released, n_before + 1);
        }
        free_ring(ring); /* with all slots being filled */
}
END_TEST

START_TEST(people_see_what_became_of_the_slots) {
        struct ring *ring = make_ring(4, 100, false);
        struct ring_counts counts;
        struct slot *slots[4];

        for (uint32_t i = 0; i < 4; i++)
                slots[i] = take(ring);
        ring_count(ring, &counts);
        ck_assert_uint_eq(counts.epoch + counts.step, 0);
        for (uint32_t i = 0; i < 3; i++) {
                slots[i]->record->epoch = 100 + i;
                slots[i]->record->step = 200 + i;
                ring_complete(ring, slots[i]);
        }
        dlp_ring_take(ring->page, 0);
        dlp_ring_take(ring->page, 1);
        release(ring, slots[0]);
        ring_count(ring, &counts);
        ck_assert_uint_eq(counts.n_filling, 1);
        ck_assert_uint_eq(counts.n_ready, 1);
        ck_assert_uint_eq(counts.n_leased, 1);
        ck_assert_uint_eq(counts.n_released, 1);
        ck_assert_uint_eq(counts.epoch, 102);
        ck_assert_uint_eq(counts.step, 202);
        dlp_ring_take(ring->page, 2); /* it has them all: then the last one is the best that is known */
        ring_count(ring, &counts);
        ck_assert_uint_eq(counts.n_ready, 0);
        ck_assert_uint_eq(counts.step, 202);

        atomic_store(&ring->page->n_taken, UINT64_MAX); /* whatever a client claims, the sum stays */
        ring_count(ring, &counts);
        ck_assert_uint_eq(counts.n_filling + counts.n_ready + counts.n_leased + (uint32_t)counts.n_released, 4);
        free_ring(ring);
}
END_TEST

/* A rank takes a batch that it has waited for, and gives it back. */
static void wait_and_release(struct ring *ring, uint64_t epoch, uint64_t step, uint64_t wait_ms) {
        struct slot *slot = take(ring);
        uint64_t now_ns = clock_now_ns();

        slot->record->epoch = epoch;
        slot->record->step = step;
        slot->record->status = DLP_BATCH_OK;
        ring_complete(ring, slot);
        if (wait_ms > 0)
                dlp_meter_wait(ring->page, now_ns - wait_ms * 1000000);
        dlp_ring_take(ring->page, slot->sequence);
        dlp_meter_note_wait(ring->page, slot->idx, slot->sequence, now_ns, now_ns);
        dlp_meter_take(ring->page, now_ns, now_ns);
        release(ring, slot);
        ring_complete(ring, take(ring)); /* which notices it; an empty one, that is there at once */
        dlp_ring_take(ring->page, slot->sequence);
        dlp_meter_take(ring->page, now_ns, 0);
        release(ring, slot);
}

START_TEST(of_each_step_the_longest_wait_of_all_rings_counts) {
        struct ring_options options = options_of(1, 100, false);
        struct step_waits waits;
        struct ring *rings[2];
        struct why why;

        budget = (struct budget){ .limit_bytes = LIMIT };
        step_waits_init(&waits);
        options.waits = &waits;
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(ring_new(&options, &rings[i], &why), 0);
                rings[i]->made_ns -= 60000000000ull;
                wait_and_release(rings[i], 0, 0, 500); /* the first batch of a ring */
        }
        ck_assert_uint_eq(step_waits_total(&waits), 0);
        wait_and_release(rings[0], 0, 1, 30);
        wait_and_release(rings[1], 0, 1, 50);
        ck_assert_uint_eq(step_waits_total(&waits), 50000000);
        wait_and_release(rings[0], 0, 2, 40);
        wait_and_release(rings[1], 0, 2, 0);
        ck_assert_uint_eq(step_waits_total(&waits), 90000000);
        wait_and_release(rings[0], 1, 1 + STEP_WAITS_N, 5); /* the next epoch, and places that are used again */
        wait_and_release(rings[0], 0, 1 + STEP_WAITS_N, 7);
        wait_and_release(rings[1], 0, 1, 1000); /* too late */
        ck_assert_uint_eq(step_waits_total(&waits), 102000000);
        ring_free(rings[0]);
        free_ring(rings[1]);
        step_waits_destroy(&waits);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------------------------- */

START_TEST(a_ring_pays_for_its_memory_and_gives_all_of_it_back) {
        struct ring_options options = options_of(3, 1 << 20, false);
        struct ring *ring = make_ring(3, 1 << 20, false);
        uint64_t used = budget_used(&budget);
        struct why why;

        ck_assert_uint_ge(used, 3 << 20);
        ck_assert_uint_eq(used, ring_bytes(ring));
        ck_assert_uint_eq(used, ring->control_segment.n_bytes + ring->payload_segment.n_bytes);
        ring_touch_rest(ring, 2);
        memset(ring->slots[2].base, 1, 1 << 20);
        free_ring(ring);

        budget = (struct budget){ .limit_bytes = used };
        ck_assert_int_eq(ring_new(&options, &ring, &why), 0);
        ring_free(ring);
        budget.limit_bytes = used - 1;
        ck_assert_int_eq(ring_new(&options, &ring, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "memory_limit"));
        ck_assert_uint_eq(budget_used(&budget), 0);
        options.geometry.slot_bytes = DLP_PAYLOAD_MAX;
        budget.limit_bytes = UINT64_MAX;
        ck_assert_int_eq(ring_new(&options, &ring, &why), -EOVERFLOW);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(a_sparse_ring_pays_for_all_that_may_be_written_and_takes_only_what_is) {
        struct ring *ring = make_ring(2, 1 << 28, true);
        uint64_t used = budget_used(&budget);
        struct slot *slot = take(ring);
        struct stat state;

        ck_assert_uint_ge(used, 2 << 28);
        ck_assert_uint_eq(used, ring->control_segment.n_bytes + ring->payload_segment.n_bytes);
        memset(slot->base, 7, 10 * DLP_SLOT_ALIGN + 1);
        ck_assert_uint_eq(budget_used(&budget), used);
        ck_assert_int_eq(fstat(ring->payload_segment.fd, &state), 0);
        ck_assert_int_lt(state.st_blocks * 512, 1 << 20);
        free_ring(ring);
}
END_TEST

/* ---- everybody at once --------------------------------------------------------------------------------------- */

#define N_BATCHES  20000u
#define N_WORKERS  3u
#define SLOT_WORDS 64u

struct traffic {
        struct ring *ring;
        struct fair_queue filling;
        struct fair_item items[DLP_SLOTS_MAX]; /* of the slot of this number */
        _Atomic uint32_t n_wakes;
        _Atomic bool want_release; /* the client's knock */
        int result;
};

/* Fills slots in whatever order it gets hold of them. */
static void *worker_main(void *userdata) {
        struct traffic *traffic = userdata;
        struct fair_item *item;

        while ((item = fair_queue_pop(&traffic->filling, NULL))) {
                struct slot *slot = &traffic->ring->slots[item - traffic->items];
                uint64_t *words = (uint64_t *)slot->base;

                for (uint32_t i = 0; i < SLOT_WORDS; i++)
                        words[i] = slot->sequence * SLOT_WORDS + i;
                slot->columns.indices[0] = (int64_t)slot->sequence;
                slot->record->n_samples = (uint32_t)(slot->sequence % BATCH);
                if (slot->sequence % 7 == 0)
                        sched_yield();
                if (ring_complete(traffic->ring, slot))
                        atomic_fetch_add(&traffic->n_wakes, 1);
        }
        return NULL;
}

/* The client, held batches and all: gives back the older of two in turns with the younger. */
static void *client_main(void *userdata) {
        struct traffic *traffic = userdata;
        struct ring *ring = traffic->ring;
        uint64_t held = UINT64_MAX;
        uint32_t idx_held = 0;

        for (uint64_t sequence = 0; sequence < N_BATCHES; sequence++) {
                uint32_t idx_slot;
                const uint64_t *words;

                while (dlp_ring_wait_begin(ring->control, ring->page, sequence))
                        sched_yield();
                atomic_store(&ring->page->waiting, DLP_WAKE_NOBODY);
                idx_slot = dlp_ring_slot(ring->control, sequence);
                dlp_ring_take(ring->page, sequence);
                words = (const uint64_t *)((uint8_t *)ring->page + dlp_slot_offset(ring->control, idx_slot));
                for (uint32_t i = 0; i < SLOT_WORDS; i++)
                        if (words[i] != sequence * SLOT_WORDS + i)
                                traffic->result = -EBADMSG;
                if (dlp_slot_record(ring->control, idx_slot)->sequence != sequence ||
                    dlp_slot_record(ring->control, idx_slot)->n_samples != sequence % BATCH ||
                    dlp_columns(ring->control, idx_slot).indices[0] != (int64_t)sequence)
                        traffic->result = -EBADMSG;
                if (held != UINT64_MAX && dlp_ring_release(ring->control, ring->page, held, idx_held))
                        atomic_store(&traffic->want_release, true);
                held = UINT64_MAX;
                if (sequence % 3 == 0) {
                        held = sequence;
                        idx_held = idx_slot;
                } else if (dlp_ring_release(ring->control, ring->page, sequence, idx_slot)) {
                        atomic_store(&traffic->want_release, true);
                }
        }
        return NULL;
}

START_TEST(planner_workers_and_client_share_a_ring_without_a_loss) {
        struct traffic traffic = { .ring = make_ring((uint32_t)_i, SLOT_WORDS * 8, false) };
        pthread_t workers[N_WORKERS], client;
        struct fair_group group = { 0 };
        struct fair_share share = { 0 };
        struct ring_counts counts;

        fair_queue_init(&traffic.filling);
        fair_group_init(&group, NULL);
        fair_share_init(&share, &group, 1);
        for (uint32_t i = 0; i < N_WORKERS; i++)
                ck_assert_int_eq(pthread_create(&workers[i], NULL, worker_main, &traffic), 0);
        ck_assert_int_eq(pthread_create(&client, NULL, client_main, &traffic), 0);

        for (uint32_t n = 0; n < N_BATCHES;) {
                struct slot *slot;
                int r = ring_take(traffic.ring, &slot);

                if (r == RING_NO_SLOT) {
                        ring_watch(traffic.ring, true);
                        r = ring_take(traffic.ring, &slot);
                }
                if (r == RING_NO_SLOT) { /* as the planner: sleeps until the client knocks */
                        while (!atomic_exchange(&traffic.want_release, false))
                                sched_yield();
                        continue;
                }
                ck_assert_int_eq(r, 0);
                ring_watch(traffic.ring, false);
                ck_assert_uint_eq(slot->sequence, n);
                fair_queue_push(&traffic.filling, &share, &traffic.items[slot->idx]);
                n++;
                if (n % 256 == 0)
                        ring_count(traffic.ring, &counts);
        }
        pthread_join(client, NULL);
        fair_queue_stop(&traffic.filling);
        for (uint32_t i = 0; i < N_WORKERS; i++)
                pthread_join(workers[i], NULL);
        ck_assert_int_eq(traffic.result, 0);
        ck_assert_uint_eq(n_published(traffic.ring), N_BATCHES);
        fair_queue_fini(&traffic.filling);
        free_ring(traffic.ring);
}
END_TEST

/* ---- what a client holds after it has left ------------------------------------------------------------------- */

/* The client's side of a ring: descriptors of its own, as they come with a packet. */
static void lend(struct ring *ring, int fds[2]) {
        fds[0] = dup(ring->control_segment.lent_fd);
        fds[1] = dup(ring->payload_segment.lent_fd);
        ck_assert_int_ge(fds[0], 0);
        ck_assert_int_ge(fds[1], 0);
        ring_was_sent(ring);
}

static uint64_t charged_now(void) {
        lent_look(&left);
        ck_assert_uint_eq(atomic_load(&left.n_bytes), budget_used(&budget));
        return budget_used(&budget);
}

START_TEST(memory_stays_charged_while_a_client_that_left_has_its_descriptors) {
        struct ring *ring = make_ring(2, 1 << 20, false);
        uint64_t control = ring->control_bytes, payload = ring->payload_bytes;
        int fds[2];

        lend(ring, fds);
        ring_free(ring);
        ck_assert_uint_eq(charged_now(), control + payload);
        close(fds[0]);
        ck_assert_uint_eq(charged_now(), payload);
        close(fds[1]);
        ck_assert_uint_eq(charged_now(), 0);
        ck_assert_uint_eq(atomic_load(&left.n), 0);
}
END_TEST

START_TEST(memory_stays_charged_and_whole_while_a_client_that_left_has_it_mapped) {
        struct ring *ring = make_ring(2, 1 << 20, false);
        uint64_t n_bytes = ring->payload_segment.n_bytes, payload = ring->payload_bytes;
        const uint8_t *control;
        uint8_t *map;
        int fds[2];

        lend(ring, fds);
        memset(ring->slots[1].base, 77, 1 << 20);
        map = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
        control = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
        ck_assert_ptr_ne(map, MAP_FAILED);
        ck_assert_ptr_ne(control, MAP_FAILED);
        close(fds[0]);
        close(fds[1]);
        ring_free(ring);
        ck_assert_uint_gt(charged_now(), payload);
        ck_assert_uint_eq(map[n_bytes - 1], 77);
        munmap((void *)(uintptr_t)control, 4096);
        ck_assert_uint_eq(charged_now(), payload);
        munmap(map, 4096);
        ck_assert_uint_eq(charged_now(), payload);
        munmap(map + 4096, n_bytes - 4096);
        ck_assert_uint_eq(charged_now(), 0);
}
END_TEST

START_TEST(memory_stays_charged_while_a_child_of_the_client_or_a_packet_has_it) {
        struct ring *ring = make_ring(2, 1 << 20, false);
        uint64_t payload = ring->payload_bytes;
        int fds[2], sockets[2];
        pid_t child;

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
        lend(ring, fds);
        close(fds[0]);
        child = fork();
        if (child == 0) {
                pause();
                _exit(0);
        }
        ck_assert_int_eq(dlp_frame_send(sockets[0], "x", 1, &fds[1], 1, 0), 0);
        close(fds[1]);
        ring_free(ring);
        ck_assert_uint_ge(charged_now(), payload);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_uint_eq(charged_now(), payload); /* the packet that nobody has read */
        close(sockets[0]);
        close(sockets[1]);
        ck_assert_uint_eq(charged_now(), 0);
}
END_TEST

/* The planner frees rings, and the main thread looks at what is held: neither may be stopped by a user who has many
 * GiB. */
START_TEST(the_memory_of_a_large_ring_is_given_back_by_a_thread_that_nobody_waits_for) {
        struct ring *ring = make_ring(2, SWEEP_BYTES, true);
        uint64_t all = budget_used(&budget);
        struct stuck_sweeper stuck;
        struct why why;
        int kept;

        ck_assert_int_eq(sweeper_start(&why), 0);
        kept = dup(ring->payload_segment.lent_fd);
        sweeper_stick(&stuck);
        ring_free(ring);
        ck_assert_uint_eq(budget_used(&budget), all);
        ck_assert_uint_eq(left.n, 0);
        sweeper_go_on(&stuck);
        ck_assert_uint_eq(left.n, 1);

        close(kept);
        sweeper_stick(&stuck);
        lent_look(&left);
        ck_assert_uint_eq(left.n, 0);
        ck_assert_uint_gt(budget_used(&budget), SWEEP_BYTES);
        sweeper_go_on(&stuck);
        ck_assert_uint_eq(budget_used(&budget), 0);

        ring = make_ring(2, SWEEP_BYTES, true); /* what waits at the end is done */
        ring_free(ring);
        sweeper_stop();
        ck_assert_uint_eq(budget_used(&budget), 0);
        free_ring(make_ring(2, SWEEP_BYTES, true));
}
END_TEST

START_TEST(a_client_that_unlocks_its_descriptor_stays_charged_or_loses_the_pages) {
        struct ring *ring = make_ring(2, 1 << 20, false);
        uint64_t payload = ring->payload_bytes;
        struct stat state;
        int fds[2];

        lend(ring, fds);
        memset(ring->slots[0].base, 1, 1 << 20);
        close(fds[0]);
        ck_assert_int_eq(flock(fds[1], LOCK_UN), 0);
        ring_free(ring);
        ck_assert_int_eq(fstat(fds[1], &state), 0);
        if (charged_now() == 0)
                ck_assert_int_eq(state.st_blocks, 0);
        else
                ck_assert_uint_eq(charged_now(), payload);
        close(fds[1]);
        ck_assert_uint_eq(charged_now(), 0);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("ring");
        TCase *client = tcase_create("client"), *order = tcase_create("order"), *memory = tcase_create("memory");
        TCase *traffic = tcase_create("traffic");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_checked_fixture(client, setup, teardown);
        tcase_add_checked_fixture(order, setup, teardown);
        tcase_add_checked_fixture(memory, setup, teardown);
        tcase_add_checked_fixture(traffic, setup, teardown);
        tcase_add_loop_test(client, a_client_can_neither_write_nor_resize_what_is_the_daemons, 0, 2);
        tcase_add_loop_test(client, what_no_client_writes_is_an_error_and_not_a_free_slot, 0, 5);
        tcase_add_test(client, a_hole_in_the_payload_costs_the_daemon_nothing_but_an_error);
        tcase_add_test(client, a_ring_that_wants_huge_pages_has_none_that_a_client_could_take_away);
        suite_add_tcase(suite, client);
        tcase_add_loop_test(order, batches_are_published_in_the_order_in_which_their_slots_were_taken, 0, 5);
        tcase_add_test(order, slots_are_given_back_in_any_order_and_only_once_released);
        tcase_add_test(order, people_see_what_became_of_the_slots);
        tcase_add_test(order, of_each_step_the_longest_wait_of_all_rings_counts);
        suite_add_tcase(suite, order);
        tcase_add_test(memory, a_ring_pays_for_its_memory_and_gives_all_of_it_back);
        tcase_add_test(memory, a_sparse_ring_pays_for_all_that_may_be_written_and_takes_only_what_is);
        tcase_add_test(memory, memory_stays_charged_while_a_client_that_left_has_its_descriptors);
        tcase_add_test(memory, memory_stays_charged_and_whole_while_a_client_that_left_has_it_mapped);
        tcase_add_test(memory, memory_stays_charged_while_a_child_of_the_client_or_a_packet_has_it);
        tcase_add_test(memory, the_memory_of_a_large_ring_is_given_back_by_a_thread_that_nobody_waits_for);
        tcase_add_test(memory, a_client_that_unlocks_its_descriptor_stays_charged_or_loses_the_pages);
        tcase_set_timeout(memory, 120);
        suite_add_tcase(suite, memory);
        tcase_add_loop_test(traffic, planner_workers_and_client_share_a_ring_without_a_loss, 2, 6);
        tcase_set_timeout(traffic, 180);
        suite_add_tcase(suite, traffic);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
