/* data/formats/megatron/token_file.h: a .bin file of tokens and its .idx, opened: the index in memory, the tokens
 * mapped. */
#pragma once

#include <stdatomic.h>
#include <sys/stat.h>

#include "daemon/base/budget.h"
#include "daemon/data/formats/megatron/idx.h"

struct token_file {
        char *bin_name, *idx_name; /* relative to the root, or absolute */
        struct stat bin, idx;      /* their status from before they were read */
        uint64_t mark;             /* of the .bin file: index_mark() */
        struct megatron_idx index;
        uint64_t bin_bytes;

        uint8_t *map; /* of the .bin file; NULL: it cannot be mapped, or has no bytes */

        /* Bytes of the last page are never taken from the mapping: see token_file_was_there(). A copy is kept here,
         * from byte tail_at on; what begins before last_page is in the mapping. */
        uint8_t *tail;
        uint64_t tail_at, last_page;

        struct budget *budget;
        uint64_t reserved_bytes;
};

/* Opens PREFIX.bin and PREFIX.idx. The memory for the index is counted in `budget` (NULL: it is not). Waits until the
 * files have rested: `settled_ns` as in index_stamp.h. Returns 0 or an errno with `why`, which names the file. What was
 * opened is to be given back in either case. Blocks as long as reading the .idx file takes. */
int token_file_open(struct token_file *file, int root_fd, const char *prefix, const atomic_bool *cancel,
                    struct budget *budget, int64_t *settled_ns, struct why *why);

/* Takes a struct of zeroes. */
void token_file_fini(struct token_file *file);

/* Where `n_bytes` bytes from byte `at` on are in memory or mapped; NULL: they have to be read. If only the first of
 * them are there, whole tokens, *ret_n says how many. */
const uint8_t *token_file_bytes(const struct token_file *file, uint64_t at, uint64_t n_bytes, uint64_t *ret_n);

/* If the file is cut, its last page is gone, so touching that page tells. Only a cut within that page is not noticed,
 * and bytes of that page are never taken from the mapping. For a file that is mapped. */
bool token_file_was_there(const struct token_file *file);
