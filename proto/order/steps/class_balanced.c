/* class_balanced(column=label, n=N): each class as often as each other one.
 *
 * Drawn with replacement as weighted() does, with the weight 1 / (samples of its class) for each sample: what people
 * give torch's WeightedRandomSampler. */
#include <errno.h>

#include "proto/order/making/order_classes.h"
#include "proto/order/making/order_weights.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        N,
};

static uint64_t class_balanced_n_wanted(const struct dlp_step *step, uint64_t n_samples) {
        return step->values[N].is_set ? step->values[N].whole : n_samples;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)terms;
        return class_balanced_n_wanted(step, n);
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)step;
        (void)n;
        return dlp_weights_bytes(terms->base.n_samples) + dlp_classes_bytes_max(terms->base.n_samples) +
               terms->base.n_samples * sizeof(double);
}

struct balance {
        const struct dlp_column *column;
        struct dlp_classes classes;
        double *weights; /* of each class */
        uint64_t n_room;
};

static const double *read(const void *userdata, uint64_t i, uint64_t n, double *buffer) {
        const struct balance *balance = userdata;
        uint32_t classes[DLP_WEIGHTS_BLOCK];

        dlp_classes_read(&balance->classes, balance->column, i, n, classes);
        for (uint64_t k = 0; k < n; k++)
                buffer[k] = balance->weights[classes[k]];
        return buffer;
}

static int make_weights(struct dlp_making *making, struct balance *balance) {
        int r = dlp_classes_init(making, "class_balanced", balance->column, &balance->classes);

        if (r < 0)
                return r;
        r = dlp_making_allocate(making, balance->classes.n, sizeof(*balance->weights), &balance->weights);
        if (r < 0)
                return r;
        balance->n_room = balance->classes.n;
        for (uint32_t i = 0; i < balance->classes.n; i++)
                balance->weights[i] = 1.0 / (double)balance->classes.counts[i];
        return 0;
}

static int class_balanced_draw(struct dlp_making *making, const struct balance *balance,
                               const struct dlp_order *order) {
        struct dlp_weights_source source = { .read = read,
                                             .userdata = balance,
                                             .memory = balance->column->values,
                                             .n_bytes = (uint32_t)dlp_dtype_bytes(balance->column->dtype),
                                             .step = "class_balanced",
                                             .name = balance->column->name };
        struct dlp_weights weights = { 0 };
        struct dlp_torch_random random;
        int r;

        dlp_making_seed(making, &random);
        r = dlp_weights_init(making, &source, making->terms->base.n_samples, &weights);
        if (r == 0)
                r = dlp_weights_draw(making, &weights, &random, order);
        dlp_weights_fini(making, &weights);
        return r;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct balance balance = { 0 };
        int r = dlp_making_column(making, "class_balanced", step->values[COLUMN].text, &balance.column);

        if (r == 0)
                r = dlp_making_samples(making, class_balanced_n_wanted(step, making->terms->base.n_samples), order);
        if (r == 0)
                r = make_weights(making, &balance);
        if (r == 0)
                r = class_balanced_draw(making, &balance, order);
        dlp_classes_fini(making, &balance.classes);
        making->release(making, balance.weights, balance.n_room * sizeof(*balance.weights));
        return r;
}

const struct dlp_step_type dlp_step_class_balanced = {
        .kind = { .name = "class_balanced",
                  .doc = "Draws each class as often as each other one, with replacement: as `weighted` with the "
                         "weight 1 / (number of samples of the class).",
                  .like = "torch.utils.data.WeightedRandomSampler with 1 / (samples of the class)",
                  .example = "class_balanced(column=label, n=50000)",
                  .arguments = ARGUMENTS({ ARGUMENT_COLUMN, "column", .form = "labels of samples" },
                                         { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = (double)DLP_SAMPLES_MAX,
                                           .is_optional = true }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .scratch_bytes = scratch_bytes,
        .repeats = true,
        .make = make,
};
