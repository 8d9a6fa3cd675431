/* Numbers: a stored field that holds a whole number as text, such as "17\n" -> int64. */

#include <errno.h>

#include "daemon/codec/codec_type.h"

static int number_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                       struct why *why) {
        ret_form->dtype = DLP_DTYPE_INT64;
        ret_form->how = COLLATE_STACK;
        if (!codec->field.may_be_absent)
                return 0;
        ret_form->unit_bytes = sizeof(int64_t);
        return codec_form_ragged(codec, terms, sizeof(int64_t), ret_form, why);
}

static bool number_is_blank(uint8_t byte) {
        return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Digits with a sign, between blanks: what Python's int() takes, except underscores and digits of other alphabets. */
static bool read_int64(const uint8_t *bytes, size_t n_bytes, int64_t *ret_number) {
        size_t i = 0, n_digits = 0;
        int64_t number = 0, sign = 1;

        while (n_bytes > 0 && number_is_blank(bytes[n_bytes - 1]))
                n_bytes--;
        while (i < n_bytes && number_is_blank(bytes[i]))
                i++;
        if (i < n_bytes && (bytes[i] == '-' || bytes[i] == '+'))
                sign = bytes[i++] == '-' ? -1 : 1;
        for (; i < n_bytes && bytes[i] >= '0' && bytes[i] <= '9'; i++, n_digits++)
                if (__builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, sign * (bytes[i] - '0'), &number))
                        return false;
        *ret_number = number;
        return n_digits > 0 && i == n_bytes;
}

static int number_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       struct codec_opened *ret_opened, struct why *why) {
        int64_t number;

        (void)codec;
        (void)tools;
        if (!read_int64(input->bytes, input->n_bytes, &number))
                return why_set(why, -EBADMSG, "\"%.*s\" is not a whole number of 64 bits",
                               input->n_bytes > 40 ? 40 : (int)input->n_bytes, (const char *)input->bytes);
        ret_opened->n_bytes = sizeof(number);
        ret_opened->need_bytes = 0;
        return 0;
}

static int number_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         uint8_t *out, struct why *why) {
        int64_t number = 0;

        (void)codec;
        (void)tools;
        (void)why;
        read_int64(input->bytes, input->n_bytes, &number); /* cannot fail: it was read when it was opened */
        __builtin_memcpy(out, &number, sizeof(number));
        return 0;
}

const struct codec_type CODEC_NUMBER = {
        .name = "number",
        .interprets = INTERPRETS_STORED,
        .form = number_form,
        .open = number_open,
        .render = number_render,
        .refuse_room = codec_refuse_ragged,
};
