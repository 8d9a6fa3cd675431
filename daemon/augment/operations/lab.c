/* augment/operations/lab.c: whole numbers all the way, as in OpenCV, so that its bits result: levels become linear with 11
 * binary digits, coordinates X, Y and Z are scaled so that white is 1 in each, and f is the cube root of the standard,
 * with its straight piece near black. */
#include "daemon/augment/operations/lab.h"
#include "daemon/augment/operations/pixel_planes.h"

#include <math.h>
#include <pthread.h>

#define LINEAR_ONE  2040 /* 255 * 8 */
#define N_LINEAR    3072 /* sums of rounded coefficients exceed LINEAR_ONE by little */
#define F_ONE       (1 << 15)
#define MATRIX_BITS 12
#define MATRIX_ONE  (1 << MATRIX_BITS)
#define BACK_BITS   14
#define BACK_ONE    (1 << BACK_BITS) /* of f and of X, Y and Z on the way back */
#define N_GAMMA     (1 << 12)
#define STRAIGHT_L  20   /* up to this L, of 255, Y is a straight line */
#define STRAIGHT_F  3390 /* up to this f, of BACK_ONE, X and Z are */

/* The matrices of sRGB and D65, rows divided, or columns multiplied, by white. */
static const int TO_XYZ[3][3] = { { 1777, 1541, 778 }, { 871, 2929, 296 }, { 73, 448, 3575 } };
static const int TO_RGB[3][3] = { { 12615, -6296, -2223 }, { -3773, 7684, 185 }, { 217, -836, 4715 } };

/* X, Y and Z, and a number that means nothing: four are loaded and added at once. */
typedef int32_t xyz __attribute__((vector_size(16)));

/* Those of 32 bits can be looked up by vector registers. */
static struct {
        xyz red[256], green[256], blue[256]; /* what a level adds: of LINEAR_ONE * MATRIX_ONE */
        uint16_t f[N_LINEAR];                /* of a linear value: of F_ONE */
        int32_t fy_and_y[256];               /* of L: of BACK_ONE; f in the upper 16 bits */
        int32_t gamma[N_GAMMA];
} tables;

static double linear_of(double level) {
        return level <= 0.04045 ? level / 12.92 : pow((level + 0.055) / 1.055, 2.4);
}

static double gamma_of(double linear) {
        return linear <= 0.0031308 ? linear * 12.92 : 1.055 * pow(linear, 1 / 2.4) - 0.055;
}

/* No entry is so near to a half that a C library's pow() or cbrt() could change it, except that two of f are a half in
 * float32, in which OpenCV computes them. */
static void lab_make_tables(void) {
        for (int i = 0; i < 256; i++) {
                int32_t linear = (int32_t)rint(LINEAR_ONE * linear_of(i / 255.0));

                for (unsigned axis = 0; axis < 3; axis++) {
                        tables.red[i][axis] = TO_XYZ[axis][0] * linear + MATRIX_ONE / 2; /* rounds */
                        tables.green[i][axis] = TO_XYZ[axis][1] * linear;
                        tables.blue[i][axis] = TO_XYZ[axis][2] * linear;
                }
        }
        for (int i = 0; i < N_LINEAR; i++) {
                double x = (double)i / LINEAR_ONE;
                double f = x < 216.0 / 24389 ? x * 841 / 108 + 16.0 / 116 : cbrt(x);

                tables.f[i] = (uint16_t)rintf((float)(F_ONE * f));
        }
        for (int i = 0; i < 256; i++) {
                double light = i * 100.0 / 255, f = (light + 16) / 116;

                if (i <= STRAIGHT_L)
                        f = 16.0 / 116 + light * 27 / 24389 * 841 / 108;
                tables.fy_and_y[i] = (int32_t)rint(BACK_ONE * f) << 16;
                tables.fy_and_y[i] |= (int32_t)rint(BACK_ONE * (i <= STRAIGHT_L ? light * 27 / 24389 : f * f * f));
        }
        for (int i = 0; i < N_GAMMA; i++)
                tables.gamma[i] = (int32_t)rint(255 * gamma_of((double)i / N_GAMMA));
}

static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static ALWAYS_INLINE int32_t lab_rounded(int32_t value, unsigned shift) {
        return (value + (1 << (shift - 1))) >> shift;
}

/* f of X, Y and Z of all pixels. */
struct cube_roots {
        int32_t x[PLANES_AT_ONCE], y[PLANES_AT_ONCE], z[PLANES_AT_ONCE];
};

static void take_roots(const struct planes *planes, struct cube_roots *ret_roots) {
        for (size_t i = 0; i < PLANES_AT_ONCE; i++) {
                xyz sums = tables.red[planes->first[i]] + tables.green[planes->second[i]] +
                           tables.blue[planes->third[i]];

                sums >>= MATRIX_BITS;
                ret_roots->x[i] = tables.f[sums[0]];
                ret_roots->y[i] = tables.f[sums[1]];
                ret_roots->z[i] = tables.f[sums[2]];
        }
}

static ALWAYS_INLINE void from_roots_loop(const struct cube_roots *roots, struct planes *restrict planes) {
        for (size_t i = 0; i < PLANES_AT_ONCE; i++) {
                int32_t fx = roots->x[i], fy = roots->y[i], fz = roots->z[i];

                planes->first[i] = (uint8_t)lab_rounded(296 * fy - 1336934, 15); /* 116 f - 16, times 255 / 100 */
                planes->second[i] = (uint8_t)lab_rounded(500 * (fx - fy) + 128 * F_ONE, 15);
                planes->third[i] = (uint8_t)lab_rounded(200 * (fy - fz) + 128 * F_ONE, 15);
        }
}

WIDE(from_roots, (const struct cube_roots *roots, struct planes *planes), (roots, planes))

static void from_rgb(struct planes *planes) {
        struct cube_roots roots;

        take_roots(planes, &roots);
        from_roots(&roots, planes);
}

/* X or Z of its f. Divisions truncate, for f of -8,145 to 26,868. That of float32 does as well: its dividend is a whole
 * number below 2^24, and what is not whole is 1 / 841 from it at least. */
static ALWAYS_INLINE int32_t coordinate_of(int32_t f) {
        int32_t straight = (int32_t)((float)(f * 108) / 841.0f) - BACK_ONE * 16 / 116 * 108 / 841;
        int32_t cube = (((f * f) >> BACK_BITS) * f) >> BACK_BITS;

        return choose(f <= STRAIGHT_F, straight, cube);
}

static ALWAYS_INLINE uint8_t lab_level_of(const int *factors, int32_t x, int32_t y, int32_t z) {
        int32_t sum = lab_rounded(factors[0] * x + factors[1] * y + factors[2] * z, 14);

        sum = sum < 0 ? 0 : sum;
        return (uint8_t)tables.gamma[sum >= N_GAMMA ? N_GAMMA - 1 : sum];
}

static ALWAYS_INLINE void to_rgb_loop(struct planes *restrict planes) {
        for (size_t i = 0; i < PLANES_AT_ONCE; i++) {
                /* a / 500 and b / 200, of BACK_ONE: multiplied by whole reciprocals. */
                int32_t a = ((5 * planes->second[i] * 53687 + (1 << 7)) >> 13) - 128 * BACK_ONE / 500;
                int32_t b = ((planes->third[i] * 41943 + (1 << 4)) >> 9) - 128 * BACK_ONE / 200 + 1;
                int32_t both = tables.fy_and_y[planes->first[i]], fy = both >> 16, y = both & 0xffff;
                int32_t x = coordinate_of(fy + a), z = coordinate_of(fy - b);

                planes->first[i] = lab_level_of(TO_RGB[0], x, y, z);
                planes->second[i] = lab_level_of(TO_RGB[1], x, y, z);
                planes->third[i] = lab_level_of(TO_RGB[2], x, y, z);
        }
}

WIDE(to_rgb, (struct planes * planes), (planes))

static void lab_change(const struct canvas *canvas, void (*loop)(struct planes *planes)) {
        struct planes planes = {}; /* zeroed: the last ones of a row may be few, but all are computed */

        pthread_once(&tables_once, lab_make_tables);
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                for (uint32_t x = 0; x < canvas->width; x += PLANES_AT_ONCE) {
                        uint32_t n = canvas->width - x < PLANES_AT_ONCE ? canvas->width - x : PLANES_AT_ONCE;

                        planes_take(canvas_at(canvas, x, y), n, &planes);
                        loop(&planes);
                        planes_put(&planes, n, canvas_at(canvas, x, y));
                }
}

void lab_from_rgb(const struct canvas *canvas) {
        lab_change(canvas, from_rgb);
}

void lab_to_rgb(const struct canvas *canvas) {
        lab_change(canvas, to_rgb);
}
