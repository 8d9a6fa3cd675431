#include "proto/order/shuffle_buffer.h"

void dlp_shuffle_buffer_init(struct dlp_shuffle_buffer *buffer, struct dlp_torch_random *random, uint64_t *samples,
                             uint32_t size) {
        *buffer = (struct dlp_shuffle_buffer){ .random = random, .samples = samples, .size = size };
}

static uint64_t shuffle_buffer_pick(struct dlp_shuffle_buffer *buffer) {
        uint32_t k = dlp_torch_u32(buffer->random) % buffer->n;
        uint64_t sample = buffer->samples[k];

        buffer->samples[k] = buffer->samples[--buffer->n];
        return sample;
}

bool dlp_shuffle_buffer_next(struct dlp_shuffle_buffer *buffer, uint64_t n_known, bool is_over, uint64_t *ret_sample) {
        uint32_t initial = buffer->size < DLP_BUFFER_INITIAL ? buffer->size : DLP_BUFFER_INITIAL;

        while (buffer->n_taken < n_known) {
                bool wants_two = buffer->n + 1 < buffer->size;

                if (wants_two && buffer->n_taken + 1 == n_known && !is_over)
                        return false; /* whether it takes a second one is not known yet */
                buffer->samples[buffer->n++] = buffer->n_taken++;
                if (wants_two && buffer->n_taken < n_known)
                        buffer->samples[buffer->n++] = buffer->n_taken++;
                if (buffer->n >= initial) {
                        *ret_sample = shuffle_buffer_pick(buffer);
                        return true;
                }
        }
        if (!is_over || buffer->n == 0)
                return false;
        *ret_sample = shuffle_buffer_pick(buffer);
        return true;
}
