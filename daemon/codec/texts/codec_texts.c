/* Lists of texts: UTF-8, checked, from columns, JSON arrays of strings or protobuf messages. A sample is one piece of
 * bytes (proto/base/texts.h). */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/base/json/json_texts.h"
#include "daemon/base/protobuf/message_texts.h"
#include "daemon/codec/codec_type.h"
#include "proto/base/texts.h"
#include "proto/base/utf8.h"

/* The most that a stored byte becomes. An array of strings grows most if they are empty: "[]" becomes 8 bytes, and each
 * further 3 bytes another 8. So does a message: none becomes 8 bytes, and each further 2 another 8; with 5 bytes for
 * each there is also room for the alignment. */
#define JSON_GROWTH    4u
#define MESSAGE_GROWTH 5u

static uint64_t codec_texts_growth(const struct codec *codec) {
        if (!codec->field.is_stored)
                return 1;
        return codec->field.coding == CODING_JSON ? JSON_GROWTH : MESSAGE_GROWTH;
}

static int texts_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                      struct why *why) {
        int r;

        ret_form->dtype = DLP_DTYPE_TEXTS;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        r = codec_form_ragged(codec, terms, codec_texts_growth(codec), ret_form, why);
        if (r < 0 || codec_texts_growth(codec) != MESSAGE_GROWTH)
                return r;
        ret_form->more_bytes = DLP_TENSOR_ALIGN; /* of empty messages */
        if (__builtin_add_overflow(ret_form->max_bytes, 8, &ret_form->max_bytes))
                return why_set(why, -EOVERFLOW, "the samples of field %s are too large", codec->field.name);
        return 0;
}

static int check_all(const uint8_t *bytes, uint64_t n_bytes, struct why *why) {
        const uint8_t *text;
        struct texts texts;
        uint64_t n;

        if (!texts_open(bytes, n_bytes, &texts))
                return why_set(why, -EBADMSG, "its list of texts is damaged");
        for (uint64_t i = 0; i < texts.n; i++) {
                text = texts_at(&texts, i, &n);
                if (utf8_valid(text, n) < n)
                        return why_set(why, -EBADMSG, "text %" PRIu64 " of its list is not UTF-8", i);
        }
        return 0;
}

/* The value is needed to check it, so it is copied twice; lists of texts are short. */
static int codec_texts_open_known(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
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

static void begin_message(struct message_texts *texts, const struct codec *codec, const struct codec_input *input) {
        message_texts_begin(texts, input->bytes, input->n_bytes, codec->field.coding == CODING_STEPS);
}

static int measure_message(const struct codec *codec, const struct codec_input *input, uint64_t *ret_n,
                           uint64_t *ret_n_text_bytes, struct why *why) {
        uint64_t n = 0, n_text_bytes = 0;
        struct message_texts texts;
        struct wire text;
        int r;

        begin_message(&texts, codec, input);
        for (; (r = message_texts_next(&texts, &text, why)) == 1; n++) {
                if (utf8_valid(text.at, wire_left(&text)) < wire_left(&text))
                        return why_set(why, -EBADMSG, "text %" PRIu64 " of its list is not UTF-8", n);
                n_text_bytes += wire_left(&text);
        }
        *ret_n = n;
        *ret_n_text_bytes = n_text_bytes;
        return r;
}

/* `out` has the room that was measured. */
static int read_message(const struct codec *codec, const struct codec_input *input, uint8_t *out, uint64_t n,
                        struct why *why) {
        struct message_texts texts;
        struct wire text;
        uint64_t end = 0;
        int r;

        begin_message(&texts, codec, input);
        memcpy(out, &n, sizeof(n));
        for (uint64_t i = 1; (r = message_texts_next(&texts, &text, why)) == 1; i++) {
                if (wire_left(&text) > 0)
                        memcpy(out + 8 + 8 * n + end, text.at, wire_left(&text));
                end += wire_left(&text);
                memcpy(out + 8 * i, &end, sizeof(end));
        }
        return r;
}

static int codec_texts_measure(const struct codec *codec, const struct codec_input *input, uint64_t *ret_n,
                               uint64_t *ret_n_text_bytes, struct why *why) {
        if (codec->field.coding == CODING_JSON)
                return json_texts_measure(input->bytes, input->n_bytes, ret_n, ret_n_text_bytes, why);
        return measure_message(codec, input, ret_n, ret_n_text_bytes, why);
}

static int texts_open_sample(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                             struct codec_opened *ret_opened, struct why *why) {
        uint64_t n = 0, n_text_bytes = 0;
        int r;

        ret_opened->need_bytes = 0;
        if (codec->field.is_stored) {
                r = codec_texts_measure(codec, input, &n, &n_text_bytes, why);
                ret_opened->n_bytes = 8 + 8 * n + n_text_bytes;
        } else {
                r = codec_texts_open_known(codec, tools, input, ret_opened, why);
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
        r = codec_texts_measure(codec, input, &n, &n_text_bytes, why);
        if (r < 0)
                return as_damage(r);
        return codec->field.coding == CODING_JSON
                       ? as_damage(json_texts_read(input->bytes, input->n_bytes, out, n, why))
                       : read_message(codec, input, out, n, why);
}

const struct codec_type CODEC_TEXTS = {
        .name = "texts",
        .interprets = INTERPRETS_STORED,
        .opening = STAGE_TEXT,
        .rendering = STAGE_TEXT,
        .form = texts_form,
        .open = texts_open_sample,
        .render = texts_render,
        .refuse_room = codec_refuse_ragged,
};
