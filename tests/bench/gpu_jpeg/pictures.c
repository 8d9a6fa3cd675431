/* The pictures of a batch as the kernels want them, and the same kernels on the CPU to compare with. */
#include "tests/bench/gpu_jpeg/inside.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "client/cuda/kernels/cpu.h"
#include "daemon/staging/prepare/transcoder.h"
#include "tests/support/rows_decoding.h"

#define ALIGNMENT  256u
#define PAGE_BYTES 4096u

extern const struct dlk_cpu_kernel pictures_kernels[];

/* For the tests' driver. */
#define CPU_KERNEL(symbol)                                                                                             \
        { #symbol, sizeof(struct dlk_jpeg), symbol##_run }
const struct dlk_cpu_kernel pictures_kernels[] = { CPU_KERNEL(dlk_jpeg_entropy), CPU_KERNEL(dlk_jpeg_blocks),
                                                   CPU_KERNEL(dlk_jpeg_colours), CPU_KERNEL(dlk_jpeg_across),
                                                   CPU_KERNEL(dlk_jpeg_down) };

void gj_fail(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        fputs("gpu_jpeg: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
        exit(1);
}

static void *need(void *memory) {
        if (!memory)
                gj_fail("no memory");
        return memory;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

static uint8_t *read_file(const char *path, size_t *ret_n_bytes) {
        FILE *file = fopen(path, "rb");
        uint8_t *bytes;
        long n = -1;

        if (!file || fseek(file, 0, SEEK_END) != 0 || (n = ftell(file)) < 0)
                gj_fail("%s cannot be read", path);
        rewind(file);
        bytes = need(malloc((size_t)n + 1));
        if (fread(bytes, 1, (size_t)n, file) != (size_t)n)
                gj_fail("%s cannot be read", path);
        fclose(file);
        *ret_n_bytes = (size_t)n;
        return bytes;
}

void files_read(struct files *files, const char *const *paths, uint32_t n_paths) {
        struct transcoder *transcoder;

        *files = (struct files){ .all = need(calloc(n_paths + 1, sizeof(*files->all))) };
        if (transcoder_new(&transcoder) < 0)
                gj_fail("no memory");
        for (uint32_t i = 0; i < n_paths; i++) {
                struct block rows = { 0 };
                size_t n_source, n_rows;
                uint8_t *source = read_file(paths[i], &n_source);
                uint64_t needed;

                if (transcoder_open(transcoder, source, n_source, &needed, NULL) == 0 &&
                    transcoder_make(transcoder, never, NULL, &rows, &n_rows, NULL) == 0) {
                        struct file *file = &files->all[files->n++];

                        file->bytes = need(malloc(n_rows));
                        file->n_bytes = n_rows;
                        memcpy(file->bytes, rows.bytes, n_rows);
                }
                block_free(&rows);
                free(source);
        }
        transcoder_free(transcoder);
        if (files->n == 0)
                gj_fail("no file could be transcoded into rows");
}

void files_free(struct files *files) {
        for (uint32_t i = 0; i < files->n; i++)
                free(files->all[i].bytes);
        free(files->all);
}

/* ---- the crop of a picture, which depends on its place alone -------------------------------------------------------
 */

static double draw(uint64_t *state) {
        *state = *state * 6364136223846793005ull + 1442695040888963407ull;
        return (double)(*state >> 11) / 9007199254740992.0;
}

static struct box crop_of(const struct dlp_jpeg *jpeg, uint64_t place, int is_whole, uint32_t seed) {
        uint64_t state = place * 2654435761u + seed;
        struct box box = { 0, 0, jpeg->width, jpeg->height };

        for (int i = 0; i < 4; i++)
                draw(&state);
        for (int i = 0; i < 10 && !is_whole; i++) {
                double area = (0.08 + 0.92 * draw(&state)) * jpeg->width * jpeg->height;
                double ratio = exp((draw(&state) * 2 - 1) * log(4.0 / 3));
                uint32_t width = (uint32_t)sqrt(area * ratio), height = (uint32_t)sqrt(area / ratio);

                if (width < 1 || height < 1 || width > jpeg->width || height > jpeg->height)
                        continue;
                return (struct box){ (uint32_t)(draw(&state) * (jpeg->width - width + 1)),
                                     (uint32_t)(draw(&state) * (jpeg->height - height + 1)), width, height };
        }
        return box;
}

/* ---- a batch in a block ---------------------------------------------------------------------------------------------
 */

/* Room at the block's end. Returns where it is. */
static size_t reserve(struct pack *pack, size_t n_bytes) {
        size_t at = pack->n_bytes;

        pack->n_bytes += (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (pack->n_bytes > pack->n_bytes_max) {
                pack->n_bytes_max = pack->n_bytes * 2;
                pack->bytes = need(realloc(pack->bytes, pack->n_bytes_max));
        }
        return at;
}

static size_t add(struct pack *pack, const void *bytes, size_t n_bytes) {
        size_t at = reserve(pack, n_bytes);

        memcpy(pack->bytes + at, bytes, n_bytes);
        return at;
}

static size_t take(size_t *arena_bytes, uint64_t n_bytes) {
        size_t at = *arena_bytes;

        *arena_bytes += (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return at;
}

static struct dlk_jpeg_picture *picture_of(const struct pack *pack, uint32_t idx) {
        return (struct dlk_jpeg_picture *)(void *)pack->bytes + idx;
}

static void raise_to(uint32_t *most, uint32_t value) {
        *most = *most > value ? *most : value;
}

/* One picture's struct and arrays; where they will be is known later. */
static void add_picture(struct pack *pack, uint32_t idx, const struct file *file, uint64_t place, uint32_t side,
                        int is_whole, uint32_t seed) {
        struct rows_decoding decoding;
        struct dlk_jpeg_picture *picture = &decoding.picture;
        struct part *part = &pack->parts[idx];
        struct box box;

        if (rows_decoding_open(&decoding, file->bytes, file->n_bytes) < 0)
                gj_fail("a file in rows is not read");
        box = crop_of(&picture->jpeg, place, is_whole, seed);
        picture->box_x = box.x;
        picture->box_y = box.y;
        picture->box_width = box.width;
        picture->box_height = box.height;
        picture->x = axis_of(&decoding.x, box.width, side, RESIZE_BILINEAR);
        picture->y = axis_of(&decoding.y, box.height, side, RESIZE_BILINEAR);
        part->scan = add(pack, picture->scan, file->n_bytes - picture->jpeg.scan_at);
        part->offsets = add(pack, picture->offsets, (picture->jpeg.n_rows + 1) * sizeof(uint32_t));
        part->x_first = add(pack, picture->x.firsts, side * sizeof(uint32_t));
        part->x_count = add(pack, picture->x.counts, side * sizeof(uint32_t));
        part->x_weight = add(pack, picture->x.weights, (size_t)side * picture->x.n_taps * sizeof(int32_t));
        part->y_first = add(pack, picture->y.firsts, side * sizeof(uint32_t));
        part->y_count = add(pack, picture->y.counts, side * sizeof(uint32_t));
        part->y_weight = add(pack, picture->y.weights, (size_t)side * picture->y.n_taps * sizeof(int32_t));
        raise_to(&pack->n_blocks_most, picture->n_blocks);
        raise_to(&pack->n_rows_most, picture->jpeg.n_rows);
        raise_to(&pack->n_pixels_most, box.width * box.height);
        raise_to(&pack->n_across_most, box.height * side);
        *picture_of(pack, idx) = *picture;
        rows_decoding_free(&decoding);
}

/* What has to be 0 at first lies together, so that one call clears it. */
static void plan_arena(struct pack *pack, uint32_t side) {
        for (uint32_t i = 0; i < pack->n; i++)
                pack->parts[i].coefficients = take(&pack->arena_bytes, (uint64_t)picture_of(pack, i)->n_blocks *
                                                                               DLK_JPEG_COEFFICIENT_BYTES);
        pack->clear_bytes = pack->arena_bytes;
        for (uint32_t i = 0; i < pack->n; i++) {
                const struct dlk_jpeg_picture *picture = picture_of(pack, i);
                struct part *part = &pack->parts[i];

                part->samples = take(&pack->arena_bytes, (uint64_t)picture->n_blocks * DLK_JPEG_SAMPLE_BYTES);
                part->pixels = take(&pack->arena_bytes,
                                    (uint64_t)picture->box_width * picture->box_height * PIXEL_BYTES);
                part->across = take(&pack->arena_bytes, (uint64_t)side * picture->box_height * PIXEL_BYTES);
                part->out = take(&pack->arena_bytes, (uint64_t)side * side * PIXEL_BYTES);
        }
}

/* The driver registers whole pages, each once. */
static void to_pages(struct pack *pack) {
        size_t n_bytes = (pack->n_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        uint8_t *bytes = need(aligned_alloc(PAGE_BYTES, n_bytes));

        memcpy(bytes, pack->bytes, pack->n_bytes);
        free(pack->bytes);
        pack->bytes = bytes;
        pack->n_bytes_max = n_bytes;
}

void pack_make(struct pack *pack, const struct files *files, uint32_t number, uint32_t batch, uint32_t side,
               int is_whole, uint32_t seed) {
        *pack = (struct pack){ .n = batch, .parts = need(calloc(batch, sizeof(*pack->parts))) };
        reserve(pack, batch * sizeof(struct dlk_jpeg_picture));
        for (uint32_t i = 0; i < batch; i++) {
                uint64_t place = (uint64_t)number * batch + i;

                add_picture(pack, i, &files->all[place % files->n], place, side, is_whole, seed);
        }
        plan_arena(pack, side);
        to_pages(pack);
}

void pack_place(struct pack *pack, uint64_t block_at, uint64_t arena_at) {
        for (uint32_t i = 0; i < pack->n; i++) {
                struct dlk_jpeg_picture *picture = picture_of(pack, i);
                const struct part *part = &pack->parts[i];

                picture->scan = (const uint8_t *)(block_at + part->scan);
                picture->offsets = (const uint32_t *)(block_at + part->offsets);
                picture->x.firsts = (const uint32_t *)(block_at + part->x_first);
                picture->x.counts = (const uint32_t *)(block_at + part->x_count);
                picture->x.weights = (const int32_t *)(block_at + part->x_weight);
                picture->y.firsts = (const uint32_t *)(block_at + part->y_first);
                picture->y.counts = (const uint32_t *)(block_at + part->y_count);
                picture->y.weights = (const int32_t *)(block_at + part->y_weight);
                picture->coefficients = (int16_t *)(arena_at + part->coefficients);
                picture->samples = (uint8_t *)(arena_at + part->samples);
                picture->pixels = (uint8_t *)(arena_at + part->pixels);
                picture->across = (uint8_t *)(arena_at + part->across);
                picture->out = (uint8_t *)(arena_at + part->out);
        }
}

void pack_free(struct pack *pack) {
        free(pack->bytes);
        free(pack->parts);
}

int pack_differs(const struct pack *pack, uint32_t idx, const struct files *files, uint32_t number, uint32_t side,
                 int is_whole, uint32_t seed, const uint8_t *arena) {
        uint64_t place = (uint64_t)number * pack->n + idx;
        const struct file *file = &files->all[place % files->n];
        struct rows_decoding decoding;
        struct box box;
        int r = 1;

        if (rows_decoding_open(&decoding, file->bytes, file->n_bytes) < 0)
                gj_fail("a file in rows is not read");
        box = crop_of(&decoding.picture.jpeg, place, is_whole, seed);
        if (rows_decoding_run(&decoding, box) == DLK_JPEG_GOOD) {
                rows_decoding_resize(&decoding, side, side, RESIZE_BILINEAR);
                r = memcmp(decoding.picture.pixels, arena + pack->parts[idx].pixels,
                           (size_t)box.width * box.height * PIXEL_BYTES) != 0 ||
                    memcmp(decoding.picture.out, arena + pack->parts[idx].out, (size_t)side * side * PIXEL_BYTES) != 0;
        }
        rows_decoding_free(&decoding);
        return r;
}
