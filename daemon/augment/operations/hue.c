/* augment/operations/hue.c: turns the colour wheel as torchvision does with Pillow: converts to HSV of 8 bits each,
 * adds to the hue modulo 256, and converts back. Both conversions lose a little, so even a turn by 0 changes pixels.
 *
 * The formulas are those of Python's colorsys, in Pillow's mixture of float32 and float64, where each rounding counts.
 * Values that depend on one byte alone are in tables. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/wide.h"

#include <math.h>
#include <pthread.h>

struct wheel {
        uint8_t sector[256]; /* sixth of the wheel, for a hue that is already turned */
        float within[256];   /* position within the sixth, 0 to 1 */
        float share[256];    /* a saturation / 255 */
};

/* torchvision adds uint8(255 * turns) in uint8: truncated towards zero, then modulo 256. */
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

/* The hue of a colour that is not grey: `range` is the largest sample minus the smallest, at least 1. */
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

/* ---- a table of all colours ---------------------------------------------------------------------------------- */

/* A hue depends on three things: which sample is the largest and which the smallest (six cases), the range between
 * them, and how far the third one is below the largest. There are few enough combinations to compute once. */
#define N_CASES 6u

static uint8_t hues[N_CASES][256][256]; /* case, range, below */
static uint8_t saturations[256][256];   /* largest, range; 0 for a range of 0 */
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_saturations(void) {
        for (int largest = 1; largest < 256; largest++)
                for (int range = 1; range <= largest; range++)
                        saturations[largest][range] = (uint8_t)((double)((float)range / (float)largest) * 255.0);
}

static void fill_hues(void) {
        for (int range = 1; range < 256; range++)
                for (int below = 0; below <= range; below++) {
                        int mid = 255 - below, low = 255 - range;

                        hues[0][range][below] = hue_of(255, mid, low, 255, (float)range);
                        hues[1][range][below] = hue_of(255, low, mid, 255, (float)range);
                        hues[2][range][below] = hue_of(mid, 255, low, 255, (float)range);
                        hues[3][range][below] = hue_of(low, 255, mid, 255, (float)range);
                        hues[4][range][below] = hue_of(low, mid, 255, 255, (float)range);
                        hues[5][range][below] = hue_of(mid, low, 255, 255, (float)range);
                }
}

static void fill_tables(void) {
        fill_hues();
        fill_saturations();
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

#define AT_ONCE 64u /* pixels: one pass looks up, one computes and vectorises, one combines */

/* Colours as HSV. */
struct colours {
        float value[AT_ONCE], share[AT_ONCE], within[AT_ONCE];
        uint8_t sector[AT_ONCE];
};

/* The values that a colour's red, green and blue take, by sector. */
enum {
        LARGEST,
        LOW,
        FALLING,
        RISING,
        N_PARTS
};

static const uint8_t PICKS[6][PIXEL_BYTES] = {
        { LARGEST, RISING, LOW },  { FALLING, LARGEST, LOW }, { LOW, LARGEST, RISING },
        { LOW, FALLING, LARGEST }, { RISING, LOW, LARGEST },  { LARGEST, LOW, FALLING },
};

/* Almost without branches, which would be unpredictable in a photograph. A grey has the share 0, whatever its hue. */
static void look_up(const struct wheel *wheel, const uint8_t *pixels, uint32_t n, struct colours *colours) {
        for (uint32_t i = 0; i < n; i++, pixels += PIXEL_BYTES) {
                unsigned red = pixels[0], green = pixels[1], blue = pixels[2];
                unsigned high = red > green ? red : green, low = red > green ? green : red;
                unsigned largest = high > blue ? high : blue, smallest = low < blue ? low : blue;
                unsigned third = red + green + blue - largest - smallest;
                unsigned is_red = red == largest, is_green = (green == largest) & !is_red;
                unsigned is_other = (is_red | is_green) ? blue != smallest : red != smallest;
                uint8_t hue = hues[4 - 4 * is_red - 2 * is_green + is_other][largest - smallest][largest - third];

                colours->value[i] = (float)largest;
                colours->share[i] = wheel->share[saturations[largest][largest - smallest]];
                colours->within[i] = wheel->within[hue];
                colours->sector[i] = wheel->sector[hue];
        }
}

static inline uint8_t rounded(double positive) {
        return (uint8_t)(int)(positive + 0.5);
}

static ALWAYS_INLINE void compute_parts_loop(const struct colours *colours, uint8_t parts[N_PARTS][AT_ONCE]) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
                float share = colours->share[i], within = colours->within[i];
                double value = (double)colours->value[i];

                parts[LARGEST][i] = (uint8_t)(int)value;
                parts[LOW][i] = rounded(value * (1.0 - (double)share));
                parts[FALLING][i] = rounded(value * (1.0 - (double)(share * within)));
                parts[RISING][i] = rounded(value * (1.0 - (double)share * (1.0 - (double)within)));
        }
}

WIDE(compute_parts, (const struct colours *colours, uint8_t parts[N_PARTS][AT_ONCE]), (colours, parts))

static void put_together(const struct colours *colours, uint8_t parts[N_PARTS][AT_ONCE], uint32_t n, uint8_t *pixels) {
        for (uint32_t i = 0; i < n; i++, pixels += PIXEL_BYTES) {
                const uint8_t *picks = PICKS[colours->sector[i]];

                pixels[0] = parts[picks[0]][i];
                pixels[1] = parts[picks[1]][i];
                pixels[2] = parts[picks[2]][i];
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct colours colours = {}; /* zeroed: the last ones of a row may be few, but all are computed */
        uint8_t parts[N_PARTS][AT_ONCE];
        struct wheel wheel;

        pthread_once(&tables_once, fill_tables);
        wheel_init(&wheel, operation->amount);
        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x += AT_ONCE) {
                        uint32_t n = canvas->width - x < AT_ONCE ? canvas->width - x : AT_ONCE;
                        uint8_t *pixels = canvas_at(canvas, x, y);

                        look_up(&wheel, pixels, n, &colours);
                        compute_parts(&colours, parts);
                        put_together(&colours, parts, n, pixels);
                }
}

const struct operation_type operation_hue = {
        .name = "hue",
        .left_kind = DLP_LEFT_HUE,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
