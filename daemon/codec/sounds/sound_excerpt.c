/* Only plain WAV files, whose frames have one size: other formats say nowhere at which byte a frame lies. */
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/codec/sounds/sound_part.h"
#include "daemon/decode/sound.h"

#define CHUNK_BYTES 8u  /* of a chunk before its content: name, length */
#define WAV_BYTES   12u /* of the file before its chunks */
#define FORMAT_MIN  16u
#define FORMAT_MAX  40u /* of WAVE_FORMAT_EXTENSIBLE */
#define FORMAT_KIND 24u /* where it says the kind */

enum {
        FORMAT_PCM = 1,
        FORMAT_FLOAT = 3,
        FORMAT_EXTENSIBLE = 0xfffe
};

_Static_assert(WAV_BYTES + CHUNK_BYTES + FORMAT_MAX + CHUNK_BYTES <= CODEC_EXCERPT_HEAD, "there is room for the head");

struct wav {
        const uint8_t *format; /* its chunk */
        uint32_t n_format_bytes, n_frame_bytes, rate;
        uint64_t data, n_data_bytes;
};

/* Frames that have their bytes side by side. An extensible format says what it is in its last part: it may be a law of
 * 8 bits, whatever number of bits stands beside it. */
static bool read_format(struct wav *wav) {
        const uint8_t *format = wav->format + CHUNK_BYTES;
        uint32_t kind = le16(format), n_channels = le16(format + 2), n_bits = le16(format + 14);

        if (kind == FORMAT_EXTENSIBLE)
                kind = wav->n_format_bytes == CHUNK_BYTES + FORMAT_MAX ? le16(format + FORMAT_KIND) : 0;

        wav->rate = le32(format + 4);
        wav->n_frame_bytes = le16(format + 12);
        return (kind == FORMAT_PCM || kind == FORMAT_FLOAT) && wav->rate > 0 && n_channels > 0 && n_bits > 0 &&
               wav->n_frame_bytes == n_channels * ((n_bits + 7) / 8);
}

/* Finds what is needed of a plain WAV file in its first bytes. */
static bool read_wav(const uint8_t *bytes, size_t n_bytes, uint64_t n_file_bytes, struct wav *ret_wav) {
        uint64_t at = WAV_BYTES;

        *ret_wav = (struct wav){ .format = NULL };
        if (n_bytes < WAV_BYTES || memcmp(bytes, "RIFF", 4) != 0 || memcmp(bytes + 8, "WAVE", 4) != 0)
                return false;
        while (at + CHUNK_BYTES <= n_bytes) {
                uint32_t length = le32(bytes + at + 4);

                if (memcmp(bytes + at, "data", 4) == 0) {
                        ret_wav->data = at + CHUNK_BYTES;
                        ret_wav->n_data_bytes = length;
                        return ret_wav->format && ret_wav->data + length <= n_file_bytes;
                }
                if (memcmp(bytes + at, "fmt ", 4) == 0) {
                        if (ret_wav->format || length < FORMAT_MIN || length > FORMAT_MAX ||
                            at + CHUNK_BYTES + length > n_bytes)
                                return false;
                        ret_wav->format = bytes + at;
                        ret_wav->n_format_bytes = CHUNK_BYTES + length;
                        if (!read_format(ret_wav))
                                return false;
                }
                at += CHUNK_BYTES + (uint64_t)length + length % 2;
        }
        return false;
}

static void sound_excerpt_write_number(uint8_t *to, uint64_t number) {
        for (unsigned i = 0; i < 4; i++)
                to[i] = (uint8_t)(number >> 8 * i);
}

static uint32_t write_head(const struct wav *wav, uint64_t n_data_bytes, uint8_t *head) {
        uint8_t *end = head + WAV_BYTES;

        memcpy(end, wav->format, wav->n_format_bytes);
        end += wav->n_format_bytes + wav->n_format_bytes % 2;
        memcpy(end, "data", 4);
        sound_excerpt_write_number(end + 4, n_data_bytes);
        end += CHUNK_BYTES;
        memcpy(head, "RIFF", 4);
        sound_excerpt_write_number(head + 4, (uint64_t)(end - head) - CHUNK_BYTES + n_data_bytes);
        memcpy(head + 8, "WAVE", 4);
        return (uint32_t)(end - head);
}

bool codec_excerpt(const struct codec *codec, const struct codec_part *part, const uint8_t *bytes, size_t n_bytes,
                   uint64_t n_file_bytes, struct codec_excerpt *ret_excerpt) {
        const struct codec *sound = codec_before_plugins(codec);
        struct sound_info info = { 0 };
        struct sound_span span;
        uint64_t n_part_bytes;
        struct wav wav;
        struct why why;

        if (!read_wav(bytes, n_bytes, n_file_bytes, &wav))
                return false;
        info.rate = wav.rate;
        info.n_frames = wav.n_data_bytes / wav.n_frame_bytes;
        if (sound_part_span(sound, part, &info, &span, &why) < 0 || span.n_frames == 0)
                return false; /* its error is told of the whole file */
        n_part_bytes = span.n_frames * wav.n_frame_bytes;
        *ret_excerpt = (struct codec_excerpt){ .offset = wav.data + span.first * wav.n_frame_bytes,
                                               .n_bytes = n_part_bytes + n_part_bytes % 2 };
        if (ret_excerpt->offset + ret_excerpt->n_bytes > n_file_bytes)
                return false; /* without its padding, for which libsndfile looks in the samples */
        ret_excerpt->n_head_bytes = write_head(&wav, n_part_bytes, ret_excerpt->head);
        return true;
}
