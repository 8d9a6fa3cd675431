/* augment/operations/hue.c: turns the colour wheel as torchvision does with Pillow: converts to HSV of 8 bits each,
 * adds to the hue modulo 256, and converts back. Both conversions lose a little, so even a turn by 0 changes pixels.
 *
 * Pillow computes in a mixture of float32 and float64, where each rounding counts. What is here is float32 alone, which
 * vectors hold eight of, in forms that give Pillow's byte for every colour and every turn: there are few enough to
 * compare all of them, and test_hue.c does. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/pixel_planes.h"

/* ---- one colour ------------------------------------------------------------------------------------------------ */

static ALWAYS_INLINE int hue_larger(int a, int b) {
        return a > b ? a : b;
}

static ALWAYS_INLINE int hue_smaller(int a, int b) {
        return a < b ? a : b;
}

/* The hue, 0 to 255: it starts at the colour of the largest sample, two sixths of the wheel from one to the next, and
 * goes towards the third one. Of a grey, any. */
static ALWAYS_INLINE int hue_of(int red, int green, int blue, int largest, int smallest) {
        int range = hue_larger(largest - smallest, 1), third = red + green + blue - largest - smallest;
        int is_red = red == largest, is_green = green == largest;
        int is_up = choose(is_red, blue != smallest, choose(is_green, blue == smallest, red == smallest));
        int from = choose(is_red, 1 - 2 * is_up, choose(is_green, 3 - 2 * is_up, 5 - 2 * is_up));
        float below = (float)(largest - third) / (float)range;
        float turns = ((float)from + (float)(2 * is_up - 1) * below) / 6.0f;

        return (int)((turns + (float)(turns < 0)) * 255.0f);
}

static ALWAYS_INLINE int hue_rounded(float positive) {
        return (int)(positive + 0.5f);
}

static ALWAYS_INLINE void turn_loop(struct planes *colours, int shift) {
        for (uint32_t i = 0; i < PLANES_AT_ONCE; i++) {
                int red = colours->first[i], green = colours->second[i], blue = colours->third[i];
                int largest = hue_larger(hue_larger(red, green), blue),
                    smallest = hue_smaller(hue_smaller(red, green), blue);
                int hue = (hue_of(red, green, blue, largest, smallest) + shift) & 255;
                int saturation = (int)((float)(largest - smallest) / (float)hue_larger(largest, 1) * 255.0f);
                int sixth = (hue * 386) >> 14; /* 6 / 255 of it */
                float value = (float)largest, chroma = value * ((float)saturation * (1.0f / 255.0f));
                float part = chroma * ((float)(hue * 2 - sixth * 85) * (1.0f / 85.0f));
                int high = largest, low = hue_rounded(value - chroma);
                int falling = hue_rounded(value - part), rising = hue_rounded(value - (chroma - part));

                colours->first[i] = (uint8_t)choose(sixth == 1, falling,
                                                    choose((sixth | 1) == 3, low, choose(sixth == 4, rising, high)));
                colours->second[i] = (uint8_t)choose(
                        sixth == 0, rising,
                        choose(sixth == 6, rising, choose(sixth < 3, high, choose(sixth == 3, falling, low))));
                colours->third[i] = (uint8_t)choose(
                        sixth == 2, rising,
                        choose(sixth == 5, falling, choose(sixth > 2, choose(sixth < 5, high, low), low)));
        }
}

WIDE(turn, (struct planes * colours, int shift), (colours, shift))

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct planes colours = {}; /* zeroed: the last ones of a row may be few, but all are computed */
        /* torchvision adds uint8(255 * turns) in uint8: truncated towards zero, then modulo 256. */
        int shift = (uint8_t)(int)((double)operation->amount * 255.0);

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                for (uint32_t x = 0; x < canvas->width; x += PLANES_AT_ONCE) {
                        uint32_t n = canvas->width - x < PLANES_AT_ONCE ? canvas->width - x : PLANES_AT_ONCE;
                        uint8_t *pixels = canvas_at(canvas, x, y);

                        planes_take(pixels, n, &colours);
                        turn(&colours, shift);
                        planes_put(&colours, n, pixels);
                }
}

const struct operation_type operation_hue = {
        .left_kind = DLP_LEFT_HUE,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
