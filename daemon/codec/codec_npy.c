/* Arrays that are stored as .npy files: members of a tar archive, bytes in a record. Each has a header of its own, and
 * only its data is delivered. The header must agree with what the batch was laid out for. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/convert.h"
#include "daemon/data/formats/npy_header.h"
#include "proto/base/shown/amounts.h"

static bool codec_npy_varies(const struct codec *codec) {
        return codec->n_dims > 0 && codec->shape[0] < 0;
}

/* The most bytes that one stored byte becomes. Of a field of bytes, the elements may be as small as one byte. */
static uint64_t codec_npy_growth(const struct codec *codec) {
        uint64_t size = dlp_dtype_bytes(codec->dtype);
        uint64_t from_size = codec->field.kind == FIELD_VALUE ? dlp_dtype_bytes(codec->field.dtype) : 1;

        return (size + from_size - 1) / from_size;
}

static int npy_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                    struct why *why) {
        ret_form->dtype = (enum dlp_dtype)codec->dtype;
        ret_form->n_dims = codec->n_dims;
        memcpy(ret_form->shape, codec->shape, sizeof(ret_form->shape));
        ret_form->how = COLLATE_STACK;
        if (!codec_npy_varies(codec) && !codec->field.may_be_absent)
                return 0;
        ret_form->fails_late = true; /* a number that does not fit is noticed when it is converted */
        ret_form->unit_bytes = dlp_dtype_bytes(codec->dtype);
        for (uint32_t i = 0; i < codec->n_dims; i++)
                ret_form->unit_bytes *= codec->shape[i] >= 0 ? (uint64_t)codec->shape[i] : 1;
        return codec_form_ragged(codec, terms, codec_npy_growth(codec), ret_form, why);
}

/* ---- the header ------------------------------------------------------------------------------------------------ */

static int codec_npy_refuse_shape_of(const struct codec *codec, const struct npy_header *header, struct why *why) {
        char is[192] = "", wanted[192] = "";
        size_t n_is = 0, n_wanted = 0;

        for (uint32_t i = 0; i < header->n_dims && n_is < sizeof(is); i++)
                n_is += (size_t)snprintf(is + n_is, sizeof(is) - n_is, "%s%llu", i ? " x " : "",
                                         (unsigned long long)header->shape[i]);
        for (uint32_t i = 0; i < codec->n_dims && n_wanted < sizeof(wanted); i++)
                n_wanted += (size_t)snprintf(wanted + n_wanted, sizeof(wanted) - n_wanted, "%s%lld", i ? " x " : "",
                                             (long long)codec->shape[i]);
        return why_set(why, -EBADMSG, "is an array of the shape [%s], [%s] is expected%s", is, wanted,
                       codec->steps.has_dtype && !codec->steps.has_shape && codec->field.kind == FIELD_BYTES
                               ? "; name its shape, as in npy to(float32, shape=-1:4)"
                               : "");
}

static int check_shape(const struct codec *codec, const struct npy_header *header, struct why *why) {
        bool is_same = header->n_dims == codec->n_dims;

        for (uint32_t i = 0; i < codec->n_dims && is_same; i++)
                is_same = codec->shape[i] < 0 || header->shape[i] == (uint64_t)codec->shape[i];
        return is_same ? 0 : codec_npy_refuse_shape_of(codec, header, why);
}

static int codec_npy_read_header(const struct codec *codec, const struct codec_input *input,
                                 struct npy_header *ret_header, struct why *why) {
        size_t n = input->n_bytes < NPY_HEADER_MAX ? input->n_bytes : NPY_HEADER_MAX;
        int r = npy_header_read_value(input->bytes, n, ret_header, why);

        if (r < 0)
                return -EBADMSG; /* of this sample: others may be well */
        if (ret_header->end != input->n_bytes)
                return why_set(why, -EBADMSG,
                               "has %zu bytes, and the array that its header describes ends at byte %llu",
                               input->n_bytes, (unsigned long long)ret_header->end);
        if (!codec->steps.has_dtype && ret_header->dtype != codec->dtype)
                return why_set(why, -EBADMSG, "is an array of %s, %s is expected; to(%s) would convert it",
                               dlp_dtype_name(ret_header->dtype), dlp_dtype_name(codec->dtype),
                               dlp_dtype_name(codec->dtype));
        return check_shape(codec, ret_header, why);
}

static bool needs_copy(const struct codec *codec, const struct npy_header *header) {
        return header->is_big_endian && header->dtype != codec->dtype;
}

static int codec_npy_npy_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                              struct codec_opened *ret_opened, struct why *why) {
        struct npy_header header;
        int r = codec_npy_read_header(codec, input, &header, why);

        (void)tools;
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < codec->n_dims; i++)
                ret_opened->shape[i] = (int64_t)header.shape[i];
        ret_opened->n_bytes = (header.end - header.data) / dlp_dtype_bytes(header.dtype) *
                              dlp_dtype_bytes(codec->dtype);
        ret_opened->need_bytes = needs_copy(codec, &header) ? header.end - header.data : 0;
        return 0;
}

/* ---- the elements ---------------------------------------------------------------------------------------------- */

static int npy_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      uint8_t *out, struct why *why) {
        struct npy_header header;
        const uint8_t *elements;
        uint64_t n_bytes, size;
        int r = codec_npy_read_header(codec, input, &header, why);

        if (r < 0)
                return r;
        elements = input->bytes + header.data;
        n_bytes = header.end - header.data;
        size = dlp_dtype_bytes(header.dtype);
        if (header.is_big_endian && header.dtype == codec->dtype) {
                memcpy(out, elements, n_bytes);
                codec_swap_elements(out, n_bytes, size);
                return 0;
        }
        if (needs_copy(codec, &header)) {
                r = codec_memory_reserve(&tools->elements, n_bytes, why);
                if (r < 0)
                        return r;
                memcpy(tools->elements.bytes, elements, n_bytes);
                codec_swap_elements(tools->elements.bytes, n_bytes, size);
                elements = tools->elements.bytes;
        }
        r = convert(header.dtype, elements, codec->dtype, out, n_bytes / size, why);
        return r == -ERANGE || r == -EINVAL ? -EBADMSG : r;
}

static int npy_refuse_memory(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                             struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        (void)tools;
        format_compared(need, opened->need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG, "needs %s to be converted, %s are allowed (a quarter of memory_limit)", need,
                       allowed);
}

const struct codec_type CODEC_NPY = {
        .name = "npy",
        .interprets = INTERPRETS_STORED,
        .opening = STAGE_CONVERT,
        .rendering = STAGE_CONVERT,
        .form = npy_form,
        .open = codec_npy_npy_open,
        .render = npy_render,
        .refuse_room = codec_refuse_ragged,
        .refuse_memory = npy_refuse_memory,
};
