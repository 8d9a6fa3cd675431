#include "proto/jpeg/codes.h"

#include <string.h>

static bool is_usable(uint32_t symbol, bool is_ac) {
        uint32_t run = symbol >> 4, size = symbol & 15;

        if (!is_ac)
                return symbol <= DLP_JPEG_DC_SIZE_MAX;
        if (size == 0) /* the end of a block, or 16 zeros */
                return run == 0 || run == 15;
        return size <= DLP_JPEG_AC_SIZE_MAX;
}

/* The looks that begin with a code. */
static void add_looks(struct dlp_jpeg_codes *codes, uint32_t code, uint32_t n_bits, uint8_t symbol) {
        uint32_t n = 1u << (DLP_JPEG_LOOK_BITS - n_bits), first = code * n;

        for (uint32_t i = 0; i < n; i++)
                codes->looks[first + i] = (uint16_t)(n_bits << 8 | symbol);
}

bool dlp_jpeg_codes_read(const uint8_t *definition, size_t n_bytes, bool is_ac, struct dlp_jpeg_codes *ret_codes) {
        struct dlp_jpeg_codes codes = { { 0 }, { 0 }, { 0 }, { 0 } };
        const uint8_t *symbols = definition + DLP_JPEG_CODE_MAX;
        uint32_t code = 0, n_symbols = 0; /* codes are numbers in sequence, one bit longer at each step */

        if (n_bytes < DLP_JPEG_CODE_MAX + 1 || n_bytes > DLP_JPEG_CODE_MAX + sizeof(codes.symbols))
                return false;
        for (uint32_t n_bits = 1; n_bits <= DLP_JPEG_CODE_MAX; n_bits++) {
                uint32_t n = definition[n_bits - 1], first = code;

                code += n;
                if (n_symbols + n > n_bytes - DLP_JPEG_CODE_MAX || code > 1u << n_bits)
                        return false;
                for (uint32_t i = 0; i < n && n_bits <= DLP_JPEG_LOOK_BITS; i++)
                        add_looks(&codes, first + i, n_bits, symbols[n_symbols + i]);
                if (n_bits > DLP_JPEG_LOOK_BITS) {
                        uint32_t idx = n_bits - DLP_JPEG_LOOK_BITS - 1;

                        codes.limits[idx] = code << (DLP_JPEG_CODE_MAX - n_bits);
                        codes.firsts[idx] = (uint16_t)(n_symbols - first);
                }
                n_symbols += n;
                code *= 2;
        }
        if (n_symbols != n_bytes - DLP_JPEG_CODE_MAX)
                return false;
        for (uint32_t i = 0; i < n_symbols; i++)
                if (!is_usable(symbols[i], is_ac))
                        return false;
        memcpy(codes.symbols, symbols, n_symbols);
        *ret_codes = codes;
        return true;
}
