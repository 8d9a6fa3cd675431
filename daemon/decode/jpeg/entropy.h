/* decode/jpeg/entropy.h: bits -> coefficients, one MCU at a time. Private to this floor.
 *
 * An MCU is the unit that a JPEG repeats: the blocks of all components that cover the same part of the picture.
 * Coefficients are stored in the order that the arithmetic needs (jpeg_kernels.h); blocks that the box does not need
 * are skipped without storing. */
#pragma once

#include "daemon/decode/jpeg/jpeg_kernels.h"
#include "daemon/decode/jpeg/jpeg_scan.h"
#include "daemon/decode/jpeg/jpeg_tables.h"

#define ENTROPY_PAIRS_MAX 3u /* of a group */
#define ENTROPY_GROUP     (ENTROPY_PAIRS_MAX * BASELINE_PAIR_COEFFICIENTS)

/* A block of the MCU, in the file's sequence. */
struct entropy_block {
        uint8_t component;
        uint8_t pair;
        uint16_t at; /* its first coefficient in the group */
        const struct huffman_dc *dc;
        const struct huffman_ac *ac;
        const uint16_t *skips;
};

/* Blocks are transformed in pairs: both from one MCU, or, if an MCU has only one block of a component, from two MCUs.
 * These one or two MCUs are a group. */
struct entropy {
        struct jpeg_bits bits;
        int64_t dc[JPEG_COMPONENTS]; /* of the last block */
        uint32_t restart_interval;   /* MCUs; 0: none */
        uint32_t n_until_restart;
        uint32_t n_restarts;
        uint32_t n_blocks; /* of an MCU */
        struct entropy_block blocks[2][SCAN_BLOCKS_MAX];
        uint8_t place[256]; /* of coefficient k in a pair; from 64 on 0: slow lookups write there, before the mean */
        struct scan scan;
};

/* The loops, compiled for a certain CPU. */
struct entropy_code {
        const char *name;

        /* Reads the next MCU into a group (ENTROPY_GROUP, zeroed), as MCU number `idx_mcu` of it. `last`
         * (ENTROPY_PAIRS_MAX): for each pair, the largest position of a coefficient; only raised. 0 or
         * BASELINE_HANDS_OVER. */
        int (*read_mcu)(struct entropy *entropy, uint32_t idx_mcu, int16_t *group, int *last);

        /* Skips MCUs. 0 or BASELINE_HANDS_OVER. */
        int (*skip_mcus)(struct entropy *entropy, uint32_t n_mcus);
};

extern const struct entropy_code entropy_code_plain;

/* NULL if this machine has no BMI2 (shifts by a number in any register). */
const struct entropy_code *entropy_code_bmi2(void);

/* Before the first picture. */
void entropy_init(struct entropy *entropy);

/* Begins a scan; `blocks` and their number are the caller's to set. */
void entropy_start(struct entropy *entropy, const struct jpeg_header *header);

/* After a row of MCUs: checks that no more was read than there is, and that no mean is out of range. 0 or
 * BASELINE_HANDS_OVER. */
int entropy_check(const struct entropy *entropy);

/* After the last MCU: 0 if only the end-of-image marker follows; else BASELINE_HANDS_OVER. */
int entropy_end(struct entropy *entropy);
