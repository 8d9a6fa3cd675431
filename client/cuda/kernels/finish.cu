/* client/cuda/kernels/finish.cu: kernels that finish pictures: finish.h says what they make.
 *
 * They should run as fast as memory does. On an H200, 3.5 TB/s are 15 bytes a clock for each of 132 multiprocessors:
 * for float16 in planes 5 lookups a clock, so a warp's 32 lookups may take 6 clocks. What was done for that:
 *
 *   Tables lie in shared memory, with entries as narrow as the output's elements. A channel's table of 2 bytes an entry
 *   is 128 words, 4 in each of the 32 banks: however unlucky the pixels, a warp's lookups take at most 4 clocks, and
 *   neighbours that are alike share one. Entries widened to 32 bits would be 8 in a bank. Copies of the table for some
 *   of the lanes need each a share of the banks, and so help only when there are 32 of them: 48 KB for each block to
 *   fill, to gain what is not the bottleneck. With 4 bytes an entry they take at most 8 clocks, of 10 that there are.
 *   (Channels last look into three tables at once, which can be three times that: for pixels that are made to be slow.)
 *
 *   A thread stores 16 bytes at once, and neighbours store side by side: whole sectors of 32 bytes arrive at the L2
 *   cache. That decides, since two thirds of all bytes and more are output. What a thread reads for it is 4, 8 or 16
 *   bytes at once, three times for three channels; the second and third time, sectors are in the L1 cache already.
 *
 *   Blocks are short: a thread makes one unit of planes, four of flat output (finish.c), although each block copies the
 *   table. Stores, as loads, leave the caches first.
 *
 * Measured on an H200, 256 pictures of 224 x 224, TB/s read and written, median of 12 times 16 launches. The driver's
 * copy within the device reached 3.81.
 *
 *                                             planes f16   f32   flat f16   f32
 *     blocks as long as the kernel, plain stores    3.30  3.39       2.98  3.10
 *     the same, stores that leave the caches first  3.41  3.47       3.08  3.20
 *     a unit a thread, such stores                  3.52  3.73       2.94  3.02
 *     four units a thread, plain stores             3.35  3.53       3.19  3.37
 *
 * Of 1,024 pictures: planes of f16 3.62 before, 3.98 now. Flat output has four units and stores that leave the caches
 * first, which were not measured together. Loads that may stay in the caches were up to 4 % slower, and loops unrolled
 * by two made no difference; 8 blocks in place of 6 helped flat output by 5 to 7 %, less than short blocks. */
#include "client/cuda/kernels/finish.h"

#include "client/cuda/kernels/kernel.h"

#define CHANNELS_MOST 3u

struct finish_shared {
        union {
                uint8_t of_1[CHANNELS_MOST][256];
                uint16_t of_2[CHANNELS_MOST][256];
                uint32_t of_4[CHANNELS_MOST][256];
        } table;
};

/* In what follows `channels` and `bytes`, those of an element, are numbers known to the compiler: each kernel below
 * calls with its own. */

/* ---- the table -------------------------------------------------------------------------------------------------- */

DLK_FUNCTION void copy_table(const struct dlk_finish *p, struct finish_shared *shared, uint32_t first, uint32_t step,
                             uint32_t channels, uint32_t bytes) {
        DLK_LOOP
        for (uint32_t i = first; i < channels * 256; i += step)
                if (bytes == 4)
                        shared->table.of_4[i / 256][i % 256] = ((const uint32_t *)p->table)[i];
                else if (bytes == 2)
                        shared->table.of_2[i / 256][i % 256] = ((const uint16_t *)p->table)[i];
                else
                        shared->table.of_1[i / 256][i % 256] = p->table ? p->table[i] : (uint8_t)i;
}

DLK_FUNCTION uint32_t look_up(const struct finish_shared *shared, uint32_t bytes, uint32_t channel, uint32_t level) {
        if (bytes == 4)
                return shared->table.of_4[channel][level];
        if (bytes == 2)
                return shared->table.of_2[channel][level];
        return shared->table.of_1[channel][level];
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Bytes of the input in registers, the first one lowest. */
struct levels {
        uint32_t word[CHANNELS_MOST * DLK_FINISH_STORE / 4];
};

DLK_FUNCTION uint32_t level_of(const struct levels *levels, uint32_t i) {
        return levels->word[i / 4] >> i % 4 * 8 & 255;
}

/* Reads n_loads times 16 / bytes bytes, the address being a multiple of that. */
DLK_FUNCTION void load_levels(const uint8_t *from, uint32_t n_loads, uint32_t bytes, struct levels *levels) {
        DLK_UNROLL
        for (uint32_t i = 0; i < n_loads; i++)
                if (bytes == 4) {
                        levels->word[i] = dlk_load_4(from + i * 4);
                } else if (bytes == 2) {
                        struct dlk_8 got = dlk_load_8(from + i * 8);

                        levels->word[i * 2] = got.word[0];
                        levels->word[i * 2 + 1] = got.word[1];
                } else {
                        struct dlk_16 got = dlk_load_16(from + i * 16);

                        DLK_UNROLL
                        for (uint32_t k = 0; k < 4; k++)
                                levels->word[i * 4 + k] = got.word[k];
                }
}

DLK_FUNCTION uint32_t flips_of(const struct dlk_finish *p, uint32_t sample) {
        return p->flips ? p->flips[sample * p->in_sample_bytes] & 3u : 0;
}

/* The pixel that becomes this one. */
DLK_FUNCTION uint32_t source_of(const struct dlk_finish *p, uint32_t flips, uint32_t pixel) {
        if (flips & DLK_FINISH_UPSIDE_DOWN) /* the last one is the first, and rows are mirrored */
                pixel = p->n_pixels - 1 - pixel;
        if (flips == DLK_FINISH_MIRRORED || flips == DLK_FINISH_UPSIDE_DOWN)
                pixel += p->width - 1 - 2 * (pixel % p->width);
        return pixel;
}

/* ---- any: pixel by pixel ---------------------------------------------------------------------------------------- */

DLK_FUNCTION void store_element(uint8_t *to, uint32_t bytes, uint32_t value) {
        if (bytes == 4)
                *(uint32_t *)to = value;
        else if (bytes == 2)
                *(uint16_t *)to = (uint16_t)value;
        else
                *to = (uint8_t)value;
}

/* The levels of one pixel, in one word. */
DLK_FUNCTION uint32_t load_pixel(const struct dlk_finish *p, uint32_t sample, uint32_t pixel, uint32_t channels) {
        const uint8_t *from = p->in + sample * p->in_sample_bytes + (uint64_t)pixel * channels;
        uint32_t levels = 0;

        DLK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++)
                levels |= (uint32_t)from[channel] << channel * 8;
        return levels;
}

DLK_FUNCTION void store_pixel(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t sample,
                              uint32_t pixel, uint32_t levels, uint32_t channels, uint32_t bytes) {
        uint8_t *to = p->out + sample * p->out_sample_bytes + (uint64_t)pixel * p->out_pixel_bytes;

        DLK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++)
                store_element(to + channel * p->out_channel_bytes, bytes,
                              look_up(shared, bytes, channel, levels >> channel * 8 & 255));
}

/* One after the other: where a pixel comes from takes registers that several at a time do not leave. */
DLK_FUNCTION void finish_any_flipped(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t first,
                                     uint32_t step, uint32_t channels, uint32_t bytes) {
        DLK_LOOP
        for (uint32_t i = first; i < p->n_units; i += step) {
                uint32_t sample = i / p->n_pixels, pixel = i % p->n_pixels;
                uint32_t levels = load_pixel(p, sample, source_of(p, flips_of(p, sample), pixel), channels);

                store_pixel(p, shared, sample, pixel, levels, channels, bytes);
        }
}

/* A single pixel is few bytes to wait for, so some are read before the first is written. */
DLK_FUNCTION void finish_any(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t first,
                             uint32_t step, uint32_t channels, uint32_t bytes) {
        if (p->flips) {
                finish_any_flipped(p, shared, first, step, channels, bytes);
                return;
        }
        for (uint64_t i = first; i < p->n_units; i += (uint64_t)step * DLK_FINISH_AHEAD) {
                uint32_t samples[DLK_FINISH_AHEAD], pixels[DLK_FINISH_AHEAD], levels[DLK_FINISH_AHEAD];

                DLK_UNROLL
                for (uint32_t k = 0; k < DLK_FINISH_AHEAD; k++) {
                        uint64_t next = i + (uint64_t)k * step;
                        uint32_t at = (uint32_t)(next < p->n_units ? next : i); /* past the end, the first one again */

                        samples[k] = at / p->n_pixels;
                        pixels[k] = at % p->n_pixels;
                        levels[k] = load_pixel(p, samples[k], pixels[k], channels);
                }
                DLK_UNROLL
                for (uint32_t k = 0; k < DLK_FINISH_AHEAD; k++)
                        if (i + (uint64_t)k * step < p->n_units)
                                store_pixel(p, shared, samples[k], pixels[k], levels[k], channels, bytes);
        }
}

/* ---- planes: 16 bytes of each channel --------------------------------------------------------------------------- */

DLK_FUNCTION uint32_t reversed(uint32_t word, uint32_t bytes) {
        if (bytes == 1)
                word = word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
        else if (bytes == 2)
                word = word << 16 | word >> 16;
        return word;
}

/* The same elements, the last one first. */
DLK_FUNCTION struct dlk_16 reversed_16(struct dlk_16 all, uint32_t bytes) {
        struct dlk_16 made = { { reversed(all.word[3], bytes), reversed(all.word[2], bytes),
                                 reversed(all.word[1], bytes), reversed(all.word[0], bytes) } };

        return made;
}

/* 16 bytes of one channel of as many pixels. */
DLK_FUNCTION struct dlk_16 look_up_plane(const struct finish_shared *shared, const struct levels *levels,
                                         uint32_t channel, uint32_t channels, uint32_t bytes) {
        struct dlk_16 made = { { 0, 0, 0, 0 } };

        DLK_UNROLL
        for (uint32_t i = 0; i < DLK_FINISH_STORE / bytes; i++)
                made.word[i * bytes / 4] |= look_up(shared, bytes, channel, level_of(levels, i * channels + channel))
                                            << i * bytes % 4 * 8;
        return made;
}

DLK_FUNCTION void finish_plane_unit(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t sample,
                                    uint32_t pixel, uint32_t channels, uint32_t bytes) {
        uint8_t *to = p->out + sample * p->out_sample_bytes + (uint64_t)pixel * bytes;
        uint32_t flips = flips_of(p, sample), source = flips ? source_of(p, flips, pixel) : pixel;
        bool is_back = flips & DLK_FINISH_MIRRORED;
        struct levels levels;

        /* A row is a whole number of units here: the unit that becomes this one ends where its first pixel is. */
        source -= is_back ? DLK_FINISH_STORE / bytes - 1 : 0;
        load_levels(p->in + sample * p->in_sample_bytes + (uint64_t)source * channels, channels, bytes, &levels);
        DLK_UNROLL
        for (uint32_t channel = 0; channel < channels; channel++) {
                struct dlk_16 made = look_up_plane(shared, &levels, channel, channels, bytes);

                dlk_store_16(to + channel * p->out_channel_bytes, is_back ? reversed_16(made, bytes) : made);
        }
}

DLK_FUNCTION void finish_planes(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t first,
                                uint32_t step, uint32_t channels, uint32_t bytes) {
        const uint32_t n_unit = DLK_FINISH_STORE / bytes;

        for (uint32_t i = first; i < p->n_units; i += step) {
                uint32_t sample = i / p->n_sample_units;
                uint32_t pixel = (i - sample * p->n_sample_units) * n_unit;

                if (pixel + n_unit <= p->n_pixels) {
                        finish_plane_unit(p, shared, sample, pixel, channels, bytes);
                        continue;
                }
                /* The end of a sample that is not a whole number of units. */
                DLK_LOOP
                for (; pixel < p->n_pixels; pixel++)
                        store_pixel(p, shared, sample, pixel,
                                    load_pixel(p, sample, source_of(p, flips_of(p, sample), pixel), channels), channels,
                                    bytes);
        }
}

/* ---- flat: 16 bytes of the output ------------------------------------------------------------------------------- */

/* What load_levels() reads, for a flipped sample: byte by byte, since a pixel's bytes keep their order. */
DLK_FUNCTION void gather_levels(const struct dlk_finish *p, const uint8_t *from, uint32_t flips, uint32_t element,
                                uint32_t n, uint32_t channels, struct levels *levels) {
        uint32_t pixel = element / channels, channel = element % channels;
        uint32_t x = pixel % p->width, source = source_of(p, flips, pixel);
        bool is_back = flips & DLK_FINISH_MIRRORED, is_down = flips & DLK_FINISH_UPSIDE_DOWN;

        DLK_UNROLL
        for (uint32_t i = 0; i < n; i++) {
                levels->word[i / 4] = (i % 4 == 0 ? 0 : levels->word[i / 4]) |
                                      (uint32_t)from[(uint64_t)source * channels + channel] << i % 4 * 8;
                if (++channel < channels)
                        continue;
                channel = 0;
                source += is_back ? 0u - 1u : 1u;
                if (++x == p->width) { /* where it is now is the next row's, unless only one of the two is turned */
                        x = 0;
                        if (is_back != is_down)
                                source += is_back ? 2 * p->width : 0u - 2 * p->width;
                }
        }
}

DLK_FUNCTION void finish_flat_unit(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t sample,
                                   uint32_t element, uint32_t channels, uint32_t bytes) {
        const uint32_t n_unit = DLK_FINISH_STORE / bytes;
        const uint8_t *from = p->in + sample * p->in_sample_bytes;
        struct dlk_16 made = { { 0, 0, 0, 0 } };
        uint32_t channel = element % channels, flips = flips_of(p, sample);
        struct levels levels;

        if (flips)
                gather_levels(p, from, flips, element, n_unit, channels, &levels);
        else
                load_levels(from + element, 1, bytes, &levels);

        DLK_UNROLL
        for (uint32_t i = 0; i < n_unit; i++) {
                made.word[i * bytes / 4] |= look_up(shared, bytes, channel, level_of(&levels, i)) << i * bytes % 4 * 8;
                channel = channel + 1 == channels ? 0 : channel + 1;
        }
        dlk_store_16(p->out + sample * p->out_sample_bytes + (uint64_t)element * bytes, made);
}

DLK_FUNCTION void finish_flat(const struct dlk_finish *p, const struct finish_shared *shared, uint32_t first,
                              uint32_t step, uint32_t channels, uint32_t bytes) {
        const uint32_t n_unit = DLK_FINISH_STORE / bytes;

        for (uint32_t i = first; i < p->n_units; i += step) {
                uint32_t sample = i / p->n_sample_units;
                uint32_t element = (i - sample * p->n_sample_units) * n_unit;

                if (element + n_unit <= p->n_pixels * channels) {
                        finish_flat_unit(p, shared, sample, element, channels, bytes);
                        continue;
                }
                DLK_LOOP
                for (; element < p->n_pixels * channels; element++) {
                        uint32_t source = source_of(p, flips_of(p, sample), element / channels);
                        uint32_t levels = load_pixel(p, sample, source, channels);

                        store_element(
                                p->out + sample * p->out_sample_bytes + (uint64_t)element * bytes, bytes,
                                look_up(shared, bytes, element % channels, levels >> element % channels * 8 & 255));
                }
        }
}

/* ---- the kernels ------------------------------------------------------------------------------------------------ */

#define FINISH_KERNEL(name, way, channels, bytes)                                                                      \
        DLK_KERNEL(name, struct dlk_finish, struct finish_shared, DLK_FINISH_THREADS) {                                \
                DLK_PHASE copy_table(p, shared, DLK_THREAD, DLK_N_THREADS, channels, bytes);                           \
                DLK_PHASE finish_##way(p, shared, DLK_GRID_THREAD, DLK_N_GRID_THREADS, channels, bytes);               \
        }
DLK_FINISH_KERNELS(FINISH_KERNEL)
