/* unit/test_resize.c: resampling gives Pillow's bits, in every form of the loops, for any window, mirrored or not.
 *
 * Whether they agree with each other is a question for each form that the CPU can run; test_resize_neon.c
 * emulates what it cannot. Vectors with a box are left out: Pillow's resize(box=) looks at pixels
 * outside of the box, ours never does. */
#include "daemon/augment/resize/resample.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"
#include "tests/support/vectors.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All forms that this CPU can run; or the one that test_resize_FORM.c emulates. */
#if !defined(FORMS_FROM)
#define FORMS_FROM RESIZE_CODE_SCALAR
#define FORMS_TO   N_RESIZE_CODES
#endif

#define IMAGES_MAX 16u

/* A picture of 1, 3 or 4 channels, as the vectors have them. */
struct image {
        char name[64];
        uint32_t width, height, n_channels;
        uint8_t *pixels;
};

static enum resize_code code_under_test; /* set by each loop test */

static struct resizer *new_resizer(void) {
        struct resizer *resizer = NULL;
        struct why why = {};
        int r = resizer_new(code_under_test, &resizer, &why);

        if (r == -ENOTSUP)
                return NULL; /* not a form for this CPU: nothing to test */
        ck_assert_msg(r == 0, "%s", why.text);
        return resizer;
}

/* ---- pictures of the vectors --------------------------------------------------------------------------------- */

static double clip(double value) {
        return value < 0 ? 0 : value > 255 ? 255 : value;
}

/* The rule that the vector file spells out. */
static void make_by_rule(struct image *image) {
        uint8_t *pixel = image->pixels;

        for (uint32_t y = 0; y < image->height; y++)
                for (uint32_t x = 0; x < image->width; x++, pixel += 3) {
                        pixel[0] = (uint8_t)clip(127 + 120 * sin(x / 5.0 + y / 9.0 + 1));
                        pixel[1] = (uint8_t)clip(127 + 100 * cos(x / 7.0 - y / 4.0));
                        pixel[2] = (uint8_t)((5 * x + 3 * y) % 256);
                }
}

static void read_image(const struct vectors *vectors, struct image *image) {
        size_t n_bytes;

        snprintf(image->name, sizeof(image->name), "%s", vector_string(vectors->line, "name"));
        image->width = (uint32_t)vector_int(vectors->line, "width");
        image->height = (uint32_t)vector_int(vectors->line, "height");
        image->n_channels = (uint32_t)vector_int(vectors->line, "channels");
        n_bytes = (size_t)image->width * image->height * image->n_channels;
        if (vectors_kind(vectors, "rule_image")) {
                image->pixels = malloc(n_bytes);
                make_by_rule(image);
                ck_assert_uint_eq(fnv1a(image->pixels, n_bytes), vector_hex(vector_string(vectors->line, "fnv")));
        } else {
                size_t n_decoded;

                image->pixels = vector_base64(vector_string(vectors->line, "data"), &n_decoded);
                ck_assert_uint_eq(n_decoded, n_bytes);
        }
}

static const struct image *find_image(const struct image *images, size_t n_images, const char *name) {
        for (size_t i = 0; i < n_images; i++)
                if (strcmp(images[i].name, name) == 0)
                        return &images[i];
        ck_abort_msg("no image %s", name);
}

static enum resize_filter find_filter(const char *name) {
        for (unsigned i = 0; i < N_RESIZE_FILTERS; i++)
                if (strcmp(RESIZE_FILTER_NAMES[i], name) == 0)
                        return i;
        ck_abort_msg("no filter %s", name);
}

/* Resizes one channel of a picture: as grey RGB, of memory that ends with the last pixel, so that a sanitizer sees any
 * byte read past it. */
static void resize_channel(struct resizer *resizer, const struct image *image, const struct box *crop, uint32_t channel,
                           struct resize_job job, uint8_t *out) {
        size_t n_pixels = (size_t)crop->width * crop->height;
        uint8_t *source = malloc(n_pixels * 3), *result = malloc((size_t)job.width * job.height * 3);
        struct view view = { source, (size_t)crop->width * 3, crop->width, crop->height };

        for (size_t i = 0; i < n_pixels; i++) {
                size_t y = crop->y + i / crop->width, x = crop->x + i % crop->width;

                memset(source + 3 * i, image->pixels[(y * image->width + x) * image->n_channels + channel], 3);
        }
        job.window = (struct box){ 0, 0, job.width, job.height };
        ck_assert_int_eq(resizer_run(resizer, &view, &job, result, (size_t)job.width * 3, NULL), 0);
        for (size_t i = 0; i < (size_t)job.width * job.height; i++) {
                out[i * image->n_channels + channel] = result[3 * i];
                if (result[3 * i] != result[3 * i + 1] || result[3 * i] != result[3 * i + 2])
                        ck_abort_msg("a grey picture became coloured at pixel %zu", i);
        }
        free(source);
        free(result);
}

static void check_result(const struct vectors *vectors, const uint8_t *out, size_t n_bytes) {
        if (vector_has(vectors->line, "data")) {
                size_t n_want;
                uint8_t *want = vector_base64(vector_string(vectors->line, "data"), &n_want);

                ck_assert_uint_eq(n_want, n_bytes);
                ck_assert_msg(memcmp(want, out, n_bytes) == 0, "line %u differs", vectors->number);
                free(want);
                return;
        }
        ck_assert_msg(fnv1a(out, n_bytes) == vector_hex(vector_string(vectors->line, "fnv")), "line %u differs",
                      vectors->number);
}

static void check_line(struct resizer *resizer, const struct vectors *vectors, const struct image *image) {
        struct box crop = { 0, 0, image->width, image->height };
        struct resize_job job = {
                .width = (uint32_t)vector_int(vectors->line, "out_width"),
                .height = (uint32_t)vector_int(vectors->line, "out_height"),
                .filter = find_filter(vector_string(vectors->line, "filter")),
        };
        size_t n_bytes = (size_t)job.width * job.height * image->n_channels;
        uint8_t *out = malloc(n_bytes);

        if (vector_has(vectors->line, "crop")) {
                const cJSON *edges = vector_array(vectors->line, "crop", NULL); /* left, top, right, bottom */

                crop.x = (uint32_t)vector_item(edges, 0);
                crop.y = (uint32_t)vector_item(edges, 1);
                crop.width = (uint32_t)vector_item(edges, 2) - crop.x;
                crop.height = (uint32_t)vector_item(edges, 3) - crop.y;
        }
        for (uint32_t c = 0; c < image->n_channels; c++)
                resize_channel(resizer, image, &crop, c, job, out);
        check_result(vectors, out, n_bytes);
        free(out);
}

START_TEST(results_are_pillows_to_the_bit) {
        struct image images[IMAGES_MAX] = {};
        size_t n_images = 0;
        unsigned n_checked = 0;
        struct vectors vectors;
        struct resizer *resizer;

        code_under_test = (enum resize_code)_i;
        resizer = new_resizer();
        if (!resizer)
                return;
        vectors_open(&vectors, "resize.jsonl");
        while (vectors_next(&vectors)) {
                if (vectors_kind(&vectors, "image") || vectors_kind(&vectors, "rule_image")) {
                        ck_assert_uint_lt(n_images, IMAGES_MAX);
                        read_image(&vectors, &images[n_images++]);
                        continue;
                }
                if (vectors_kind(&vectors, "resize") && vector_has(vectors.line, "box"))
                        continue;
                check_line(resizer, &vectors, find_image(images, n_images, vector_string(vectors.line, "image")));
                n_checked++;
        }
        ck_assert_uint_eq(n_checked, 165 + 24 + 46);
        for (size_t i = 0; i < n_images; i++)
                free(images[i].pixels);
        resizer_free(resizer);
}
END_TEST

/* ---- properties over random jobs ----------------------------------------------------------------------------- */

#define GUARD 64u /* bytes before, between and after the rows of an output, which nobody may touch */

struct case_of {
        uint32_t source_width, source_height;
        size_t source_stride;
        uint8_t *source;
        struct resize_job job;
};

static uint32_t draw_length(struct dlp_philox *philox) {
        static const uint32_t limits[] = { 3, 12, 40, 200 };

        return 1 + dlp_philox_below(philox, limits[dlp_philox_below(philox, 4)]);
}

static struct case_of draw_case(struct dlp_philox *philox) {
        struct case_of c = { .source_width = draw_length(philox), .source_height = draw_length(philox) };
        size_t gap = dlp_philox_below(philox, 3) * 7, n_bytes;

        c.source_stride = c.source_width * 3 + gap;
        n_bytes = c.source_stride * (c.source_height - 1) + c.source_width * 3; /* ends with the last pixel */
        c.source = malloc(n_bytes);
        for (size_t i = 0; i < n_bytes; i++)
                c.source[i] = (uint8_t)(i * 37 + i / 11 + (i * i >> 7)); /* any reordering shows */
        c.job.width = dlp_philox_below(philox, 5) ? draw_length(philox) : c.source_width;
        c.job.height = dlp_philox_below(philox, 5) ? draw_length(philox) : c.source_height;
        c.job.filter = dlp_philox_below(philox, N_RESIZE_FILTERS);
        c.job.window.width = 1 + dlp_philox_below(philox, c.job.width);
        c.job.window.height = 1 + dlp_philox_below(philox, c.job.height);
        c.job.window.x = dlp_philox_below(philox, c.job.width - c.job.window.width + 1);
        c.job.window.y = dlp_philox_below(philox, c.job.height - c.job.window.height + 1);
        c.job.flip = dlp_philox_below(philox, 2);
        return c;
}

static void check_guard(const uint8_t *bytes) {
        for (size_t i = 0; i < GUARD; i++)
                if (bytes[i] != 0xa5)
                        ck_abort_msg("byte %zu beside a row was written", i);
}

/* Runs a job into guarded memory; the caller frees it. Rows are *ret_stride apart, beginning at GUARD. */
static uint8_t *run_guarded(struct resizer *resizer, const struct case_of *c, const struct resize_job *job,
                            size_t *ret_stride) {
        size_t stride = (size_t)job->window.width * 3 + GUARD;
        size_t n_bytes = GUARD + stride * job->window.height;
        struct view view = { c->source, c->source_stride, c->source_width, c->source_height };
        uint8_t *out = malloc(n_bytes);

        memset(out, 0xa5, n_bytes);
        ck_assert_int_eq(resizer_run(resizer, &view, job, out + GUARD, stride, NULL), 0);
        for (uint32_t y = 0; y <= job->window.height; y++)
                check_guard(out + y * stride); /* before the first row, and after each */
        *ret_stride = stride;
        return out;
}

/* All of the source, or what is needed of it and perhaps some more. */
static struct box draw_given(struct dlp_philox *philox, const struct case_of *c) {
        struct box box = { .width = c->source_width, .height = c->source_height };
        uint32_t left, top;

        if (dlp_philox_below(philox, 3) == 0)
                return box;
        resize_need(c->source_width, c->source_height, &c->job, &box);
        left = dlp_philox_below(philox, box.x + 1) / 2;
        top = dlp_philox_below(philox, box.y + 1) / 2;
        box.x -= left;
        box.y -= top;
        box.width += left;
        box.height += top;
        box.width += dlp_philox_below(philox, c->source_width - box.x - box.width + 1) / 2;
        box.height += dlp_philox_below(philox, c->source_height - box.y - box.height + 1) / 2;
        return box;
}

/* Feeds a job in random portions, each of which is gone after the call and ends with its last byte. */
static void feed_portions(struct resizer *resizer, const struct case_of *c, struct dlp_philox *philox, uint8_t *out,
                          size_t stride) {
        uint32_t y = 0, n_most = 1 + dlp_philox_below(philox, 20);
        struct box given = draw_given(philox, c);

        ck_assert_int_eq(resizer_begin(resizer, c->source_width, c->source_height, &given, &c->job, out, stride, NULL),
                         0);
        while (y < given.height) {
                uint32_t n_left = given.height - y, n = 1 + dlp_philox_below(philox, n_left < n_most ? n_left : n_most);
                size_t n_bytes = c->source_stride * (n - 1) + given.width * 3;
                uint8_t *portion = malloc(n_bytes);
                struct view view = { portion, c->source_stride, given.width, n };

                memcpy(portion, c->source + (given.y + y) * c->source_stride + given.x * 3, n_bytes);
                resizer_feed(resizer, &view);
                memset(portion, 0x5a, n_bytes);
                free(portion);
                y += n;
        }
}

START_TEST(fed_in_portions_it_is_the_same_picture) {
        unsigned n_same_width = 0, n_same_height = 0, n_done = 0;
        struct dlp_philox philox;
        struct resizer *resizer;

        code_under_test = (enum resize_code)_i;
        resizer = new_resizer();
        if (!resizer)
                return;
        dlp_philox_init(&philox, 6, 0, 0, 0);
        for (; n_done < 3000; n_done++) {
                struct case_of c = draw_case(&philox);
                size_t stride, n_bytes;
                uint8_t *at_once = run_guarded(resizer, &c, &c.job, &stride), *out;

                n_bytes = GUARD + stride * c.job.window.height;
                out = malloc(n_bytes);
                memset(out, 0xa5, n_bytes);
                if (n_done % 4 == 0) { /* one that was given up leaves no trace */
                        struct view top = { c.source, c.source_stride, c.source_width, (c.source_height + 1) / 2 };

                        ck_assert_int_eq(resizer_begin(resizer, c.source_width, c.source_height, NULL, &c.job,
                                                       out + GUARD, stride, NULL),
                                         0);
                        resizer_feed(resizer, &top);
                }
                feed_portions(resizer, &c, &philox, out + GUARD, stride);
                if (memcmp(at_once, out, n_bytes) != 0)
                        ck_abort_msg("job %u differs", n_done);
                n_same_width += c.job.width == c.source_width;
                n_same_height += c.job.height == c.source_height;
                free(at_once);
                free(out);
                free(c.source);
        }
        printf("%s: %u jobs fed in portions, %u of the same width, %u of the same height\n", RESIZE_CODE_NAMES[_i],
               n_done, n_same_width, n_same_height);
        resizer_free(resizer);
}
END_TEST

START_TEST(a_window_is_a_part_of_the_whole_output_mirrored_or_not) {
        struct resizer *resizer;
        struct dlp_philox philox;

        code_under_test = (enum resize_code)_i;
        resizer = new_resizer();
        if (!resizer)
                return;
        dlp_philox_init(&philox, 3, 0, 0, 0);
        for (unsigned n = 0; n < 1500; n++) {
                struct case_of c = draw_case(&philox);
                struct resize_job whole = c.job;
                size_t stride, whole_stride;
                uint8_t *out, *all;

                whole.flip = false;
                whole.window = (struct box){ 0, 0, c.job.width, c.job.height };
                all = run_guarded(resizer, &c, &whole, &whole_stride);
                out = run_guarded(resizer, &c, &c.job, &stride);
                for (uint32_t y = 0; y < c.job.window.height; y++)
                        for (uint32_t x = 0; x < c.job.window.width; x++) {
                                uint32_t from = c.job.flip ? c.job.window.width - 1 - x : x;

                                const uint8_t *pixel = out + GUARD + y * stride + x * 3;
                                const uint8_t *want = all + GUARD + (c.job.window.y + y) * whole_stride +
                                                      (c.job.window.x + from) * 3;

                                if (memcmp(pixel, want, 3) != 0) /* not an assertion: millions of them take minutes */
                                        ck_abort_msg("job %u: pixel (%u, %u) differs", n, x, y);
                        }
                free(all);
                free(out);
                free(c.source);
        }
        resizer_free(resizer);
}
END_TEST

START_TEST(each_form_equals_scalar_on_any_job) {
        struct resizer *scalar, *other;
        struct dlp_philox philox;
        unsigned n_done = 0;

        code_under_test = (enum resize_code)_i;
        other = new_resizer();
        if (!other)
                return;
        code_under_test = RESIZE_CODE_SCALAR;
        scalar = new_resizer();
        dlp_philox_init(&philox, 4, 0, 0, 0);
        for (; n_done < 3000; n_done++) {
                struct case_of c = draw_case(&philox);
                size_t stride;
                uint8_t *a = run_guarded(scalar, &c, &c.job, &stride), *b = run_guarded(other, &c, &c.job, &stride);

                if (memcmp(a, b, GUARD + stride * c.job.window.height) != 0)
                        ck_abort_msg("job %u: %s differs", n_done, RESIZE_CODE_NAMES[_i]);
                free(a);
                free(b);
                free(c.source);
        }
        printf("%s: %u jobs equal to scalar\n", RESIZE_CODE_NAMES[_i], n_done);
        resizer_free(scalar);
        resizer_free(other);
}
END_TEST

START_TEST(memory_stops_growing_once_the_sizes_have_been_seen) {
        struct resizer *resizer;
        size_t n_bytes = 0;

        code_under_test = RESIZE_CODE_BEST;
        resizer = new_resizer();
        for (unsigned round = 0; round < 3; round++) {
                struct dlp_philox philox;

                dlp_philox_init(&philox, 5, 0, 0, 0); /* the same jobs each round */
                for (unsigned n = 0; n < 300; n++) {
                        struct case_of c = draw_case(&philox);
                        size_t stride;

                        free(run_guarded(resizer, &c, &c.job, &stride));
                        free(c.source);
                }
                if (round > 0)
                        ck_assert_uint_eq(resizer_bytes(resizer), n_bytes);
                n_bytes = resizer_bytes(resizer);
        }
        resizer_free(resizer);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("resize");
        TCase *tcase = tcase_create("resize");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tcase, 120);
        tcase_add_loop_test(tcase, results_are_pillows_to_the_bit, FORMS_FROM, FORMS_TO);
        tcase_add_loop_test(tcase, a_window_is_a_part_of_the_whole_output_mirrored_or_not, FORMS_FROM, FORMS_TO);
        tcase_add_loop_test(tcase, fed_in_portions_it_is_the_same_picture, FORMS_FROM, FORMS_TO);
        tcase_add_loop_test(tcase, each_form_equals_scalar_on_any_job, FORMS_FROM, FORMS_TO);
        tcase_add_test(tcase, memory_stops_growing_once_the_sizes_have_been_seen);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
