/* pipeline/planner/lookahead.h: what ranks will need is fetched before it is planned, where their dataset lies elsewhere.
 *
 * The order is known, so what a rank gets within its horizon (proto/fetching.h), half a minute or more, is known as
 * well, whatever its ring can hold. A feed's look-ahead goes through its epoch plan as planning does, further on, and
 * asks the cache for the bytes of each sample with the time when it is due (store/cache/cache.h). Where a sampler makes
 * the order, as far as its epoch is made; not where it fills packs or buckets: what a batch of these holds is looked up
 * when the batch is begun. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

/* Looks a little further ahead for each feed. Planner only; quick. Returns whether there is more to look at now. */
bool lookahead_go_on(struct planner *planner);

/* The reads that the planner will need for a sample, of fields that are one piece each: what lies side by side is one.
 * Returns how many. */
uint32_t lookahead_reads(const struct feed *feed, uint64_t sample, struct source_read reads[DLP_TENSORS_MAX]);

/* The path of its file below the dataset's folder: `ret_path`, or a text of the source. */
const char *lookahead_path(const struct source_read *read, char ret_path[SOURCE_NAME_SIZE]);

/* How long the rank takes for a batch, or making one takes, whichever is longer. */
uint64_t lookahead_batch_ns(const struct planner *planner, const struct feed *feed);
