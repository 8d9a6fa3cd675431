/* tests/support/layouts.h: JPEG files of every layout, made as they are needed, the same ones every time.
 *
 * A layout says how the samples lie in the file; the content is made from a seed: waves, which code short, or noise,
 * which fills every coefficient. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jpeg_colours {
        JPEG_GREY,
        JPEG_YCC,
        JPEG_RGB, /* three components, not converted */
        JPEG_CMYK,
        JPEG_YCCK,
};

struct jpeg_layout {
        const char *name; /* for messages */
        enum jpeg_colours colours;
        uint8_t sampling[4][2]; /* of each component: horizontal, vertical factor; 0 stands for 1 */
        bool progressive, arithmetic, optimised, noise;
        bool separate;      /* a scan a component */
        uint32_t n_restart; /* MCUs between restart markers; 0: none */
        int quality;        /* 1 to 100; 0 stands for 85 */
};

/* Every sampling that is met and many that are not, and every way of coding. */
extern const struct jpeg_layout JPEG_LAYOUTS[];
extern const size_t N_JPEG_LAYOUTS;

/* Fresh memory that ends with the file's last byte; the caller frees it. */
uint8_t *jpeg_make(const struct jpeg_layout *layout, uint32_t width, uint32_t height, uint64_t seed,
                   size_t *ret_n_bytes);
