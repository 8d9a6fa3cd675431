/* unit/test_baseline_kernels.c: the arithmetic of our own JPEG decoder: every form of it gives the same bits, and these
 * are libjpeg-turbo's, for what encoders write and for what they never would.
 *
 * Buffers end where the contract says that reading ends, and are guarded where writing ends, so that a sanitizer, and
 * for writing any build, sees what goes beyond. */
#include "daemon/decode/jpeg/jpeg_kernels.h"
#include "tests/support/suite.h"

#include <stdio.h> /* for jpeglib.h */

#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 0xa5

static void check_guard(const uint8_t *bytes, size_t n_bytes) {
        for (size_t i = 0; i < n_bytes; i++)
                if (bytes[i] != GUARD)
                        ck_abort_msg("written beside what was to be written");
}

/* ---- chance -------------------------------------------------------------------------------------------------- */

static uint64_t chance_state;

static uint32_t chance(void) { /* Marsaglia's xorshift */
        chance_state ^= chance_state << 13;
        chance_state ^= chance_state >> 7;
        chance_state ^= chance_state << 17;
        return (uint32_t)(chance_state >> 16);
}

static uint32_t chance_below(uint32_t n) {
        return chance() % n;
}

static void chance_begin(int seed) {
        chance_state = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
}

/* What coefficients and steps look like. */
enum kind {
        TAME,      /* as encoders write them */
        LOUD,      /* still within an encoder's 11 bits, but far beyond black and white */
        WIDE,      /* all 16 bits */
        EXTREME,   /* the ends of 16 bits, and 0, +-1, +-256 */
        EDGE,      /* products around where 13 bits end */
        FIRST_ROW, /* wide, nothing but the first row of a block */
        N_KINDS,
};

static int16_t random_extreme(void) {
        static const int16_t EXTREMES[] = { INT16_MIN, INT16_MIN + 1, INT16_MAX, -256, -1, 0, 1, 256 };

        return EXTREMES[chance_below(sizeof(EXTREMES) / sizeof(EXTREMES[0]))];
}

/* Coefficient k (zigzag) of a block. */
static int16_t random_coefficient(enum kind kind, uint32_t k) {
        bool is_first_row = baseline_place[k] < 16;

        switch (kind) {
        case WIDE:
                return (int16_t)chance();
        case EXTREME:
                return random_extreme();
        case EDGE:
                return (int16_t)((int32_t)chance_below(41) - 20 + (chance() % 2 ? 8192 : -8192));
        case FIRST_ROW:
                return is_first_row ? (int16_t)chance() : 0;
        case LOUD:
                return (int16_t)((int32_t)chance_below(2001) - 1000);
        default:
                return (int16_t)(((int32_t)chance_below(121) - 60) / (int32_t)(k + 1));
        }
}

static uint16_t random_step(enum kind kind) {
        if (kind == WIDE && chance() % 2)
                return (uint16_t)chance();
        if (kind == EXTREME)
                return (uint16_t)random_extreme();
        if (kind == EDGE)
                return 1;
        return (uint16_t)(1 + chance_below(kind == TAME ? 20 : 255));
}

/* ---- blocks -------------------------------------------------------------------------------------------------- */

struct pair {
        _Alignas(BASELINE_PAIR_ALIGNMENT) int16_t coefficients[BASELINE_PAIR_COEFFICIENTS];
        _Alignas(BASELINE_PAIR_ALIGNMENT) int16_t steps[BASELINE_PAIR_COEFFICIENTS];
        int last;
};

static struct pair random_pair(enum kind kind, int last) {
        struct pair pair = { .last = last };

        for (uint32_t k = 0; k < 64; k++)
                for (uint32_t block = 0; block < 2; block++) {
                        uint32_t at = baseline_place[k] + block * BASELINE_RIGHT_BLOCK;

                        if ((int)k <= last && chance_below(8))
                                pair.coefficients[at] = random_coefficient(kind, k);
                        pair.steps[at] = (int16_t)random_step(kind);
                }
        return pair;
}

/* Two blocks in rows of `stride` bytes, guarded: 32 bytes before the first row and after the last one. */
struct canvas {
        uint8_t bytes[32 + 8 * 64 + 32];
        uint8_t *left, *right;
        size_t stride;
};

static void canvas_init(struct canvas *canvas, size_t stride, size_t right_at) {
        memset(canvas->bytes, GUARD, sizeof(canvas->bytes));
        canvas->left = canvas->bytes + 32;
        canvas->right = canvas->left + right_at;
        canvas->stride = stride;
}

static void check_pair(const struct baseline_kernels *kernels, const struct pair *pair, size_t stride,
                       size_t right_at) {
        struct pair mine = *pair, reference = *pair;
        struct canvas got, expected;

        canvas_init(&got, stride, right_at);
        canvas_init(&expected, stride, right_at);
        kernels->idct_pair(mine.coefficients, mine.steps, mine.last, got.left, got.right, stride);
        baseline_kernels_scalar.idct_pair(reference.coefficients, reference.steps, reference.last, expected.left,
                                          expected.right, stride);

        if (memcmp(got.bytes, expected.bytes, sizeof(got.bytes)) != 0)
                ck_abort_msg("other samples: last %d, stride %zu", pair->last, stride);
        for (uint32_t i = 0; i < BASELINE_PAIR_COEFFICIENTS; i++)
                if (mine.coefficients[i] || reference.coefficients[i])
                        ck_abort_msg("a coefficient is left over: last %d", pair->last);
}

START_TEST(all_forms_make_the_same_samples) {
        const struct baseline_kernels *kernels = baseline_kernels_avx2();

        chance_begin(_i);
        for (int round = 0; kernels && round < 1000; round++) {
                struct pair pair = random_pair((enum kind)(round % N_KINDS), _i);

                check_pair(kernels, &pair, 16, 8);               /* side by side */
                check_pair(kernels, &pair, 24 + round % 41, 16); /* with room between them */
                check_pair(kernels, &pair, 8, 64);               /* one below the other */
        }
}
END_TEST

START_TEST(nothing_is_written_beside_the_samples) {
        const struct baseline_kernels *forms[] = { &baseline_kernels_scalar, baseline_kernels_avx2() };

        chance_begin(0);
        for (int round = 0; forms[_i] && round < 64 * N_KINDS; round++) {
                struct pair pair = random_pair((enum kind)(round % N_KINDS), round / N_KINDS);
                struct canvas canvas;

                canvas_init(&canvas, 30, 11);
                forms[_i]->idct_pair(pair.coefficients, pair.steps, pair.last, canvas.left, canvas.right, 30);
                for (int y = 0; y < 8; y++) {
                        memset(canvas.left + y * 30, GUARD, 8);
                        memset(canvas.right + y * 30, GUARD, 8);
                }
                check_guard(canvas.bytes, sizeof(canvas.bytes));
        }
}
END_TEST

/* ---- rows ---------------------------------------------------------------------------------------------------- */

struct row_buffers {
        struct baseline_row row;
        uint8_t *samples[5]; /* luma, near and far chroma */
};

static uint8_t random_sample(void) {
        static const uint8_t EXTREMES[] = { 0, 1, 127, 128, 129, 254, 255 };

        return chance() % 2 ? (uint8_t)chance() : EXTREMES[chance_below(sizeof(EXTREMES))];
}

static uint8_t *random_samples(uint32_t width) {
        uint8_t *samples = malloc(width + BASELINE_READ_SLACK);

        for (uint32_t x = 0; x < width + BASELINE_READ_SLACK; x++)
                samples[x] = random_sample();
        return samples;
}

static bool is_halved(enum baseline_sampling sampling) {
        return sampling == BASELINE_422 || sampling == BASELINE_420;
}

static void row_init(struct row_buffers *buffers, enum baseline_sampling sampling, uint32_t width) {
        uint32_t chroma_width = is_halved(sampling) ? (width + 1) / 2 : width;

        buffers->samples[0] = random_samples(width);
        for (int i = 1; i < 5; i++)
                buffers->samples[i] = random_samples(chroma_width);
        buffers->row = (struct baseline_row){
                .luma = buffers->samples[0],
                .near = { buffers->samples[1], buffers->samples[2] },
                .far = { buffers->samples[3], buffers->samples[4] },
                .chroma_width = chroma_width,
                .far_is_below = chance() % 2,
        };
}

static void row_fini(struct row_buffers *buffers) {
        for (int i = 0; i < 5; i++)
                free(buffers->samples[i]);
}

/* Some pixels of a row into memory that ends where the slack ends, and nothing of the memory before them changes. */
static uint8_t *compute(const struct baseline_kernels *kernels, enum baseline_sampling sampling,
                        const struct baseline_row *row, uint32_t x0, uint32_t x1) {
        size_t n_bytes = (size_t)(x1 - x0) * 3, n_guard = 32;
        uint8_t *memory = malloc(n_guard + n_bytes + BASELINE_RGB_SLACK), *rgb;

        memset(memory, GUARD, n_guard);
        kernels->row[sampling](row, x0, x1, memory + n_guard);
        check_guard(memory, n_guard);
        rgb = malloc(n_bytes);
        memcpy(rgb, memory + n_guard, n_bytes);
        free(memory);
        return rgb;
}

static void check_row(enum baseline_sampling sampling, const struct baseline_row *row, uint32_t x0, uint32_t x1) {
        uint8_t *got = compute(baseline_kernels_avx2(), sampling, row, x0, x1);
        uint8_t *expected = compute(&baseline_kernels_scalar, sampling, row, x0, x1);

        for (size_t i = 0; i < (size_t)(x1 - x0) * 3; i++)
                if (got[i] != expected[i])
                        ck_abort_msg("sampling %d, pixels %u to %u: byte %zu is %u, not %u", sampling, x0, x1, i,
                                     got[i], expected[i]);
        free(got);
        free(expected);
}

START_TEST(all_forms_make_the_same_pixels) {
        enum baseline_sampling sampling = (enum baseline_sampling)_i;

        chance_begin(_i);
        for (uint32_t width = is_halved(sampling) ? 5 : 1; baseline_kernels_avx2() && width <= 200; width++) {
                struct row_buffers buffers;

                row_init(&buffers, sampling, width);
                for (uint32_t x0 = 0; x0 < width; x0 += 2) {
                        check_row(sampling, &buffers.row, x0, width);
                        check_row(sampling, &buffers.row, x0, x0 + 1 + chance_below(width - x0));
                }
                row_fini(&buffers);
        }
}
END_TEST

/* A form may go through a row in stretches. */
START_TEST(long_rows_have_no_seams) {
        enum baseline_sampling sampling = (enum baseline_sampling)_i;

        chance_begin(_i);
        for (uint32_t width = 480; baseline_kernels_avx2() && width < 2200; width += 1 + chance_below(31)) {
                struct row_buffers buffers;

                row_init(&buffers, sampling, width);
                check_row(sampling, &buffers.row, 0, width);
                for (int i = 0; i < 20; i++) {
                        uint32_t x0 = chance_below(width) & ~1u;

                        check_row(sampling, &buffers.row, x0, x0 + 1 + chance_below(width - x0));
                }
                row_fini(&buffers);
        }
}
END_TEST

START_TEST(all_forms_have_the_same_colours) {
        static const uint8_t LUMA[] = { 0, 1, 2, 76, 127, 128, 129, 179, 253, 254, 255 };
        uint8_t luma[256 + BASELINE_READ_SLACK], cb[256 + BASELINE_READ_SLACK], cr[256 + BASELINE_READ_SLACK];
        struct baseline_row row = { .luma = luma, .near = { cb, cr }, .far = { cb, cr }, .chroma_width = 256 };

        for (int x = 0; x < 256; x++)
                cb[x] = (uint8_t)x;
        for (size_t i = 0; baseline_kernels_avx2() && i < sizeof(LUMA); i++)
                for (int value = 0; value < 256; value++) {
                        memset(luma, LUMA[i], 256);
                        memset(cr, value, 256);
                        check_row(BASELINE_444, &row, 0, 256);
                }
}
END_TEST

/* ---- libjpeg-turbo ------------------------------------------------------------------------------------------- */

/* A file of random coefficients. */
struct file {
        unsigned char *bytes;
        unsigned long n_bytes;
};

static void describe(struct jpeg_compress_struct *jpeg, enum baseline_sampling sampling, uint32_t width,
                     uint32_t height) {
        bool is_grey = sampling == BASELINE_GREY;

        jpeg->image_width = width;
        jpeg->image_height = height;
        jpeg->input_components = is_grey ? 1 : 3;
        jpeg->in_color_space = is_grey ? JCS_GRAYSCALE : JCS_YCbCr;
        jpeg_set_defaults(jpeg);
        jpeg->comp_info[0].h_samp_factor = is_halved(sampling) ? 2 : 1;
        jpeg->comp_info[0].v_samp_factor = sampling == BASELINE_420 || sampling == BASELINE_440 ? 2 : 1;
        jpeg->arith_code = TRUE; /* Huffman codes are refused for coefficients of more than 10 bits */
}

static void set_steps(struct jpeg_compress_struct *jpeg, enum kind kind) {
        for (int i = 0; i < 2; i++) {
                for (int k = 0; k < 64; k++)
                        jpeg->quant_tbl_ptrs[i]->quantval[k] = random_step(kind);
                jpeg->quant_tbl_ptrs[i]->sent_table = FALSE;
        }
}

static const uint8_t NATURAL[64] = { 0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                     12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                     58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63 };

static void fill_block(enum kind kind, JCOEF *block) {
        uint32_t n = chance() % 2 ? chance_below(12) : chance_below(65);

        memset(block, 0, sizeof(JBLOCK));
        for (uint32_t k = 0; k < n; k++)
                if (chance_below(4))
                        block[NATURAL[k]] = random_coefficient(kind, k);
        for (uint32_t k = 1; k < 64; k++)
                if (block[k] == INT16_MIN) /* not to be written: one more than 15 bits */
                        block[k]++;
        block[0] /= 2; /* a difference of two is what is written, 15 bits at most */
}

static void fill_component(struct jpeg_compress_struct *jpeg, jvirt_barray_ptr array, JDIMENSION n_rows,
                           JDIMENSION n_columns, enum kind kind) {
        for (JDIMENSION y = 0; y < n_rows; y++) {
                JBLOCKARRAY rows = jpeg->mem->access_virt_barray((j_common_ptr)jpeg, array, y, 1, TRUE);

                for (JDIMENSION x = 0; x < n_columns; x++)
                        fill_block(kind, rows[0][x]);
        }
}

static struct file write_file(enum baseline_sampling sampling, uint32_t width, uint32_t height, enum kind kind) {
        const JDIMENSION n_columns = (width + 15) / 16 * 2, n_rows = (height + 15) / 16 * 2;
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;
        jvirt_barray_ptr arrays[3];
        struct file file = { 0 };

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, &file.bytes, &file.n_bytes);
        describe(&jpeg, sampling, width, height);
        set_steps(&jpeg, kind);
        for (int c = 0; c < jpeg.num_components; c++)
                arrays[c] = jpeg.mem->request_virt_barray((j_common_ptr)&jpeg, JPOOL_IMAGE, TRUE, n_columns, n_rows, 2);
        jpeg.mem->realize_virt_arrays((j_common_ptr)&jpeg);
        for (int c = 0; c < jpeg.num_components; c++)
                fill_component(&jpeg, arrays[c], n_rows, n_columns, kind);
        jpeg_write_coefficients(&jpeg, arrays);
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
        return file;
}

static void open_file(struct jpeg_decompress_struct *jpeg, struct jpeg_error_mgr *errors, const struct file *file) {
        jpeg->err = jpeg_std_error(errors);
        jpeg_create_decompress(jpeg);
        jpeg_mem_src(jpeg, file->bytes, file->n_bytes);
        ck_assert_int_eq(jpeg_read_header(jpeg, TRUE), JPEG_HEADER_OK);
}

/* As libjpeg-turbo decodes it; the caller frees it. */
static uint8_t *read_by_libjpeg(const struct file *file) {
        struct jpeg_decompress_struct jpeg;
        struct jpeg_error_mgr errors;
        uint8_t *rgb;

        open_file(&jpeg, &errors, file);
        jpeg.out_color_space = JCS_RGB;
        jpeg_start_decompress(&jpeg);
        rgb = malloc((size_t)jpeg.output_width * jpeg.output_height * 3);
        while (jpeg.output_scanline < jpeg.output_height) {
                JSAMPROW row = rgb + (size_t)jpeg.output_scanline * jpeg.output_width * 3;

                jpeg_read_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_decompress(&jpeg);
        ck_assert_int_eq(errors.num_warnings, 0);
        jpeg_destroy_decompress(&jpeg);
        return rgb;
}

/* ---- a small decoder around the kernels ---------------------------------------------------------------------- */

struct plane {
        uint8_t *samples;
        size_t stride;
        uint32_t width, height; /* padding left out */
};

/* Puts a block beside what else is in the pair; the largest k of what is not zero. */
static int take_block(const JCOEF *block, const JQUANT_TBL *steps, uint32_t at, struct pair *pair) {
        int last = 0;

        for (int k = 0; k < 64; k++) {
                pair->coefficients[baseline_place[k] + at] = block ? block[NATURAL[k]] : 0;
                pair->steps[baseline_place[k] + at] = (int16_t)steps->quantval[NATURAL[k]];
                if (block && block[NATURAL[k]])
                        last = k;
        }
        return last;
}

static void make_plane(const struct baseline_kernels *kernels, struct jpeg_decompress_struct *jpeg,
                       const jpeg_component_info *info, jvirt_barray_ptr array, struct plane *plane) {
        const JDIMENSION n_columns = info->width_in_blocks;

        plane->stride = (size_t)(n_columns + 1) * 8 + BASELINE_READ_SLACK;
        plane->samples = malloc(plane->stride * info->height_in_blocks * 8);
        plane->width = info->downsampled_width;
        plane->height = info->downsampled_height;
        for (JDIMENSION y = 0; y < info->height_in_blocks; y++) {
                JBLOCKARRAY blocks = jpeg->mem->access_virt_barray((j_common_ptr)jpeg, array, y, 1, FALSE);

                for (JDIMENSION x = 0; x < n_columns; x += 2) {
                        uint8_t *left = plane->samples + y * 8 * plane->stride + x * 8;
                        JCOEF *right = x + 1 < n_columns ? blocks[0][x + 1] : NULL;
                        struct pair pair;
                        int last_left = take_block(blocks[0][x], info->quant_table, 0, &pair);
                        int last_right = take_block(right, info->quant_table, BASELINE_RIGHT_BLOCK, &pair);

                        kernels->idct_pair(pair.coefficients, pair.steps,
                                           last_left > last_right ? last_left : last_right, left, left + 8,
                                           plane->stride);
                }
        }
}

static struct baseline_row row_of(const struct plane planes[3], uint32_t y, enum baseline_sampling sampling) {
        bool is_low = sampling == BASELINE_420 || sampling == BASELINE_440;
        struct baseline_row row = { .luma = planes[0].samples + y * planes[0].stride, .far_is_below = y % 2 };

        for (int c = 1; sampling != BASELINE_GREY && c < 3; c++) {
                uint32_t near = is_low ? y / 2 : y, far = y % 2 ? near + 1 : near - 1;

                if (!is_low || far >= planes[c].height) /* 0 - 1 as well */
                        far = near;
                row.near[c - 1] = planes[c].samples + near * planes[c].stride;
                row.far[c - 1] = planes[c].samples + far * planes[c].stride;
                row.chroma_width = planes[c].width;
        }
        return row;
}

static uint8_t *read_by_kernels(const struct baseline_kernels *kernels, const struct file *file,
                                enum baseline_sampling sampling) {
        struct jpeg_decompress_struct jpeg;
        struct plane planes[3] = { 0 };
        struct jpeg_error_mgr errors;
        jvirt_barray_ptr *arrays;
        uint8_t *rgb, *out;
        size_t n_row;

        open_file(&jpeg, &errors, file);
        arrays = jpeg_read_coefficients(&jpeg);
        for (int c = 0; c < jpeg.num_components; c++)
                make_plane(kernels, &jpeg, &jpeg.comp_info[c], arrays[c], &planes[c]);
        n_row = (size_t)jpeg.image_width * 3;
        rgb = out = malloc(n_row * jpeg.image_height + BASELINE_RGB_SLACK);
        for (uint32_t y = 0; y < jpeg.image_height; y++, out += n_row) {
                struct baseline_row row = row_of(planes, y, sampling);

                kernels->row[sampling](&row, 0, jpeg.image_width, out);
        }
        for (int c = 0; c < 3; c++)
                free(planes[c].samples);
        jpeg_destroy_decompress(&jpeg);
        return rgb;
}

static void check_picture(const struct baseline_kernels *kernels, enum baseline_sampling sampling, uint32_t width,
                          uint32_t height, enum kind kind) {
        struct file file = write_file(sampling, width, height, kind);
        uint8_t *expected = read_by_libjpeg(&file), *got = read_by_kernels(kernels, &file, sampling);

        for (size_t i = 0; i < (size_t)width * height * 3; i++)
                if (got[i] != expected[i])
                        ck_abort_msg("%s, sampling %d, %ux%u, kind %d: byte %zu of pixel %zu, %zu is %u, not %u",
                                     kernels->name, sampling, width, height, kind, i % 3, i / 3 % width, i / 3 / width,
                                     got[i], expected[i]);
        free(expected);
        free(got);
        free(file.bytes);
}

/* Where sums wrap or clip, libjpeg-turbo's own forms differ; ours follow those with SSE2 and AVX2. */
#if defined(__x86_64__)
#define N_KINDS_TO_COMPARE N_KINDS
#else
#define N_KINDS_TO_COMPARE 1
#endif

START_TEST(pixels_are_those_of_libjpeg_turbo) {
        const struct baseline_kernels *forms[] = { &baseline_kernels_scalar, baseline_kernels_avx2() };
        enum baseline_sampling sampling = (enum baseline_sampling)(_i / 2);
        uint32_t min_width = is_halved(sampling) ? 2 * BASELINE_CHROMA_WIDTH_MIN - 1 : 1;

        chance_begin(_i / 2);
        for (int round = 0; forms[_i % 2] && round < 600; round++)
                check_picture(forms[_i % 2], sampling, min_width + chance_below(70), 1 + chance_below(50),
                              (enum kind)(round % N_KINDS_TO_COMPARE));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "blocks", all_forms_make_the_same_samples, 64 },
                { "blocks", nothing_is_written_beside_the_samples, 2 },
                { "rows", all_forms_make_the_same_pixels, N_BASELINE_SAMPLINGS },
                { "rows", long_rows_have_no_seams, N_BASELINE_SAMPLINGS },
                { "rows", all_forms_have_the_same_colours },
                { "libjpeg", pixels_are_those_of_libjpeg_turbo, 2 * N_BASELINE_SAMPLINGS },
        };

        return suite_run("baseline_kernels", rows, sizeof(rows) / sizeof(rows[0]));
}
