/* bench/ready_batches.h: the bytes that ready_batches serves, for those who check what arrives. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/order/philox.h"

#define READY_STEP 256 /* bytes from where one kind of batch begins to where the next does */

static inline void ready_fill(uint8_t *bytes, size_t n_bytes) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, 1, 0, 0, 0);
        for (size_t i = 0; i < n_bytes; i++)
                bytes[i] = (uint8_t)dlp_philox_u32(&philox);
}
