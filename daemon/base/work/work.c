#include "daemon/base/work/work.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

void work_init(struct work *work) {
        *work = (struct work){ .is_under_way = false };
        pthread_mutex_init(&work->lock, NULL);
}

void work_fini(struct work *work) {
        pthread_mutex_destroy(&work->lock);
}

void work_begin(struct work *work, const char *phase, const char *unit) {
        pthread_mutex_lock(&work->lock);
        work->is_under_way = true;
        work->told = (struct dlp_progress){ 0 };
        snprintf(work->told.phase, sizeof(work->told.phase), "%s", phase);
        snprintf(work->told.unit, sizeof(work->told.unit), "%s", unit);
        dlp_pace_begin(&work->pace, clock_now_ns());
        pthread_mutex_unlock(&work->lock);
}

void work_tell(struct work *work, uint64_t done, uint64_t total, const char *unit) {
        pthread_mutex_lock(&work->lock);
        if (work->is_under_way) {
                if (strcmp(work->told.unit, unit) != 0) { /* counted otherwise from now on */
                        snprintf(work->told.unit, sizeof(work->told.unit), "%s", unit);
                        rate_reset(&work->pace.rate);
                }
                work->told.done = total > 0 && done > total ? total : done;
                work->told.total = total;
                dlp_pace_add(&work->pace, clock_now_ns(), work->told.done, total);
        }
        pthread_mutex_unlock(&work->lock);
}

void work_end(struct work *work) {
        pthread_mutex_lock(&work->lock);
        work->is_under_way = false;
        pthread_mutex_unlock(&work->lock);
}

bool work_read(struct work *work, struct dlp_progress *ret_progress) {
        bool is_under_way;

        *ret_progress = (struct dlp_progress){ 0 };
        pthread_mutex_lock(&work->lock);
        is_under_way = work->is_under_way;
        if (is_under_way) {
                *ret_progress = work->told;
                dlp_pace_read(&work->pace, clock_now_ns(), ret_progress);
        }
        pthread_mutex_unlock(&work->lock);
        return is_under_way;
}
