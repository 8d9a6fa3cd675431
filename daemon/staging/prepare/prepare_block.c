#include "daemon/staging/prepare/prepare_block.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAPPED_FROM (256u << 10) /* bytes; pages cost a fault each, next to a picture of that size they are nothing */
#define PAGE        4096u

static size_t whole_pages(size_t n) {
        return (n + PAGE - 1) / PAGE * PAGE;
}

static int grow_heap(struct block *block, size_t n) {
        void *bytes = realloc(block->bytes, n ? n : 1);

        if (!bytes)
                return -ENOMEM;
        *block = (struct block){ .bytes = bytes, .capacity = n };
        return 0;
}

static int prepare_block_map(size_t n, void **ret_bytes) {
        void *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (bytes == MAP_FAILED)
                return -ENOMEM;
        *ret_bytes = bytes;
        return 0;
}

int block_grow(struct block *block, size_t n) {
        void *bytes;
        int r;

        if (block->bytes && n <= block->capacity)
                return 0;
        if (n > SIZE_MAX / 2)
                return -ENOMEM;
        if (n < MAPPED_FROM)
                return grow_heap(block, n);

        n = whole_pages(n);
        if (block->is_mapped) {
                bytes = mremap(block->bytes, block->capacity, n, MREMAP_MAYMOVE);
                if (bytes == MAP_FAILED)
                        return -ENOMEM;
        } else {
                r = prepare_block_map(n, &bytes);
                if (r < 0)
                        return r;
                if (block->bytes)
                        memcpy(bytes, block->bytes, block->capacity);
                free(block->bytes);
        }
        *block = (struct block){ .bytes = bytes, .capacity = n, .is_mapped = true };
        return 0;
}

void block_shrink(struct block *block, size_t n) {
        assert(n <= block->capacity);
        if (block->is_mapped) {
                n = whole_pages(n ? n : 1);
                if (n < block->capacity && munmap(block->bytes + n, block->capacity - n) == 0)
                        block->capacity = n;
        } else if (n < block->capacity) {
                void *bytes = realloc(block->bytes, n ? n : 1);

                if (bytes)
                        *block = (struct block){ .bytes = bytes, .capacity = n };
        }
}

void block_free(struct block *block) {
        if (block->is_mapped)
                munmap(block->bytes, block->capacity);
        else
                free(block->bytes);
        *block = (struct block){};
}

int block_map(struct block *block, int fd, size_t n) {
        void *bytes = mmap(NULL, whole_pages(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (bytes == MAP_FAILED)
                return -errno;
        *block = (struct block){ .bytes = bytes, .capacity = whole_pages(n), .is_mapped = true };
        return 0;
}
