/* unit/test_jpeg_step.c: the loops of the step jpeg: two blocks at once (AVX2) are as each of them alone (plain C), for
 * samples that go as far as samples can. That the results are libjpeg's is compared in test_colors.c. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "daemon/augment/operations/jpeg/colors.h"
#include "daemon/augment/operations/jpeg/jpeg_pixels_block.h"
#include "proto/order/philox.h"
#include "tests/support/suite.h"

#define N_BLOCKS 3u
#define STRIDE   (N_BLOCKS * BLOCK_SIDE)

enum sort {
        NOISE,
        EXTREMES, /* 0 and 255 alone */
        SOFT,
        WAVES, /* one of the transform's own patterns, at its highest */
        N_SORTS
};

static uint8_t sample_of(enum sort sort, uint32_t x, uint32_t y, uint32_t number, struct dlp_philox *philox) {
        uint32_t word = dlp_philox_u32(philox), across = number % 8, down = number / 8 % 8;

        switch (sort) {
        case NOISE:
                return (uint8_t)word;
        case EXTREMES:
                return word % 2 ? 255 : 0;
        case SOFT:
                return (uint8_t)(x * 9 + y * 3 + word % 8);
        default: /* the signs of cosines */
                return ((2 * x + 1) * across / 16 + (2 * y + 1) * down / 16) % 2 ? 255 : 0;
        }
}

START_TEST(two_blocks_at_once_are_as_each_alone) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, 3, 0, (uint64_t)_i, 0);
        for (uint32_t number = 0; number < 6400; number++) {
                uint8_t together[STRIDE * BLOCK_SIDE], alone[STRIDE * BLOCK_SIDE];
                struct quantizer quantizer;

                quantizer_init(&quantizer, 1 + (int)(number / 64), number % 2);
                for (uint32_t i = 0; i < sizeof(alone); i++)
                        together[i] = alone[i] = sample_of((enum sort)_i, i % STRIDE, i / STRIDE, number, &philox);
                blocks_through_jpeg(&quantizer, together, STRIDE, N_BLOCKS);
                for (uint32_t i = 0; i < N_BLOCKS; i++)
                        blocks_through_jpeg(&quantizer, alone + (size_t)i * BLOCK_SIDE, STRIDE, 1);
                ck_assert(memcmp(together, alone, sizeof(alone)) == 0);
        }
}
END_TEST

/* The definition, which is libjpeg's: whole numbers of 16 digits. */
START_TEST(colours_are_those_of_the_definition) {
        for (uint32_t number = 0; number < 1u << 24; number += PLANES_AT_ONCE * 7) {
                uint16_t cb[PLANES_AT_ONCE] = { 0 }, cr[PLANES_AT_ONCE] = { 0 };
                uint8_t luma[PLANES_AT_ONCE];
                struct planes planes, back;

                for (uint32_t i = 0; i < PLANES_AT_ONCE; i++) {
                        planes.first[i] = (uint8_t)(number + i);
                        planes.second[i] = (uint8_t)((number + i) >> 8);
                        planes.third[i] = (uint8_t)((number + i) >> 16);
                }
                luma_of_planes(&planes, luma);
                add_chroma_of_planes(&planes, cb, cr);
                colors_of_planes(planes.first, planes.second, planes.third, &back);
                for (uint32_t i = 0; i < PLANES_AT_ONCE; i++) {
                        int32_t a = planes.first[i], b = planes.second[i], c = planes.third[i];
                        int32_t green = a + ((-22554 * (b - 128) - 46802 * (c - 128) + 32768) >> 16);
                        int32_t blue = a + ((116130 * (b - 128) + 32768) >> 16);
                        int32_t red = a + ((91881 * (c - 128) + 32768) >> 16);

                        ck_assert(luma[i] == (19595 * a + 38470 * b + 7471 * c + 32768) >> 16);
                        ck_assert(cb[i] == (-11059 * a - 21709 * b + 32768 * c + 8421375) >> 16);
                        ck_assert(cr[i] == (32768 * a - 27439 * b - 5329 * c + 8421375) >> 16);
                        ck_assert(back.first[i] == (red < 0 ? 0 : red > 255 ? 255 : red));
                        ck_assert(back.second[i] == (green < 0 ? 0 : green > 255 ? 255 : green));
                        ck_assert(back.third[i] == (blue < 0 ? 0 : blue > 255 ? 255 : blue));
                }
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "blocks", two_blocks_at_once_are_as_each_alone, N_SORTS },
                { "colours", colours_are_those_of_the_definition, 0 },
        };

        return suite_run("jpeg_step", rows, sizeof(rows) / sizeof(rows[0]));
}
