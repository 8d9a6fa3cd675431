#include "daemon/ring/step_waits.h"

#include <stdbool.h>
#include <string.h>

#define EPOCH_STRIDE 37u /* so that steps of an epoch's end and of the next one's beginning have different places */

void step_waits_init(struct step_waits *waits) {
        memset(waits, 0, sizeof(*waits));
        pthread_mutex_init(&waits->lock, NULL);
}

void step_waits_destroy(struct step_waits *waits) {
        pthread_mutex_destroy(&waits->lock);
}

void step_waits_add(struct step_waits *waits, uint64_t epoch, uint64_t step, uint64_t wait_ns) {
        uint64_t place = (epoch * EPOCH_STRIDE + step) % STEP_WAITS_N;
        bool is_same, is_later;

        pthread_mutex_lock(&waits->lock);
        is_same = waits->steps[place].epoch == epoch && waits->steps[place].step == step;
        is_later = epoch > waits->steps[place].epoch ||
                   (epoch == waits->steps[place].epoch && step > waits->steps[place].step);
        if (is_later) {
                waits->steps[place].epoch = epoch;
                waits->steps[place].step = step;
                waits->steps[place].longest_ns = 0;
        }
        if ((is_same || is_later) && wait_ns > waits->steps[place].longest_ns) {
                waits->total_ns += wait_ns - waits->steps[place].longest_ns;
                waits->steps[place].longest_ns = wait_ns;
        }
        pthread_mutex_unlock(&waits->lock);
}

uint64_t step_waits_total(struct step_waits *waits) {
        uint64_t total_ns;

        pthread_mutex_lock(&waits->lock);
        total_ns = waits->total_ns;
        pthread_mutex_unlock(&waits->lock);
        return total_ns;
}
