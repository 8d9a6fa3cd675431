/* tests/support/client.h: a rank on a stand-in's dataset, by the public interface, whose batches are checked to the
 * last byte. Whatever is not as it should be ends the test. */
#pragma once

#include <stdint.h>

#include "client/include/dlclient.h"
#include "tests/support/stand_in.h"

#define PATIENCE_MS 60000 /* for what must come: a hang becomes a failure */

uint64_t now_ms(void);

/* Rank 0 of 1 of the job "test", that raises when the daemon goes away. */
struct dlc_options options_for(const struct stand_in *stand_in, int batch_size);

struct dlc_loader *open_loader(const struct dlc_options *options);

/* Must be refused with this error and a text that has `part`. */
void check_refused(const struct dlc_options *options, int error, const char *part);

/* Is the batch what rank, epoch and step say, in an epoch that begins at `base`? */
void check_batch_from(struct dlc_loader *loader, const struct dlc_batch *batch, uint64_t epoch, uint64_t base,
                      uint64_t step);
void check_batch(struct dlc_loader *loader, const struct dlc_batch *batch, uint64_t epoch, uint64_t step);

const struct dlc_batch *take(struct dlc_loader *loader);

/* Takes, checks and releases batches `first` .. `end`-1 of an epoch; that is its end; an epoch from its beginning. */
void check_steps_from(struct dlc_loader *loader, uint64_t epoch, uint64_t base, uint64_t first, uint64_t end);
void check_steps(struct dlc_loader *loader, uint64_t epoch, uint64_t first, uint64_t end);
void check_end(struct dlc_loader *loader);
void check_epoch(struct dlc_loader *loader, uint64_t epoch);
