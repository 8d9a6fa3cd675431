/* staging/prepare/maker.h: what one worker makes of a sample: decode, resize, encode, transcode. Private to this floor.
 *
 * Where a picture is encoded again, pixels mean what they mean to the daemon that decodes the sample unprepared
 * (decode/decode.h): grey, palette and CMYK become RGB, alpha is dropped, the EXIF orientation is not applied (nor
 * kept: Pillow and the daemon ignore it), colour profiles are ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/staging/prepare/prepare_block.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/why.h"

/* Positive outcomes of maker_make(): pack the sample's own bytes. */
#define MAKER_AS_IT_IS 1 /* nothing is to be done to it */
#define MAKER_CANNOT   2 /* it cannot be decoded or transcoded within MAKER_BYTES; `why` says why */

#define MAKER_BYTES (88ull << 20) /* the most that a single sample may take: 24 Mpixel in several scans do */
#define MAKER_KEEPS (512u << 10)  /* bytes that a maker keeps between samples, at most */

struct maker_job {
        const uint8_t *bytes;
        size_t n_bytes;
        uint64_t n_paid; /* memory that the bytes themselves take, of MAKER_BYTES */

        /* Called before memory is used, with what else it may take: once, and once more for transcoding. May block. A
         * negative errno ends it. */
        int (*pay)(void *userdata, uint64_t n_bytes);
        bool (*is_cancelled)(void *userdata); /* asked every few rows */
        void *userdata;
};

/* Of one thread at a time. */
struct maker;

/* `steps` must outlive it. */
int maker_new(const struct steps *steps, struct maker **ret_maker, struct why *why);
void maker_free(struct maker *maker); /* NULL is fine */

/* Returns 0: the file is the caller's (block_free); a positive outcome; -ECANCELED, -ENOMEM. */
int maker_make(struct maker *maker, const struct maker_job *job, struct block *ret_file, size_t *ret_n_bytes,
               struct why *why);
