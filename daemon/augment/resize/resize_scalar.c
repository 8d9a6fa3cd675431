/* augment/resize/resize_scalar.c: the reference form of the loops. The other forms are tested against this one. */
#include "daemon/augment/resize/resize_kernels.h"

#include "daemon/base/box.h"

static uint8_t resize_scalar_clip(int32_t sum) {
        sum >>= RESIZE_PRECISION;
        return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void scalar_row(const struct resize_axis *axis, const uint8_t *source, uint8_t *out) {
        for (uint32_t x = 0; x < axis->n_outputs; x++, out += PIXEL_BYTES) {
                const int32_t *weights = axis->whole + (size_t)x * axis->n_taps;
                const uint8_t *pixels = source + (size_t)axis->first[x] * PIXEL_BYTES;

                for (uint32_t c = 0; c < PIXEL_BYTES; c++) {
                        int32_t sum = RESIZE_HALF;

                        for (uint32_t i = 0; i < axis->count[x]; i++)
                                sum += pixels[i * PIXEL_BYTES + c] * weights[i];
                        out[c] = resize_scalar_clip(sum);
                }
        }
}

static void scalar_rows(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                        uint8_t *const out[RESIZE_ROWS_AT_ONCE]) {
        for (uint32_t i = 0; i < RESIZE_ROWS_AT_ONCE; i++)
                scalar_row(axis, source[i], out[i]);
}

void resize_column_scalar(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                          size_t n_bytes) {
        const int32_t *weights = axis->whole + (size_t)idx_output * axis->n_taps;

        for (size_t x = 0; x < n_bytes; x++) {
                int32_t sum = RESIZE_HALF;

                for (uint32_t i = 0; i < axis->count[idx_output]; i++)
                        sum += rows[i][x] * weights[i];
                out[x] = resize_scalar_clip(sum);
        }
}

const struct resize_kernels resize_kernels_scalar = {
        .rows = scalar_rows,
        .column = resize_column_scalar,
};
