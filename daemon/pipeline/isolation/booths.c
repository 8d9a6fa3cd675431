#include "daemon/pipeline/isolation/booths.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/pipeline/task.h"

#define TRAY_BYTES (TASK_BUFFER_BYTES + (64u << 10)) /* what a task reads, and values */

static uint64_t cost(const struct booths *booths) {
        return booths->setup.own_bytes + ISOLATION_CELL_BYTES;
}

void booths_init(struct booths *booths, struct isolation *isolation, struct budget *budget, uint64_t own_bytes) {
        *booths = (struct booths){ .isolation = isolation, .budget = budget };
        if (isolation)
                booths->setup = isolation->setup;
        booths->setup.own_bytes = own_bytes;
}

static void drop_tray(struct booths *booths, struct booth *booth) {
        if (booth->bytes)
                munmap(booth->bytes, booth->tray.n_bytes);
        booth->bytes = NULL;
        cells_unshare(booths->isolation->cells, &booth->tray);
}

/* Nothing of its user stays. */
static void booths_clear(struct booths *booths, struct booth *booth) {
        cell_end(booth->cell, 0, NULL);
        booth->cell = NULL;
        booth->cpu_ns = 0;
        drop_tray(booths, booth);
}

void booths_fini(struct booths *booths) {
        for (uint32_t i = 0; i < BOOTHS_MAX; i++) {
                struct booth *booth = &booths->of[i];

                if (booth->tray.number == 0)
                        continue;
                booths_clear(booths, booth);
                if (i > 0)
                        budget_release(booths->budget, cost(booths));
        }
}

static int make_tray(struct booths *booths, struct booth *booth, uint64_t n_bytes, struct why *why) {
        struct cell_memory tray;
        int r = cells_share(booths->isolation->cells, "dataloaderd-tray", NULL, n_bytes, &tray);
        void *bytes;

        if (r < 0)
                return why_errno(why, r, "isolation: memory for the bytes of a sample");
        bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, tray.fd, 0);
        if (bytes == MAP_FAILED) {
                cells_unshare(booths->isolation->cells, &tray);
                return why_set(why, -ENOMEM, "isolation: memory for the bytes of a sample");
        }
        if (booth->bytes)
                memcpy(bytes, booth->bytes, booth->tray.n_bytes);
        drop_tray(booths, booth);
        booth->tray = tray;
        booth->bytes = bytes;
        return 0;
}

int booth_widen(struct booths *booths, struct booth *booth, uint64_t n_bytes, struct why *why) {
        return n_bytes <= booth->tray.n_bytes ? 0 : make_tray(booths, booth, n_bytes, why);
}

/* An empty one that can be paid for, else that which was used longest ago. */
static struct booth *booths_make_room(struct booths *booths) {
        struct booth *oldest = &booths->of[0];

        for (uint32_t i = 0; i < BOOTHS_MAX; i++) {
                struct booth *booth = &booths->of[i];

                if (booth->tray.number == 0) {
                        if (i == 0 || budget_reserve(booths->budget, cost(booths), "a decoder's process", NULL) == 0)
                                return booth;
                        break;
                }
                if (booth->used < oldest->used)
                        oldest = booth;
        }
        booths_clear(booths, oldest);
        return oldest;
}

int booths_get(struct booths *booths, uid_t uid, struct booth **ret_booth, struct why *why) {
        struct booth *booth = NULL;
        int r;

        for (uint32_t i = 0; i < BOOTHS_MAX && !booth; i++)
                if (booths->of[i].tray.number > 0 && booths->of[i].uid == uid)
                        booth = &booths->of[i];
        if (!booth) {
                booth = booths_make_room(booths);
                r = make_tray(booths, booth, TRAY_BYTES, why);
                if (r < 0) {
                        if (booth != &booths->of[0])
                                budget_release(booths->budget, cost(booths));
                        return r;
                }
                booth->uid = uid;
        }
        booth->used = ++booths->n_used;
        *ret_booth = booth;
        return 0;
}

int booth_cell(struct booths *booths, struct booth *booth, struct cell **ret_cell, struct why *why) {
        int r = booth->cell ? 0 : isolation_start_cell(booths->isolation, &booths->setup, &booth->cell, why);

        if (r == 0)
                *ret_cell = booth->cell;
        return r;
}

void booth_end_cell(struct booth *booth, int error, struct why *ret_how) {
        struct cell_ending ending;

        cell_end(booth->cell, error, &ending);
        cell_ending_describe(&ending, error, ret_how);
        booth->cell = NULL;
        booth->cpu_ns = 0;
}
