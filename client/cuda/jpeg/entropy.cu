/* client/cuda/jpeg/entropy.cu: the bytes of a picture's rows -> its coefficients.
 *
 * Rows are of different lengths, and codes have to be read one after the other, so a thread has a whole row: what a
 * warp's threads do differs only where one of them has a code of more than 9 bits, or ends before the others. */
#include "client/cuda/jpeg/cuda_jpeg.h"
#include "client/cuda/kernels/kernel.h"

static_assert(sizeof(struct dlp_jpeg_codes) % sizeof(uint32_t) == 0, "tables are copied in whole words");

struct entropy_shared {
        struct dlp_jpeg_codes dc[DLP_JPEG_CODES], ac[DLP_JPEG_CODES];
        uint8_t zigzag[DLP_JPEG_COEFFICIENTS];
};

DLK_CONSTANT uint8_t ZIGZAG[DLP_JPEG_COEFFICIENTS] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
        41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
        30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- bits of a row --------------------------------------------------------------------------------------------- */

struct row_bits {
        const uint8_t *at, *end;
        uint64_t next;      /* the bits, the first one topmost; zeros follow */
        uint32_t n_bits;    /* of them */
        uint32_t n_missing; /* zeros among them that stand for bytes after the end */
};

/* The next byte of the codes; -1: none is left. A marker is an end: what is after it is another row. */
DLK_FUNCTION int next_byte(struct row_bits *bits) {
        uint32_t byte;

        if (bits->at >= bits->end)
                return -1;
        byte = *bits->at++;
        if (byte != 0xff)
                return (int)byte;
        if (bits->at < bits->end && *bits->at == 0) {
                bits->at++;
                return (int)byte;
        }
        bits->end = bits->at - 1;
        bits->at = bits->end;
        return -1;
}

/* Afterwards there are more than 32 bits: a code of 16 with a value of 11 is there. */
DLK_FUNCTION void refill(struct row_bits *bits) {
        while (bits->n_bits <= 32) {
                int byte = next_byte(bits);

                if (byte >= 0)
                        bits->next |= (uint64_t)byte << (56 - bits->n_bits);
                else
                        bits->n_missing += 8;
                bits->n_bits += 8;
        }
}

DLK_FUNCTION void drop(struct row_bits *bits, uint32_t n) {
        bits->next <<= n;
        bits->n_bits -= n;
}

/* The symbol of the next code, which is dropped; -1: it is none. */
DLK_FUNCTION int next_symbol(struct row_bits *bits, const struct dlp_jpeg_codes *codes) {
        uint32_t next = (uint32_t)(bits->next >> 48), look = codes->looks[next >> DLP_JPEG_LONG_CODES];

        if (look) {
                drop(bits, look >> 8);
                return (int)(look & 255);
        }
        for (uint32_t i = 0; i < DLP_JPEG_LONG_CODES; i++)
                if (next < codes->limits[i]) {
                        uint32_t n = DLP_JPEG_LOOK_BITS + 1 + i;

                        drop(bits, n);
                        return codes->symbols[((next >> (DLP_JPEG_CODE_MAX - n)) + codes->firsts[i]) & 255];
                }
        return -1;
}

/* The value of `size` bits, 1 to 15, that comes next. */
DLK_FUNCTION int next_value(struct row_bits *bits, uint32_t size) {
        int value = (int)(bits->next >> (64 - size));

        drop(bits, size);
        return value >> (size - 1) ? value : value - ((1 << size) - 1);
}

/* ---- a block, a row -------------------------------------------------------------------------------------------- */

/* Returns whether all codes are right. */
DLK_FUNCTION bool read_block(struct row_bits *bits, const struct entropy_shared *shared,
                             const struct dlp_jpeg_codes *dc, const struct dlp_jpeg_codes *ac, int *mean,
                             int16_t *block) {
        int symbol;

        refill(bits);
        symbol = next_symbol(bits, dc);
        if (symbol < 0)
                return false;
        if (symbol > 0)
                *mean += next_value(bits, (uint32_t)symbol & 15);
        block[0] = (int16_t)*mean;
        for (uint32_t k = 1; k < DLP_JPEG_COEFFICIENTS; k++) {
                uint32_t size;

                refill(bits);
                symbol = next_symbol(bits, ac);
                if (symbol <= 0) /* the end of the block */
                        return symbol == 0;
                k += (uint32_t)symbol >> 4;
                size = (uint32_t)symbol & 15;
                if (k >= DLP_JPEG_COEFFICIENTS)
                        return false;
                if (size > 0)
                        block[shared->zigzag[k]] = (int16_t)next_value(bits, size);
        }
        return true;
}

/* Where a component's block of the current MCU lies. */
DLK_FUNCTION int16_t *block_of(const struct dlk_jpeg_picture *picture, uint32_t component, uint32_t x, uint32_t y) {
        uint32_t n_across = picture->jpeg.components[component].n_blocks_x;

        return picture->coefficients +
               ((uint64_t)picture->firsts[component] + (uint64_t)y * n_across + x) * DLP_JPEG_COEFFICIENTS;
}

DLK_FUNCTION bool read_mcu(const struct dlk_jpeg_picture *picture, const struct entropy_shared *shared,
                           struct row_bits *bits, int means[DLP_JPEG_COMPONENTS], uint32_t row, uint32_t column) {
        DLK_UNROLL
        for (uint32_t c = 0; c < DLP_JPEG_COMPONENTS; c++) {
                const struct dlp_jpeg_component *component = &picture->jpeg.components[c];
                uint32_t h = c == 0 ? picture->jpeg.h : 1, v = c == 0 ? picture->jpeg.v : 1;

                if (c >= picture->jpeg.n_components)
                        continue;
                for (uint32_t i = 0; i < h * v; i++)
                        if (!read_block(bits, shared, &shared->dc[component->idx_dc], &shared->ac[component->idx_ac],
                                        &means[c], block_of(picture, c, column * h + i % h, row * v + i / h)))
                                return false;
        }
        return true;
}

DLK_FUNCTION enum dlk_jpeg_status read_row(const struct dlk_jpeg_picture *picture, const struct entropy_shared *shared,
                                           uint32_t row) {
        const uint8_t *end = picture->scan + picture->offsets[row + 1] - 2; /* without its marker */
        int means[DLP_JPEG_COMPONENTS] = { 0, 0, 0 };
        struct row_bits bits;

        bits.at = picture->scan + picture->offsets[row];
        bits.end = end;
        bits.next = 0;
        bits.n_bits = bits.n_missing = 0;
        for (uint32_t column = 0; column < picture->jpeg.n_mcus_x; column++)
                if (!read_mcu(picture, shared, &bits, means, row, column))
                        return DLK_JPEG_WRONG;
        if (bits.n_missing > bits.n_bits)
                return DLK_JPEG_SHORT;
        return bits.at != end || bits.n_bits - bits.n_missing >= 8 ? DLK_JPEG_LONG : DLK_JPEG_GOOD;
}

/* ---- the kernel ------------------------------------------------------------------------------------------------ */

/* Both kinds are whole words. */
DLK_FUNCTION void copy_codes(struct dlp_jpeg_codes *to, const struct dlp_jpeg_codes *from, uint32_t thread,
                             uint32_t n_threads) {
        for (uint32_t i = thread; i < DLP_JPEG_CODES * sizeof(*from) / sizeof(uint32_t); i += n_threads)
                ((uint32_t *)to)[i] = ((const uint32_t *)from)[i];
}

DLK_FUNCTION void copy_tables(const struct dlk_jpeg_picture *picture, struct entropy_shared *shared, uint32_t thread,
                              uint32_t n_threads) {
        copy_codes(shared->dc, picture->jpeg.dc, thread, n_threads);
        copy_codes(shared->ac, picture->jpeg.ac, thread, n_threads);
        for (uint32_t i = thread; i < DLP_JPEG_COEFFICIENTS; i += n_threads)
                shared->zigzag[i] = ZIGZAG[i];
}

DLK_KERNEL(dlk_jpeg_entropy, struct dlk_jpeg, struct entropy_shared, DLK_JPEG_THREADS) {
        const struct dlk_jpeg_picture *picture = p->pictures + DLK_BLOCK_Y;

        DLK_PHASE copy_tables(picture, shared, DLK_THREAD, DLK_N_THREADS);
        DLK_PHASE for (uint32_t row = DLK_GRID_THREAD; row < picture->jpeg.n_rows; row += DLK_N_GRID_THREADS) {
                enum dlk_jpeg_status status = read_row(picture, shared, row);

                if (status != DLK_JPEG_GOOD)
                        dlk_atomic_max(&p->statuses[DLK_BLOCK_Y], (uint32_t)status);
        }
}
