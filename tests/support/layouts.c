#include "tests/support/layouts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define YCC(h, v)                                                                                                      \
        JPEG_YCC, {                                                                                                    \
                { h, v }                                                                                               \
        }

const struct jpeg_layout JPEG_LAYOUTS[] = {
        { "4:4:4", YCC(1, 1) },
        { "4:2:2", YCC(2, 1) },
        { "4:2:0", YCC(2, 2) },
        { "4:4:0", YCC(1, 2) },
        { "4:1:1", YCC(4, 1) },
        { "4:1:0", YCC(4, 2) },
        { "1x4", YCC(1, 4) },
        { "3x1", YCC(3, 1) },
        { "1x3", YCC(1, 3) },
        { "2x4", YCC(2, 4) },
        { "4x1 with chroma 2x1", JPEG_YCC, { { 4, 1 }, { 2, 1 }, { 2, 1 } } },
        { "2x2 with chroma 1x2 and 2x1", JPEG_YCC, { { 2, 2 }, { 1, 2 }, { 2, 1 } } },
        { "luma below chroma", JPEG_YCC, { { 1, 1 }, { 2, 2 }, { 1, 1 } } },
        { "1x2 all", JPEG_YCC, { { 1, 2 }, { 1, 2 }, { 1, 2 } } },
        { "grey", JPEG_GREY },
        { "grey 2x2", JPEG_GREY, { { 2, 2 } } },
        { "4:2:0 optimised", YCC(2, 2), .optimised = true, .quality = 95 },
        { "4:2:0 noise", YCC(2, 2), .noise = true, .quality = 98 },
        { "4:2:0 coarse", YCC(2, 2), .noise = true, .quality = 3 },
        { "4:2:0 restarts", YCC(2, 2), .n_restart = 3 },
        { "4:4:4 restarts", YCC(1, 1), .n_restart = 1, .noise = true },
        { "grey restarts", JPEG_GREY, .n_restart = 5 },
        { "4:2:0 separate", YCC(2, 2), .separate = true },
        { "4:2:0 progressive", YCC(2, 2), .progressive = true },
        { "4:2:2 progressive", YCC(2, 1), .progressive = true },
        { "4:4:0 progressive", YCC(1, 2), .progressive = true, .n_restart = 2 },
        { "4:4:4 progressive", YCC(1, 1), .progressive = true, .noise = true },
        { "grey progressive", JPEG_GREY, .progressive = true },
        { "4:2:0 arithmetic", YCC(2, 2), .arithmetic = true },
        { "4:2:2 arithmetic restarts", YCC(2, 1), .arithmetic = true, .n_restart = 2 },
        { "4:2:0 arithmetic progressive", YCC(2, 2), .arithmetic = true, .progressive = true },
        { "RGB", JPEG_RGB },
        { "CMYK", JPEG_CMYK },
        { "CMYK 2x2", JPEG_CMYK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
        { "YCCK", JPEG_YCCK },
        { "YCCK 2x2", JPEG_YCCK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
        { "YCCK 2x1 progressive", JPEG_YCCK, { { 2, 1 }, { 1, 1 }, { 1, 1 }, { 2, 1 } }, .progressive = true },
};
const size_t N_JPEG_LAYOUTS = sizeof(JPEG_LAYOUTS) / sizeof(JPEG_LAYOUTS[0]);

static const struct colours {
        J_COLOR_SPACE given, stored;
        int n_components;
} COLOURS[] = {
        [JPEG_GREY] = { JCS_GRAYSCALE, JCS_GRAYSCALE, 1 },
        [JPEG_YCC] = { JCS_RGB, JCS_YCbCr, 3 },
        [JPEG_RGB] = { JCS_RGB, JCS_RGB, 3 },
        [JPEG_CMYK] = { JCS_CMYK, JCS_CMYK, 4 },
        [JPEG_YCCK] = { JCS_CMYK, JCS_YCCK, 4 },
};

static uint64_t next_random(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state >> 24;
}

/* Waves of other lengths and heights in each channel: no two pixels near each other are alike. */
static uint8_t wave(uint32_t x, uint32_t y, int channel, uint64_t random) {
        double value = 128 + 70 * sin(x / (4.0 + channel) + channel) + 50 * cos(y / (9.0 - channel));

        return (uint8_t)fmin(255, fmax(0, value + (double)(random % 13) - 6));
}

static void draw_row(uint8_t *row, const struct jpeg_compress_struct *jpeg, uint32_t y, bool noise, uint64_t *random) {
        for (uint32_t x = 0; x < jpeg->image_width; x++)
                for (int c = 0; c < jpeg->input_components; c++) {
                        uint64_t number = next_random(random);

                        *row++ = noise ? (uint8_t)number : wave(x, y, c, number);
                }
}

static void set_layout(struct jpeg_compress_struct *jpeg, const struct jpeg_layout *layout) {
        static jpeg_scan_info scans[MAX_COMPONENTS];

        jpeg_set_defaults(jpeg);
        jpeg_set_colorspace(jpeg, COLOURS[layout->colours].stored);
        jpeg_set_quality(jpeg, layout->quality ? layout->quality : 85, TRUE);
        for (int c = 0; c < jpeg->num_components; c++) {
                jpeg->comp_info[c].h_samp_factor = layout->sampling[c][0] ? layout->sampling[c][0] : 1;
                jpeg->comp_info[c].v_samp_factor = layout->sampling[c][1] ? layout->sampling[c][1] : 1;
        }
        jpeg->restart_interval = layout->n_restart;
        jpeg->optimize_coding = layout->optimised;
        jpeg->arith_code = layout->arithmetic;
        if (layout->progressive)
                jpeg_simple_progression(jpeg);
        if (layout->separate) {
                for (int c = 0; c < jpeg->num_components; c++)
                        scans[c] = (jpeg_scan_info){ .comps_in_scan = 1, .component_index = { c }, .Se = 63 };
                jpeg->scan_info = scans;
                jpeg->num_scans = jpeg->num_components;
        }
}

uint8_t *jpeg_make(const struct jpeg_layout *layout, uint32_t width, uint32_t height, uint64_t seed,
                   size_t *ret_n_bytes) {
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors; /* ends the program: our own bug */
        unsigned long n_bytes = 0;
        uint8_t *grown = NULL, *bytes, *row = malloc((size_t)width * 4);
        uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, &grown, &n_bytes);
        jpeg.image_width = width;
        jpeg.image_height = height;
        jpeg.input_components = COLOURS[layout->colours].n_components;
        jpeg.in_color_space = COLOURS[layout->colours].given;
        set_layout(&jpeg, layout);

        jpeg_start_compress(&jpeg, TRUE);
        while (jpeg.next_scanline < height) {
                draw_row(row, &jpeg, jpeg.next_scanline, layout->noise, &random);
                jpeg_write_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
        free(row);

        bytes = malloc(n_bytes);
        memcpy(bytes, grown, n_bytes);
        free(grown);
        *ret_n_bytes = n_bytes;
        return bytes;
}
