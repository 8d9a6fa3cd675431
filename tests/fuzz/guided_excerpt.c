/* Any bytes as a sound of which a part is wanted. The last two bytes choose the part, the rest is the file. Where the
 * daemon would read the head of a WAV file and the part alone, that has to give the samples that the whole file has
 * there. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_type.h"
#include "daemon/codec/sounds/sound_part.h"
#include "daemon/decode/sound.h"

#define FRAMES_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: an excerpt %s\n", what);
        abort();
}

/* Returns the samples of the first channels' frames, to be freed; NULL: it cannot be read. */
static float *read_frames(const uint8_t *bytes, size_t n_bytes, const struct sound_span *span,
                          struct sound_info *ret_info) {
        struct sound *sound = NULL;
        float *samples = NULL;
        struct why why;

        if (sound_open(bytes, n_bytes, &sound, ret_info, &why) < 0)
                return NULL;
        if (span->first <= ret_info->n_frames && span->n_frames <= ret_info->n_frames - span->first) {
                samples = calloc(span->n_frames * ret_info->n_channels + 1, sizeof(*samples));
                if (sound_read(sound, span->first, span->n_frames, ret_info->n_channels, samples, &why) < 0) {
                        free(samples);
                        samples = NULL;
                }
        }
        sound_close(sound);
        return samples;
}

static void compare(const uint8_t *bytes, size_t n_bytes, const struct codec_excerpt *excerpt,
                    const struct sound_span *span) {
        struct sound_span all = { 0, span->n_frames };
        struct sound_info whole_info = { 0 }, part_info = { 0 };
        size_t n_part_bytes = excerpt->n_head_bytes + excerpt->n_bytes;
        float *whole = read_frames(bytes, n_bytes, span, &whole_info), *samples;
        uint8_t *part = malloc(n_part_bytes);

        memcpy(part, excerpt->head, excerpt->n_head_bytes);
        memcpy(part + excerpt->n_head_bytes, bytes + excerpt->offset, excerpt->n_bytes);
        samples = read_frames(part, n_part_bytes, &all, &part_info);
        if (whole && (!samples || part_info.n_frames != span->n_frames || part_info.rate != whole_info.rate ||
                      part_info.n_channels != whole_info.n_channels ||
                      memcmp(whole, samples, span->n_frames * whole_info.n_channels * sizeof(*samples)) != 0))
                find("is not what the file has there");
        free(samples);
        free(whole);
        free(part);
}

/* libsndfile refuses samples that begin as these formats do: a part in 2^31, and the error says that it is damaged. */
static bool begins_as_another(const uint8_t *bytes, const struct codec_excerpt *excerpt) {
        return excerpt->n_bytes >= 4 &&
               (memcmp(bytes + excerpt->offset, "OggS", 4) == 0 || memcmp(bytes + excerpt->offset, "wvpk", 4) == 0);
}

static bool has_several_data(const uint8_t *bytes, size_t n_bytes) {
        const uint8_t *first = memmem(bytes, n_bytes, "data", 4);

        return first && memmem(first + 4, n_bytes - (size_t)(first + 4 - bytes), "data", 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static struct codec codec = { .type = &CODEC_SOUND };
        struct codec_excerpt excerpt;
        struct codec_part part;
        struct sound_info info = { 0 };
        struct sound_span span;
        struct sound *sound = NULL;
        struct why why;
        uint8_t *bytes;

        if (n_bytes < 3)
                return 0;
        n_bytes -= 2;
        part = (struct codec_part){ .start_s = data[n_bytes] / 8192.0,
                                    .duration_s = data[n_bytes + 1] / 8192.0,
                                    .has_duration = data[n_bytes + 1] > 0 };
        bytes = malloc(n_bytes); /* so that ASan sees where they end */
        memcpy(bytes, data, n_bytes);
        if (codec_excerpt(&codec, &part, bytes, n_bytes < CODEC_EXCERPT_LOOK ? n_bytes : CODEC_EXCERPT_LOOK, n_bytes,
                          &excerpt)) {
                if (excerpt.offset > n_bytes || excerpt.n_bytes > n_bytes - excerpt.offset ||
                    excerpt.n_head_bytes > CODEC_EXCERPT_HEAD)
                        find("is not in the file");
                if (!begins_as_another(bytes, &excerpt) && !has_several_data(bytes, n_bytes) &&
                    sound_open(bytes, n_bytes, &sound, &info, &why) == 0) {
                        sound_close(sound);
                        if (info.n_frames <= FRAMES_MAX && sound_part_span(&codec, &part, &info, &span, &why) == 0)
                                compare(bytes, n_bytes, &excerpt, &span);
                }
        }
        free(bytes);
        return 0;
}
