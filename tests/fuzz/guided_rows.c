/* Any bytes as a JPEG in rows, as who decodes it in rows reads it, and the kernels that decode it, run on the CPU: what
 * they find good has the pixels that our decoder gives. The first byte says whether the bytes are such a file already,
 * or any JPEG, which is transcoded before: then it has to be read, and to be good. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/decode.h"
#include "daemon/staging/prepare/transcoder.h"
#include "proto/jpeg/jpeg_rows.h"
#include "tests/support/jpeg_codes.h"
#include "tests/support/rows_decoding.h"

#define NEED_MAX   (64ull << 20) /* bytes that transcoding may take */
#define PIXELS_MAX (1u << 16)    /* of what is decoded */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void must(bool holds, const char *what) {
        if (holds)
                return;
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

static void check_codes(const struct dlp_jpeg_codes *codes) {
        for (uint32_t bits = 0; bits < 65536; bits += 7) {
                uint32_t n_bits = 0;
                int symbol = jpeg_codes_look(codes, bits, &n_bits);

                must(symbol >= -1 && symbol < 256, "a symbol that is none");
                must(symbol < 0 || (n_bits >= 1 && n_bits <= DLP_JPEG_CODE_MAX), "a code of too many bits");
        }
}

/* Reads what a decoder would. */
static void check(const struct dlp_jpeg *jpeg, const uint8_t *bytes, size_t n_bytes) {
        unsigned sum = 0;

        must(jpeg->width > 0 && jpeg->height > 0 && jpeg->width <= DLP_JPEG_SIDE_MAX &&
                     jpeg->height <= DLP_JPEG_SIDE_MAX,
             "sides");
        must(jpeg->n_rows > 0 && jpeg->n_rows <= DLP_JPEG_ROWS_MAX, "rows");
        for (uint32_t row = 0; row < jpeg->n_rows; row++) {
                uint32_t from = dlp_jpeg_offset(jpeg, row), to = dlp_jpeg_offset(jpeg, row + 1);

                must(from < to && to <= n_bytes - jpeg->scan_at, "a row that leads out of the file");
                sum += bytes[jpeg->scan_at + from] + bytes[jpeg->scan_at + to - 1];
        }
        for (uint32_t c = 0; c < jpeg->n_components; c++) {
                must(jpeg->components[c].idx_dc < DLP_JPEG_CODES && jpeg->components[c].idx_ac < DLP_JPEG_CODES,
                     "codes that are not there");
                must((uint64_t)jpeg->components[c].n_blocks_x * 8 * (c == 0 ? 1 : jpeg->h) >= jpeg->width, "blocks");
                check_codes(&jpeg->dc[jpeg->components[c].idx_dc]);
                check_codes(&jpeg->ac[jpeg->components[c].idx_ac]);
        }
        must(sum < UINT32_MAX, "the sum");
}

/* No row of what is good has anything that libjpeg would warn of. */
static void compare(const struct rows_decoding *decoding, const uint8_t *bytes, size_t n_bytes) {
        static struct decoder *decoder;
        struct decode_limits limits = DECODE_LIMITS_DEFAULT;
        const struct dlk_jpeg_picture *picture = &decoding->picture;
        size_t n_pixels = (size_t)picture->jpeg.width * picture->jpeg.height;
        struct image_info info;
        uint8_t *pixels = malloc(n_pixels * PIXEL_BYTES);

        if (!decoder && decoder_new(&limits, DECODE_JPEG_AUTO, &decoder, NULL) < 0)
                _Exit(2);
        if (decoder_open(decoder, bytes, n_bytes, &info, NULL) == 0) {
                must(info.width == picture->jpeg.width && info.height == picture->jpeg.height, "another size");
                if (decoder_read_into(decoder, pixels, (size_t)info.width * PIXEL_BYTES, NULL) == 0)
                        must(memcmp(pixels, picture->pixels, n_pixels * PIXEL_BYTES) == 0, "other pixels");
        }
        decoder_close(decoder);
        free(pixels);
}

static enum dlk_jpeg_status decode(const uint8_t *bytes, size_t n_bytes) {
        struct rows_decoding decoding;
        enum dlk_jpeg_status status = DLK_JPEG_GOOD;

        if (rows_decoding_open(&decoding, bytes, n_bytes) < 0)
                abort();
        if ((uint64_t)decoding.picture.jpeg.width * decoding.picture.jpeg.height <= PIXELS_MAX) {
                struct box whole = { 0, 0, decoding.picture.jpeg.width, decoding.picture.jpeg.height };

                status = rows_decoding_run(&decoding, whole);
                if (status == DLK_JPEG_GOOD)
                        compare(&decoding, bytes, n_bytes);
        }
        rows_decoding_free(&decoding);
        return status;
}

static void read_rows(const uint8_t *bytes, size_t n_bytes) {
        struct dlp_jpeg jpeg;
        struct why why = { 0 };

        if (dlp_jpeg_read(bytes, n_bytes, &jpeg, &why) == 0) {
                check(&jpeg, bytes, n_bytes);
                decode(bytes, n_bytes);
        } else {
                must(why.text[0] != 0, "refused without a word");
        }
}

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

static void transcode(const uint8_t *bytes, size_t n_bytes) {
        static struct transcoder *transcoder;
        struct block file = { 0 };
        struct why why = { 0 };
        struct dlp_jpeg jpeg;
        uint64_t need;
        size_t n_file;
        int r;

        if (!transcoder && transcoder_new(&transcoder) < 0)
                _Exit(2);
        r = transcoder_open(transcoder, bytes, n_bytes, &need, &why);
        if (r == 0 && need < NEED_MAX)
                r = transcoder_make(transcoder, never, NULL, &file, &n_file, &why);
        else
                transcoder_forget(transcoder);
        must(r == 0 || why.text[0] != 0, "not transcoded, without a word");
        if (!file.bytes)
                return;
        must(n_file <= need, "more memory than was said");
        must(dlp_jpeg_read(file.bytes, n_file, &jpeg, NULL) == 0, "what was made cannot be read");
        check(&jpeg, file.bytes, n_file);
        must(decode(file.bytes, n_file) == DLK_JPEG_GOOD, "what was made is damaged");
        block_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        uint8_t *exact;

        if (n_bytes < 1)
                return 0;
        n_bytes--;
        exact = malloc(n_bytes ? n_bytes : 1); /* of exactly this size, for ASan */
        memcpy(exact, data + 1, n_bytes);
        if (data[0] % 2)
                transcode(exact, n_bytes);
        else
                read_rows(exact, n_bytes);
        free(exact);
        return 0;
}
