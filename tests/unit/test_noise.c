/* unit/test_noise.c: random numbers for pixels that are made many at once are those that are made one by one. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/noise.h"
#include "daemon/augment/operation.h"
#include "daemon/augment/recipe.h"
#include "tests/support/suite.h"

#define N_MAX 300u

START_TEST(many_words_are_the_next_words_wherever_a_stream_is) {
        uint32_t words[N_MAX + 1];

        for (uint32_t n_before = 0; n_before < 6; n_before++)
                for (uint32_t n = 0; n <= N_MAX; n++) {
                        struct dlp_philox many, single;

                        noise_begin(0x123456789abcdef0 + n, &many);
                        many.counter[0] = UINT32_MAX - 9; /* it begins again, and changes no other word */
                        for (uint32_t i = 0; i < n_before; i++)
                                dlp_philox_u32(&many);
                        single = many;
                        words[n] = 0xa5a5a5a5;
                        noise_words(&many, words, n);
                        for (uint32_t i = 0; i < n; i++)
                                ck_assert(words[i] == dlp_philox_u32(&single));
                        ck_assert(words[n] == 0xa5a5a5a5);
                        ck_assert_msg(dlp_philox_u32(&many) == dlp_philox_u32(&single), "%u words after %u", n,
                                      n_before);
                }
}
END_TEST

/* The other form of the same, if this CPU has it: a multiple of what it does at once, and nothing after that. */
START_TEST(blocks_of_vectors_are_blocks) {
        struct dlp_philox philox;
        uint32_t words[4 * 70], block[4];

        noise_begin(99, &philox);
        for (size_t n_blocks = 0; n_blocks < 70; n_blocks++) {
                size_t n;

                memset(words, 0xa5, sizeof(words));
                n = noise_blocks_avx2(&philox, words, n_blocks);
                ck_assert_uint_le(n, n_blocks);
                for (uint32_t i = 0; i < 70; i++) {
                        uint32_t counter[4] = { philox.counter[0] + i, philox.counter[1], philox.counter[2],
                                                philox.counter[3] };

                        dlp_philox_block(counter, philox.key, block);
                        ck_assert((memcmp(words + 4 * (size_t)i, block, sizeof(block)) == 0) == (i < n));
                }
        }
}
END_TEST

START_TEST(bytes_are_those_of_the_words_and_a_new_word_follows_them) {
        for (uint64_t n = 0; n < 1000; n++) {
                struct dlp_philox many, single;
                struct noise_bytes bytes;
                uint32_t word = 0;

                noise_begin(n, &many);
                noise_begin(n, &single);
                noise_bytes_begin(&many, n, &bytes);
                for (uint64_t i = 0; i < n; i++) {
                        word = i % 4 == 0 ? dlp_philox_u32(&single) : word >> 8;
                        ck_assert(noise_byte(&bytes) == (uint8_t)word);
                }
                ck_assert_uint_eq(dlp_philox_u32(&many), dlp_philox_u32(&single));
        }
}
END_TEST

static void compare(const uint32_t *words, size_t n) {
        float numbers[N_MAX];

        noise_of_words(words, n, numbers);
        for (size_t i = 0; i < n; i++) {
                float expected = noise_of_word(words[i]);

                if (memcmp(&numbers[i], &expected, sizeof(expected)) != 0)
                        ck_abort_msg("word 0x%08x", words[i]);
        }
}

/* Of both tails as well, down to the outermost word, and around the two places where they begin. */
START_TEST(many_normal_numbers_are_the_same_ones) {
        const uint32_t lower = (uint32_t)(0.075 * 0x1p32), upper = (uint32_t)(0.925 * 0x1p32);
        uint32_t words[N_MAX];
        struct dlp_philox philox;

        noise_begin(4, &philox);
        for (uint32_t round = 0; round < 20000; round++) {
                uint32_t n = dlp_philox_below(&philox, N_MAX + 1);

                for (uint32_t i = 0; i < n; i++)
                        words[i] = dlp_philox_u32(&philox) >> (i % 7 == 0 ? dlp_philox_below(&philox, 32) : 0);
                for (uint32_t i = 0; i < n; i += 5)
                        words[i] = ~words[i];
                compare(words, n);
        }
        for (uint32_t i = 0; i < 200; i++) {
                words[i] = (i < 100 ? lower : upper) - 50 + i % 100;
                words[i + 100] = i < 50 ? i : i < 100 ? UINT32_MAX - i : 0x80000000u - 50 + i;
        }
        compare(words, N_MAX);
}
END_TEST

/* ---- added to levels ------------------------------------------------------------------------------------------- */

static const struct {
        float mean, sigma;
        bool is_clipped;
} NOISES[] = { { 0, 25.5f, true },    { 0, 25.5f, false }, { 12.7f, 3, true },      { -3.2f, 0, true },
               { -20, 300, true },    { 30, 2550, true },  { -255, 2550, false },   { 0.5f, 0.2f, false },
               { 255, 100.5f, true }, { 0, 1e-6f, true },  { 99.99999f, 51, false } };

#define WIDTH  211u
#define HEIGHT 90u

/* That of the step, which is planned for this. */
static const struct operation_type *noise_operation(void) {
        static struct geometry geometry;
        struct recipe *recipe = NULL;

        ck_assert_int_eq(recipe_parse("gaussian_noise", &recipe, NULL), 0);
        ck_assert_int_eq(recipe_plan(recipe, WIDTH, HEIGHT, 0, 0, 0, &geometry, NULL), 0);
        recipe_free(recipe);
        return geometry.operations[0].type;
}

static void check_noise(unsigned which, bool is_grey) {
        size_t n_bytes = (size_t)WIDTH * HEIGHT * PIXEL_BYTES;
        uint8_t *before = malloc(n_bytes), *pixels = malloc(n_bytes);
        struct operation operation = { .type = noise_operation(),
                                       .amount = NOISES[which].sigma,
                                       .others = { NOISES[which].mean },
                                       .flag = NOISES[which].is_clipped,
                                       .seed = 77 + which,
                                       .is_grey = is_grey };
        struct canvas canvas = {
                .pixels = pixels, .stride = (size_t)WIDTH * PIXEL_BYTES, .width = WIDTH, .height = HEIGHT
        };
        struct dlp_philox philox;

        for (size_t i = 0; i < n_bytes; i++)
                before[i] = (uint8_t)((is_grey ? i / PIXEL_BYTES : i) * 31);
        memcpy(pixels, before, n_bytes);
        operation.type->run(&operation, &canvas);
        noise_begin(operation.seed, &philox);
        for (size_t i = 0; i < n_bytes; i++) {
                static int level;

                if (!is_grey || i % PIXEL_BYTES == 0)
                        level = before[i] +
                                (int)(operation.others[0] + noise_of_word(dlp_philox_u32(&philox)) * operation.amount);
                if (operation.flag)
                        level = level < 0 ? 0 : level > 255 ? 255 : level;
                if (pixels[i] != (uint8_t)level)
                        ck_abort_msg("noise %u, byte %zu: %u, expected %u", which, i, pixels[i], (uint8_t)level);
        }
        free(before);
        free(pixels);
}

START_TEST(noise_is_added_whatever_its_mean_and_sigma) {
        check_noise((unsigned)_i, false);
        check_noise((unsigned)_i, true);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "words", many_words_are_the_next_words_wherever_a_stream_is, 0 },
                { "words", blocks_of_vectors_are_blocks, 0 },
                { "words", bytes_are_those_of_the_words_and_a_new_word_follows_them, 0 },
                { "numbers", many_normal_numbers_are_the_same_ones, 0 },
                { "levels", noise_is_added_whatever_its_mean_and_sigma, sizeof(NOISES) / sizeof(NOISES[0]) },
        };

        return suite_run("noise", rows, sizeof(rows) / sizeof(rows[0]));
}
