#include "daemon/ctl/jobs/job_hold.h"

#include <string.h>

#include "proto/ring.h"

bool hold_of(const struct stream *stream, struct why *ret_why) {
        static const char PREFIX[] = "on hold: ";
        char text[DLP_TEXT_MAX];

        if (atomic_load_explicit(&stream->n_parked, memory_order_relaxed) > 0 &&
            catalog_dataset_is_held(stream->dataset, ret_why))
                return true;
        if (!dlp_ring_held(stream->ring->control, text))
                return false;
        why_set(ret_why, 0, "%s", text + (strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? strlen(PREFIX) : 0));
        return true;
}
