/* collate/packing.h: samples one after the other in rows of one length.
 *
 * Which row a sample goes to, and where in it, is planned before it is read (proto/order/steps/pack.c), so workers
 * write each one to where it stays. When the batch is whole, what is left of the rows is filled, and the record gets
 * for a field of n rows of N elements:
 *
 *      FIELD             [n, N]
 *      FIELD_positions   int64 [n, N]: where an element is in its piece of a sample, from 0; 0 where nothing is
 *      FIELD_segments    int32 [n, N]: which piece of its row it belongs to, from 1; 0 where nothing is
 *      FIELD_labels      int64 [n, N], if they are asked for: LABEL_IGNORED where nothing is. "same": the elements,
 *                        except the first of each piece, which no model should predict from the piece before;
 *                        "shifted": the element that follows, and LABEL_IGNORED for the last of a piece
 *      cu_seqlens        int32 [m]: where pieces begin if all rows are one after the other, and n * N at the end. What
 *                        is left of a row is a piece of its own, so that flash attention can take the rows as they are
 *
 * They describe the whole batch: their first dimension does not count samples. Where each sample's elements are is in
 * the field's places. */
#pragma once

#include "daemon/collate/collate_layout.h"

/* Where a sample of a batch goes. */
struct pack_place {
        uint32_t row, at;    /* of the batch, of the row */
        uint32_t skip;       /* elements of the sample that come before its piece */
        uint32_t n_elements; /* of the piece */
        uint32_t length;     /* of the whole sample, by which it was planned */
};

/* Tensors that come with the field. */
unsigned packing_n_added(const struct packing_terms *terms);

/* The room of the field, and that of what comes with it from `offset` on; returns where it ends. -EOVERFLOW: more
 * elements than int32 can count. */
int packing_plan(struct field_layout *field, const struct layout_limits *limits, struct why *why);
uint64_t packing_place(struct field_layout *field, const struct layout *layout, uint64_t offset);

/* Where the sample's piece is written. */
uint8_t *packing_at(const struct field_layout *field, uint8_t *slot, const struct pack_place *place);

/* Is the sample as long as it was planned to be? -EBADMSG with both numbers. */
int packing_check(const struct pack_place *place, uint64_t n_elements, struct why *why);

/* Completes n_rows of n_samples, which are in the sequence of their places, and describes them. */
void packing_finish(const struct field_layout *field, uint8_t *slot, const struct pack_place *places,
                    uint32_t n_samples, uint32_t n_rows, struct dlp_tensor_record *tensors);
