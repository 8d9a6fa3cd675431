/* cuda/arena.c: device memory, which is memory of the process.
 *
 * Blocks lie in a range of addresses of their own, each between pages that cannot be touched, and end where such a page
 * begins, as far as alignment allows. What a kernel touches beyond them is a fault; what it writes into the odd bytes
 * is found when they are freed. Freed memory cannot be touched either. New memory does not hold zeros. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/cuda/inside.h"

#define ARENA_BYTES (64ull << 30)
#define PAGE        4096ull
#define ALIGNMENT   256ull /* of what cuMemAlloc() returns */
#define FRESH       0xdb

static uint64_t arena, next_at;
static struct block *blocks;

static uint64_t round_up(uint64_t n, uint64_t to) {
        return (n + to - 1) / to * to;
}

bool in_arena(uint64_t address) {
        return arena && address >= arena && address < arena + ARENA_BYTES;
}

static bool reserve(void) {
        void *memory;

        if (arena)
                return true;
        memory = mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return false;
        arena = next_at = (uint64_t)memory;
        return true;
}

/* The end of a block in the way of `n` bytes at `at`, with a page on either side; 0 if there is none. */
static uint64_t in_the_way(uint64_t at, uint64_t n) {
        for (const struct block *block = blocks; block; block = block->next)
                if (at < block->pages + block->n_page_bytes + PAGE && block->pages < at + n + PAGE)
                        return block->pages + block->n_page_bytes;
        return 0;
}

/* Addresses are used again as late as possible. Returns 0 if there is no room. */
static uint64_t place(uint64_t n) {
        uint64_t at = next_at + PAGE, way;
        bool wrapped = false;

        for (;;) {
                if (at + n + PAGE > arena + ARENA_BYTES) {
                        if (wrapped)
                                return 0;
                        wrapped = true;
                        at = arena + PAGE;
                }
                way = in_the_way(at, n);
                if (!way)
                        break;
                at = way + PAGE;
        }
        next_at = at + n;
        return at;
}

/* Memory whose asynchronous free is queued comes back when that is executed, and an allocation waits for it. */
static bool has_room(struct context *context, uint64_t n_bytes) {
        bool comes_back = false;

        if (n_bytes <= the.settings.memory_bytes - context->bytes_allocated)
                return true;
        for (const struct block *block = blocks; block; block = block->next)
                comes_back |= block->freeing && block->context == context;
        if (comes_back)
                context_drain(context);
        return n_bytes <= the.settings.memory_bytes - context->bytes_allocated;
}

static void count(struct context *context, uint64_t n_bytes) {
        context->bytes_allocated += n_bytes;
        the.counts.n_allocations++;
        the.counts.bytes_allocated += n_bytes;
        if (the.counts.bytes_allocated > the.counts.max_bytes_allocated)
                the.counts.max_bytes_allocated = the.counts.bytes_allocated;
}

int block_new(struct context *context, uint64_t n_bytes, struct block **ret_block) {
        struct block *block;
        uint64_t n_page_bytes, pages;

        if (n_bytes == 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (n_bytes > ARENA_BYTES || !has_room(context, n_bytes) || !reserve())
                return CUDA_ERROR_OUT_OF_MEMORY;
        n_page_bytes = round_up(n_bytes, PAGE);
        pages = place(n_page_bytes);
        if (!pages || mprotect((void *)pages, n_page_bytes, PROT_READ | PROT_WRITE) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        memset((void *)pages, FRESH, n_page_bytes);
        block = must_alloc(sizeof(*block));
        *block = (struct block){
                .at = pages + n_page_bytes - round_up(n_bytes, ALIGNMENT),
                .n_bytes = n_bytes,
                .pages = pages,
                .n_page_bytes = n_page_bytes,
                .context = context,
                .next = blocks,
        };
        blocks = block;
        count(context, n_bytes);
        *ret_block = block;
        return CUDA_SUCCESS;
}

static bool is_fresh(uint64_t from, uint64_t to) {
        for (uint64_t at = from; at < to; at++)
                if (*(const volatile uint8_t *)at != FRESH)
                        return false;
        return true;
}

void block_free(struct block *block) {
        struct block **at = &blocks;

        while (*at != block)
                at = &(*at)->next;
        *at = block->next; /* nobody finds it any more */
        if (block->n_busy > 0)
                violation("device memory at %#lx was freed while a copy used it", (unsigned long)block->at);
        while (block->n_busy > 0)
                pthread_cond_wait(&the_condition, &the_lock);
        if (!is_fresh(block->pages, block->at) ||
            !is_fresh(block->at + block->n_bytes, block->pages + block->n_page_bytes))
                violation("something was written beside the %lu bytes of device memory at %#lx",
                          (unsigned long)block->n_bytes, (unsigned long)block->at);
        madvise((void *)block->pages, block->n_page_bytes, MADV_DONTNEED);
        mprotect((void *)block->pages, block->n_page_bytes, PROT_NONE);
        block->context->bytes_allocated -= block->n_bytes;
        the.counts.n_allocations--;
        the.counts.bytes_allocated -= block->n_bytes;
        free(block);
}

struct block *block_holding(uint64_t address, uint64_t n_bytes) {
        for (struct block *block = blocks; block; block = block->next)
                if (address >= block->at && address - block->at <= block->n_bytes &&
                    n_bytes <= block->n_bytes - (address - block->at))
                        return block;
        return NULL;
}

uint64_t blocks_free(struct context *context) {
        struct block *block = blocks, *next;
        uint64_t n = 0;

        for (; block; block = next) {
                next = block->next;
                if (context && block->context != context)
                        continue;
                block_free(block);
                n++;
        }
        return n;
}
