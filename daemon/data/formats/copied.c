#include "daemon/data/formats/copied.h"

#define STEPS 256u /* a part counts this much of its share at once, because all threads do so */

void copied_begin(struct copied *copied, const struct index_watch *watch) {
        *copied = (struct copied){ .max = index_watch_max_copied(watch) };
}

void copied_begin_part(struct copied *part, struct copied *whole) {
        *part = (struct copied){ .max = whole->max / COPIED_PARTS, .whole = whole };
}

bool copied_add(struct copied *copied, uint64_t n_bytes) {
        uint64_t step = copied->max / STEPS + 1;

        copied->n_bytes += n_bytes;
        if (!copied->whole)
                return copied->n_bytes <= copied->max;
        while (copied->n_counted < copied->n_bytes) {
                copied->n_counted += step;
                if (atomic_fetch_add(&copied->whole->n_ahead, step) + step > copied->max)
                        return false;
        }
        return true;
}

bool copied_take(struct copied *copied, const struct copied *part) {
        if (copied->n_bytes + part->n_bytes > copied->max)
                return false;
        copied->n_bytes += part->n_bytes;
        return true;
}

void copied_fini(struct copied *copied) {
        if (copied->whole)
                atomic_fetch_sub(&copied->whole->n_ahead, copied->n_counted);
        copied->n_counted = 0;
}
