/* pipeline/replay/batch_copy.h: a copy of a finished batch, which can be put into any slot of its ring.
 *
 * The copy is in the daemon's own memory: a client may write to a slot that it holds, and what a trainer normalised in
 * place must not come to it again. Only bytes that the record describes are copied. They are copied without being
 * looked at: a client that scribbles on a slot that is being filled spoils its own batches alone. */
#pragma once

#include "daemon/base/budget.h"
#include "daemon/ring/batch_ring.h"

struct batch_copy {
        struct dlp_slot_record *record; /* NULL: nothing is kept */
        uint8_t *bytes;                 /* columns, places, error texts, then the tensors' bytes */
        uint64_t n_bytes;               /* that are charged, the record's included */
};

/* Copies the complete batch in `slot`, and charges the memory. A batch without samples is not kept: 0 and nothing.
 * -ENOMEM. Any thread that owns the slot. */
int batch_copy_take(struct batch_copy *kept, const struct ring *ring, const struct slot *slot, struct budget *budget);

/* Writes it into another slot of the same ring: record, columns, places, error texts and tensors. What is about this
 * turn of the slot (sequence, times) stays as it is. The thread that owns the slot. */
void batch_copy_put(const struct batch_copy *kept, const struct ring *ring, const struct slot *slot);

/* Frees it. Takes one that keeps nothing. */
void batch_copy_free(struct batch_copy *kept, struct budget *budget);
