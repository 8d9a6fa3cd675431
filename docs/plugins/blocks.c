/* blocks: an example of a plug-in for dataloaderd; dlplugin.h explains each piece.
 *
 *      cc -O2 -fPIC -shared -o blocks.so blocks.c
 *
 * Three steps for pictures of uint8 [height, width, 3]:
 *
 *      plugin(blocks.mosaic, size=8)       squares of 8 x 8 pixels become their mean
 *      plugin(blocks.salt, p=0.02)         pixels become black or white, each with this probability
 *      plugin(blocks.luma, scale=255)      float32 [height, width]: brightness, divided by scale
 *
 * and a codec for pictures in files of a format of its own, after which the daemon's steps may follow:
 *
 *      plugin(blocks.unpack) random_resized_crop(224)
 *
 * and a format for datasets, whose files hold many such pictures with their labels:
 *
 *      format = "plugin(blocks.album)"
 *
 * and a collation, which makes float32 [n, height, width, 3] of the n pictures of a batch: what each differs from their
 * mean, divided by scale
 *
 *      center_crop(224) plugin(blocks.centered, scale=255)
 */
#include <dlplugin.h>

#include <string.h>

/* All three want the same input. The sentence continues "blocks.mosaic: ". */
static int check_picture(struct dlplugin_call *call, const struct dlplugin_form *input) {
        if (input->dtype == DLPLUGIN_UINT8 && input->n_dims == 3 && input->shape[2] == 3)
                return 0;
        return call->fail(call, "works on pictures of uint8 [height, width, 3]: write it before to(...) and layout(...)");
}

static int settle_picture(struct dlplugin_call *call, const struct dlplugin_form *input, struct dlplugin_form *output,
                          void **state) {
        (void)output; /* the same as the input */
        (void)state;
        return check_picture(call, input);
}

/* ---- mosaic ----------------------------------------------------------------------------------------------------- */

static const struct dlplugin_argument MOSAIC[] = {
        { .name = "size", .kind = DLPLUGIN_WHOLE, .by_default = "8", .minimum = 1, .maximum = 256 },
};

/* Squares at the right and lower edge may be smaller. */
static void average(const uint8_t *from, uint8_t *to, size_t row_bytes, size_t n_rows, size_t n_columns) {
        for (size_t channel = 0; channel < 3; channel++) {
                size_t sum = n_rows * n_columns / 2, mean;

                for (size_t y = 0; y < n_rows; y++)
                        for (size_t x = 0; x < n_columns; x++)
                                sum += from[y * row_bytes + x * 3 + channel];
                mean = sum / (n_rows * n_columns);
                for (size_t y = 0; y < n_rows; y++)
                        for (size_t x = 0; x < n_columns; x++)
                                to[y * row_bytes + x * 3 + channel] = (uint8_t)mean;
        }
}

static int mosaic(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
                  const struct dlplugin_form *output_form, void *output) {
        size_t size = (size_t)call->values[0].number, height = (size_t)form->shape[0], width = (size_t)form->shape[1];

        (void)output_form;
        for (size_t y = 0; y < height; y += size)
                for (size_t x = 0; x < width; x += size) {
                        size_t at = (y * width + x) * 3;

                        average((const uint8_t *)input + at, (uint8_t *)output + at, width * 3,
                                height - y < size ? height - y : size, width - x < size ? width - x : size);
                }
        return 0;
}

/* ---- salt ------------------------------------------------------------------------------------------------------- */

static const struct dlplugin_argument SALT[] = {
        { .name = "p", .kind = DLPLUGIN_NUMBER, .by_default = "0.02", .minimum = 0, .maximum = 1 },
        { .name = "color", .kind = DLPLUGIN_CHOICE, .by_default = "both", .choices = "both black white" },
};

/* Draws two numbers a pixel, whatever p is: so another p changes which pixels are hit, and not what they become. */
static int salt(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
                const struct dlplugin_form *output_form, void *output) {
        double p = call->values[0].number;
        unsigned color = (unsigned)call->values[1].number; /* the index among the choices */
        uint8_t *pixel = output;

        (void)output_form;
        memcpy(output, input, dlplugin_elements(form));
        for (size_t i = 0; i < dlplugin_elements(form) / 3; i++, pixel += 3) {
                int is_hit = call->random(call) < p;
                int is_white = call->random_bits(call) >> 31;

                if (is_hit)
                        memset(pixel, (color == 0 && is_white) || color == 2 ? 255 : 0, 3);
        }
        return 0;
}

/* ---- luma ------------------------------------------------------------------------------------------------------- */

static const struct dlplugin_argument LUMA[] = {
        { .name = "scale", .kind = DLPLUGIN_NUMBER, .by_default = "255", .minimum = 1, .maximum = 65535 },
};

/* Delivers another type and one dimension less. */
static int settle_luma(struct dlplugin_call *call, const struct dlplugin_form *input, struct dlplugin_form *output,
                       void **state) {
        (void)state;
        output->dtype = DLPLUGIN_FLOAT32;
        output->n_dims = 2;
        return check_picture(call, input);
}

static int luma(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
                const struct dlplugin_form *output_form, void *output) {
        const uint8_t *pixel = input;
        float *to = output;

        (void)form;
        for (size_t i = 0; i < dlplugin_elements(output_form); i++, pixel += 3)
                to[i] = (float)((299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000.0 / call->values[0].number);
        return 0;
}

/* ---- unpack ----------------------------------------------------------------------------------------------------- */

/* The file: "BLK1", height and width as 32 bits each, low byte first, then the pixels. */
#define HEADER 12u

static uint32_t number_at(const uint8_t *bytes) {
        return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static int measure(struct dlplugin_call *call, const void *bytes, size_t n_bytes, uint32_t *height, uint32_t *width) {
        if (n_bytes < HEADER || memcmp(bytes, "BLK1", 4) != 0)
                return call->fail(call, "is not a file of this format: it does not begin with BLK1");
        *height = number_at((const uint8_t *)bytes + 4);
        *width = number_at((const uint8_t *)bytes + 8);
        return 0;
}

/* The form is what measure() has said; whether the file is as long is known only here. */
static int unpack(struct dlplugin_call *call, const void *bytes, size_t n_bytes, const struct dlplugin_form *form,
                  void *output) {
        size_t wanted = dlplugin_elements(form);

        if (n_bytes < HEADER || n_bytes - HEADER < wanted)
                return call->fail(call, "ends after %zu of %zu bytes of its pixels", n_bytes - HEADER, wanted);
        memcpy(output, (const uint8_t *)bytes + HEADER, wanted);
        return 0;
}

static const struct dlplugin_codec CODECS[] = {
        { .name = "unpack", .about = "pictures that begin with BLK1", .measure = measure, .decode = unpack },
};

/* ---- album ------------------------------------------------------------------------------------------------------ */

/* The file: "ALB1", then for each picture its label and its length, as 32 bits each, and the picture. */
#define RECORD 8u

static int add_fields(struct dlplugin_call *call, struct dlplugin_window *window) {
        static const struct dlplugin_field IMAGE = { .name = "image", .kind = DLPLUGIN_FIELD_PICTURE };
        static const struct dlplugin_field LABEL = { .name = "label",
                                                     .kind = DLPLUGIN_FIELD_ARRAY,
                                                     .flags = DLPLUGIN_FIELD_IS_VALUE,
                                                     .form = { .dtype = DLPLUGIN_INT64 } };
        int r = window->add_field(call, &IMAGE);

        return r < 0 ? r : window->add_field(call, &LABEL);
}

/* The window holds whole records, and perhaps the beginning of another one, with which the next window begins. Of the
 * pictures themselves only the place counts: one that is longer than the window is jumped over. */
static int album(struct dlplugin_call *call, struct dlplugin_window *window) {
        const uint8_t *bytes = window->bytes;
        uint64_t at = 0, rest = window->n_file_bytes - window->offset; /* of the file, from the window on */

        if (window->offset == 0) {
                if (rest < 4 || memcmp(bytes, "ALB1", 4) != 0)
                        return call->fail(call, "does not begin with ALB1");
                if (window->idx_file == 0 && add_fields(call, window) < 0)
                        return -1;
                at = 4;
        }
        while (at < window->n_bytes && window->n_bytes - at >= RECORD) {
                int64_t label = number_at(bytes + at);
                struct dlplugin_cell cells[] = {
                        { .offset = window->offset + at + RECORD, .n_bytes = number_at(bytes + at + 4) },
                        { .n_bytes = sizeof(label), .value = &label },
                };

                if (cells[0].n_bytes > rest - at - RECORD)
                        return call->fail(call, "ends within the picture at byte %llu",
                                          (unsigned long long)cells[0].offset);
                if (window->add_sample(call, NULL, cells, 2) < 0)
                        return -1;
                at += RECORD + cells[0].n_bytes;
        }
        if (at < rest && rest - at < RECORD)
                return call->fail(call, "ends within a record");
        window->next_offset = window->offset + at;
        return 0;
}

static const struct dlplugin_format FORMATS[] = {
        { .name = "album", .about = "files of many BLK1 pictures", .endings = ".alb", .scan = album },
};

/* ---- centered --------------------------------------------------------------------------------------------------- */

static const struct dlplugin_argument CENTERED[] = {
        { .name = "scale", .kind = DLPLUGIN_NUMBER, .by_default = "255", .minimum = 1, .maximum = 65535 },
};

/* Of a sample, and of a row of what becomes of the batch. */
static int settle_centered(struct dlplugin_call *call, const struct dlplugin_form *sample, struct dlplugin_form *row,
                           void **state) {
        (void)state;
        row->dtype = DLPLUGIN_FLOAT32;
        return check_picture(call, sample);
}

/* Both forms are those of the batch, [n, height, width, 3]. */
static int centered(struct dlplugin_call *call, const struct dlplugin_form *form, const void *input,
                    const struct dlplugin_form *output_form, void *output) {
        size_t n = (size_t)form->shape[0], n_elements = dlplugin_elements(form) / n;
        const uint8_t *from = input;
        float *to = output;

        (void)output_form;
        for (size_t i = 0; i < n_elements; i++) {
                uint64_t sum = 0;

                for (size_t k = 0; k < n; k++)
                        sum += from[k * n_elements + i];
                for (size_t k = 0; k < n; k++)
                        to[k * n_elements + i] = (float)((from[k * n_elements + i] - (double)sum / (double)n) /
                                                         call->values[0].number);
        }
        return 0;
}

static const struct dlplugin_collation COLLATIONS[] = {
        { .name = "centered", .about = "what pictures differ from the mean of their batch",
          .arguments = CENTERED, .n_arguments = 1, .settle = settle_centered, .collate = centered },
};

/* ---- the plug-in ------------------------------------------------------------------------------------------------ */

static const struct dlplugin_step STEPS[] = {
        { .name = "mosaic", .about = "squares become their mean",
          .arguments = MOSAIC, .n_arguments = 1, .settle = settle_picture, .run = mosaic },
        { .name = "salt", .about = "pixels become black or white",
          .arguments = SALT, .n_arguments = 2, .settle = settle_picture, .run = salt },
        { .name = "luma", .about = "brightness as float32",
          .arguments = LUMA, .n_arguments = 1, .settle = settle_luma, .run = luma },
};

DLPLUGIN_EXPORT const struct dlplugin dlplugin = {
        DLPLUGIN_HEAD,
        .name = "blocks",
        .about = "An example: mosaics, salt, brightness, albums, batches.",
        .threads = DLPLUGIN_PARALLEL, /* it uses nothing but what it is given */
        .steps = STEPS,
        .n_steps = sizeof(STEPS) / sizeof(STEPS[0]),
        .codecs = CODECS,
        .n_codecs = sizeof(CODECS) / sizeof(CODECS[0]),
        .formats = FORMATS,
        .n_formats = sizeof(FORMATS) / sizeof(FORMATS[0]),
        .collations = COLLATIONS,
        .n_collations = sizeof(COLLATIONS) / sizeof(COLLATIONS[0]),
};
