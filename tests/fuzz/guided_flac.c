/* Any bits as the channels of FLAC blocks, without the checksums that would stop nearly every change: how many channels
 * of how many frames and bits the first bytes say. What was read is predicted in lanes and one by one, which must give
 * the same. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/flac/subframe.h"

#define FRAMES_MAX 700u
#define HEAD_BYTES 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static int32_t samples[FLAC_LANES][FRAMES_MAX], alone[FLAC_LANES][FRAMES_MAX];

/* Returns how many channels were read before one that is damaged. */
static uint32_t read_channels(const uint8_t *bytes, size_t n_bytes, uint32_t n_channels, uint32_t n_bits,
                              uint32_t n_frames, struct flac_subframe *subframes) {
        struct flac_bits bits;

        bits_init(&bits, bytes, bytes + n_bytes);
        for (uint32_t i = 0; i < n_channels; i++)
                if (flac_subframe_read(&bits, n_bits, n_frames, samples[i], &subframes[i]) < 0)
                        return i;
        return bits_are_over(&bits) ? 0 : n_channels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct flac_prediction predictions[FLAC_LANES];
        struct flac_subframe subframes[FLAC_LANES];
        uint32_t n_channels, n_bits, n_frames;
        uint8_t *bytes;

        if (n_bytes < HEAD_BYTES)
                return 0;
        n_channels = 1 + data[0] % FLAC_LANES;
        n_bits = (uint32_t[]){ 8, 9, 16, 17, 24, 25 }[data[1] % 6];
        n_frames = 1 + (data[2] | (uint32_t)data[3] << 8) % FRAMES_MAX;
        n_bytes -= HEAD_BYTES;
        bytes = malloc(n_bytes ? n_bytes : 1); /* of exactly this size, for ASan */
        memcpy(bytes, data + HEAD_BYTES, n_bytes);
        n_channels = read_channels(bytes, n_bytes, n_channels, n_bits, n_frames, subframes);
        memcpy(alone, samples, sizeof(alone));
        for (uint32_t i = 0; i < n_channels; i++)
                predictions[i] = subframes[i].prediction;
        flac_predict(predictions, n_channels);
        for (uint32_t i = 0; i < n_channels; i++) {
                predictions[i].samples = alone[i];
                flac_predict(&predictions[i], 1);
                if (memcmp(alone[i], samples[i], n_frames * sizeof(samples[i][0])) != 0) {
                        fprintf(stderr, "fuzz: lane %u differs\n", i);
                        abort();
                }
                flac_subframe_finish(&subframes[i]);
        }
        free(bytes);
        return 0;
}
