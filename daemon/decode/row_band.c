#include "daemon/decode/row_band.h"

#include <stddef.h>

uint64_t row_band_bytes(uint32_t width) {
        return (uint64_t)width * PIXEL_BYTES * ROW_BAND_ROWS;
}

int row_band_begin(struct row_band *band, const struct row_sink *sink, uint8_t *pixels, uint32_t width,
                   struct why *why) {
        *band = (struct row_band){ .sink = sink, .why = why, .pixels = pixels, .width = width };
        return sink->begin(sink->userdata, why);
}

uint8_t *row_band_next(const struct row_band *band) {
        return band->pixels + (size_t)band->n_rows * band->width * PIXEL_BYTES;
}

int row_band_end(struct row_band *band) {
        struct view view = {
                .pixels = band->pixels,
                .stride = (size_t)band->width * PIXEL_BYTES,
                .width = band->width,
                .height = band->n_rows,
        };

        if (band->n_rows == 0)
                return 0;
        band->n_rows = 0;
        return band->sink->take(band->sink->userdata, &view, band->why);
}

int row_band_push(struct row_band *band) {
        band->n_rows++;
        return band->n_rows < ROW_BAND_ROWS ? 0 : row_band_end(band);
}
