/* Lists of texts: UTF-8, checked, from columns or JSON arrays of strings. A sample is one piece of bytes
 * (proto/base/texts.h). */

#include <errno.h>
#include <inttypes.h>

#include "daemon/base/json/json_texts.h"
#include "daemon/codec/codec_type.h"
#include "proto/base/texts.h"
#include "proto/base/utf8.h"

/* An array of strings grows most if they are empty: "[]" becomes 8 bytes, and each further 3 bytes another 8. */
#define JSON_GROWTH 4u

static int texts_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        ret_form->dtype = DLP_DTYPE_TEXTS;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        return codec_form_ragged(codec, terms, codec->field.is_stored ? JSON_GROWTH : 1, ret_form, why);
}

static bool is_utf8(const uint8_t *bytes, uint64_t n_bytes) {
        uint32_t point;

        for (uint64_t at = 0; at < n_bytes;) {
                size_t n = bytes[at] < 0x80 ? 1 : utf8_decode((const char *)bytes + at, n_bytes - at, &point);

                if (n == 0)
                        return false;
                at += n;
        }
        return true;
}

static int check_all(const uint8_t *bytes, uint64_t n_bytes, struct why *why) {
        const uint8_t *text;
        struct texts texts;
        uint64_t n;

        if (!texts_open(bytes, n_bytes, &texts))
                return why_set(why, -EBADMSG, "its list of texts is damaged");
        for (uint64_t i = 0; i < texts.n; i++) {
                text = texts_at(&texts, i, &n);
                if (!is_utf8(text, n))
                        return why_set(why, -EBADMSG, "text %" PRIu64 " of its list is not UTF-8", i);
        }
        return 0;
}

/* The value is needed to check it, so it is copied twice; lists of texts are short. */
static int open_known(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        uint64_t n_bytes = source_length(input->source, input->sample, codec->idx_field);
        int r = codec_memory_reserve(&tools->rows, n_bytes, why);

        if (r < 0)
                return r;
        source_value(input->source, input->sample, codec->idx_field, tools->rows.bytes);
        ret_opened->n_bytes = n_bytes;
        return check_all(tools->rows.bytes, n_bytes, why);
}

static int as_damage(int r) {
        return r == -EINVAL || r == -EILSEQ || r == -E2BIG ? -EBADMSG : r;
}

static int texts_open_sample(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                             struct codec_opened *ret_opened, struct why *why) {
        uint64_t n = 0, n_text_bytes = 0;
        int r;

        ret_opened->need_bytes = 0;
        if (codec->field.is_stored) {
                r = json_texts_measure(input->bytes, input->n_bytes, &n, &n_text_bytes, why);
                ret_opened->n_bytes = 8 + 8 * n + n_text_bytes;
        } else {
                r = open_known(codec, tools, input, ret_opened, why);
        }
        ret_opened->shape[0] = (int64_t)ret_opened->n_bytes;
        return as_damage(r);
}

static int texts_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                        uint8_t *out, struct why *why) {
        uint64_t n, n_text_bytes;
        int r;

        (void)tools;
        if (!codec->field.is_stored) {
                source_value(input->source, input->sample, codec->idx_field, out);
                return 0;
        }
        r = json_texts_measure(input->bytes, input->n_bytes, &n, &n_text_bytes, why);
        if (r == 0)
                r = json_texts_read(input->bytes, input->n_bytes, out, n, why);
        return as_damage(r);
}

const struct codec_type CODEC_TEXTS = {
        .name = "texts",
        .form = texts_form,
        .open = texts_open_sample,
        .render = texts_render,
        .refuse_room = codec_refuse_ragged,
};
