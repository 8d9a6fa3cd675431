/* augment/operation_hue.c: turns the colour wheel as torchvision does with Pillow: to HSV of 8 bits each, the hue moved
 * modulo 256, and back. Both ways lose a little, so a turn by nothing is not nothing.
 *
 * The formulas are those of Python's colorsys in the mixture of float32 and float64 in which Pillow computes them,
 * where each rounding counts. What depends on one byte alone lies in tables. */
#include "daemon/augment/operation.h"

#include <math.h>

struct wheel {
        uint8_t sector[256]; /* of a hue, already turned: which sixth of the wheel */
        float within[256];   /* how far into it, 0 to 1 */
        float share[256];    /* a saturation / 255 */
};

/* torchvision adds uint8(255 * turns) in uint8: cut towards zero, then modulo 256. */
static void wheel_init(struct wheel *wheel, float turns) {
        uint8_t shift = (uint8_t)(int)((double)turns * 255.0);

        for (uint32_t i = 0; i < 256; i++) {
                uint8_t hue = (uint8_t)(i + shift);
                double sixths = (double)hue * 6.0 / 255.0;

                wheel->sector[i] = (uint8_t)sixths % 6;
                wheel->within[i] = (float)(sixths - floor(sixths));
                wheel->share[i] = (float)((double)i / 255.0);
        }
}

/* The hue of a colour that is no grey: `range` is the largest sample less the smallest, at least 1. */
static uint8_t hue_of(int red, int green, int blue, int largest, float range) {
        float from_red = (float)(largest - red) / range, from_green = (float)(largest - green) / range,
              from_blue = (float)(largest - blue) / range;
        float hue;
        double turns;

        if (red == largest)
                hue = from_blue - from_green;
        else if (green == largest)
                hue = (float)(2.0 + (double)from_red - (double)from_blue);
        else
                hue = (float)(4.0 + (double)from_green - (double)from_red);
        turns = (double)hue / 6.0 + 1.0; /* 5/6 to 11/6 */
        hue = (float)(turns >= 1.0 ? turns - 1.0 : turns);
        return (uint8_t)((double)hue * 255.0);
}

static uint8_t rounded(double positive) {
        return (uint8_t)(int)(positive + 0.5);
}

static void turn(const struct wheel *wheel, uint8_t *pixel) {
        int red = pixel[0], green = pixel[1], blue = pixel[2];
        int largest = red > green ? red : green, smallest = red > green ? green : red;
        uint8_t hue, low, falling, rising;
        float range, share, within;

        largest = largest > blue ? largest : blue;
        smallest = smallest < blue ? smallest : blue;
        if (largest == smallest)
                return; /* a grey */
        range = (float)(largest - smallest);
        share = wheel->share[(uint8_t)((double)(range / (float)largest) * 255.0)];
        if (share == 0) {
                pixel[0] = pixel[1] = pixel[2] = (uint8_t)largest;
                return;
        }
        hue = hue_of(red, green, blue, largest, range);
        within = wheel->within[hue];
        low = rounded((double)largest * (1.0 - (double)share));
        falling = rounded((double)largest * (1.0 - (double)(share * within)));
        rising = rounded((double)largest * (1.0 - (double)share * (1.0 - (double)within)));

        switch (wheel->sector[hue]) {
        case 0:
                pixel[0] = (uint8_t)largest, pixel[1] = rising, pixel[2] = low;
                break;
        case 1:
                pixel[0] = falling, pixel[1] = (uint8_t)largest, pixel[2] = low;
                break;
        case 2:
                pixel[0] = low, pixel[1] = (uint8_t)largest, pixel[2] = rising;
                break;
        case 3:
                pixel[0] = low, pixel[1] = falling, pixel[2] = (uint8_t)largest;
                break;
        case 4:
                pixel[0] = rising, pixel[1] = low, pixel[2] = (uint8_t)largest;
                break;
        default:
                pixel[0] = (uint8_t)largest, pixel[1] = low, pixel[2] = falling;
                break;
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct wheel wheel;

        wheel_init(&wheel, operation->amount);
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *row = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++)
                        turn(&wheel, row + (size_t)x * PIXEL_BYTES);
        }
}

const struct operation_type operation_hue = {
        .name = "hue",
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
