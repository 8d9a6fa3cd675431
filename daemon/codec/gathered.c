/* Arrays that are put together from several pieces of a file, as the tokens of a GPT sample are. Each piece is brought
 * by itself, from the mapping or by a read, and its elements are converted on the way to their place. */

#include <errno.h>
#include <string.h>

#include "daemon/base/machine/mapped.h"
#include "daemon/codec/codec_type.h"
#include "daemon/codec/convert.h"

#define CHUNK_BYTES 4096u /* copied from a mapping before it is converted */

static int gathered_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                         struct why *why) {
        (void)terms;
        (void)why;
        ret_form->dtype = (enum dlp_dtype)codec->dtype;
        ret_form->how = COLLATE_STACK;
        ret_form->n_dims = codec->field.n_dims;
        memcpy(ret_form->shape, codec->field.shape, sizeof(ret_form->shape));
        return 0;
}

int codec_put_piece(const struct codec *codec, const struct source_piece *piece, const uint8_t *bytes, uint8_t *row,
                    struct why *why) {
        uint8_t *out = row + piece->n_before * dlp_dtype_bytes(codec->dtype);

        if (piece->dtype == codec->dtype) {
                memcpy(out, bytes, piece->n_bytes);
                return 0;
        }
        return convert(piece->dtype, bytes, codec->dtype, out, piece->n_bytes / dlp_dtype_bytes(piece->dtype), why) < 0
                       ? -EBADMSG
                       : 0;
}

/* Nothing is converted straight from the mapping: only mapped_copy() can take a page that is gone. A function of its
 * own, because the room for a chunk would cost every call, also those that only copy. */
static __attribute__((noinline)) int convert_piece(const struct codec *codec, const struct source_piece *piece,
                                                   uint8_t *row) {
        struct source_piece chunk = *piece;
        uint8_t bytes[CHUNK_BYTES];
        struct why why;
        int r = 0;

        for (uint64_t done = 0; done < piece->n_bytes && r == 0; done += chunk.n_bytes) {
                chunk.n_bytes = piece->n_bytes - done < sizeof(bytes) ? piece->n_bytes - done : sizeof(bytes);
                chunk.n_before = piece->n_before + done / dlp_dtype_bytes(piece->dtype);
                r = mapped_copy(bytes, piece->bytes + done, chunk.n_bytes);
                if (r == 0)
                        r = codec_put_piece(codec, &chunk, bytes, row, &why);
        }
        return r;
}

int codec_copy_piece(const struct codec *codec, const struct source_piece *piece, uint8_t *row) {
        if (!codec_is_gathered(codec))
                return mapped_copy(row, piece->bytes, piece->n_bytes);
        if (piece->dtype == codec->dtype)
                return mapped_copy(row + piece->n_before * dlp_dtype_bytes(piece->dtype), piece->bytes, piece->n_bytes);
        return convert_piece(codec, piece, row);
}

static int gathered_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         struct codec_opened *ret_opened, struct why *why) {
        (void)tools;
        (void)input;
        (void)ret_opened;
        return why_set(why, -ENOTSUP, "field %s is put together piece by piece", codec->field.name);
}

const struct codec_type CODEC_GATHERED = {
        .name = "gathered",
        .form = gathered_form,
        .open = gathered_open,
};
