/* Text: UTF-8 of any length, checked, from stored bytes, JSON strings, cells of CSV, or columns; and parts of paths,
 * which are whatever bytes somebody gave a file as its name: those that are not UTF-8 are told apart by them. */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/base/json/json_value.h"
#include "daemon/codec/codec_type.h"
#include "proto/base/utf8.h"

/* Text never becomes longer when escapes and quotes are resolved, so the stored length is enough room. */
static int text_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                     struct why *why) {
        int r = codec_form_ragged(codec, terms, 1, ret_form, why);

        ret_form->dtype = DLP_DTYPE_TEXT;
        ret_form->n_dims = 1;
        ret_form->shape[0] = -1;
        ret_form->unit_bytes = 1;
        return r;
}

static int check_utf8(const uint8_t *bytes, size_t n_bytes, struct why *why) {
        size_t n_valid = utf8_valid(bytes, n_bytes);

        return n_valid == n_bytes ? 0 : why_set(why, -EBADMSG, "byte %zu is not UTF-8", n_valid);
}

/* A cell of CSV: in quotes, "" stands for one. Returns its length; writes it unless `into` is NULL. */
static size_t read_cell(const uint8_t *bytes, size_t n_bytes, uint8_t *into) {
        bool is_quoted = n_bytes >= 2 && bytes[0] == '"' && bytes[n_bytes - 1] == '"';
        size_t n = 0;

        for (size_t i = is_quoted; i < n_bytes - is_quoted; i++) {
                if (into)
                        into[n] = bytes[i];
                n++;
                if (is_quoted && bytes[i] == '"' && i + 2 < n_bytes && bytes[i + 1] == '"')
                        i++;
        }
        return n;
}

/* Finds the bytes that are the text, and how they hold it. */
static int codec_text_find_text(const struct codec *codec, const struct codec_input *input,
                                struct json_token *ret_value, enum field_coding *ret_coding, struct why *why) {
        int r;

        *ret_value = (struct json_token){ .kind = JSON_STRING, .bytes = input->bytes, .n_bytes = input->n_bytes };
        *ret_coding = codec->field.coding;
        if (!codec->steps.path)
                return 0;
        r = json_find(input->bytes, input->n_bytes, codec->steps.path, ret_value, why);
        if (r < 0)
                return r;
        if (r == JSON_ABSENT || ret_value->kind == JSON_NULL)
                return JSON_ABSENT;
        if (codec->is_for_tokens && (ret_value->kind == JSON_ARRAY || ret_value->kind == JSON_OBJECT))
                return why_set(why, -EBADMSG, "json(%s) is an %s, and tokens are made of strings", codec->steps.path,
                               ret_value->kind == JSON_ARRAY ? "array" : "object");
        /* If a member is not a string, its JSON is the text. */
        *ret_coding = codec->steps.is_text && ret_value->kind == JSON_STRING ? CODING_JSON : CODING_PLAIN;
        return 0;
}

/* Parts of paths and cells of joined tables. Bytes that are not text have no tokens. */
static int codec_text_open_known(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                                 struct codec_opened *ret_opened, struct why *why) {
        uint64_t n = source_length(input->source, input->sample, codec->idx_field);
        int r = codec_memory_reserve(&tools->rows, n, why);

        if (r < 0)
                return r;
        source_value(input->source, input->sample, codec->idx_field, tools->rows.bytes);
        ret_opened->n_bytes = n;
        ret_opened->shape[0] = (int64_t)n;
        return codec->is_for_tokens ? check_utf8(tools->rows.bytes, n, why) : 0;
}

static int text_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                     struct codec_opened *ret_opened, struct why *why) {
        enum field_coding coding;
        struct json_token value;
        size_t n = 0;
        int r;

        ret_opened->need_bytes = 0;
        if (!codec->field.is_stored)
                return codec_text_open_known(codec, tools, input, ret_opened, why);
        r = codec_text_find_text(codec, input, &value, &coding, why);
        if (r != 0) {
                ret_opened->is_absent = r == JSON_ABSENT;
                return r < 0 ? r : 0;
        }
        if (coding == CODING_JSON)
                r = json_string_read(value.bytes, value.n_bytes, NULL, &n, why);
        else
                r = check_utf8(value.bytes, value.n_bytes, why);
        if (r < 0)
                return r == -EILSEQ || r == -EINVAL ? -EBADMSG : r;
        if (coding == CODING_PLAIN)
                n = value.n_bytes;
        else if (coding == CODING_CSV)
                n = read_cell(value.bytes, value.n_bytes, NULL);
        ret_opened->n_bytes = n;
        ret_opened->shape[0] = (int64_t)n;
        return 0;
}

static int text_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint8_t *out, struct why *why) {
        enum field_coding coding;
        struct json_token value;
        size_t n;
        int r;

        (void)tools;
        if (!codec->field.is_stored) {
                source_value(input->source, input->sample, codec->idx_field, out);
                return 0;
        }
        r = codec_text_find_text(codec, input, &value, &coding, why);
        if (r != 0)
                return r < 0 ? r : -EBADMSG; /* cannot be: it was found when it was opened */
        if (coding == CODING_JSON)
                return json_string_read(value.bytes, value.n_bytes, out, &n, why);
        if (coding == CODING_CSV)
                read_cell(value.bytes, value.n_bytes, out);
        else
                memcpy(out, value.bytes, value.n_bytes);
        return 0;
}

const struct codec_type CODEC_TEXT = {
        .name = "text",
        .interprets = INTERPRETS_STORED,
        .opening = STAGE_TEXT,
        .rendering = STAGE_TEXT,
        .form = text_form,
        .open = text_open,
        .render = text_render,
        .refuse_room = codec_refuse_ragged,
};
