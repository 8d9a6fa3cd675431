/* dlctl/forecast/places.h: where the samples of a dataset lie: as the daemon says, or out of the sizes of files. */
#pragma once

#include "client/dlctl/control.h"
#include "client/dlctl/forecast/forecast.h"
#include "proto/order/blocks.h"

#define PLACES_SAMPLES_MAX 30000000u /* of which all is in memory, 24 bytes each and the order */

/* Both return EXIT_DONE, or an exit code after a message; places_free() in any case. The places begin as zeroes. */

/* The daemon is asked. */
int places_ask(struct control *control, const char *dataset, struct forecast_places *ret_places);

/* `path`: bytes of each file, one a line. n_samples 0: each is a sample; else samples of one length lie in them, one
 * after the other, and none in two. The blocks are the files then. */
int places_read(const char *path, uint64_t n_samples, struct forecast_places *ret_places,
                struct dlp_blocks *ret_blocks);

/* The blocks of the dataset, for an order that goes by them. What ends points to is the caller's (free()). */
int places_ask_blocks(struct control *control, const char *dataset, struct dlp_blocks *ret_blocks);

void places_free(struct forecast_places *places);
