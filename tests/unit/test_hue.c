/* unit/test_hue.c: the turned colour wheel beside Pillow's formulas in its own mixture of float32 and float64, for all
 * colours. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/operation.h"
#include "tests/support/suite.h"

#define SIDE 256u

struct hsv {
        uint8_t hue, saturation, value;
};

static int max_of(int a, int b) {
        return a > b ? a : b;
}

/* colorsys.rgb_to_hsv() as src/libImaging/Convert.c has it. */
static struct hsv to_hsv(int red, int green, int blue) {
        int largest = max_of(max_of(red, green), blue), smallest = -max_of(max_of(-red, -green), -blue);
        float range = (float)(largest - smallest), hue;
        float from_red, from_green, from_blue;

        if (largest == smallest)
                return (struct hsv){ .value = (uint8_t)largest };
        from_red = (float)(largest - red) / range;
        from_green = (float)(largest - green) / range;
        from_blue = (float)(largest - blue) / range;
        if (red == largest)
                hue = from_blue - from_green;
        else if (green == largest)
                hue = (float)(2.0 + (double)from_red - (double)from_blue);
        else
                hue = (float)(4.0 + (double)from_green - (double)from_red);
        hue = (float)fmod((double)hue / 6.0 + 1.0, 1.0);
        return (struct hsv){ .hue = (uint8_t)((double)hue * 255.0),
                             .saturation = (uint8_t)((double)(range / (float)largest) * 255.0),
                             .value = (uint8_t)largest };
}

static uint8_t rounded(double positive) {
        return (uint8_t)floor(positive + 0.5);
}

static void from_hsv(struct hsv hsv, uint8_t *ret_pixel) {
        double sixths = hsv.hue * 6.0 / 255.0, value = hsv.value;
        float within = (float)(sixths - floor(sixths)), share = (float)(hsv.saturation / 255.0);
        uint8_t low = rounded(value * (1.0 - (double)share));
        uint8_t falling = rounded(value * (1.0 - (double)(share * within)));
        uint8_t rising = rounded(value * (1.0 - (double)share * (1.0 - (double)within)));
        const uint8_t sectors[6][PIXEL_BYTES] = {
                { hsv.value, rising, low },  { falling, hsv.value, low }, { low, hsv.value, rising },
                { low, falling, hsv.value }, { rising, low, hsv.value },  { hsv.value, low, falling },
        };

        memcpy(ret_pixel, sectors[(int)floor(sixths) % 6], PIXEL_BYTES);
}

/* A picture of all colours with this red. */
static void fill(uint8_t *pixels, unsigned red) {
        for (unsigned i = 0; i < SIDE * SIDE; i++) {
                pixels[i * PIXEL_BYTES] = (uint8_t)red;
                pixels[i * PIXEL_BYTES + 1] = (uint8_t)(i / SIDE);
                pixels[i * PIXEL_BYTES + 2] = (uint8_t)(i % SIDE);
        }
}

/* Every colour is turned once; the turns go around the wheel as red grows. */
START_TEST(all_colours_become_those_of_pillow) {
        uint8_t *pixels = malloc((size_t)SIDE * SIDE * PIXEL_BYTES);
        struct canvas canvas = { .pixels = pixels, .stride = SIDE * PIXEL_BYTES, .width = SIDE, .height = SIDE };

        for (unsigned red = 0; red < 256; red++) {
                float turns = (float)((red * 37 + (unsigned)_i * 100) % 256) / 255.0f - 0.5f;
                struct operation operation = { .type = &operation_hue, .amount = turns };
                uint8_t shift = (uint8_t)(int)((double)turns * 255.0);

                fill(pixels, red);
                operation_hue.run(&operation, &canvas);
                for (unsigned i = 0; i < SIDE * SIDE; i++) {
                        struct hsv hsv = to_hsv((int)red, (int)(i / SIDE), (int)(i % SIDE));
                        uint8_t expected[PIXEL_BYTES];

                        hsv.hue = (uint8_t)(hsv.hue + shift);
                        from_hsv(hsv, expected);
                        if (memcmp(expected, pixels + (size_t)i * PIXEL_BYTES, PIXEL_BYTES) != 0)
                                ck_abort_msg("%u %u %u, turned by %d", red, i / SIDE, i % SIDE, shift);
                }
        }
        free(pixels);
}
END_TEST

START_TEST(rows_of_any_width_are_turned_and_nothing_beside_them) {
        uint8_t pixels[2][SIDE * PIXEL_BYTES], all[SIDE * PIXEL_BYTES];
        struct operation operation = { .type = &operation_hue, .amount = 0.3f };
        struct canvas canvas = { .pixels = all, .stride = sizeof(all), .width = SIDE, .height = 1 };

        for (size_t i = 0; i < sizeof(all); i++)
                all[i] = (uint8_t)(i * 89);
        memcpy(pixels[0], all, sizeof(all));
        operation_hue.run(&operation, &canvas);
        for (uint32_t width = 1; width < SIDE; width++) {
                memcpy(pixels[1], pixels[0], sizeof(all));
                canvas = (struct canvas){ .pixels = pixels[1], .stride = sizeof(all), .width = width, .height = 1 };
                operation_hue.run(&operation, &canvas);
                ck_assert_msg(memcmp(pixels[1], all, (size_t)width * PIXEL_BYTES) == 0, "width %u", width);
                ck_assert(memcmp(pixels[1] + (size_t)width * PIXEL_BYTES, pixels[0] + (size_t)width * PIXEL_BYTES,
                                 (size_t)(SIDE - width) * PIXEL_BYTES) == 0);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "colours", all_colours_become_those_of_pillow, 2 },
                { "rows", rows_of_any_width_are_turned_and_nothing_beside_them, 0 },
        };

        return suite_run("hue", rows, sizeof(rows) / sizeof(rows[0]));
}
