/* Any bytes as a sound of any format. The last two bytes choose the part, the rest is the file, so that plain files are
 * good seeds. What is read are as many frames as were asked for, and whatever is refused has a reason. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/sound.h"

#define FRAMES_MAX 65536u /* longer ones take time, and no other path */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a sound %s\n", what);
        abort();
}

/* Looks at each of them, so that MSan and valgrind see one that was not written. */
static void check(const float *samples, uint64_t n) {
        static volatile float sum;

        for (uint64_t i = 0; i < n; i++)
                sum = sum + samples[i];
}

static void read_part(const uint8_t *bytes, size_t n_bytes, uint8_t from, uint8_t to) {
        struct sound *sound = NULL;
        struct sound_info info = { 0 };
        struct why why = { 0 };
        uint64_t n_known, first, n_frames;
        uint32_t n_channels;
        float *samples;

        if (sound_open(bytes, n_bytes, &sound, &info, &why) < 0) {
                if (!why.text[0] || sound)
                        find("was refused without a reason");
                return;
        }
        if (info.n_channels < 1 || info.n_channels > SOUND_CHANNELS_MAX || info.rate < 1 ||
            info.rate > SOUND_RATE_MAX || info.n_frames > UINT32_MAX)
                find("has a header that should have been refused");
        n_known = info.n_frames < FRAMES_MAX ? info.n_frames : FRAMES_MAX;
        first = n_known * from / 256;
        n_frames = (n_known - first) * (to + 1u) / 256;
        n_channels = from & 1 ? info.n_channels : 1;
        samples = malloc((size_t)(n_frames * n_channels + 1) * sizeof(*samples));
        if (sound_read(sound, first, n_frames, n_channels, samples, &why) == 0)
                check(samples, n_frames * n_channels);
        else if (!why.text[0])
                find("failed without a reason");
        free(samples);
        sound_close(sound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        uint8_t *bytes;

        if (n_bytes < 3)
                return 0;
        bytes = malloc(n_bytes - 2); /* so that ASan sees where they end */
        memcpy(bytes, data, n_bytes - 2);
        read_part(bytes, n_bytes - 2, data[n_bytes - 2], data[n_bytes - 1]);
        free(bytes);
        return 0;
}
