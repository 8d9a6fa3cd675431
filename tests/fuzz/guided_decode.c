/* Coverage-guided (libFuzzer): any bytes as a picture of any format. The last four bytes choose the box, the rest is
 * the file, so that plain pictures are good seeds; nothing may crash, hang or read beyond, whoever decodes, and
 * whatever becomes of the samples. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/decode.h"
#include "daemon/decode/exif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int on_begin(void *userdata, struct why *why) {
        return 0;
}

/* Looks at each byte. */
static int on_take(void *userdata, const struct view *rows, struct why *why) {
        for (uint32_t y = 0; y < rows->height; y++)
                for (size_t i = 0; i < (size_t)rows->width * PIXEL_BYTES; i++)
                        *(unsigned *)userdata += rows->pixels[y * rows->stride + i];
        return 0;
}

static void read_box(struct decoder *decoder, const uint8_t *box_bytes, const uint8_t *bytes, size_t n_bytes,
                     enum decode_as as) {
        struct image_info info;
        struct box box;
        unsigned sum = 0;
        struct row_sink sink = { on_begin, on_take, &sum };
        struct why why;

        if (decoder_open(decoder, bytes, n_bytes, &info, &why) < 0 ||
            (as != DECODE_COLORS && decoder_as(decoder, as, &why) != 0))
                return;
        box.x = box_bytes[0] * info.width / 256;
        box.y = box_bytes[1] * info.height / 256;
        box.width = 1 + box_bytes[2] * (info.width - box.x - 1) / 255;
        box.height = 1 + box_bytes[3] * (info.height - box.y - 1) / 255;
        decoder_read_rows(decoder, &box, &sink, &why);
        decoder_close(decoder);
}

/* As they are stored, in rows with a gap. */
static void read_bands(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, uint64_t most_bytes) {
        struct band_info info;
        struct why why;
        size_t n_row;

        if (decoder_open_bands(decoder, bytes, n_bytes, &info, &why) < 0)
                return;
        n_row = (size_t)info.width * info.n_bands * dlp_dtype_bytes(info.dtype) + 1;
        if (n_row * info.height <= most_bytes && decoder_need_bands(decoder) > 0) {
                uint8_t *out = malloc(n_row * info.height);

                decoder_read_bands(decoder, out, n_row, &why);
                free(out);
        }
        decoder_close(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const struct decode_limits limits = { .max_pixels = 1 << 16,
                                                     .max_scans = 20,
                                                     .max_scratch_bytes = 4 << 20 };
        static struct decoder *decoders[2];
        uint8_t *bytes;

        if (n_bytes < 5)
                return 0;
        for (unsigned i = 0; i < 2; i++)
                if (!decoders[i] && decoder_new(&limits, (enum decode_jpeg)i, &decoders[i], NULL) < 0)
                        abort();
        bytes = malloc(n_bytes - 4);
        memcpy(bytes, data, n_bytes - 4);
        for (unsigned i = 0; i < 2; i++)
                read_box(decoders[i], data + n_bytes - 4, bytes, n_bytes - 4, DECODE_COLORS);
        for (enum decode_as as = DECODE_GREY; as <= DECODE_ALPHA; as++)
                read_box(decoders[0], data + n_bytes - 4, bytes, n_bytes - 4, as);
        read_bands(decoders[0], bytes, n_bytes - 4, limits.max_scratch_bytes);
        if (exif_orientation(bytes, n_bytes - 4) - 1 > 7)
                abort();
        free(bytes);
        return 0;
}
