#include "tests/support/jpegs.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

uint32_t jpegs_random(uint64_t *state, uint32_t n) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return (uint32_t)(*state >> 32) % n;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

static uint8_t photo_pixel(uint64_t *random, uint32_t x, uint32_t y, uint32_t c) {
        uint32_t edge = (x / 13 + y / 17 + c) % 3 * 70, slope = (x * (c + 1) + 2 * y) % 97;

        return (uint8_t)(edge + slope / 2 + jpegs_random(random, 30));
}

static void draw(const struct jpegs_spec *spec, uint64_t *random, uint32_t y, uint32_t n_channels, uint8_t *row) {
        for (uint32_t x = 0; x < spec->width; x++)
                for (uint32_t c = 0; c < n_channels; c++, row++) {
                        if (spec->content == JPEGS_NOISE)
                                *row = (uint8_t)jpegs_random(random, 256);
                        else if (spec->content == JPEGS_SMOOTH)
                                *row = (uint8_t)(128 + (int)((x + spec->seed) % 64) - (int)(y * (c + 1) % 64));
                        else
                                *row = photo_pixel(random, x, y, c);
                }
}

/* ---- tables that nobody would choose ------------------------------------------------------------------------- */

static void shuffle(uint64_t *random, UINT8 *symbols, uint32_t n) {
        for (uint32_t i = n; i > 1; i--) {
                uint32_t j = jpegs_random(random, i);
                UINT8 one = symbols[j];

                symbols[j] = symbols[i - 1];
                symbols[i - 1] = one;
        }
}

/* The same symbols with lengths drawn so that a code is free at the end, and all ones is none. */
static void make_strange(JHUFF_TBL *table, uint64_t *random) {
        uint32_t n_left = 0, n_free = 1;

        for (int length = 1; length <= 16; length++)
                n_left += table->bits[length];
        shuffle(random, table->huffval, n_left);
        for (int length = 1; length <= 16; length++) {
                uint32_t n = 0;

                n_free *= 2;
                if (length == 16)
                        n = n_left;
                else if (n_free > 2 && jpegs_random(random, 2) == 0)
                        n = jpegs_random(random, n_free / 2 + 1);
                if (n > n_left)
                        n = n_left;
                table->bits[length] = (UINT8)n;
                n_left -= n;
                n_free -= n;
        }
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static void set_strange_codes(struct jpeg_compress_struct *jpeg, uint64_t *random) {
        for (int i = 0; i < NUM_HUFF_TBLS; i++) {
                if (jpeg->dc_huff_tbl_ptrs[i])
                        make_strange(jpeg->dc_huff_tbl_ptrs[i], random);
                if (jpeg->ac_huff_tbl_ptrs[i])
                        make_strange(jpeg->ac_huff_tbl_ptrs[i], random);
        }
}

static void set_options(struct jpeg_compress_struct *jpeg, const struct jpegs_spec *spec, uint64_t *random) {
        jpeg_set_quality(jpeg, spec->quality, TRUE);
        jpeg->restart_interval = spec->restart;
        jpeg->optimize_coding = spec->codes == JPEGS_OPTIMISED;
        if (spec->codes == JPEGS_STRANGE)
                set_strange_codes(jpeg, random);
        if (spec->h > 0) {
                jpeg->comp_info[0].h_samp_factor = spec->h;
                jpeg->comp_info[0].v_samp_factor = spec->v;
        }
}

static void set_kind(struct jpeg_compress_struct *jpeg, enum jpegs_kind kind) {
        static const jpeg_scan_info SCANS[] = {
                { 1, { 0 }, 0, 63, 0, 0 },
                { 1, { 1 }, 0, 63, 0, 0 },
                { 1, { 2 }, 0, 63, 0, 0 },
        };

        if (kind == JPEGS_PROGRESSIVE)
                jpeg_simple_progression(jpeg);
        if (kind == JPEGS_ARITHMETIC)
                jpeg->arith_code = TRUE;
        if (kind == JPEGS_RGB)
                jpeg_set_colorspace(jpeg, JCS_RGB);
        if (kind == JPEGS_CHROMA_FACTORS)
                jpeg->comp_info[1].v_samp_factor = jpeg->comp_info[0].v_samp_factor = 2;
        if (kind == JPEGS_LUMA_411)
                jpeg->comp_info[0].h_samp_factor = 4;
        if (kind == JPEGS_SCANS) {
                jpeg->scan_info = SCANS;
                jpeg->num_scans = 3;
        }
}

static uint8_t *make(const struct jpegs_spec *spec, enum jpegs_kind kind, size_t *ret_n_bytes) {
        uint32_t n_channels = kind == JPEGS_CMYK ? 4 : spec->h == 0 ? 1 : 3;
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;
        uint64_t random = spec->seed * 2654435761u + 1;
        unsigned char *bytes = NULL;
        unsigned long n_bytes = 0;
        uint8_t *row = malloc((size_t)spec->width * n_channels), *exact;

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, &bytes, &n_bytes);
        jpeg.image_width = spec->width;
        jpeg.image_height = spec->height;
        jpeg.input_components = (int)n_channels;
        jpeg.in_color_space = n_channels == 4 ? JCS_CMYK : n_channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_set_defaults(&jpeg);
        set_options(&jpeg, spec, &random);
        set_kind(&jpeg, kind);
        jpeg_start_compress(&jpeg, TRUE);
        for (uint32_t y = 0; y < spec->height; y++) {
                draw(spec, &random, y, n_channels, row);
                jpeg_write_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
        free(row);

        exact = malloc(n_bytes);
        memcpy(exact, bytes, n_bytes);
        free(bytes);
        *ret_n_bytes = n_bytes;
        return exact;
}

uint8_t *jpegs_make(const struct jpegs_spec *spec, size_t *ret_n_bytes) {
        return make(spec, N_JPEGS_KINDS, ret_n_bytes);
}

uint8_t *jpegs_make_other(const struct jpegs_spec *spec, enum jpegs_kind kind, size_t *ret_n_bytes) {
        return make(spec, kind, ret_n_bytes);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct reader {
        struct jpeg_decompress_struct jpeg;
        struct jpeg_error_mgr errors;
        jmp_buf give_up;
        struct jpegs_verdict verdict;
};

static void on_error(j_common_ptr jpeg) {
        longjmp(((struct reader *)jpeg->client_data)->give_up, 1);
}

static void on_output(j_common_ptr jpeg) {
        (void)jpeg;
}

static void read_all(struct reader *reader, const uint8_t *bytes, size_t n_bytes, uint64_t max_pixels) {
        struct jpeg_decompress_struct *jpeg = &reader->jpeg;
        struct jpegs_verdict *verdict = &reader->verdict;

        jpeg_mem_src(jpeg, bytes, n_bytes);
        jpeg_read_header(jpeg, TRUE);
        if ((uint64_t)jpeg->image_width * jpeg->image_height > max_pixels)
                longjmp(reader->give_up, 1);
        jpeg->out_color_space = JCS_RGB;
        jpeg_start_decompress(jpeg);
        verdict->width = jpeg->output_width;
        verdict->height = jpeg->output_height;
        verdict->rgb = malloc((size_t)verdict->width * verdict->height * 3);
        while (jpeg->output_scanline < jpeg->output_height) {
                JSAMPROW row = verdict->rgb + (size_t)jpeg->output_scanline * verdict->width * 3;

                jpeg_read_scanlines(jpeg, &row, 1);
                verdict->n_rows = jpeg->output_scanline;
        }
        jpeg_finish_decompress(jpeg);
}

struct jpegs_verdict jpegs_decode(const uint8_t *bytes, size_t n_bytes, uint64_t max_pixels) {
        struct reader *reader = calloc(1, sizeof(*reader));
        struct jpegs_verdict verdict;

        reader->jpeg.err = jpeg_std_error(&reader->errors);
        reader->jpeg.client_data = reader;
        reader->errors.error_exit = on_error;
        reader->errors.output_message = on_output;
        jpeg_create_decompress(&reader->jpeg);
        if (setjmp(reader->give_up))
                reader->verdict.has_failed = true;
        else
                read_all(reader, bytes, n_bytes, max_pixels);
        reader->verdict.n_warnings = reader->errors.num_warnings;
        jpeg_destroy_decompress(&reader->jpeg);
        verdict = reader->verdict;
        free(reader);
        return verdict;
}
