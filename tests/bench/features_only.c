/* features_only SECONDS ROUNDS STEPS: what features of sound alone cost.
 *
 * STEPS are those that may follow audio(rate=16000), of noise of so many seconds in memory; no decoding, one thread.
 * Prints CPU microseconds a sound, of the fastest round. Under `valgrind --tool=callgrind` it says where the
 * instructions go. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sound/sound_recipe.h"

#define RATE 16000u

static void fail(const char *text) {
        fprintf(stderr, "features_only: %s\n", text);
        exit(1);
}

static double cpu_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *reserve(uint64_t n_bytes) {
        void *memory = calloc(n_bytes + 1, 1);

        if (!memory)
                fail("no memory");
        return memory;
}

int main(int argc, char **argv) {
        struct why why = { .text = "" };
        struct grammar *grammar;
        struct grammar_steps steps;
        struct sound_input input = { .rate = RATE, .n_channels = 1 };
        struct sound_draws draws = { .seed = 1 };
        struct sound_recipe *recipe;
        struct sound_shape shape;
        uint64_t n, margin;
        float *sound, *wave, *scratch, *out;
        double best = 0;

        if (argc != 4)
                fail("usage: features_only SECONDS ROUNDS STEPS");
        n = (uint64_t)(strtod(argv[1], NULL) * RATE);
        if (grammar_new("pipeline", argv[3], &grammar, &why) < 0 ||
            grammar_steps(grammar, grammar_all(grammar), &steps) < 0 ||
            sound_recipe_read(grammar, steps, &input, &recipe, &why) < 0 ||
            sound_recipe_shape(recipe, n, &shape, &why) < 0)
                fail(why.text);
        margin = sound_recipe_margin(recipe);
        sound = reserve(n * sizeof(*sound));
        wave = reserve((n + 2 * margin) * sizeof(*wave));
        scratch = reserve(sound_recipe_scratch(recipe, n));
        out = reserve(shape.n_outer * shape.n_time * shape.n_inner * sizeof(*out));
        for (uint64_t i = 0; i < n; i++)
                sound[i] = (float)(int32_t)((uint32_t)i * 2654435761u + (uint32_t)(i * i)) / 4294967296.0f;
        for (long round = strtol(argv[2], NULL, 10); round > 0; round--) {
                double begin = cpu_us(), us;

                memcpy(wave + margin, sound, n * sizeof(*sound));
                (void)sound_recipe_run(recipe, &draws, wave + margin, n, scratch, out, shape.n_time * shape.n_inner,
                                       NULL);
                us = cpu_us() - begin;
                if (best == 0 || us < best)
                        best = us;
        }
        printf("%.1f\n", best);
        sound_recipe_free(recipe);
        grammar_free(grammar);
        free(sound);
        free(wave);
        free(scratch);
        free(out);
        return 0;
}
