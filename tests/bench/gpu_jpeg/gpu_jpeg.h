/* gpu_jpeg/gpu_jpeg.h: the trial kernels of client/cuda/jpeg on a real GPU: are the bits right, and how long do they take?
 *
 * A library that measure.py calls, so that torch trains beside it in the same process. A call that fails prints a
 * sentence and ends the process: there is nothing to go on with. One thread at a time uses a gj, with the primary
 * context of the first device. */
#pragma once

#include <stdint.h>

#define GJ_EXPORT __attribute__((visibility("default")))

struct gj;

/* What gj_time() measures, in this sequence. */
enum gj_step {
        GJ_UPLOAD,
        GJ_CLEAR,
        GJ_ENTROPY,
        GJ_BLOCKS,
        GJ_COLOURS,
        GJ_ACROSS,
        GJ_DOWN,
        GJ_STEPS
};

/* `image`: a fatbin of the kernels. `paths`: JPEGs, which are transcoded into rows and taken in turns until each of
 * n_batches batches has `batch` of them; those that cannot be transcoded are left out. Of each a random crop (scale
 * 0.08 to 1, ratio 3/4 to 4/3) becomes side x side; if is_whole, the whole picture. */
GJ_EXPORT struct gj *gj_open(const char *image, const char *const *paths, uint32_t n_paths, uint32_t n_batches,
                             uint32_t batch, uint32_t side, int is_whole, uint32_t seed);
GJ_EXPORT void gj_close(struct gj *gj);

/* Decodes every batch and compares the crops, before and after resizing, with the same kernels run on the CPU. Returns
 * how many pictures differ or were found damaged. */
GJ_EXPORT uint32_t gj_check(struct gj *gj);

/* Medians of `repeats` (at most 101) turns of each step of a batch, by events, in microseconds. */
GJ_EXPORT void gj_time(struct gj *gj, uint32_t repeats, double us[GJ_STEPS]);

/* Batch after batch on two streams, from registered memory of the host to pixels on the device, for so many seconds.
 * `pace`: at most so many pictures a second; 0: as many as it can. Blocks. Returns pictures a second. */
GJ_EXPORT double gj_run(struct gj *gj, double seconds, double pace);

/* Bytes of a batch that cross the link, on average: files, what describes them, weights of the resizing. */
GJ_EXPORT double gj_upload_bytes(const struct gj *gj);
