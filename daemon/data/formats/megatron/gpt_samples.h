/* data/formats/megatron/gpt_samples.h: which tokens a GPT sample consists of, exactly as Megatron-core's GPTDataset
 * says.
 *
 * The sequences of a part of the file are shuffled as one list, as many epochs as are needed, and laid end to end.
 * Sample s is sequence_length + 1 tokens from token s * sequence_length on; the last token of a sample is the first one
 * of the next. The samples are shuffled again. The last epoch is shuffled by itself if less than 80 % of it are used.
 *
 * Memory: 8 bytes for each sample, 4 for each sequence and epoch. Immutable once made: any number of threads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

struct gpt_terms {
        uint32_t sequence_length;  /* tokens; a sample has one more */
        uint64_t n_wanted;         /* samples; 0: as many as one epoch has */
        uint32_t seed;             /* of numpy's RandomState */
        uint64_t first, n;         /* the sequences of the file that are used */
        const uint32_t *lengths;   /* of all sequences of the file; outlives the samples */
        const atomic_bool *cancel; /* once it is true, making them ends soon with -ECANCELED; may be NULL */
};

/* What can be said without making anything. */
struct gpt_size {
        uint64_t n_epochs;
        uint64_t n_tokens;      /* of one epoch */
        uint64_t n_samples;     /* at least n_wanted */
        uint64_t n_before_last; /* the samples before those of the last epoch, if that is separate; else n_samples */
        uint64_t memory_bytes;  /* that the tables will take */
};

struct gpt_samples {
        const uint32_t *lengths;
        uint32_t sample_tokens; /* of a sample, with the extra one */
        uint64_t n_sequences;   /* in the list */
        uint64_t n_samples;
        uint32_t *sequences; /* the list */
        uint64_t *starts;    /* of each sample: its place in the list, times 2^32, and the token there */
};

/* Returns 0, -EINVAL or -EFBIG with `why`: no sample, or too many. */
int gpt_samples_size(const struct gpt_terms *terms, struct gpt_size *ret_size, struct why *why);

/* Makes the tables, of the size that gpt_samples_size() said. Returns 0, -ENOMEM or -ECANCELED with `why`. Takes about
 * 20 ns for each sample and sequence. */
int gpt_samples_make(const struct gpt_terms *terms, const struct gpt_size *size, struct gpt_samples *ret_samples,
                     struct why *why);

/* Takes a struct of zeroes. */
void gpt_samples_fini(struct gpt_samples *samples);

/* A part of a sample: tokens that lie side by side in the file. */
struct gpt_piece {
        uint64_t sequence; /* of the file */
        uint32_t offset;   /* of its first token in the sequence */
        uint32_t n_tokens; /* at least 1 */

        uint32_t n_before; /* tokens of the sample before this piece */
        uint32_t at;       /* in the list of sequences; for gpt_next_piece() */
};

/* The first piece of a sample (< n_samples), and the one after it. false: there is none. */
void gpt_first_piece(const struct gpt_samples *samples, uint64_t sample, struct gpt_piece *ret_piece);
bool gpt_next_piece(const struct gpt_samples *samples, struct gpt_piece *piece);

/* Where a sample begins in the list of sequences. Its pieces are those from there on. */
static inline uint32_t gpt_first_at(const struct gpt_samples *samples, uint64_t sample) {
        return (uint32_t)(samples->starts[sample] >> 32);
}
