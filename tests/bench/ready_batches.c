/* ready_batches BATCH SIDE [still|KINDS]: what a ring and the client cost when nothing has to be read or decoded.
 *
 * Plays the daemon's part with proto's own ring: copies a batch of pictures that lies ready into each free slot and
 * publishes it, as a worker process of other loaders sends an array that lies ready. Prints the socket's path, serves
 * until standard input ends.
 *
 *      still   copies into a slot the first time only: a batch costs nothing, so that a link can be the limit
 *      KINDS   batch i begins i % KINDS * READY_STEP bytes later in READY's stream of bytes (ready_batches.h), so that
 *              one that takes the place of another is seen
 *
 * A client that does the last steps of pictures itself is told to make float16 of them, channels first. */
#include "tests/bench/ready_batches.h"

#include <assert.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/augment/recipe.h"
#include "tests/support/stand_in.h"

static_assert(READY_STEP == STAND_IN_READY_STEP, "both say where a batch begins");

static struct stand_in_manners *served;

/* The stand-in asserts as tests do, so it runs as one. */
START_TEST(serve) {
        struct stand_in *stand_in = stand_in_start(served);
        char byte;

        printf("%s\n", stand_in_path(stand_in));
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
                continue;
        stand_in_stop(stand_in);
}
END_TEST

static int run(void) {
        Suite *suite = suite_create("ready_batches");
        TCase *tcase = tcase_create("serve");
        SRunner *runner;
        int n_failed;

        tcase_add_test(tcase, serve);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_set_fork_status(runner, CK_NOFORK);
        srunner_run_all(runner, CK_SILENT);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed > 0;
}

/* The form that a daemon would leave for this pipeline. The recipe keeps its table. */
static struct recipe *make_form(Dlp__LeftForm *form) {
        struct picture_form left;
        struct recipe *recipe;
        struct why why;

        if (recipe_parse("decode to(float16) layout(nchw)", &recipe, &why) < 0) {
                fprintf(stderr, "ready_batches: %s\n", why.text);
                exit(1);
        }
        recipe_leave_form(recipe);
        if (!recipe_left_form(recipe, &left))
                exit(1);
        dlp__left_form__init(form);
        form->tensor = (char *)(uintptr_t) "image";
        form->dtype = left.dtype;
        form->n_channels = left.n_channels;
        form->channels_first = left.channels_first;
        form->table.data = (uint8_t *)(uintptr_t)left.table;
        form->table.len = left.table_bytes;
        return recipe;
}

int main(int argc, char **argv) {
        bool is_right = argc == 3 || argc == 4, stays = argc == 4 && strcmp(argv[3], "still") == 0;
        uint32_t batch_size = is_right ? (uint32_t)atoi(argv[1]) : 0, side = is_right ? (uint32_t)atoi(argv[2]) : 0;
        int n_kinds = argc == 4 && !stays ? atoi(argv[3]) : 1, r;
        struct stand_in_manners manners = { .n_samples = 1ull << 40, .ready_side = side, .ready_stays = stays };
        Dlp__LeftForm form, *forms[] = { &form };
        struct recipe *recipe;
        uint8_t *ready;
        size_t n_bytes;

        if (batch_size < 1 || batch_size > 4096 || side < 1 || side > 4096 || n_kinds < 1 || n_kinds > 4096) {
                fprintf(stderr, "usage: ready_batches BATCH SIDE [still|KINDS]\n");
                return 2;
        }
        n_bytes = 3ull * side * side * batch_size + (size_t)n_kinds * READY_STEP;
        ready = malloc(n_bytes);
        if (!ready)
                return 1;
        ready_fill(ready, n_bytes);
        recipe = make_form(&form);

        manners.ready = ready;
        manners.ready_kinds = (uint32_t)n_kinds;
        manners.forms = forms;
        manners.n_forms = 1;
        served = &manners;
        r = run();
        recipe_free(recipe);
        free(ready);
        return r;
}
