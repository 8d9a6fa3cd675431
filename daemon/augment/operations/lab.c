/* augment/operations/lab.c: whole numbers all the way, as in OpenCV, so that its bits result: levels become linear with 11
 * binary digits, coordinates X, Y and Z are scaled so that white is 1 in each, and f is the cube root of the standard,
 * with its straight piece near black. */
#include "daemon/augment/operations/lab.h"

#include <math.h>
#include <pthread.h>

#define LINEAR_ONE 2040 /* 255 * 8 */
#define N_LINEAR   3072 /* sums of rounded coefficients exceed LINEAR_ONE by little */
#define F_ONE      (1 << 15)
#define MATRIX_ONE (1 << 12)
#define BACK_ONE   (1 << 14) /* of f and of X, Y and Z on the way back */
#define N_GAMMA    (1 << 12)
#define STRAIGHT_L 20   /* up to this L, of 255, Y is a straight line */
#define STRAIGHT_F 3390 /* up to this f, of BACK_ONE, X and Z are */

/* The matrices of sRGB and D65, rows divided, or columns multiplied, by white. */
static const int TO_XYZ[3][3] = { { 1777, 1541, 778 }, { 871, 2929, 296 }, { 73, 448, 3575 } };
static const int TO_RGB[3][3] = { { 12615, -6296, -2223 }, { -3773, 7684, 185 }, { 217, -836, 4715 } };

static struct {
        uint16_t linear[256];    /* of a level: of LINEAR_ONE */
        uint16_t f[N_LINEAR];    /* of a linear value: of F_ONE */
        int32_t y[256], fy[256]; /* of L: of BACK_ONE */
        uint8_t gamma[N_GAMMA];
} tables;

static double linear_of(double level) {
        return level <= 0.04045 ? level / 12.92 : pow((level + 0.055) / 1.055, 2.4);
}

static double gamma_of(double linear) {
        return linear <= 0.0031308 ? linear * 12.92 : 1.055 * pow(linear, 1 / 2.4) - 0.055;
}

/* No entry is so near to a half that a C library's pow() or cbrt() could change it, except that two of f are a half in
 * float32, in which OpenCV computes them. */
static void make_tables(void) {
        for (int i = 0; i < 256; i++)
                tables.linear[i] = (uint16_t)rint(LINEAR_ONE * linear_of(i / 255.0));
        for (int i = 0; i < N_LINEAR; i++) {
                double x = (double)i / LINEAR_ONE;
                double f = x < 216.0 / 24389 ? x * 841 / 108 + 16.0 / 116 : cbrt(x);

                tables.f[i] = (uint16_t)rintf((float)(F_ONE * f));
        }
        for (int i = 0; i < 256; i++) {
                double light = i * 100.0 / 255, f = (light + 16) / 116;

                if (i <= STRAIGHT_L)
                        f = 16.0 / 116 + light * 27 / 24389 * 841 / 108;
                tables.fy[i] = (int32_t)rint(BACK_ONE * f);
                tables.y[i] = (int32_t)rint(BACK_ONE * (i <= STRAIGHT_L ? light * 27 / 24389 : f * f * f));
        }
        for (int i = 0; i < N_GAMMA; i++)
                tables.gamma[i] = (uint8_t)rint(255 * gamma_of((double)i / N_GAMMA));
}

static void need_tables(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, make_tables);
}

static int rounded(int value, unsigned shift) {
        return (value + (1 << (shift - 1))) >> shift;
}

static void pixel_from_rgb(uint8_t *pixel) {
        int f[3];

        for (int i = 0; i < 3; i++) {
                int sum = 0;

                for (int k = 0; k < 3; k++)
                        sum += TO_XYZ[i][k] * tables.linear[pixel[k]];
                f[i] = tables.f[rounded(sum, 12)];
        }
        pixel[0] = (uint8_t)rounded(296 * f[1] - 1336934, 15); /* 116 f - 16, times 255 / 100 */
        pixel[1] = (uint8_t)rounded(500 * (f[0] - f[1]) + 128 * F_ONE, 15);
        pixel[2] = (uint8_t)rounded(200 * (f[1] - f[2]) + 128 * F_ONE, 15);
}

void lab_from_rgb(const struct canvas *canvas) {
        need_tables();
        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x++)
                        pixel_from_rgb(canvas_at(canvas, x, y));
}

/* X or Z of its f. Divisions truncate. */
static int coordinate_of(int f) {
        return f <= STRAIGHT_F ? f * 108 / 841 - BACK_ONE * 16 / 116 * 108 / 841 : f * f / BACK_ONE * f / BACK_ONE;
}

static void pixel_to_rgb(uint8_t *pixel) {
        /* a / 500 and b / 200, of BACK_ONE: multiplied by whole reciprocals. */
        int a = ((5 * pixel[1] * 53687 + (1 << 7)) >> 13) - 128 * BACK_ONE / 500;
        int b = ((pixel[2] * 41943 + (1 << 4)) >> 9) - 128 * BACK_ONE / 200 + 1;
        int fy = tables.fy[pixel[0]];
        int xyz[3] = { coordinate_of(fy + a), tables.y[pixel[0]], coordinate_of(fy - b) };

        for (int i = 0; i < 3; i++) {
                int sum = rounded(TO_RGB[i][0] * xyz[0] + TO_RGB[i][1] * xyz[1] + TO_RGB[i][2] * xyz[2], 14);

                pixel[i] = tables.gamma[sum < 0 ? 0 : sum >= N_GAMMA ? N_GAMMA - 1 : sum];
        }
}

void lab_to_rgb(const struct canvas *canvas) {
        need_tables();
        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x++)
                        pixel_to_rgb(canvas_at(canvas, x, y));
}
