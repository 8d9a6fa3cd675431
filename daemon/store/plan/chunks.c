#include "daemon/store/plan/chunks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* A chunk as it is kept: the offset in chunks. PLAN_FILES_MAX and PLAN_BYTES_MAX / CHUNK_BYTES fit 32 bits. */
struct packed {
        uint32_t first_file;
        uint32_t n_files;
        uint32_t n_bytes;
        uint32_t idx_in_file;
};

struct chunks {
        uint64_t n_chunks;
        struct packed list[];
};

_Static_assert(sizeof(struct packed) == 16, "what the header promises");
_Static_assert(PLAN_FILES_MAX <= 1ull << 32, "an index of a file fits");
_Static_assert(PLAN_BYTES_MAX / CHUNK_BYTES <= UINT32_MAX, "a place in a file fits");
_Static_assert((CHUNK_BYTES & (CHUNK_BYTES - 1)) == 0, "a power of two");

static uint64_t n_parts(uint64_t n_bytes) {
        return n_bytes / CHUNK_BYTES + (n_bytes % CHUNK_BYTES != 0);
}

/* The chunk of small files that begins with this one: as many neighbours as fit. */
static struct packed chunks_gather(const struct plan *plan, uint64_t idx_file) {
        struct packed chunk = { .first_file = (uint32_t)idx_file };
        uint64_t n_left = plan_n_files(plan) - idx_file;

        while (chunk.n_files < CHUNK_FILES_MAX && chunk.n_files < n_left) {
                uint64_t n_bytes = plan_file(plan, idx_file + chunk.n_files)->n_bytes;

                if (n_bytes > CHUNK_BYTES - chunk.n_bytes)
                        break;
                chunk.n_bytes += (uint32_t)n_bytes;
                chunk.n_files++;
        }
        return chunk;
}

static struct packed chunks_cut(uint64_t idx_file, uint64_t n_bytes, uint64_t idx_in_file) {
        uint64_t n_left = n_bytes - idx_in_file * CHUNK_BYTES;

        return (struct packed){ .first_file = (uint32_t)idx_file,
                                .n_files = 1,
                                .n_bytes = n_left < CHUNK_BYTES ? (uint32_t)n_left : CHUNK_BYTES,
                                .idx_in_file = (uint32_t)idx_in_file };
}

/* Goes through the plan. With `list` NULL it only counts, so that counting and filling cannot differ. */
static uint64_t chunks_divide(const struct plan *plan, struct packed *list) {
        uint64_t n_chunks = 0;

        for (uint64_t i = 0; i < plan_n_files(plan);) {
                uint64_t n_bytes = plan_file(plan, i)->n_bytes;

                if (n_bytes <= CHUNK_BYTES) {
                        struct packed chunk = chunks_gather(plan, i);

                        if (list)
                                list[n_chunks] = chunk;
                        n_chunks++;
                        i += chunk.n_files;
                        continue;
                }
                for (uint64_t k = 0; list && k < n_parts(n_bytes); k++)
                        list[n_chunks + k] = chunks_cut(i, n_bytes, k);
                n_chunks += n_parts(n_bytes);
                i++;
        }
        return n_chunks;
}

int chunks_new(const struct plan *plan, struct chunks **ret_chunks) {
        uint64_t n_chunks = chunks_divide(plan, NULL);
        struct chunks *chunks;

        if (n_chunks > (SIZE_MAX - sizeof(*chunks)) / sizeof(chunks->list[0]))
                return -ENOMEM;
        chunks = malloc(sizeof(*chunks) + n_chunks * sizeof(chunks->list[0]));
        if (!chunks)
                return -ENOMEM;
        chunks->n_chunks = n_chunks;
        chunks_divide(plan, chunks->list);
        *ret_chunks = chunks;
        return 0;
}

void chunks_free(struct chunks *chunks) {
        free(chunks);
}

uint64_t chunks_count(const struct chunks *chunks) {
        return chunks->n_chunks;
}

struct chunk chunks_get(const struct chunks *chunks, uint64_t idx) {
        const struct packed *packed = &chunks->list[idx];

        assert(idx < chunks->n_chunks);
        return (struct chunk){ .first_file = packed->first_file,
                               .n_files = packed->n_files,
                               .n_bytes = packed->n_bytes,
                               .offset = (uint64_t)packed->idx_in_file * CHUNK_BYTES };
}

/* The first chunk that begins with this file or a later one. */
static uint64_t lower_bound(const struct chunks *chunks, uint64_t idx_file) {
        uint64_t low = 0, high = chunks->n_chunks;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (chunks->list[middle].first_file < idx_file)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

uint64_t chunks_of_file(const struct chunks *chunks, uint64_t idx_file, uint64_t *ret_first) {
        uint64_t first = lower_bound(chunks, idx_file);

        if (first == chunks->n_chunks || chunks->list[first].first_file != idx_file) {
                assert(first > 0); /* the first file begins the first chunk */
                *ret_first = first - 1;
                return 1;
        }
        *ret_first = first;
        return lower_bound(chunks, idx_file + 1) - first;
}
