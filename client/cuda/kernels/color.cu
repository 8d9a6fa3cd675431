/* client/cuda/kernels/color.cu: colour jitter and grey: color.h says how it is done.
 *
 * Each formula is that of daemon/augment/operations, with its types: float32 where that has float32 and float64 where
 * that has float64. Both machines round a sum, a product and a quotient of these types alike, if no two of them are
 * done as one: so this file is compiled with -fmad=false, and no function of CUDA's library is called.
 *
 * A thread takes one pixel at a time, byte by byte: a warp's 96 bytes lie side by side. That is far from what memory
 * could do, and enough: all pictures that cross a link of 55 GB/s want a thirtieth of it. Float64 is slow on GPUs that
 * are not made for it, and only the hue needs it, for a few numbers of each pixel. (Computed, not measured.) */
#include "client/cuda/kernels/color.h"

#include "client/cuda/kernels/kernel.h"

/* An operation of this pass, of which all that is the same for a whole picture is known. */
struct color_step {
        uint32_t kind;
        float amount;
        uint32_t number; /* the grey that a contrast blends from; by how much a hue is turned */
};

struct color_shared {
        /* The hue that a pixel is given: which sixth of the wheel, and where in it, 0 to 1. And a saturation / 255. */
        uint8_t sector[256];
        float within[256], share[256];
        struct color_step steps[DLK_COLOR_OPERATIONS_MAX];
        uint32_t n_steps;
        uint32_t has_hue, has_sum; /* is this pass followed by a contrast? */
        uint32_t sum;
};

/* ---- what is the same for all pixels ---------------------------------------------------------------------------- */

/* Of the greys of the whole picture, rounded as the CPU does. */
DLK_FUNCTION uint32_t mean_of(uint32_t sum, uint32_t n_pixels) {
        uint32_t mean = (uint32_t)((double)sum / (double)n_pixels + 0.5);

        return mean < 255 ? mean : 255;
}

/* Truncated towards zero, then modulo 256, as torchvision adds it. What no hue can be is none. */
DLK_FUNCTION uint32_t shift_of(float turns) {
        return turns >= -0.5f && turns <= 0.5f ? (uint32_t)(int32_t)((double)turns * 255.0) & 255u : 0;
}

DLK_FUNCTION void add_step(const struct dlk_color *p, const struct dlk_color_record *record, uint32_t idx,
                           struct color_shared *shared) {
        struct color_step step = { record->operations[idx].kind, record->operations[idx].amount, 0 };

        if (step.kind == DLK_COLOR_CONTRAST)
                step.number = mean_of(record->sums[p->pass - 1], p->n_pixels);
        if (step.kind == DLK_COLOR_HUE) {
                step.number = shift_of(step.amount);
                shared->has_hue = 1;
        }
        shared->steps[shared->n_steps++] = step;
}

/* Finds the operations of this pass. */
DLK_FUNCTION void find_steps(const struct dlk_color *p, const struct dlk_color_record *record,
                             struct color_shared *shared) {
        uint32_t n = record->n_operations < DLK_COLOR_OPERATIONS_MAX ? record->n_operations : DLK_COLOR_OPERATIONS_MAX;
        uint32_t pass = 0;

        shared->n_steps = shared->has_hue = shared->has_sum = shared->sum = 0;
        DLK_LOOP
        for (uint32_t i = 0; i < n && pass <= p->pass; i++) {
                if (record->operations[i].kind == DLK_COLOR_CONTRAST)
                        pass++;
                if (pass == p->pass)
                        add_step(p, record, i, shared);
        }
        shared->has_sum = pass > p->pass;
}

/* Entry `i` of the tables. */
DLK_FUNCTION void fill_tables(struct color_shared *shared, uint32_t i) {
        double sixths = (double)i * 6.0 / 255.0;
        uint32_t whole = (uint32_t)sixths;

        shared->sector[i] = (uint8_t)(whole % 6);
        shared->within[i] = (float)(sixths - (double)whole);
        shared->share[i] = (float)((double)i / 255.0);
}

/* ---- a pixel ---------------------------------------------------------------------------------------------------- */

struct color_pixel {
        uint32_t red, green, blue;
};

DLK_FUNCTION uint32_t grey_of(struct color_pixel pixel) {
        return (pixel.red * 19595u + pixel.green * 38470u + pixel.blue * 7471u + 0x8000u) >> 16;
}

/* `from` if the amount is 0, `to` if it is 1, and extrapolated beyond; no number is 0. */
DLK_FUNCTION uint32_t blend(uint32_t from, uint32_t to, float amount) {
        float mixed = (float)from + amount * (float)((int32_t)to - (int32_t)from);

        mixed = mixed > 0 ? mixed : 0;
        mixed = mixed < 255 ? mixed : 255;
        return (uint32_t)mixed;
}

DLK_FUNCTION struct color_pixel blended(struct color_pixel pixel, uint32_t from, float amount) {
        struct color_pixel made = { blend(from, pixel.red, amount), blend(from, pixel.green, amount),
                                    blend(from, pixel.blue, amount) };

        return made;
}

/* The hue of a colour that is not grey, 0 to 255. Its base says which sample is the largest; of the two others, it
 * counts how far each is below that. */
DLK_FUNCTION uint32_t hue_of(struct color_pixel pixel, uint32_t largest, float range) {
        uint32_t base = 4, one = pixel.green, other = pixel.red;
        float from_one, from_other, hue;
        double turns;

        if (pixel.red == largest) {
                base = 0;
                one = pixel.blue;
                other = pixel.green;
        } else if (pixel.green == largest) {
                base = 2;
                one = pixel.red;
                other = pixel.blue;
        }
        from_one = (float)(largest - one) / range;
        from_other = (float)(largest - other) / range;
        hue = base == 0 ? from_one - from_other : (float)((double)base + (double)from_one - (double)from_other);
        turns = (double)hue / 6.0 + 1.0;
        hue = (float)(turns >= 1.0 ? turns - 1.0 : turns);
        return (uint32_t)((double)hue * 255.0);
}

DLK_FUNCTION uint32_t rounded(double positive) {
        return (uint32_t)(positive + 0.5);
}

/* From HSV to RGB. The largest sample is red in the sectors 5 and 0, green in 1 and 2, blue in 3 and 4. */
DLK_FUNCTION struct color_pixel color_of(uint32_t sector, float within, float share, uint32_t largest) {
        double value = (double)largest;
        uint32_t low = rounded(value * (1.0 - (double)share));
        uint32_t falling = rounded(value * (1.0 - (double)(share * within)));
        uint32_t rising = rounded(value * (1.0 - (double)share * (1.0 - (double)within)));
        struct color_pixel made;

        made.red = sector == 0 || sector == 5 ? largest : sector == 1 ? falling : sector == 4 ? rising : low;
        made.green = sector == 1 || sector == 2 ? largest : sector == 3 ? falling : sector == 0 ? rising : low;
        made.blue = sector == 3 || sector == 4 ? largest : sector == 5 ? falling : sector == 2 ? rising : low;
        return made;
}

/* To HSV of 8 bits each, turned, and back. A grey has no hue and stays as it is. */
DLK_FUNCTION struct color_pixel turned(const struct color_shared *shared, struct color_pixel pixel, uint32_t shift) {
        uint32_t high = pixel.red > pixel.green ? pixel.red : pixel.green;
        uint32_t below = pixel.red > pixel.green ? pixel.green : pixel.red;
        uint32_t largest = high > pixel.blue ? high : pixel.blue, smallest = below < pixel.blue ? below : pixel.blue;
        float range = (float)(largest - smallest);
        uint32_t hue, saturation;

        if (largest == smallest)
                return pixel;
        hue = (hue_of(pixel, largest, range) + shift) & 255u;
        saturation = (uint32_t)((double)(range / (float)largest) * 255.0) & 255u;
        return color_of(shared->sector[hue], shared->within[hue], shared->share[saturation], largest);
}

DLK_FUNCTION struct color_pixel changed(const struct color_shared *shared, const struct color_step *step,
                                        struct color_pixel pixel) {
        uint32_t grey = grey_of(pixel);
        struct color_pixel greys = { grey, grey, grey };

        switch (step->kind) {
        case DLK_COLOR_BRIGHTNESS:
        case DLK_COLOR_CONTRAST:
                return blended(pixel, step->number, step->amount);
        case DLK_COLOR_SATURATION:
                return blended(pixel, grey, step->amount);
        case DLK_COLOR_HUE:
                return turned(shared, pixel, step->number);
        case DLK_COLOR_GRAYSCALE:
                return greys;
        default:
                return pixel;
        }
}

/* ---- a block's part of a picture -------------------------------------------------------------------------------- */

DLK_FUNCTION struct color_pixel load_color(const uint8_t *at, uint32_t n_channels) {
        struct color_pixel pixel = { at[0], at[0], at[0] };

        if (n_channels == 3) {
                pixel.green = at[1];
                pixel.blue = at[2];
        }
        return pixel;
}

DLK_FUNCTION void store_color(uint8_t *at, uint32_t n_channels, struct color_pixel pixel) {
        at[0] = (uint8_t)pixel.red;
        if (n_channels == 3) {
                at[1] = (uint8_t)pixel.green;
                at[2] = (uint8_t)pixel.blue;
        }
}

DLK_FUNCTION void change_pixels(const struct dlk_color *p, struct color_shared *shared, uint8_t *pixels, uint32_t first,
                                uint32_t step) {
        uint32_t sum = 0;

        DLK_LOOP
        for (uint32_t i = first; i < p->n_pixels; i += step) {
                uint8_t *at = pixels + (uint64_t)i * p->n_channels;
                struct color_pixel pixel = load_color(at, p->n_channels);

                DLK_LOOP
                for (uint32_t k = 0; k < shared->n_steps; k++)
                        pixel = changed(shared, &shared->steps[k], pixel);
                if (shared->n_steps > 0)
                        store_color(at, p->n_channels, pixel);
                sum += grey_of(pixel);
        }
        if (shared->has_sum)
                dlk_atomic_add(&shared->sum, sum);
}

DLK_KERNEL(dlk_color, struct dlk_color, struct color_shared, DLK_COLOR_THREADS) {
        uint32_t sample = DLK_BLOCK / p->n_chunks, chunk = DLK_BLOCK - sample * p->n_chunks;
        uint8_t *pixels = p->pixels + sample * p->sample_bytes;
        struct dlk_color_record *record = (struct dlk_color_record *)(void *)(pixels + p->record_at);

        DLK_PHASE if (DLK_THREAD == 0) find_steps(p, record, shared);
        DLK_PHASE if (shared->has_hue) fill_tables(shared, DLK_THREAD);
        DLK_PHASE if (shared->n_steps > 0 || shared->has_sum)
                change_pixels(p, shared, pixels, chunk * DLK_N_THREADS + DLK_THREAD, p->n_chunks * DLK_N_THREADS);
        DLK_PHASE if (DLK_THREAD == 0 && shared->has_sum) dlk_atomic_add(&record->sums[p->pass], shared->sum);
}
