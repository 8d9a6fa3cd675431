#include "daemon/data/formats/megatron/gpt_samples.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"
#include "proto/order/numpy_random.h"

#define EXTRA     1u         /* token: a sample's labels are its tokens, shifted by one */
#define SEPARATE  0.80       /* of an epoch's samples */
#define PART      (1u << 20) /* elements that are made between two looks at `cancel` */
#define TABLE_MAX UINT32_MAX

void gpt_samples_fini(struct gpt_samples *samples) {
        free(samples->sequences);
        free(samples->starts);
        *samples = (struct gpt_samples){ 0 };
}

/* ---- how many -------------------------------------------------------------------------------------------------- */

static uint64_t gpt_samples_samples_of(uint64_t n_tokens, uint32_t sequence_length) {
        return n_tokens < EXTRA ? 0 : (n_tokens - EXTRA) / sequence_length;
}

static int find_epochs(const struct gpt_terms *terms, struct gpt_size *size, struct why *why) {
        uint64_t length = terms->sequence_length, wanted;

        size->n_epochs = 1;
        if (terms->n_wanted == 0)
                return 0;
        if (terms->n_wanted > TABLE_MAX)
                return why_set(why, -EFBIG, "num_samples is %" PRIu64 ", at most %" PRIu32 " are possible",
                               terms->n_wanted, TABLE_MAX);
        wanted = terms->n_wanted * length + EXTRA; /* < 2^64: both factors are below 2^32 */
        if (wanted > size->n_tokens)
                size->n_epochs = wanted / size->n_tokens + (wanted % size->n_tokens != 0);
        return 0;
}

static void find_last_epoch(const struct gpt_terms *terms, struct gpt_size *size) {
        uint64_t before, of_last, of_epoch;

        size->n_before_last = size->n_samples;
        if (size->n_epochs == 1)
                return;
        before = gpt_samples_samples_of((size->n_epochs - 1) * size->n_tokens, terms->sequence_length);
        of_last = terms->n_wanted - before;
        of_epoch = gpt_samples_samples_of(size->n_tokens, terms->sequence_length);
        if (of_last < (uint64_t)(SEPARATE * (double)of_epoch))
                size->n_before_last = before;
}

int gpt_samples_size(const struct gpt_terms *terms, struct gpt_size *ret_size, struct why *why) {
        struct gpt_size size = { 0 };
        int r;

        for (uint64_t i = 0; i < terms->n; i++)
                size.n_tokens += terms->lengths[terms->first + i];
        if (size.n_tokens == 0)
                return why_set(why, -EINVAL, "its %" PRIu64 " sequences from number %" PRIu64 " on have no tokens",
                               terms->n, terms->first);
        r = find_epochs(terms, &size, why);
        if (r < 0)
                return r;
        if (size.n_epochs > TABLE_MAX / terms->n)
                return why_set(why, -EFBIG,
                               "%" PRIu64 " samples take %" PRIu64 " epochs of %" PRIu64
                               " sequences, whose list would have more than %" PRIu32 " entries; ask for fewer samples",
                               terms->n_wanted, size.n_epochs, terms->n, TABLE_MAX);
        size.n_samples = gpt_samples_samples_of(size.n_epochs * size.n_tokens, terms->sequence_length);
        if (size.n_samples == 0)
                return why_set(why, -EINVAL,
                               "has %" PRIu64 " tokens in the %" PRIu64
                               " sequences that are used, a sample takes %" PRIu32,
                               size.n_tokens, terms->n, terms->sequence_length + EXTRA);
        if (size.n_samples >= TABLE_MAX)
                return why_set(why, -EFBIG, "makes %" PRIu64 " samples, at most %" PRIu32 " are possible",
                               size.n_samples, TABLE_MAX - 1);
        find_last_epoch(terms, &size);
        size.memory_bytes = size.n_epochs * terms->n * sizeof(uint32_t) + size.n_samples * sizeof(uint64_t);
        *ret_size = size;
        return 0;
}

/* ---- the tables ------------------------------------------------------------------------------------------------ */

static bool gpt_samples_is_cancelled(const struct gpt_terms *terms) {
        return terms->cancel && atomic_load_explicit(terms->cancel, memory_order_relaxed);
}

static int gpt_samples_shuffle(const struct gpt_terms *terms, struct dlp_torch_random *random, uint32_t *table,
                               uint64_t n) {
        for (uint64_t end = n; end > 0;) {
                uint64_t begin = end > PART ? end - PART : 0;

                dlp_numpy_shuffle(random, table, begin, end);
                end = begin;
                if (gpt_samples_is_cancelled(terms))
                        return -ECANCELED;
        }
        return 0;
}

/* The sequences of `n_epochs` epochs, shuffled as one list. */
static int gpt_samples_make_list(const struct gpt_terms *terms, struct dlp_torch_random *random, uint32_t *list,
                                 uint64_t n_epochs) {
        uint64_t n = 0;

        for (uint64_t epoch = 0; epoch < n_epochs; epoch++)
                for (uint64_t i = 0; i < terms->n; i++)
                        list[n++] = (uint32_t)(terms->first + i);
        return gpt_samples_shuffle(terms, random, list, n);
}

static int make_lists(const struct gpt_terms *terms, const struct gpt_size *size, struct dlp_torch_random *random,
                      struct gpt_samples *samples) {
        uint64_t n_first = size->n_before_last < size->n_samples ? size->n_epochs - 1 : size->n_epochs;
        int r = gpt_samples_make_list(terms, random, samples->sequences, n_first);

        return r < 0 || n_first == size->n_epochs
                       ? r
                       : gpt_samples_make_list(terms, random, samples->sequences + n_first * terms->n, 1);
}

/* A sample ends at its last token, where the next one begins. The list has enough tokens for all samples. */
static int find_starts(const struct gpt_terms *terms, struct gpt_samples *samples) {
        uint64_t at = 0;
        uint32_t offset = 0;

        samples->starts[0] = 0;
        for (uint64_t i = 1; i < samples->n_samples; i++) {
                uint64_t left = samples->sample_tokens;

                for (;;) {
                        uint32_t n = terms->lengths[samples->sequences[at]] - offset;

                        if (n >= left)
                                break;
                        left -= n;
                        at++;
                        offset = 0;
                }
                offset += (uint32_t)left - EXTRA;
                samples->starts[i] = at << 32 | offset;
                if (i % PART == 0 && gpt_samples_is_cancelled(terms))
                        return -ECANCELED;
        }
        return 0;
}

/* Numpy's swaps, made with the starts instead of their numbers: sample i is then at place i. */
static int shuffle_starts(const struct gpt_terms *terms, struct dlp_torch_random *random, uint64_t *starts,
                          uint64_t n) {
        for (uint64_t end = n; end > 0;) {
                uint64_t begin = end > PART ? end - PART : 0;

                dlp_numpy_shuffle_wide(random, starts, begin, end);
                end = begin;
                if (gpt_samples_is_cancelled(terms))
                        return -ECANCELED;
        }
        return 0;
}

static int shuffle_samples(const struct gpt_terms *terms, const struct gpt_size *size, struct dlp_torch_random *random,
                           struct gpt_samples *samples) {
        uint64_t n = size->n_before_last;
        int r = shuffle_starts(terms, random, samples->starts, n);

        return r < 0 ? r : shuffle_starts(terms, random, samples->starts + n, samples->n_samples - n);
}

int gpt_samples_make(const struct gpt_terms *terms, const struct gpt_size *size, struct gpt_samples *ret_samples,
                     struct why *why) {
        _cleanup_(freep) struct dlp_torch_random *random = malloc(sizeof(*random));
        struct gpt_samples samples = {
                .lengths = terms->lengths,
                .sample_tokens = terms->sequence_length + EXTRA,
                .n_sequences = size->n_epochs * terms->n,
                .n_samples = size->n_samples,
                .sequences = malloc(size->n_epochs * terms->n * sizeof(uint32_t)),
                .starts = malloc(size->n_samples * sizeof(uint64_t)),
        };
        int r = random && samples.sequences && samples.starts ? 0 : -ENOMEM;

        if (r == 0) {
                dlp_numpy_seed(random, terms->seed);
                r = make_lists(terms, size, random, &samples);
        }
        if (r == 0)
                r = find_starts(terms, &samples);
        if (r == 0)
                r = shuffle_samples(terms, size, random, &samples);
        if (r < 0) {
                gpt_samples_fini(&samples);
                return why_set(why, r,
                               r == -ENOMEM ? "needs %" PRIu64 " bytes of memory for the order of its samples, "
                                              "which are not available"
                                            : "making the order of its samples (%" PRIu64 " bytes) was cancelled",
                               size->memory_bytes);
        }
        *ret_samples = samples;
        return 0;
}

/* ---- a sample -------------------------------------------------------------------------------------------------- */

/* The piece that begins at `offset` of the list's entry `at`, or at a later entry if that one is empty. */
static void piece_at(const struct gpt_samples *samples, uint32_t at, uint32_t offset, uint32_t n_before,
                     struct gpt_piece *ret_piece) {
        uint32_t left = samples->sample_tokens - n_before;
        uint32_t sequence = samples->sequences[at], n;

        while ((n = samples->lengths[sequence] - offset) == 0) {
                sequence = samples->sequences[++at];
                offset = 0;
        }
        *ret_piece = (struct gpt_piece){
                .sequence = sequence,
                .offset = offset,
                .n_tokens = n < left ? n : left,
                .n_before = n_before,
                .at = at,
        };
}

void gpt_first_piece(const struct gpt_samples *samples, uint64_t sample, struct gpt_piece *ret_piece) {
        piece_at(samples, gpt_first_at(samples, sample), (uint32_t)samples->starts[sample], 0, ret_piece);
}

bool gpt_next_piece(const struct gpt_samples *samples, struct gpt_piece *piece) {
        uint32_t n_before = piece->n_before + piece->n_tokens;

        if (n_before == samples->sample_tokens)
                return false;
        piece_at(samples, piece->at + 1, 0, n_before, piece);
        return true;
}
