/* pack(4096, column=tokens): rows of at most 4,096 elements, each filled with several samples.
 *
 * How they are filled is in order/grouping: best_fit.c (TRL's), first_fit.c (Grain's), wrapped.c. Packs of best fit
 * come shuffled where the epoch is: they are made from the longest samples down, so without that a model would see long
 * texts first. With an epoch that is not shuffled and shuffle=true the order is that of a dataset that was packed once
 * and whose rows are then shuffled, as TRL's trainers do. */
#include <errno.h>

#include "proto/order/grouping/grouping_packing.h"
#include "proto/order/steps/sampler_step.h"

#define ROWS_BEST_FIT  1000u /* datasets.map()'s batches, which TRL packs */
#define BINS_FIRST_FIT 64u

enum {
        SIZE,
        COLUMN,
        STRATEGY,
        LONG,
        ROWS,
        BINS,
        MAX_SAMPLES,
        SHUFFLE,
};

enum {
        BEST_FIT,
        WRAPPED,
        FIRST_FIT,
};

/* The values of `long`, and what each strategy does if it is not given. */
static const enum dlp_long ON_LONG[] = { DLP_LONG_ERROR, DLP_LONG_TRUNCATE, DLP_LONG_SKIP, DLP_LONG_SPLIT };
static const enum dlp_long ON_LONG_DEFAULT[] = {
        [BEST_FIT] = DLP_LONG_TRUNCATE,
        [WRAPPED] = DLP_LONG_SPLIT,
        [FIRST_FIT] = DLP_LONG_ERROR,
};

static struct dlp_packing packing_of(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        const struct value *values = step->values;
        uint32_t strategy = values[STRATEGY].choice;

        return (struct dlp_packing){
                .size = (uint32_t)values[SIZE].whole,
                .rows = values[ROWS].is_set ? values[ROWS].whole : (strategy == BEST_FIT ? ROWS_BEST_FIT : 0),
                .n_bins = values[BINS].is_set ? (uint32_t)values[BINS].whole : BINS_FIRST_FIT,
                .max_samples = (uint32_t)values[MAX_SAMPLES].whole,
                .on_long = values[LONG].is_set ? ON_LONG[values[LONG].choice] : ON_LONG_DEFAULT[strategy],
                .is_shuffled = values[SHUFFLE].is_set ? values[SHUFFLE].flag
                                                      : strategy == BEST_FIT && terms->base.shuffle,
        };
}

static int check(const struct dlp_step *step, struct why *why) {
        uint32_t strategy = step->values[STRATEGY].choice;
        bool truncates = step->values[LONG].is_set && ON_LONG[step->values[LONG].choice] == DLP_LONG_TRUNCATE;

        if (step->values[BINS].is_set && strategy != FIRST_FIT)
                return why_set(why, -EINVAL, "bins is for strategy=first_fit, and says how many packs are kept open");
        if (step->values[ROWS].is_set && strategy == FIRST_FIT)
                return why_set(why, -EINVAL, "rows is not for strategy=first_fit; say bins, the packs that are open");
        if (strategy == WRAPPED && step->values[MAX_SAMPLES].is_set)
                return why_set(why, -EINVAL, "max_samples is not for strategy=wrapped, which fills every pack");
        if (strategy == WRAPPED && truncates)
                return why_set(why, -EINVAL,
                               "long=truncate is not for strategy=wrapped; allowed are error, skip, split");
        return 0;
}

/* ---- bounds ---------------------------------------------------------------------------------------------------- */

struct survey {
        struct dlp_packing packing;
        uint64_t n_elements; /* of all samples */
        uint32_t longest;
        uint32_t shortest_piece; /* but of whole packs */
};

static void survey_some(void *userdata, const uint32_t *lengths, uint64_t n) {
        struct survey *survey = userdata;

        for (uint64_t i = 0; i < n; i++) {
                struct dlp_pieces pieces = dlp_packing_cut(&survey->packing, lengths[i]);

                survey->n_elements += lengths[i];
                if (lengths[i] > survey->longest)
                        survey->longest = lengths[i];
                if (pieces.rest > 0 && pieces.rest < survey->shortest_piece)
                        survey->shortest_piece = pieces.rest;
        }
}

/* False: the column is not there. */
static bool survey_lengths(const struct dlp_step *step, const struct dlp_making_terms *terms, struct survey *survey) {
        const struct dlp_column *column = dlp_lengths_of_terms(terms, step->values[COLUMN].text);

        *survey = (struct survey){ .packing = packing_of(step, terms) };
        survey->shortest_piece = survey->packing.size;
        if (!column)
                return false;
        if (step->values[STRATEGY].choice == WRAPPED) /* a piece is shorter than its sample only where a pack ends */
                survey->packing.on_long = DLP_LONG_TRUNCATE;
        dlp_lengths_visit(column, survey_some, survey);
        return true;
}

/* Each pack that ends within a sample makes one piece more. What a chooser takes may be the longest sample each time.
 */
static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        struct dlp_packing packing = packing_of(step, terms);
        struct survey survey;
        uint64_t n_elements;

        if (packing.on_long != DLP_LONG_SPLIT && step->values[STRATEGY].choice != WRAPPED)
                return n;
        if (!survey_lengths(step, terms, &survey))
                return n;
        n_elements = survey.n_elements;
        if (step->follows_chooser && __builtin_mul_overflow(n, (uint64_t)survey.longest, &n_elements))
                return UINT64_MAX / 2;
        return n + n_elements / packing.size;
}

static uint64_t n_unit_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        uint32_t size = (uint32_t)step->values[SIZE].whole, max = (uint32_t)step->values[MAX_SAMPLES].whole, n = size;
        struct survey survey;

        if (survey_lengths(step, terms, &survey)) {
                n = size / survey.shortest_piece;
                if (step->values[STRATEGY].choice == WRAPPED) /* the first and the last one may be a single element */
                        n = size < 2 ? 1 : (size - 2) / survey.shortest_piece + 2;
        }
        return max > 0 && max < n ? max : n;
}

static uint64_t n_elements_max(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        (void)terms;
        return step->values[SIZE].whole;
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        struct dlp_packing packing = packing_of(step, terms);
        uint64_t n_pieces = n_positions_max(step, terms, n);

        switch (step->values[STRATEGY].choice) {
        case WRAPPED:
                return dlp_pack_wrapped_bytes(terms, n_pieces);
        case FIRST_FIT:
                return dlp_pack_first_fit_bytes(&packing, terms, n_pieces);
        default:
                return dlp_pack_best_fit_bytes(&packing, terms, n, n_pieces);
        }
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct dlp_packing packing = packing_of(step, making->terms);
        int r = dlp_lengths_open(making, "pack", step->values[COLUMN].text, &packing.lengths);

        if (r < 0)
                return r;
        switch (step->values[STRATEGY].choice) {
        case WRAPPED:
                return dlp_pack_wrapped(making, &packing, order);
        case FIRST_FIT:
                return dlp_pack_first_fit(making, &packing, order);
        default:
                return dlp_pack_best_fit(making, &packing, order);
        }
}

const struct dlp_step_type dlp_step_pack = {
        .kind = { .name = "pack",
                  .doc = "Rows of at most `size` elements, each filled with several samples; the batch size counts "
                         "rows. Samples without elements are left out. The strategies:\n\n"
                         "- `bfd`: Best fit decreasing, as TRL packs: of `rows` samples at a time (default: 1000) "
                         "the longest first, each into the fullest pack that has room for it. `rows=0` takes the "
                         "whole epoch at once, which fills packs better still; it takes 22 bytes of memory for each "
                         "sample while it is done. Longer samples lose their end, as with TRL, or with `long=split` "
                         "are cut into whole packs and a rest that is packed like a sample (TRL's bfd_split).\n\n"
                         "- `wrapped`: Samples one after the other, cut wherever a pack is full, so that a sample "
                         "may be in several packs; the last pack of every `rows` samples is short. Default: the "
                         "whole epoch at once; `rows=1000` is what TRL does.\n\n"
                         "- `first_fit`: Each sample, in the order's sequence, into the first of `bins` open packs "
                         "(default: 64) that has room for it; if none has, all of them come and as many new ones "
                         "are opened, as Grain's FirstFitPackIterDataset without shuffled bins. Longer samples are "
                         "an error, as with Grain.\n\n"
                         "`long` is error, truncate (not for wrapped), skip or split. `max_samples` is the most "
                         "samples of a pack (bfd and first_fit). Packs of best fit come in an order of their own "
                         "(that of as many samples with this seed and epoch) if the epoch is shuffled, because they "
                         "are made from the longest samples down; the others come as they are made. `shuffle` says "
                         "otherwise. With `shuffle=true` and an epoch that is not shuffled, the order is that of a "
                         "dataset that was packed once and is then shuffled, as with TRL's trainers and "
                         "DistributedSampler; without, samples are packed anew in each epoch.",
                  .example = "pack(4096, column=tokens)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_WHOLE, "size", .minimum = 1, .maximum = DLP_PACK_SIZE_MAX },
                          { ARGUMENT_LENGTHS, "column", .form = "lengths of samples" },
                          { ARGUMENT_CHOICE, "strategy", "bfd", CHOICES("bfd", "wrapped", "first_fit") },
                          { ARGUMENT_CHOICE, "long", CHOICES("error", "truncate", "skip", "split"),
                            .is_optional = true },
                          { ARGUMENT_WHOLE, "rows", .maximum = DLP_GROUPING_MAX, .is_optional = true },
                          { ARGUMENT_WHOLE, "bins", .minimum = 1, .maximum = 1u << 20, .is_optional = true },
                          { ARGUMENT_WHOLE, "max_samples", .minimum = 1, .maximum = DLP_PACK_SIZE_MAX,
                            .is_optional = true },
                          { ARGUMENT_FLAG, "shuffle", .is_optional = true }) },
        .role = DLP_GROUPER,
        .check = check,
        .n_positions_max = n_positions_max,
        .n_unit_max = n_unit_max,
        .n_elements_max = n_elements_max,
        .make = make,
        .scratch_bytes = scratch_bytes,
};
