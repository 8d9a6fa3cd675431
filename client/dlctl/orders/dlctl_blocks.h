/* dlctl/orders/dlctl_blocks.h: the blocks of a dataset, for the order that goes by them, as options give them. */
#pragma once

#include "proto/order/blocks.h"

/* `text`: N, blocks of N samples each, or the path of a file with the samples of each block, one number a line, of
 * which those of 0 are left out; NULL: as of a dataset without shards. Returns EXIT_DONE, or an exit code after a
 * message. What ret_blocks->ends points to is the caller's (free()). */
int blocks_read(const char *text, uint64_t n_samples, struct dlp_blocks *ret_blocks);
