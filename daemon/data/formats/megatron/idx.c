#include "daemon/data/formats/megatron/idx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define MAGIC         "MMIDIDX\0\0"
#define MAGIC_BYTES   9u
#define VERSION       1u
#define HEAD_BYTES    26u         /* magic, version, code, number of sequences */
#define DOCS_AT       HEAD_BYTES  /* Megatron: the number of document numbers */
#define PART_BYTES    (4u << 20)  /* read between two looks at `cancel` */
#define CODE_FLOAT    7u          /* float32 now; double in older files and in fairseq's */
#define SEQUENCES_MAX 0x7fffffffu /* Megatron's numbers of sequences are int32 */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tables are read as they are in the file");

static const uint32_t DTYPES[] = {
        [1] = DLP_DTYPE_UINT8,  [2] = DLP_DTYPE_INT8,    [3] = DLP_DTYPE_INT16,   [4] = DLP_DTYPE_INT32,
        [5] = DLP_DTYPE_INT64,  [6] = DLP_DTYPE_FLOAT64, [7] = DLP_DTYPE_FLOAT32, [8] = DLP_DTYPE_UINT16,
        [9] = DLP_DTYPE_UINT32, [10] = DLP_DTYPE_UINT64, /* fairseq's alone */
};
#define CODES_MEGATRON 8u
#define CODES_FAIRSEQ  10u

void megatron_idx_fini(struct megatron_idx *idx) {
        free(idx->lengths);
        free(idx->pointers);
        free(idx->documents);
        free(idx->modes);
        *idx = (struct megatron_idx){ 0 };
}

/* ---- the head -------------------------------------------------------------------------------------------------- */

/* The two layouts never have the same size: 34 + 12 S + 8 D, with S more for modes, and 26 + 12 S. */
static int find_layout(const uint8_t *bytes, uint64_t n_read, uint64_t size, struct megatron_head *head,
                       struct why *why) {
        uint64_t n = head->n_sequences, n_docs = n_read >= DOCS_AT + 8 ? le64(bytes + DOCS_AT) : UINT64_MAX;
        uint64_t sequences = 12 * n, plain;

        if (size - HEAD_BYTES == sequences) {
                head->is_fairseq = true;
                head->tables_at = HEAD_BYTES;
                return 0;
        }
        if (n_docs > size / 8)
                return why_set(why, -EBADMSG,
                               "has %" PRIu64
                               " bytes, which fits neither Megatron's layout nor fairseq's for the %" PRIu64
                               " sequences that it says it has: it was cut, or its writer was stopped",
                               size, n);
        plain = DOCS_AT + 8 + sequences + 8 * n_docs;
        if (size != plain && size != plain + n)
                return why_set(why, -EBADMSG,
                               "has %" PRIu64 " bytes; with %" PRIu64 " sequences and %" PRIu64
                               " document numbers it would have %" PRIu64 " (%" PRIu64
                               " with modes): it was cut, or its writer was stopped",
                               size, n, n_docs, plain, plain + n);
        head->has_modes = size != plain;
        head->n_document_numbers = n_docs;
        head->tables_at = DOCS_AT + 8;
        return 0;
}

int megatron_idx_head(int fd, uint64_t size, struct megatron_head *ret_head, struct why *why) {
        uint8_t bytes[DOCS_AT + 8];
        size_t n = size < sizeof(bytes) ? (size_t)size : sizeof(bytes);
        struct megatron_head head = { 0 };
        int r = indexing_read_at(fd, bytes, n, 0);

        if (r < 0)
                return why_errno(why, r, "cannot be read");
        if (n < HEAD_BYTES || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
                return why_set(why, -EBADMSG,
                               "does not begin as an index of tokens: it should begin with \"MMIDIDX\" and two NULs "
                               "(the older formats of fairseq, \"lazy\" and \"cached\", have to be written again)");
        if (le64(bytes + MAGIC_BYTES) != VERSION)
                return why_set(why, -EBADMSG, "is of version %" PRIu64 "; known is version %u",
                               le64(bytes + MAGIC_BYTES), VERSION);
        head.code = bytes[MAGIC_BYTES + 8];
        head.n_sequences = le64(bytes + MAGIC_BYTES + 9);
        if (head.n_sequences == 0)
                return why_set(why, -EINVAL, "has no sequences");
        if (head.n_sequences > size / 12)
                return why_set(why, -EBADMSG,
                               "says that it has %" PRIu64 " sequences, for which its %" PRIu64 " bytes are too few",
                               head.n_sequences, size);
        if (head.n_sequences > SEQUENCES_MAX)
                return why_set(why, -EFBIG, "has %" PRIu64 " sequences, at most %u are possible", head.n_sequences,
                               SEQUENCES_MAX);
        r = find_layout(bytes, n, size, &head, why);
        if (r < 0)
                return r;
        if (head.code < 1 || head.code > (head.is_fairseq ? CODES_FAIRSEQ : CODES_MEGATRON))
                return why_set(why, -EBADMSG, "has the unknown dtype code %u; known are 1 to %u", head.code,
                               head.is_fairseq ? CODES_FAIRSEQ : CODES_MEGATRON);
        head.memory_bytes = 12 * head.n_sequences + 8 * head.n_document_numbers +
                            (head.has_modes ? head.n_sequences : 0);
        *ret_head = head;
        return 0;
}

/* ---- the tables ------------------------------------------------------------------------------------------------ */

/* Returns the table, or NULL with the errno in `r`. Does nothing after an error. */
static void *idx_read_table(int fd, uint64_t at, uint64_t n_bytes, const atomic_bool *cancel, int *r, struct why *why) {
        _cleanup_(freep) uint8_t *table = NULL;

        if (*r < 0)
                return NULL;
        table = malloc(n_bytes ? n_bytes : 1);
        if (!table)
                *r = why_set(why, -ENOMEM, "needs %" PRIu64 " bytes of memory, which are not available", n_bytes);
        for (uint64_t done = 0; done < n_bytes && *r == 0;) {
                size_t n = n_bytes - done < PART_BYTES ? (size_t)(n_bytes - done) : PART_BYTES;

                *r = indexing_read_at(fd, table + done, n, at + done);
                if (*r < 0)
                        why_errno(why, *r, "cannot be read");
                else if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
                        *r = why_set(why, -ECANCELED, "reading it was cancelled");
                done += n;
        }
        return *r < 0 ? NULL : TAKE_PTR(table);
}

static int idx_read_tables(int fd, const struct megatron_head *head, const atomic_bool *cancel,
                           struct megatron_idx *idx, struct why *why) {
        uint64_t n = head->n_sequences, n_docs = head->n_document_numbers, at = head->tables_at;
        int r = 0;

        idx->lengths = idx_read_table(fd, at, 4 * n, cancel, &r, why);
        idx->pointers = idx_read_table(fd, at + 4 * n, 8 * n, cancel, &r, why);
        if (!head->is_fairseq)
                idx->documents = idx_read_table(fd, at + 12 * n, 8 * n_docs, cancel, &r, why);
        if (head->has_modes)
                idx->modes = idx_read_table(fd, at + 12 * n + 8 * n_docs, n, cancel, &r, why);
        return r;
}

static int check_sequence(const struct megatron_idx *idx, uint64_t i, uint64_t bin_bytes, struct why *why) {
        uint64_t n_bytes = (uint64_t)idx->lengths[i] * idx->token_bytes, at = idx->pointers[i];

        if (idx->lengths[i] > INT32_MAX)
                return why_set(why, -EBADMSG, "sequence %" PRIu64 " has a negative length (%" PRId32 ")", i,
                               (int32_t)idx->lengths[i]);
        if (at <= bin_bytes && n_bytes <= bin_bytes - at)
                return 0;
        return why_set(why, -EBADMSG,
                       "sequence %" PRIu64 " has %" PRIu32 " tokens of %u bytes from byte %" PRId64
                       " on, and the .bin file has %" PRIu64
                       " bytes: the .bin file was cut, or the program that wrote the index cannot count beyond 2 GiB; "
                       "write it again",
                       i, idx->lengths[i], idx->token_bytes, (int64_t)at, bin_bytes);
}

static int check_sequences(struct megatron_idx *idx, uint64_t bin_bytes, struct why *why) {
        for (uint64_t i = 0; i < idx->n_sequences; i++) {
                int r = check_sequence(idx, i, bin_bytes, why);

                if (r < 0)
                        return r;
                idx->n_tokens += idx->lengths[i];
                idx->longest = idx->lengths[i] > idx->longest ? idx->lengths[i] : idx->longest;
        }
        return 0;
}

static int check_documents(struct megatron_idx *idx, uint64_t n_numbers, struct why *why) {
        if (n_numbers == 0 || idx->documents[0] != 0 || idx->documents[n_numbers - 1] != idx->n_sequences)
                return why_set(why, -EBADMSG, "its list of documents does not go from sequence 0 to sequence %" PRIu64,
                               idx->n_sequences);
        for (uint64_t i = 1; i < n_numbers; i++)
                if (idx->documents[i] < idx->documents[i - 1])
                        return why_set(why, -EBADMSG,
                                       "document %" PRIu64 " ends at sequence %" PRIu64
                                       ", before it begins (at sequence %" PRIu64 ")",
                                       i - 1, idx->documents[i], idx->documents[i - 1]);
        idx->n_documents = n_numbers - 1;
        return 0;
}

/* Code 7 is float32 today and was double in older files; the size of the tokens tells. */
static uint32_t idx_dtype_of(const struct megatron_head *head, const struct megatron_idx *idx, uint64_t bin_bytes) {
        uint64_t n_tokens = 0;

        for (uint64_t i = 0; i < idx->n_sequences && head->code == CODE_FLOAT; i++)
                n_tokens += idx->lengths[i];
        return n_tokens > 0 && n_tokens == bin_bytes / 8 ? DLP_DTYPE_FLOAT64 : DTYPES[head->code];
}

int megatron_idx_read(int fd, const struct megatron_head *head, uint64_t bin_bytes, const atomic_bool *cancel,
                      struct megatron_idx *ret_idx, struct why *why) {
        struct megatron_idx idx = { .is_fairseq = head->is_fairseq, .n_sequences = head->n_sequences };
        int r = idx_read_tables(fd, head, cancel, &idx, why);

        if (r == 0) {
                idx.dtype = idx_dtype_of(head, &idx, bin_bytes);
                idx.token_bytes = (uint32_t)dlp_dtype_bytes(idx.dtype);
                r = check_sequences(&idx, bin_bytes, why);
        }
        if (r == 0 && !head->is_fairseq)
                r = check_documents(&idx, head->n_document_numbers, why);
        if (r < 0) {
                megatron_idx_fini(&idx);
                return r;
        }
        *ret_idx = idx;
        return 0;
}
