#include "daemon/data/index/indexing.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/bytes.h"

#define PIECE_BYTES (4u << 20) /* read between two looks: slow disks take a tenth of a second for it */

struct indexing_limits INDEXING_LIMITS;

static _Thread_local struct indexing *joined;

void indexing_join(struct indexing *indexing) {
        if (joined)
                errand_end();
        joined = indexing;
        if (joined)
                errand_begin(joined->errands, NULL);
}

struct indexing *indexing_joined(void) {
        return joined;
}

bool indexing_is_over(void) {
        struct indexing *indexing = joined;

        if (!indexing)
                return false;
        errand_look();
        if (INDEXING_LIMITS.n_looks > 0 && atomic_fetch_add(&indexing->n_looks, 1) + 1 >= INDEXING_LIMITS.n_looks)
                return true;
        return indexing->cancel && atomic_load_explicit(indexing->cancel, memory_order_relaxed);
}

void indexing_count_hidden(void) {
        if (joined && atomic_fetch_add_explicit(&joined->n_hidden, 1, memory_order_relaxed) == UINT32_MAX)
                atomic_store_explicit(&joined->n_hidden, UINT32_MAX, memory_order_relaxed);
}

void indexing_pass_over(const char *name, bool (*is_taken)(const char *name)) {
        if (name[0] == '.' && name[1] != '\0' && is_taken(name + 1))
                indexing_count_hidden();
}

const struct indexing_origin *indexing_origin(void) {
        return joined ? joined->origin : NULL;
}

uint64_t indexing_length(const char *name, uint64_t n_bytes) {
        const struct indexing_cut *cut = joined ? &joined->cut : NULL;

        return cut && cut->name && strcmp(cut->name, name) == 0 ? cut->n_bytes + cut->n_zeros : n_bytes;
}

static int indexing_read_piece(int fd, void *into, size_t n_bytes, uint64_t offset) {
        const struct indexing_origin *origin = indexing_origin();
        uint64_t n_zeros = joined ? joined->cut.n_zeros : 0, end = n_zeros > 0 ? joined->cut.n_bytes : UINT64_MAX;

        if (offset + n_bytes > end) {
                size_t n = offset < end ? (size_t)(end - offset) : 0;

                memset((uint8_t *)into + n, 0, n_bytes - n);
                n_bytes = n;
        }
        if (n_bytes == 0)
                return 0;
        return origin ? origin->read(origin->userdata, fd, into, n_bytes, offset, joined->cancel)
                      : disk_read_at(fd, into, n_bytes, offset);
}

int indexing_read_at(int fd, void *into, size_t n_bytes, uint64_t offset) {
        uint8_t *at = into;
        int r = 0;

        do {
                size_t n = n_bytes < PIECE_BYTES ? n_bytes : PIECE_BYTES;

                r = indexing_is_over() ? -ECANCELED : indexing_read_piece(fd, at, n, offset);
                at += n;
                offset += n;
                n_bytes -= n;
        } while (r == 0 && n_bytes > 0);
        return r;
}

ssize_t indexing_read_head(int fd, void *into, size_t n_bytes) {
        struct stat status;
        int r;

        if (fstat(fd, &status) < 0)
                return -errno;
        if ((uint64_t)status.st_size < n_bytes)
                n_bytes = (size_t)status.st_size;
        r = indexing_read_at(fd, into, n_bytes, 0);
        return r < 0 ? r : (ssize_t)n_bytes;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Others must find something, too, so an index never takes more than three quarters of what they leave. */
static int indexing_reserve(struct indexing *indexing, uint64_t n_bytes, const char *what, struct why *why) {
        struct budget *budget = indexing->budget;
        uint64_t mine = atomic_fetch_add(&indexing->n_bytes, n_bytes), used = budget_used(budget);
        uint64_t others = used > mine ? used - mine : 0, most = (budget->limit_bytes - others) / 4 * 3;
        char needed[BYTES_TEXT_MAX], allowed[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];
        int r;

        if (n_bytes > most || mine > most - n_bytes)
                r = why_set(
                        why, -ENOMEM,
                        "memory_limit: making the index%s%s%s needs more than %s; %s are allowed, three quarters of "
                        "what others leave of %s: raise memory_limit, or make several datasets of it",
                        what ? " with " : "", what ? what : "", what ? "," : "", format_bytes(needed, mine + n_bytes),
                        format_bytes(allowed, most), format_bytes(limit, budget->limit_bytes));
        else
                r = budget_reserve(budget, n_bytes, "making the index", why);
        if (r < 0)
                atomic_fetch_sub(&indexing->n_bytes, n_bytes);
        return r;
}

int indexing_pay(struct indexing *indexing, uint64_t n_bytes) {
        return indexing_pay_for(indexing, n_bytes, NULL);
}

int indexing_pay_for(struct indexing *indexing, uint64_t n_bytes, const char *what) {
        struct why why;

        if (!indexing || !indexing->budget || indexing_reserve(indexing, n_bytes, what, &why) == 0)
                return 0;
        if (!atomic_flag_test_and_set(&indexing->is_refusing))
                indexing->refusal = why;
        return -ENOMEM;
}

void indexing_pay_back(struct indexing *indexing, uint64_t n_bytes) {
        if (!indexing || !indexing->budget || n_bytes == 0)
                return;
        budget_release(indexing->budget, n_bytes);
        atomic_fetch_sub(&indexing->n_bytes, n_bytes);
}
