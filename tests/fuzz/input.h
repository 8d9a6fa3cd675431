/* tests/fuzz/input.h: the bytes of a fuzzer's input, taken from its front as choices and numbers.
 *
 * After the end every answer is 0, so that any input means something. The plain choice is always 0: an input of zeros
 * asks for what is valid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
        const uint8_t *at;
        size_t n;
};

static inline uint8_t input_byte(struct input *input) {
        if (input->n == 0)
                return 0;
        input->n--;
        return *input->at++;
}

static inline uint32_t input_below(struct input *input, uint32_t n) {
        return input_byte(input) % n;
}

static inline uint64_t input_word(struct input *input) {
        uint64_t word = 0;

        for (int i = 0; i < 8; i++)
                word |= (uint64_t)input_byte(input) << 8 * i;
        return word;
}

/* A number that decides something, or now and then any number; 0 for a byte of 0. */
static inline uint64_t input_number(struct input *input) {
        static const uint64_t NUMBERS[] = { 0,          1,          2,          3,         4,          7,
                                            8,          16,         63,         64,        65,         127,
                                            128,        255,        1000,       4095,      4096,       65535,
                                            65536,      65537,      1048576,    1048577,   INT32_MAX,  UINT32_MAX,
                                            1ull << 32, 1ull << 40, 1ull << 42, INT64_MAX, 1ull << 63, UINT64_MAX - 1,
                                            UINT64_MAX };
        uint8_t choice = input_byte(input);

        if (choice >= 0xf0)
                return input_word(input);
        return NUMBERS[choice % (sizeof(NUMBERS) / sizeof(NUMBERS[0]))];
}

/* At most `n` bytes of what is left; *ret_n says how many. They stay the input's. */
static inline const uint8_t *input_bytes(struct input *input, size_t n, size_t *ret_n) {
        const uint8_t *bytes = input->at;

        if (n > input->n)
                n = input->n;
        input->at += n;
        input->n -= n;
        *ret_n = n;
        return bytes;
}

/* A text of at most size - 1 bytes that ends at a NUL, or with the input. */
static inline const char *input_text(struct input *input, char *text, size_t size) {
        size_t n = 0;

        while (input->n > 0 && n + 1 < size) {
                uint8_t byte = input_byte(input);

                if (byte == 0)
                        break;
                text[n++] = (char)byte;
        }
        text[n] = '\0';
        return text;
}
