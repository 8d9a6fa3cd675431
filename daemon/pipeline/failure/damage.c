#include "daemon/pipeline/failure/damage.h"

#include <errno.h>
#include <math.h>

#include "proto/limits.h"
#include "proto/order/epoch_plan.h"

/* In binary, 0.07 * 100 is slightly more than 7. A value this close to a whole number was meant to be that number. */
#define A_LITTLE 1e-12

int max_errors_check(double max_errors, struct why *why) {
        if (!(max_errors >= 0) || max_errors > (double)DLP_SAMPLES_MAX)
                return why_set(
                        why, -EINVAL,
                        "max_errors: %g is out of range; 0 (any number), a share below 1, or a number of samples "
                        "is allowed",
                        max_errors);
        if (max_errors > 1 && max_errors != floor(max_errors))
                return why_set(
                        why, -EINVAL,
                        "max_errors: %g is not a whole number; from 1 on it counts samples, below 1 it is a share of "
                        "the dataset",
                        max_errors);
        return 0;
}

uint64_t max_errors_allowed(double max_errors, uint64_t n_samples) {
        if (max_errors >= 1)
                return (uint64_t)max_errors;
        return (uint64_t)ceil(max_errors * (double)n_samples * (1 - A_LITTLE));
}

int damage_init(struct damage *damage, double max_errors, uint64_t n_samples) {
        *damage = (struct damage){ .n_allowed = max_errors_allowed(max_errors, n_samples) };
        pthread_mutex_init(&damage->lock, NULL);
        return bitmap_init(&damage->met, n_samples == DLP_UNKNOWN ? DLP_NUMBERS_MAX : n_samples);
}

void damage_fini(struct damage *damage) {
        bitmap_fini(&damage->met);
        pthread_mutex_destroy(&damage->lock);
}

bool damage_meet(struct damage *damage, uint64_t sample) {
        uint64_t n;
        bool is_new;

        pthread_mutex_lock(&damage->lock);
        is_new = bitmap_add(&damage->met, sample);
        n = atomic_fetch_add_explicit(&damage->n_met, is_new, memory_order_relaxed) + is_new;
        pthread_mutex_unlock(&damage->lock);
        return damage->n_allowed == 0 || n <= damage->n_allowed;
}
