#include "daemon/augment/operations/pixel_planes.h"

#include "daemon/base/box.h"

static ALWAYS_INLINE void take_loop(const uint8_t *pixels, size_t n, struct planes *restrict planes) {
        for (size_t i = 0; i < n; i++) {
                planes->first[i] = pixels[i * PIXEL_BYTES];
                planes->second[i] = pixels[i * PIXEL_BYTES + 1];
                planes->third[i] = pixels[i * PIXEL_BYTES + 2];
        }
}

WIDE(take, (const uint8_t *pixels, size_t n, struct planes *planes), (pixels, n, planes))

static ALWAYS_INLINE void put_loop(const struct planes *planes, size_t n, uint8_t *restrict pixels) {
        for (size_t i = 0; i < n; i++) {
                pixels[i * PIXEL_BYTES] = planes->first[i];
                pixels[i * PIXEL_BYTES + 1] = planes->second[i];
                pixels[i * PIXEL_BYTES + 2] = planes->third[i];
        }
}

WIDE(put, (const struct planes *planes, size_t n, uint8_t *pixels), (planes, n, pixels))

void planes_take(const uint8_t *pixels, size_t n, struct planes *planes) {
        take(pixels, n, planes);
}

void planes_put(const struct planes *planes, size_t n, uint8_t *pixels) {
        put(planes, n, pixels);
}
