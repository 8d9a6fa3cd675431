/* pipeline/compact.h: samples that are left out of a batch, and the gaps that they leave.
 *
 * A sample's place in the slot is fixed before it is known whether the sample can be served, so that workers write
 * without asking each other. When the last sample has ended, those after a gap move up, in their order: what the client
 * gets depends only on which samples are damaged. Where functions get whole batches, samples may be made again after
 * that, in their new places, and further ones may be left out. */
#pragma once

#include "daemon/pipeline/stream.h"

/* Workers: this sample is left out. */
void batch_skip(struct batch *batch, uint32_t idx_sample);

/* Closes the gaps, after all samples of the batch have been served or left out. Writes n_kept, the record's n_samples
 * and n_skipped, and the tensors' first dimension. After collating_describe(). Thread: the one that completes the
 * batch. */
void batch_compact(struct batch *batch);
