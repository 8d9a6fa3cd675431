/* Any bytes as the index of a token file: what is accepted lies within the .bin file, sequence by sequence, and samples
 * made of it are whole. The first byte says how large the .bin file is, the second one how long samples are. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/formats/megatron/gpt_samples.h"
#include "daemon/data/formats/megatron/gpt_split.h"
#include "daemon/data/formats/megatron/idx.h"
#include "proto/base/cleanup.h"

#define TOKENS_MAX  20000u /* of an index whose samples are made */
#define BIN_UNIT    64u    /* bytes */
#define SPLITS_SIZE 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: an index was accepted %s\n", what);
        abort();
}

static void check_idx(const struct megatron_idx *idx, uint64_t bin_bytes) {
        uint64_t n_tokens = 0;

        for (uint64_t i = 0; i < idx->n_sequences; i++) {
                uint64_t n = (uint64_t)idx->lengths[i] * idx->token_bytes;

                if (idx->lengths[i] > idx->longest || idx->pointers[i] > bin_bytes || n > bin_bytes - idx->pointers[i])
                        find("with a sequence that is not within the .bin file");
                n_tokens += idx->lengths[i];
        }
        for (uint64_t i = 0; i < idx->n_documents; i++)
                if (idx->documents[i] > idx->documents[i + 1] || idx->documents[i + 1] > idx->n_sequences)
                        find("with a document that is not in the list of sequences");
        if (n_tokens != idx->n_tokens)
                find("with another number of tokens");
}

static void check_sample(const struct gpt_samples *samples, const struct gpt_terms *terms, uint64_t sample) {
        struct gpt_piece piece;
        uint64_t n = 0;

        gpt_first_piece(samples, sample, &piece);
        do {
                if (piece.n_tokens == 0 || piece.n_before != n || piece.sequence < terms->first ||
                    piece.sequence >= terms->first + terms->n ||
                    (uint64_t)piece.offset + piece.n_tokens > terms->lengths[piece.sequence])
                        find("that has samples with tokens of nowhere");
                n += piece.n_tokens;
        } while (gpt_next_piece(samples, &piece));
        if (n != (uint64_t)terms->sequence_length + 1)
                find("that has samples of another length");
}

static void check_samples(const struct megatron_idx *idx, uint8_t choice) {
        struct gpt_terms terms = { .sequence_length = choice % 64 + 1u, .n_wanted = choice, .lengths = idx->lengths };
        struct gpt_samples samples;
        struct gpt_size size;
        struct why why = { 0 };

        if (gpt_split(choice & 1 ? "8,1,1" : NULL, choice & 2 ? "test" : NULL, idx->n_sequences, &terms.first, &terms.n,
                      &why) < 0 ||
            gpt_samples_size(&terms, &size, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (gpt_samples_make(&terms, &size, &samples, &why) < 0)
                abort();
        for (uint64_t i = 0; i < samples.n_samples; i++)
                check_sample(&samples, &terms, i);
        gpt_samples_fini(&samples);
}

static void check_splits(const uint8_t *data, size_t n_bytes) {
        char splits[SPLITS_SIZE] = "";
        struct why why = { 0 };
        uint64_t first, n;

        for (size_t i = 0; i < n_bytes && i + 1 < sizeof(splits); i++)
                splits[i] = (char)data[i];
        if (gpt_split(splits, NULL, 1000, &first, &n, &why) < 0 ? !why.text[0] : n == 0 || first + n > 1000)
                find("with a part that is not in it");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(closep) int fd = memfd_create("idx", MFD_CLOEXEC);
        struct megatron_head head;
        struct megatron_idx idx;
        struct why why = { 0 };
        uint64_t bin_bytes;
        int r;

        if (n_bytes < 2)
                return 0;
        bin_bytes = data[0] * BIN_UNIT;
        check_splits(data + 2, n_bytes - 2);
        if (fd < 0 || write(fd, data + 2, n_bytes - 2) != (ssize_t)(n_bytes - 2))
                _exit(2);
        r = megatron_idx_head(fd, n_bytes - 2, &head, &why);
        if (r == 0)
                r = megatron_idx_read(fd, &head, bin_bytes, NULL, &idx, &why);
        if (r < 0) {
                if (!why.text[0])
                        abort();
                return 0;
        }
        check_idx(&idx, bin_bytes);
        if (idx.n_tokens <= TOKENS_MAX)
                check_samples(&idx, data[1]);
        megatron_idx_fini(&idx);
        return 0;
}
