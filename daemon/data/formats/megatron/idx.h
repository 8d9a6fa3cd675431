/* data/formats/megatron/idx.h: the .idx file of a token file, checked.
 *
 * The .bin file holds the tokens of all sequences. The .idx file says where each of them begins and how long it is, and
 * which sequences are a document. Two programs write such files: Megatron, and fairseq, which has no documents; their
 * sizes tell them apart. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/layout.h"

struct megatron_idx {
        uint32_t dtype; /* of a token: enum dlp_dtype */
        uint32_t token_bytes;
        bool is_fairseq;
        uint64_t n_sequences; /* at least 1 */
        uint64_t n_documents; /* of fairseq's file: 0 */
        uint64_t n_tokens;
        uint32_t longest; /* tokens of the longest sequence */

        uint32_t *lengths;   /* of each sequence, in tokens */
        uint64_t *pointers;  /* to its first byte in the .bin file; all its bytes are within that file */
        uint64_t *documents; /* n_documents + 1 numbers: document d has the sequences documents[d] up to [d + 1] */
        int8_t *modes;       /* of each sequence, e.g. 0 = text, 1 = picture; NULL: the file has none */
};

/* What is known without reading the tables; for the memory that they will take. */
struct megatron_head {
        uint32_t code; /* of the dtype, as in the file */
        bool is_fairseq, has_modes;
        uint64_t n_sequences, n_document_numbers;
        uint64_t tables_at;    /* byte */
        uint64_t memory_bytes; /* that megatron_idx_read() will take */
};

/* Reads the head of an .idx file of `size` bytes. Returns 0 or an errno with `why`, without the file's name. Blocks for
 * a read. */
int megatron_idx_head(int fd, uint64_t size, struct megatron_head *ret_head, struct why *why);

/* Reads the tables and checks each entry against the size of the .bin file. `cancel` may be NULL; once it is true, this
 * ends soon with -ECANCELED. Returns as above. Blocks as long as reading the file takes. */
int megatron_idx_read(int fd, const struct megatron_head *head, uint64_t bin_bytes, const atomic_bool *cancel,
                      struct megatron_idx *ret_idx, struct why *why);

/* Takes a struct of zeroes. */
void megatron_idx_fini(struct megatron_idx *idx);
