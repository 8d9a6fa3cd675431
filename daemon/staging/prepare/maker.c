#include "daemon/staging/prepare/maker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#include "daemon/augment/crop.h"
#include "daemon/augment/resize/resample.h"
#include "daemon/decode/decode.h"
#include "daemon/staging/prepare/encoder.h"
#include "daemon/staging/prepare/transcoder.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"

#define TRIM_FROM                                                                                                      \
        (2u << 20)    /* bytes that a picture took: the libraries' part lies in this thread's heap, where it stays */
#define SCANS_MAX 64u /* of a progressive JPEG: ordinary ones have 10; each takes time in which nobody can cancel */

struct maker {
        const struct steps *steps;
        struct decoder *decoder;
        struct resizer *resizer;
        struct encoder *encoder;
        struct transcoder *transcoder; /* NULL: not asked for */
        struct block pixels;           /* of what was resized */
};

/* A picture on its way through a maker: a sink of the decoder's rows. */
struct making {
        struct maker *maker;
        const struct maker_job *job;
        uint32_t width, height;         /* of the picture */
        uint32_t new_width, new_height; /* of what it becomes */
        uint64_t need;                  /* bytes that this may take, paid for; 0: nothing was begun */
};

/* ---- state --------------------------------------------------------------------------------------------------- */

static int new_parts(struct maker *maker, struct why *why) {
        struct decode_limits limits = DECODE_LIMITS_DEFAULT;
        int r;

        limits.max_scans = SCANS_MAX;
        limits.max_scratch_bytes = MAKER_BYTES;
        r = decoder_new(&limits, DECODE_JPEG_AUTO, &maker->decoder, why);
        if (r == 0)
                r = resizer_new(RESIZE_CODE_BEST, &maker->resizer, why);
        return r;
}

static void free_parts(struct maker *maker) {
        decoder_free(TAKE_PTR(maker->decoder));
        resizer_free(TAKE_PTR(maker->resizer));
        block_free(&maker->pixels);
}

void maker_free(struct maker *maker) {
        if (!maker)
                return;
        free_parts(maker);
        encoder_free(maker->encoder);
        transcoder_free(maker->transcoder);
        free(maker);
}

int maker_new(const struct steps *steps, struct maker **ret_maker, struct why *why) {
        struct maker *maker = calloc(1, sizeof(*maker));
        int r;

        if (!maker)
                return why_set(why, -ENOMEM, "no memory for preparing samples");
        maker->steps = steps;
        r = encoder_new(&maker->encoder);
        if (r == 0 && steps->transcodes)
                r = transcoder_new(&maker->transcoder);
        if (r < 0)
                why_set(why, r, "no memory for preparing samples");
        else
                r = new_parts(maker, why);
        if (r < 0) {
                maker_free(maker);
                return r;
        }
        *ret_maker = maker;
        return 0;
}

/* A large picture must not cost memory for good: what the next one needs is made anew. Measured with eight workers and
 * pictures of 5 Mpixel in several scans: 120 MiB at most, 197 without the trim. */
static int maker_settle(struct maker *maker, uint64_t n_bytes_taken, struct why *why) {
        if (n_bytes_taken >= TRIM_FROM)
                malloc_trim(0);
        if (decoder_scratch_bytes(maker->decoder) + resizer_bytes(maker->resizer) + maker->pixels.capacity <=
            MAKER_KEEPS)
                return 0;
        free_parts(maker);
        return new_parts(maker, why);
}

/* ---- a picture's way ----------------------------------------------------------------------------------------- */

static bool is_resized(const struct making *making) {
        return making->new_width != making->width || making->new_height != making->height;
}

static void choose_size(struct making *making) {
        uint32_t short_side = making->maker->steps->short_side;
        uint32_t shorter = making->width < making->height ? making->width : making->height;
        uint64_t width = making->width, height = making->height;

        if (short_side > 0 && short_side < shorter)
                crop_resize_short(making->width, making->height, short_side, &width, &height);
        making->new_width = (uint32_t)width; /* never more than it was */
        making->new_height = (uint32_t)height;
}

static size_t new_stride(const struct making *making) {
        return (size_t)making->new_width * PIXEL_BYTES;
}

/* Rows that are being summed up, and the weights: for each row of the result as many rows of the picture as one falls
 * on, on both sides; twice, since the number is rounded up to a power of two. */
static uint64_t resizing_need(const struct making *making) {
        uint64_t n_rows = 2 * (2 * (uint64_t)(making->height / making->new_height + 1) + 16);

        return making->new_height * new_stride(making) + n_rows * (new_stride(making) + 64) +
               64ull * (making->width + making->height);
}

static uint64_t maker_count_need(const struct making *making) {
        struct box whole = { 0, 0, making->width, making->height };
        uint64_t n_bytes = decoder_need(making->maker->decoder, &whole);

        if (is_resized(making))
                n_bytes += resizing_need(making);
        return n_bytes + encoder_need(making->new_width, making->new_height);
}

/* Rows come from the top, for the first time or again. */
static int maker_on_begin(void *userdata, struct why *why) {
        struct making *making = userdata;
        struct maker *maker = making->maker;
        struct resize_job job = {
                .width = making->new_width,
                .height = making->new_height,
                .window = { 0, 0, making->new_width, making->new_height },
                .filter = RESIZE_BILINEAR,
        };
        int r;

        if (!is_resized(making))
                return encoder_begin(maker->encoder, making->new_width, making->new_height, maker->steps->quality, why);
        r = block_grow(&maker->pixels, making->new_height * new_stride(making));
        if (r < 0)
                return why_set(why, r, "no memory for resizing a picture");
        return resizer_begin(maker->resizer, making->width, making->height, NULL, &job, maker->pixels.bytes,
                             new_stride(making), why);
}

static int maker_on_rows(void *userdata, const struct view *rows, struct why *why) {
        struct making *making = userdata;

        if (making->job->is_cancelled(making->job->userdata))
                return -ECANCELED;
        if (!is_resized(making))
                return encoder_feed(making->maker->encoder, rows, why);
        resizer_feed(making->maker->resizer, rows);
        return 0;
}

static int encode_resized(struct making *making, struct why *why) {
        struct maker *maker = making->maker;
        struct view whole = {
                .pixels = maker->pixels.bytes,
                .stride = new_stride(making),
                .width = making->new_width,
                .height = making->new_height,
        };
        int r;

        r = encoder_begin(maker->encoder, making->new_width, making->new_height, maker->steps->quality, why);
        return r < 0 ? r : encoder_feed(maker->encoder, &whole, why);
}

/* What can be said against it before it is decoded. */
static int maker_check_size(const struct making *making, uint64_t n_bytes, struct why *why) {
        char text[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];

        if (making->new_width > ENCODER_SIDE_MAX || making->new_height > ENCODER_SIDE_MAX)
                return why_set(why, -EFBIG,
                               "would become %" PRIu32 " x %" PRIu32 " pixels; a JPEG has %u a side at most",
                               making->new_width, making->new_height, ENCODER_SIDE_MAX);
        if (making->job->n_paid + n_bytes > MAKER_BYTES)
                return why_set(why, -EFBIG,
                               "preparing %" PRIu32 " x %" PRIu32 " pixels may take %s of memory; the limit is %s",
                               making->width, making->height, format_bytes(text, making->job->n_paid + n_bytes),
                               format_bytes(limit, MAKER_BYTES));
        return 0;
}

static int maker_make_file(struct making *making, struct block *ret_file, size_t *ret_n_bytes, struct why *why) {
        struct maker *maker = making->maker;
        struct row_sink sink = { .begin = maker_on_begin, .take = maker_on_rows, .userdata = making };
        struct box whole = { 0, 0, making->width, making->height };
        uint64_t need = maker_count_need(making);
        int r;

        r = maker_check_size(making, need, why);
        if (r < 0)
                return r;
        making->need = need;
        r = making->job->pay(making->job->userdata, need);
        if (r < 0)
                return r;
        r = decoder_read_rows(maker->decoder, &whole, &sink, why);
        if (r == 0 && is_resized(making))
                r = encode_resized(making, why);
        return r < 0 ? r : encoder_end(maker->encoder, ret_file, ret_n_bytes, why);
}

/* Resizes and encodes, as far as that is asked for. */
static int maker_encode(struct making *making, struct block *ret_file, size_t *ret_n_bytes, struct why *why) {
        struct maker *maker = making->maker;
        struct image_info info;
        int r;

        if (!maker->steps->short_side && !maker->steps->encodes_all)
                return MAKER_AS_IT_IS;
        r = decoder_open(maker->decoder, making->job->bytes, making->job->n_bytes, &info, why);
        if (r == 0) {
                making->width = info.width;
                making->height = info.height;
                choose_size(making);
                if (!is_resized(making) && !maker->steps->encodes_all)
                        r = MAKER_AS_IT_IS;
                else
                        r = maker_make_file(making, ret_file, ret_n_bytes, why);
        }
        decoder_close(maker->decoder);
        encoder_forget(maker->encoder);
        return r;
}

static int pay_for_transcoding(struct making *making, uint64_t n_bytes, struct why *why) {
        char text[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];
        uint64_t n_all = making->job->n_paid + making->need + n_bytes;

        if (n_all > MAKER_BYTES)
                return why_set(why, -EFBIG, "transcoding may take %s of memory; the limit is %s",
                               format_bytes(text, n_all), format_bytes(limit, MAKER_BYTES));
        making->need += n_bytes;
        return making->job->pay(making->job->userdata, n_bytes);
}

/* Transcodes what was encoded, whose file is replaced, or else the sample's own bytes. */
static int transcode(struct making *making, bool is_encoded, struct block *file, size_t *n_bytes, struct why *why) {
        struct transcoder *transcoder = making->maker->transcoder;
        const struct maker_job *job = making->job;
        struct block made = {};
        uint64_t need;
        size_t n_made;
        int r;

        r = transcoder_open(transcoder, is_encoded ? file->bytes : job->bytes, is_encoded ? *n_bytes : job->n_bytes,
                            &need, why);
        if (r == 0)
                r = pay_for_transcoding(making, need, why);
        if (r == 0)
                r = transcoder_make(transcoder, job->is_cancelled, job->userdata, &made, &n_made, why);
        transcoder_forget(transcoder);
        if (is_encoded)
                block_free(file);
        if (r == 0) {
                *file = made;
                *n_bytes = n_made;
        }
        return r == TRANSCODER_CANNOT ? MAKER_CANNOT : r;
}

/* Damage, formats and sizes are the training job's business; the rest is ours. */
static bool is_of_the_sample(int error) {
        return error == -EBADMSG || error == -ENOTSUP || error == -EFBIG;
}

int maker_make(struct maker *maker, const struct maker_job *job, struct block *ret_file, size_t *ret_n_bytes,
               struct why *why) {
        struct making making = { .maker = maker, .job = job };
        struct block file = {};
        size_t n_bytes = 0;
        int r, r_settle;

        r = maker_encode(&making, &file, &n_bytes, why);
        if (maker->transcoder && (r == 0 || r == MAKER_AS_IT_IS))
                r = transcode(&making, r == 0, &file, &n_bytes, why);
        r_settle = maker_settle(maker, making.need, why);
        if (r_settle < 0) {
                block_free(&file);
                return r_settle;
        }
        if (r == 0) {
                *ret_file = file;
                *ret_n_bytes = n_bytes;
        }
        return r < 0 && is_of_the_sample(r) ? MAKER_CANNOT : r;
}
