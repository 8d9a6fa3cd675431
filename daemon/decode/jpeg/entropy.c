#include "daemon/decode/jpeg/entropy.h"

#include "daemon/decode/jpeg/jpeg_block.h"

#define MARKER_RESTART 0xd0 /* the first of eight, in turn */
#define MARKER_END     0xd9

/* In valid files a mean has 16 bits. libjpeg fails if 32 are not enough; a mean below this limit cannot get there
 * within one row of MCUs. */
#define DC_LIMIT (1 << 30)

/* ---- between MCUs ---------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int restart(struct entropy *entropy) {
        uint8_t marker = (uint8_t)(MARKER_RESTART + entropy->n_restarts % 8);

        if (scan_end_segment(&entropy->scan, &entropy->bits, marker) != 0)
                return BASELINE_HANDS_OVER;
        scan_next_segment(&entropy->scan, &entropy->bits);
        for (uint32_t c = 0; c < JPEG_COMPONENTS; c++)
                entropy->dc[c] = 0;
        entropy->n_restarts++;
        entropy->n_until_restart = entropy->restart_interval;
        return 0;
}

/* Before each MCU: handles a restart that is due, and checks that there are enough bytes. */
INLINE int begin_mcu(struct entropy *entropy) {
        if (entropy->restart_interval != 0) {
                if (entropy->n_until_restart == 0 && restart(entropy) != 0)
                        return BASELINE_HANDS_OVER;
                entropy->n_until_restart--;
        }
        if (UNLIKELY(entropy->bits.at > entropy->scan.limit))
                return scan_more(&entropy->scan, &entropy->bits);
        return 0;
}

/* ---- an MCU ---------------------------------------------------------------------------------------------------- */

INLINE int read_mcu(struct entropy *entropy, uint32_t idx_mcu, int16_t *group, int *last) {
        const struct entropy_block *block = entropy->blocks[idx_mcu], *end = block + entropy->n_blocks;
        struct jpeg_bits bits;

        if (begin_mcu(entropy) != 0)
                return BASELINE_HANDS_OVER;
        bits = entropy->bits;
        for (; block < end; block++) {
                int16_t *coefficients = group + block->at;
                int difference, position;

                bits_refill(&bits);
                if (UNLIKELY(block_read_dc(&bits, block->dc, &difference) != 0))
                        return BASELINE_HANDS_OVER;
                position = block_read_ac(&bits, block->ac, entropy->place, coefficients);
                if (UNLIKELY(position < 0))
                        return BASELINE_HANDS_OVER;
                entropy->dc[block->component] += difference;
                coefficients[0] = (int16_t)(uint16_t)(uint64_t)entropy->dc[block->component];
                if (last[block->pair] < position)
                        last[block->pair] = position;
        }
        entropy->bits = bits;
        return 0;
}

INLINE int skip_mcu(struct entropy *entropy) {
        const struct entropy_block *block = entropy->blocks[0], *end = block + entropy->n_blocks;
        struct jpeg_bits bits;

        if (begin_mcu(entropy) != 0)
                return BASELINE_HANDS_OVER;
        bits = entropy->bits;
        for (; block < end; block++) {
                int difference;

                bits_refill(&bits);
                if (UNLIKELY(block_read_dc(&bits, block->dc, &difference) != 0))
                        return BASELINE_HANDS_OVER;
                entropy->dc[block->component] += difference;
                if (UNLIKELY(block_skip_ac(&bits, block->ac, block->skips) < 0))
                        return BASELINE_HANDS_OVER;
        }
        entropy->bits = bits;
        return 0;
}

INLINE int skip_mcus(struct entropy *entropy, uint32_t n_mcus) {
        for (uint32_t i = 0; i < n_mcus; i++)
                if (skip_mcu(entropy) != 0)
                        return BASELINE_HANDS_OVER;
        return 0;
}

/* ---- the same code compiled for different CPUs ----------------------------------------------------------------- */

static int read_mcu_plain(struct entropy *entropy, uint32_t idx_mcu, int16_t *group, int *last) {
        return read_mcu(entropy, idx_mcu, group, last);
}

static int skip_mcus_plain(struct entropy *entropy, uint32_t n_mcus) {
        return skip_mcus(entropy, n_mcus);
}

const struct entropy_code entropy_code_plain = { "plain", read_mcu_plain, skip_mcus_plain };

#if defined(__x86_64__)

#define BMI2 __attribute__((target("bmi,bmi2")))

BMI2 static int read_mcu_bmi2(struct entropy *entropy, uint32_t idx_mcu, int16_t *group, int *last) {
        return read_mcu(entropy, idx_mcu, group, last);
}

BMI2 static int skip_mcus_bmi2(struct entropy *entropy, uint32_t n_mcus) {
        return skip_mcus(entropy, n_mcus);
}

const struct entropy_code *entropy_code_bmi2(void) {
        static const struct entropy_code code = { "bmi2", read_mcu_bmi2, skip_mcus_bmi2 };

        return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") ? &code : NULL;
}

#else

const struct entropy_code *entropy_code_bmi2(void) {
        return NULL;
}

#endif

/* ---- a scan ---------------------------------------------------------------------------------------------------- */

void entropy_init(struct entropy *entropy) {
        for (uint32_t k = 0; k < JPEG_COEFFICIENTS; k++)
                entropy->place[k] = baseline_place[k];
}

void entropy_start(struct entropy *entropy, const struct jpeg_header *header) {
        for (uint32_t c = 0; c < JPEG_COMPONENTS; c++)
                entropy->dc[c] = 0;
        entropy->restart_interval = header->restart_interval;
        entropy->n_until_restart = header->restart_interval;
        entropy->n_restarts = 0;
        scan_start(&entropy->scan, &entropy->bits, header->scan, header->end);
}

int entropy_check(const struct entropy *entropy) {
        if (entropy->scan.is_segment_end && bits_left(&entropy->bits, entropy->scan.filled) < 0)
                return BASELINE_HANDS_OVER;
        for (uint32_t c = 0; c < JPEG_COMPONENTS; c++)
                if (entropy->dc[c] > DC_LIMIT || entropy->dc[c] < -DC_LIMIT)
                        return BASELINE_HANDS_OVER;
        return 0;
}

int entropy_end(struct entropy *entropy) {
        return scan_end_segment(&entropy->scan, &entropy->bits, MARKER_END);
}
