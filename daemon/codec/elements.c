/* Elements: numbers that are not stored as they are delivered. They are JSON, varints or decimal text in the file, or a
 * pipeline asks for another dtype. */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/codec/codec_type.h"
#include "daemon/codec/convert.h"
#include "proto/base/shown/amounts.h"

/* How the elements are held. A field of bytes or text holds JSON if its elements are asked for: a number as text is
 * JSON, too. */
static enum field_coding coding_of(const struct codec *codec) {
        if (codec->steps.path || codec->field.kind != FIELD_VALUE)
                return CODING_JSON;
        return codec->field.is_stored ? codec->field.coding : CODING_PLAIN;
}

/* The most bytes that one stored byte becomes. */
static uint64_t elements_growth(const struct codec *codec) {
        uint64_t size = dlp_dtype_bytes(codec->dtype), from_size = dlp_dtype_bytes(codec->field.dtype);

        if (coding_of(codec) == CODING_PLAIN)
                return (size + from_size - 1) / from_size;
        return coding_of(codec) == CODING_JSON && codec->n_dims > 0 ? (size + 1) / 2 /* "[1,2]": a digit, a comma */
                                                                    : size;
}

static int elements_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                         struct why *why) {
        bool is_ragged = codec->field.may_be_absent || (codec->n_dims > 0 && codec->shape[0] < 0);

        ret_form->dtype = (enum dlp_dtype)codec->dtype;
        ret_form->n_dims = codec->n_dims;
        memcpy(ret_form->shape, codec->shape, sizeof(ret_form->shape));
        ret_form->how = COLLATE_STACK;
        if (!is_ragged)
                return 0;
        ret_form->fails_late = true; /* a number that does not fit is noticed when it is converted */
        ret_form->unit_bytes = dlp_dtype_bytes(codec->dtype);
        for (uint32_t i = 1; i < codec->n_dims; i++)
                ret_form->unit_bytes *= (uint64_t)codec->shape[i];
        return codec_form_ragged(codec, terms, elements_growth(codec), ret_form, why);
}

/* ---- how many, and of which shape ------------------------------------------------------------------------------ */

static int elements_refuse_shape_of(const struct json_numbers *numbers, const struct codec *codec, struct why *why) {
        char is[64] = "", wanted[64] = "";
        size_t n_is = 0, n_wanted = 0;

        for (uint32_t i = 0; i < numbers->n_dims; i++)
                n_is += (size_t)snprintf(is + n_is, sizeof(is) - n_is, "%s%llu", i ? " x " : "",
                                         (unsigned long long)numbers->shape[i]);
        for (uint32_t i = 0; i < codec->n_dims && n_wanted < sizeof(wanted); i++)
                n_wanted += (size_t)snprintf(wanted + n_wanted, sizeof(wanted) - n_wanted, "%s%lld", i ? " x " : "",
                                             (long long)codec->shape[i]);
        return why_set(why, -EBADMSG, "has the shape [%s], [%s] is expected%s", is, wanted,
                       codec->steps.has_dtype && !codec->steps.has_shape ? "; name another one as in to(float32, "
                                                                           "shape=-1:4)"
                                                                         : "");
}

static bool has_shape(const struct codec *codec, const struct json_numbers *numbers) {
        if (numbers->n == 0 && numbers->n_dims == 1 && codec->n_dims > 0 && codec->shape[0] < 0)
                return true; /* []: no rows of any size */
        if (numbers->n_dims != codec->n_dims)
                return false;
        for (uint32_t i = 0; i < codec->n_dims; i++)
                if (codec->shape[i] >= 0 && (uint64_t)codec->shape[i] != numbers->shape[i])
                        return false;
        return true;
}

/* Finds the value in the JSON, measures it, and compares its shape with the one that is expected. */
static int measure_json(const struct codec *codec, const struct codec_input *input, struct json_token *ret_value,
                        struct json_numbers *ret_numbers, struct why *why) {
        const char *path = codec->steps.path;
        int r;

        *ret_value = (struct json_token){ .bytes = input->bytes, .n_bytes = input->n_bytes };
        r = path ? json_find(input->bytes, input->n_bytes, path, ret_value, why) : 0;
        if (r == JSON_ABSENT)
                return why_set(why, -EBADMSG, "has no member \"%s\"", path);
        if (r == 0)
                r = json_numbers_measure(ret_value->bytes, ret_value->n_bytes, ret_numbers, why);
        if (r < 0)
                return r == -EINVAL || r == -ERANGE || r == -E2BIG ? -EBADMSG : r;
        return has_shape(codec, ret_numbers) ? 0 : elements_refuse_shape_of(ret_numbers, codec, why);
}

static int measure_varints(const struct codec_input *input, uint64_t *ret_n, struct why *why) {
        uint64_t n = 0, n_of_one = 0;

        for (size_t i = 0; i < input->n_bytes; i++) {
                if (++n_of_one > 10)
                        return why_set(why, -EBADMSG, "byte %zu: a number of more than 64 bits", i);
                if (input->bytes[i] & 0x80)
                        continue;
                n++;
                n_of_one = 0;
        }
        *ret_n = n;
        return n_of_one == 0 ? 0 : why_set(why, -EBADMSG, "its last number is cut off");
}

static uint64_t elements_of_row(const struct codec *codec) {
        uint64_t n = 1;

        for (uint32_t i = 0; i < codec->n_dims; i++)
                n *= codec->shape[i] >= 0 ? (uint64_t)codec->shape[i] : 1;
        return n;
}

/* Whole rows, and as many as the shape says. */
static int check_count(const struct codec *codec, uint64_t n, struct why *why) {
        uint64_t n_row = elements_of_row(codec);
        bool varies = codec->n_dims > 0 && codec->shape[0] < 0;

        if (varies ? n_row > 0 && n % n_row == 0 : n == n_row)
                return 0;
        return why_set(why, -EBADMSG, "has %llu elements, its shape needs %s%llu", (unsigned long long)n,
                       varies ? "a multiple of " : "", (unsigned long long)n_row);
}

static int measure_plain(const struct codec *codec, uint64_t n_bytes, uint64_t *ret_n, struct why *why) {
        uint64_t size = dlp_dtype_bytes(codec->field.dtype);

        *ret_n = n_bytes / size;
        return n_bytes % size == 0 ? 0
                                   : why_set(why, -EBADMSG, "%llu bytes are not a whole number of %s",
                                             (unsigned long long)n_bytes, dlp_dtype_name(codec->field.dtype));
}

static int count_elements(const struct codec *codec, const struct codec_input *input, uint64_t *ret_n,
                          struct why *why) {
        struct json_numbers numbers;
        struct json_token value;
        int r;

        if (!codec->field.is_stored && coding_of(codec) == CODING_PLAIN) {
                r = measure_plain(codec, source_length(input->source, input->sample, codec->idx_field), ret_n, why);
                return r;
        }
        switch (coding_of(codec)) {
        case CODING_JSON:
                r = measure_json(codec, input, &value, &numbers, why);
                *ret_n = r == 0 ? numbers.n : 0;
                return r;
        case CODING_VARINTS:
                r = measure_varints(input, ret_n, why);
                break;
        default:
                r = measure_plain(codec, input->n_bytes, ret_n, why);
        }
        return r < 0 ? r : check_count(codec, *ret_n, why);
}

static int elements_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         struct codec_opened *ret_opened, struct why *why) {
        uint64_t n = 0, n_row = elements_of_row(codec);
        int r = count_elements(codec, input, &n, why);

        (void)tools;
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < codec->n_dims; i++)
                ret_opened->shape[i] = codec->shape[i];
        if (codec->n_dims > 0 && codec->shape[0] < 0)
                ret_opened->shape[0] = (int64_t)(n_row > 0 ? n / n_row : 0);
        ret_opened->n_bytes = n * dlp_dtype_bytes(codec->dtype);
        ret_opened->need_bytes = n * sizeof(int64_t); /* of any dtype, before they are converted */
        return 0;
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static void read_varints(const struct codec_input *input, int64_t *into) {
        uint64_t value = 0;
        unsigned shift = 0;

        for (size_t i = 0; i < input->n_bytes; i++) {
                if (shift < 64)
                        value |= (uint64_t)(input->bytes[i] & 0x7f) << shift;
                shift += 7;
                if (input->bytes[i] & 0x80)
                        continue;
                *into++ = (int64_t)value;
                value = 0;
                shift = 0;
        }
}

static bool elements_is_float(uint32_t dtype) {
        return dtype == DLP_DTYPE_FLOAT16 || dtype == DLP_DTYPE_BFLOAT16 || dtype == DLP_DTYPE_FLOAT32 ||
               dtype == DLP_DTYPE_FLOAT64;
}

/* Fills `into` with the elements as they are held. */
static int elements_gather(const struct codec *codec, const struct codec_input *input, uint8_t *into,
                           uint32_t *ret_dtype, struct why *why) {
        struct json_numbers numbers;
        struct json_token value;
        bool as_float;
        int r;

        *ret_dtype = codec->field.dtype;
        switch (coding_of(codec)) {
        case CODING_JSON:
                r = measure_json(codec, input, &value, &numbers, why);
                if (r < 0)
                        return r;
                as_float = numbers.kind == JSON_FLOAT || elements_is_float(codec->dtype);
                *ret_dtype = as_float ? DLP_DTYPE_FLOAT64 : DLP_DTYPE_INT64;
                return json_numbers_read(value.bytes, value.n_bytes, as_float, into, numbers.n, why);
        case CODING_VARINTS:
                read_varints(input, (int64_t *)(void *)into);
                *ret_dtype = DLP_DTYPE_INT64;
                return 0;
        default:
                if (!codec->field.is_stored) {
                        source_value(input->source, input->sample, codec->idx_field, into);
                        return 0;
                }
                memcpy(into, input->bytes, input->n_bytes);
                if (codec->field.is_big_endian)
                        codec_swap_elements(into, input->n_bytes, dlp_dtype_bytes(codec->field.dtype));
                return 0;
        }
}

static int elements_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                           uint8_t *out, struct why *why) {
        uint32_t dtype;
        uint64_t n;
        int r = count_elements(codec, input, &n, why);

        if (r == 0)
                r = codec_memory_reserve(&tools->elements, n * sizeof(int64_t), why);
        if (r == 0)
                r = elements_gather(codec, input, tools->elements.bytes, &dtype, why);
        if (r == 0)
                r = convert(dtype, tools->elements.bytes, codec->dtype, out, n, why);
        return r == -ERANGE || r == -EINVAL ? -EBADMSG : r;
}

int codec_refuse_elements(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                          struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        (void)tools;
        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG, "needs %s to be converted, %s are allowed (a quarter of memory_limit)", need,
                       allowed);
}

const struct codec_type CODEC_ELEMENTS = {
        .name = "elements",
        .interprets = INTERPRETS_STORED,
        .opening = STAGE_CONVERT,
        .rendering = STAGE_CONVERT,
        .form = elements_form,
        .open = elements_open,
        .render = elements_render,
        .refuse_room = codec_refuse_ragged,
        .refuse_memory = codec_refuse_elements,
};
