/* unit/test_prepare.c: what is done to samples at staging. Prepared pictures against Pillow's:
 * integration/test_prepare.py
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/dataset.h"
#include "daemon/data/formats/shard.h"
#include "daemon/staging/prepare/maker.h"
#include "daemon/staging/prepare/prepare.h"
#include "daemon/staging/prepare/prepare_shards.h"
#include "daemon/staging/prepare/window.h"
#include "daemon/store/record/record_steps.h"
#include "proto/base/cleanup.h"
#include "tests/support/jpegs.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

/* ---- the text ------------------------------------------------------------------------------------------------ */

START_TEST(steps_are_read_with_and_without_their_keys) {
        static const struct {
                const char *text;
                struct steps steps;
        } rows[] = {
                { "", { .packs_only = true, .quality = 95 } },
                { " \t\n", { .packs_only = true, .quality = 95 } },
                { "resize(short=256) jpeg(90)", { .short_side = 256, .quality = 90, .encodes_all = true } },
                { " resize( 256 )\tjpeg( quality = 90 ) ", { .short_side = 256, .quality = 90, .encodes_all = true } },
                { "jpeg(1)", { .quality = 1, .encodes_all = true } },
                { "jpeg(100)", { .quality = 100, .encodes_all = true } },
                { "resize(16384)", { .short_side = 16384, .quality = 95 } },
                { " gpu_jpeg\n", { .quality = 95, .transcodes = true } },
                { "resize(64) gpu_jpeg", { .short_side = 64, .quality = 95, .transcodes = true } },
                { "jpeg(90) gpu_jpeg", { .quality = 90, .encodes_all = true, .transcodes = true } },
                { " convert\n", { .converts = true } },
                { "command: tar c \"$DATALOADERD_FILE\" | cat ", { .command = "tar c \"$DATALOADERD_FILE\" | cat " } },
                { "command :x", { .command = "x" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct steps steps;
                struct why why = {};

                ck_assert_msg(steps_parse(rows[i].text, &steps, &why) == 0, "%s: %s", rows[i].text, why.text);
                ck_assert_int_eq(steps_check(rows[i].text, NULL), 0);
                ck_assert_int_eq(steps.packs_only, rows[i].steps.packs_only);
                ck_assert_uint_eq(steps.short_side, rows[i].steps.short_side);
                ck_assert_uint_eq(steps.quality, rows[i].steps.quality);
                ck_assert_int_eq(steps.encodes_all, rows[i].steps.encodes_all);
                ck_assert_int_eq(steps.transcodes, rows[i].steps.transcodes);
                ck_assert_int_eq(steps.converts, rows[i].steps.converts);
                ck_assert_pstr_eq(steps.command, rows[i].steps.command);
        }
}
END_TEST

START_TEST(a_wrong_text_is_refused_with_its_column_and_what_was_expected) {
        static const struct {
                const char *text, *column, *says;
        } rows[] = {
                { "jpg(90)",
                  "column 1:", "unknown step \"jpg\" (did you mean \"jpeg\"?); the steps are resize, jpeg, gpu_jpeg;" },
                { "resize", "column 1:", "resize needs its short, as in resize(short=256)" },
                { "resize()", "column 1:", "resize needs its short" },
                { "resize(256", "column 11:", "the text ends; expected \",\" or \")\"" },
                { "resize(256 300)", "column 12:", "\"3\"; expected \",\" or \")\"" },
                { "resize(256)jpeg(90)", "column 12:", "expected a blank and the next step" },
                { "resize(long=256)", "column 8:", "resize has no argument \"long\"; it has short" },
                { "resize(short=)",
                  "column 14:", "short: \")\" is not allowed; expected a whole number from 1 to 16384" },
                { "resize(0)", "column 8:", "short: \"0\" is not allowed; expected a whole number from 1 to 16384" },
                { "resize(-5)", "column 8:", "short: \"-5\" is not allowed" },
                { "resize(16385)", "column 8:", "from 1 to 16384" },
                { "resize(99999999999999999999999)", "column 8:", "from 1 to 16384" },
                { "jpeg(101)", "column 6:", "quality: \"101\" is not allowed; expected a whole number from 1 to 100" },
                { "jpeg(9.5)", "column 6:", "quality: \"9.5\" is not allowed" },
                { "jpeg(90) jpeg(90)", "column 10:", "jpeg is given twice" },
                { "jpeg(90) resize(256)",
                  "column 10:", "\"resize\" after \"jpeg\"; the sequence is resize, jpeg, gpu_jpeg" },
                { "gpu_jpeg jpeg(90)", "column 10:", "\"jpeg\" after \"gpu_jpeg\"; the sequence is" },
                { "gpu_jpeg gpu_jpeg", "column 10:", "gpu_jpeg is given twice" },
                { "gpu_jpeg(1)", "column 10:", "\"1\"; expected \")\": it has no arguments" },
                { "gpu-jpeg", "column 1:", "unknown step \"gpu-jpeg\" (did you mean \"gpu_jpeg\"?)" },
                { "resize(1) resize(2)", "column 11:", "resize is given twice" },
                { "resize(256) \x01", "column 13:", "byte 0x01; expected the name of a step: resize, jpeg, gpu_jpeg" },
                { ",", "column 1:", "expected the name of a step" },
                { "convert jpeg(90)", "column 9:", "convert stands alone" },
                { "jpeg(90) convert", "column 10:", "convert stands alone" },
                { "command:  ", "column 11:", "the text ends; expected a shell command" },
                { "command: a\nb", "column 11:", "expected a shell command in one line" },
                { "command", "column 1:", "or write convert, or command: and a shell command" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct why why = {};

                ck_assert_int_eq(steps_check(rows[i].text, &why), -EINVAL);
                ck_assert_msg(strncmp(why.text, "prepare, ", 9) == 0 && strstr(why.text, rows[i].column) &&
                                      strstr(why.text, rows[i].says),
                              "%s: %s", rows[i].text, why.text);
        }
}
END_TEST

/* ---- the window ---------------------------------------------------------------------------------------------- */

struct payer {
        struct window *window;
        uint64_t position, n_bytes;
        atomic_bool has_paid;
};

static void *pay_main(void *argument) {
        struct payer *payer = argument;

        if (window_pay(payer->window, payer->position, payer->n_bytes))
                atomic_store(&payer->has_paid, true);
        return NULL;
}

static void finish_with(struct window *window, uint64_t position, size_t n_bytes) {
        struct window_result result = { .n_bytes = n_bytes };

        ck_assert_int_eq(block_grow(&result.block, n_bytes), 0);
        window_finish(window, position, &result);
}

START_TEST(the_first_position_never_waits_for_memory_and_the_others_do) {
        struct window window;
        struct payer third = { .window = &window, .position = 2, .n_bytes = WINDOW_BYTES / 2 };
        pthread_t thread;
        uint64_t position;

        ck_assert_int_eq(window_init(&window, 3), 0);
        for (uint64_t i = 0; i < 3; i++) {
                ck_assert(window_take(&window, &position));
                ck_assert_uint_eq(position, i);
        }
        ck_assert(!window_take(&window, &position));
        ck_assert(window_pay(&window, 1, WINDOW_BYTES));
        ck_assert(window_pay(&window, 0, 10 * WINDOW_BYTES)); /* whatever it needs */

        ck_assert_int_eq(pthread_create(&thread, NULL, pay_main, &third), 0);
        ck_assert_ptr_null(window_next(&window, 20)); /* time for the thread to do wrong */
        ck_assert(!atomic_load(&third.has_paid));
        finish_with(&window, 0, 1000);
        ck_assert_ptr_nonnull(window_next(&window, 20));
        window_packed(&window);
        ck_assert_ptr_null(window_next(&window, 20));
        ck_assert(!atomic_load(&third.has_paid));
        finish_with(&window, 1, 1000); /* pays for what it holds alone */
        pthread_join(thread, NULL);
        ck_assert(atomic_load(&third.has_paid));
        window_fini(&window); /* frees what was not packed */
}
END_TEST

START_TEST(a_stopped_window_sends_home_who_waits_and_who_comes) {
        struct window window;
        struct payer second = { .window = &window, .position = 1, .n_bytes = WINDOW_BYTES + 1 };
        pthread_t thread;
        uint64_t position;

        ck_assert_int_eq(window_init(&window, 3), 0);
        ck_assert(window_take(&window, &position) && window_take(&window, &position));
        ck_assert_int_eq(pthread_create(&thread, NULL, pay_main, &second), 0);
        window_stop(&window);
        pthread_join(thread, NULL);
        ck_assert(!atomic_load(&second.has_paid));
        ck_assert(!window_take(&window, &position));
        ck_assert(!window_pay(&window, 0, 1));
        window_fini(&window);
}
END_TEST

START_TEST(memory_grows_over_to_pages_and_keeps_what_is_in_it) {
        struct block block = {};

        ck_assert_int_eq(block_grow(&block, 0), 0);
        ck_assert_ptr_nonnull(block.bytes);
        for (size_t n = 1000, n_before = 0; n < (64u << 20); n_before = n, n = n * 3 + 1) {
                ck_assert_int_eq(block_grow(&block, n), 0);
                ck_assert_uint_ge(block.capacity, n);
                for (size_t i = 0; i < n_before; i += 997)
                        ck_assert_uint_eq(block.bytes[i], (uint8_t)(i * 7));
                for (size_t i = 0; i < n; i++)
                        block.bytes[i] = (uint8_t)(i * 7);
        }
        block_shrink(&block, 5000);
        ck_assert_uint_lt(block.capacity, 10000);
        ck_assert_uint_eq(block.bytes[4999], (uint8_t)(4999 * 7));
        block_free(&block);
        ck_assert_ptr_null(block.bytes);
}
END_TEST

/* ---- a folder of pictures ------------------------------------------------------------------------------------ */

#define N_PICTURES  60u
#define SHARD_BYTES (64u << 10) /* some fifteen shards */

struct fixture {
        struct tree in, out, indices;
        struct dataset *dataset;
        struct prepare_options options;
        struct prepare_report report;
        struct why why;
};

static void write_file(const struct tree *tree, const char *path, const void *bytes, size_t n_bytes) {
        int fd;

        tree_file(tree, path, "");
        fd = openat(tree->fd, path, O_WRONLY | O_TRUNC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        close(fd);
}

static uint8_t *read_file(int dir_fd, const char *path, uint64_t offset, size_t *n_bytes) {
        _cleanup_(closep) int fd = openat(dir_fd, path, O_RDONLY);
        uint8_t *bytes;
        struct stat status;

        ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "%s: %s", path, strerror(errno));
        if (*n_bytes == 0)
                *n_bytes = (size_t)status.st_size;
        bytes = malloc(*n_bytes + 1);
        ck_assert_int_eq(pread(fd, bytes, *n_bytes, (off_t)offset), (ssize_t)*n_bytes);
        return bytes;
}

static void name_picture(uint32_t i, char name[32]) {
        snprintf(name, 32, "class%u/%03u.jpg", i % 3, i);
}

/* Of many sizes and kinds; picture 7 is cut, 20 is not a picture, 33 is empty. */
static void make_picture(const struct tree *tree, uint32_t i) {
        struct jpegs_spec spec = {
                .width = 40 + 7 * (i % 23),
                .height = 30 + 11 * (i % 17),
                .quality = 60 + (int)i % 40,
                .h = i % 5 == 4 ? 0 : 1 + (int)i % 2,
                .v = i % 5 == 4 ? 0 : 1 + (int)i % 2,
                .content = JPEGS_PHOTO,
                .seed = i + 1,
        };
        size_t n_bytes = 0;
        uint8_t *bytes = i % 4 == 1 ? jpegs_make_other(&spec, (enum jpegs_kind)(i % N_JPEGS_KINDS), &n_bytes)
                                    : jpegs_make(&spec, &n_bytes);
        char name[32];

        name_picture(i, name);
        if (i == 7)
                write_file(tree, name, bytes, n_bytes / 2);
        else if (i == 20)
                write_file(tree, name, "not a picture", 13);
        else
                write_file(tree, name, bytes, i == 33 ? 0 : n_bytes);
        free(bytes);
}

static void open_dataset(const struct tree *folder, const struct tree *indices, const char *format,
                         struct dataset **ret_dataset) {
        struct dataset_spec spec = { .name = format, .path = folder->root, .format = format };
        struct why why = {};

        ck_assert_msg(dataset_open(&spec, indices->root, NULL, ret_dataset, NULL, &why) == 0, "%s", why.text);
}

static void fixture_init(struct fixture *f, const char *steps) {
        *f = (struct fixture){};
        tree_make(&f->in);
        tree_make(&f->out);
        tree_make(&f->indices);
        for (uint32_t i = 0; i < N_PICTURES; i++)
                make_picture(&f->in, i);
        open_dataset(&f->in, &f->indices, "imagefolder", &f->dataset);
        f->options = (struct prepare_options){
                .index = dataset_source(f->dataset),
                .root_fd = dataset_root_fd(f->dataset),
                .steps = steps,
                .shard_bytes = SHARD_BYTES,
                .n_nodes = 1,
                .out_fd = f->out.fd,
                .n_workers = 3,
        };
}

static void fixture_fini(struct fixture *f) {
        dataset_unref(f->dataset);
        tree_remove(&f->in);
        tree_remove(&f->out);
        tree_remove(&f->indices);
}

static void fixture_run(struct fixture *f) {
        f->why = (struct why){};
        ck_assert_msg(prepare_run(&f->options, &f->report, &f->why) == 0, "%s", f->why.text);
}

static void empty_out(struct fixture *f) {
        tree_remove(&f->out);
        tree_make(&f->out);
        f->options.out_fd = f->out.fd;
}

/* All shards, one after the other. */
static uint8_t *all_bytes(const struct fixture *f, size_t *ret_n_bytes) {
        uint64_t n_shards = prepare_n_shards(f->options.index, SHARD_BYTES);
        uint8_t *all = NULL;
        size_t n_all = 0;

        ck_assert_uint_gt(n_shards, 5);
        for (uint64_t k = 0; k < n_shards; k++) {
                size_t n_bytes = 0;
                uint8_t *bytes;
                char name[32];

                shard_name(k, name);
                bytes = read_file(f->out.fd, name, 0, &n_bytes);
                all = realloc(all, n_all + n_bytes);
                memcpy(all + n_all, bytes, n_bytes);
                n_all += n_bytes;
                free(bytes);
        }
        *ret_n_bytes = n_all;
        return all;
}

/* The packed bytes of a sample. */
static uint8_t *packed_bytes(const struct fixture *f, const struct source *packed, uint64_t sample, size_t *ret_n) {
        struct extent place;

        source_locate(packed, sample, 0, &place);
        *ret_n = place.length;
        if (place.length == 0)
                return calloc(1, 1);
        return read_file(f->out.fd, place.shard, place.offset, ret_n);
}

static uint8_t *source_bytes(const struct fixture *f, uint64_t sample, size_t *ret_n) {
        char path[INDEX_PATH_SIZE];

        source_name(f->options.index, sample, path);
        *ret_n = 0;
        return read_file(f->in.fd, path, 0, ret_n);
}

START_TEST(packing_alone_changes_no_byte_no_name_no_label_and_no_digest) {
        struct fixture f;
        struct dataset *packed;
        const struct source *index;

        fixture_init(&f, "");
        fixture_run(&f);
        ck_assert_uint_eq(f.report.n_samples, N_PICTURES);
        ck_assert_uint_eq(f.report.n_kept_as_is, 0);
        ck_assert_str_eq(f.report.first_kept.text, "");

        open_dataset(&f.out, &f.indices, "packed", &packed);
        index = dataset_source(packed);
        ck_assert_uint_eq(index->n_samples, N_PICTURES);
        ck_assert_str_eq(index->digest, f.options.index->digest);
        for (uint64_t i = 0; i < N_PICTURES; i++) {
                size_t n_source, n_packed;
                uint8_t *source = source_bytes(&f, i, &n_source), *bytes = packed_bytes(&f, index, i, &n_packed);
                char path[INDEX_PATH_SIZE], packed_path[INDEX_PATH_SIZE];

                ck_assert_uint_eq(n_source, n_packed);
                ck_assert(memcmp(source, bytes, n_source) == 0);
                source_name(f.options.index, i, path);
                source_name(index, i, packed_path);
                ck_assert_str_eq(path, packed_path);
                ck_assert_int_eq(index_label(f.options.index, i), index_label(index, i));
                free(source);
                free(bytes);
        }
        dataset_unref(packed);
        fixture_fini(&f);
}
END_TEST

static void run_on_nodes(struct fixture *f, uint32_t n_nodes, uint32_t n_workers) {
        empty_out(f);
        f->options.n_nodes = n_nodes;
        f->options.n_workers = n_workers;
        for (uint32_t node = 0; node < n_nodes; node++) {
                f->options.node = node;
                fixture_run(f);
        }
}

START_TEST(the_same_bytes_come_from_any_number_of_workers_and_nodes) {
        static const struct {
                uint32_t n_nodes, n_workers;
        } ways[] = { { 1, 1 }, { 1, 2 }, { 1, 4 }, { 3, 1 }, { 3, 4 }, { 50, 0 } };
        struct fixture f;
        uint8_t *first = NULL;
        size_t n_first = 0;

        fixture_init(&f, "resize(short=64) jpeg(85)");
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                uint8_t *bytes;
                size_t n_bytes;

                run_on_nodes(&f, ways[i].n_nodes, ways[i].n_workers);
                bytes = all_bytes(&f, &n_bytes);
                if (!first) {
                        first = bytes;
                        n_first = n_bytes;
                        continue;
                }
                ck_assert_uint_eq(n_bytes, n_first);
                ck_assert(memcmp(bytes, first, n_first) == 0);
                free(bytes);
        }
        free(first);
        fixture_fini(&f);
}
END_TEST

START_TEST(shards_of_all_nodes_together_hold_every_sample_once) {
        static const uint64_t sizes[] = { 0, 1, SHARD_ALIGN, 20000, SHARD_BYTES, 1 << 20, UINT64_MAX };
        struct fixture f;

        fixture_init(&f, "");
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                uint64_t n_shards = prepare_n_shards(f.options.index, sizes[i]), n_samples = 0;
                uint8_t *seen = calloc(n_shards, 1);

                for (uint32_t node = 0; node < 3; node++) {
                        struct shards shards;

                        ck_assert_int_eq(shards_plan(f.options.index, sizes[i], node, 3, &shards), 0);
                        for (uint64_t k = 0; k < shards.n_runs; k++) {
                                ck_assert_uint_eq(shards.runs[k].idx_shard % 3, node);
                                ck_assert_uint_eq(seen[shards.runs[k].idx_shard]++, 0);
                                ck_assert_uint_gt(shards.runs[k].n_samples, 0);
                                n_samples += shards.runs[k].n_samples;
                        }
                        shards_fini(&shards);
                }
                ck_assert_uint_eq(n_samples, N_PICTURES);
                free(seen);
        }
        ck_assert_uint_eq(prepare_n_shards(f.options.index, 0), N_PICTURES);
        ck_assert_uint_eq(prepare_n_shards(f.options.index, UINT64_MAX), 1);
        fixture_fini(&f);
}
END_TEST

/* What libjpeg makes of a packed sample; the caller frees rgb. */
static struct jpegs_verdict verdict_of(const struct fixture *f, const struct source *packed, uint64_t sample) {
        struct jpegs_verdict verdict;
        size_t n_bytes;
        uint8_t *bytes = packed_bytes(f, packed, sample, &n_bytes);

        verdict = jpegs_decode(bytes, n_bytes, 1 << 24);
        free(bytes);
        return verdict;
}

START_TEST(what_cannot_be_decoded_is_packed_as_it_is_counted_and_named) {
        static const char *const damaged[] = { "class1/007.jpg", "class2/020.jpg", "class0/033.jpg" };
        uint64_t n_kept = 0;
        struct fixture f;
        struct dataset *packed;

        fixture_init(&f, "resize(short=32) jpeg(90)");
        fixture_run(&f);
        ck_assert_uint_eq(f.report.n_samples, N_PICTURES);
        ck_assert_uint_eq(f.report.n_kept_as_is, ARRAY_SIZE(damaged));
        ck_assert_msg(strncmp(f.report.first_kept.text, "class0/033.jpg: ", 16) == 0 &&
                              strstr(f.report.first_kept.text, "empty"),
                      "%s", f.report.first_kept.text); /* the first in the dataset's order */

        open_dataset(&f.out, &f.indices, "packed", &packed);
        for (uint64_t i = 0; i < N_PICTURES; i++) {
                size_t n_source, n_packed;
                uint8_t *source = source_bytes(&f, i, &n_source);
                uint8_t *bytes = packed_bytes(&f, dataset_source(packed), i, &n_packed);
                char path[INDEX_PATH_SIZE];
                bool is_damaged = false;

                source_name(f.options.index, i, path);
                for (size_t k = 0; k < ARRAY_SIZE(damaged); k++)
                        is_damaged |= strcmp(path, damaged[k]) == 0;
                ck_assert_int_eq(n_source == n_packed && memcmp(source, bytes, n_source) == 0, is_damaged);
                n_kept += is_damaged;
                free(source);
                free(bytes);
        }
        ck_assert_uint_eq(n_kept, ARRAY_SIZE(damaged));
        dataset_unref(packed);
        fixture_fini(&f);
}
END_TEST

START_TEST(pictures_get_the_short_side_and_are_never_enlarged) {
        struct fixture f;
        struct dataset *packed;

        fixture_init(&f, "resize(short=100) jpeg(90)");
        fixture_run(&f);
        open_dataset(&f.out, &f.indices, "packed", &packed);
        for (uint64_t i = 0; i < N_PICTURES; i++) {
                struct jpegs_verdict verdict = verdict_of(&f, dataset_source(packed), i), before;
                size_t n_source;
                uint8_t *source = source_bytes(&f, i, &n_source);

                before = jpegs_decode(source, n_source, 1 << 24);
                if (!before.has_failed && before.width > 0) {
                        uint32_t shorter = before.width < before.height ? before.width : before.height;
                        uint32_t longer = before.width < before.height ? before.height : before.width;
                        uint32_t new_longer = shorter > 100 ? 100 * longer / shorter : longer;
                        uint32_t new_shorter = shorter > 100 ? 100 : shorter;

                        ck_assert(!verdict.has_failed);
                        ck_assert_uint_eq(verdict.width, before.width < before.height ? new_shorter : new_longer);
                        ck_assert_uint_eq(verdict.height, before.width < before.height ? new_longer : new_shorter);
                }
                free(before.rgb);
                free(verdict.rgb);
                free(source);
        }
        dataset_unref(packed);
        fixture_fini(&f);
}
END_TEST

START_TEST(without_jpeg_a_picture_that_is_small_enough_keeps_its_bytes) {
        struct fixture f;
        uint8_t *packed, *prepared;
        size_t n_packed, n_prepared;

        fixture_init(&f, "");
        fixture_run(&f);
        packed = all_bytes(&f, &n_packed);
        empty_out(&f);
        f.options.steps = "resize(short=1000)";
        fixture_run(&f);
        prepared = all_bytes(&f, &n_prepared);
        ck_assert_uint_eq(n_packed, n_prepared);
        ck_assert(memcmp(packed, prepared, n_packed) == 0);
        free(packed);
        free(prepared);
        fixture_fini(&f);
}
END_TEST

/* ---- again, and the end -------------------------------------------------------------------------------------- */

static ino_t inode_of(const struct fixture *f, uint64_t idx_shard) {
        struct stat status;
        char name[32];

        shard_name(idx_shard, name);
        ck_assert_int_eq(fstatat(f->out.fd, name, &status, 0), 0);
        return status.st_ino;
}

START_TEST(whole_shards_of_an_earlier_run_are_kept_and_the_others_made_again) {
        struct fixture f;
        uint8_t *first, *second;
        size_t n_first, n_second;
        ino_t kept;
        char name[32], part[64];

        fixture_init(&f, "resize(short=64) jpeg(85)");
        fixture_run(&f);
        first = all_bytes(&f, &n_first);
        kept = inode_of(&f, 1);
        shard_name(2, name);
        ck_assert_int_eq(unlinkat(f.out.fd, name, 0), 0);
        snprintf(part, sizeof(part), "%s.part", name);
        tree_file(&f.out, part, "half of a shard"); /* as a killed run leaves it */

        fixture_run(&f);
        second = all_bytes(&f, &n_second);
        ck_assert_uint_eq(n_first, n_second);
        ck_assert(memcmp(first, second, n_first) == 0);
        ck_assert_uint_eq(inode_of(&f, 1), kept);
        ck_assert_int_eq(faccessat(f.out.fd, part, F_OK, 0), -1);
        ck_assert_uint_eq(f.report.n_samples, N_PICTURES);
        free(first);
        free(second);
        fixture_fini(&f);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_as_the_index_says_ends_it_with_its_name) {
        struct fixture f;

        fixture_init(&f, _i < 2 ? "" : "jpeg(90)");
        if (_i % 2 == 0) {
                ck_assert_int_eq(unlinkat(f.in.fd, "class1/004.jpg", 0), 0);
                ck_assert_int_eq(prepare_run(&f.options, &f.report, &f.why), -ENOENT);
        } else {
                tree_file(&f.in, "class1/004.jpg", "shorter");
                ck_assert_int_eq(prepare_run(&f.options, &f.report, &f.why), -ESTALE);
        }
        ck_assert_msg(strstr(f.why.text, "class1/004.jpg"), "%s", f.why.text);
        fixture_fini(&f);
}
END_TEST

struct canceller {
        _Atomic bool cancel;
        uint64_t n_told, n_total;
};

static void cancel_in_the_middle(void *userdata, uint64_t n_samples, uint64_t n_total) {
        struct canceller *canceller = userdata;

        canceller->n_told = n_samples;
        canceller->n_total = n_total;
        if (n_samples > 0)
                atomic_store(&canceller->cancel, true);
}

START_TEST(a_cancelled_run_leaves_no_half_shard_and_can_go_on) {
        struct canceller canceller = {};
        struct fixture f;
        uint8_t *first, *second;
        size_t n_first, n_second;

        fixture_init(&f, "resize(short=64) jpeg(85)");
        fixture_run(&f);
        first = all_bytes(&f, &n_first);
        empty_out(&f);

        f.options.progress = cancel_in_the_middle;
        f.options.userdata = &canceller;
        f.options.cancel = &canceller.cancel;
        ck_assert_int_eq(prepare_run(&f.options, &f.report, &f.why), -ECANCELED);
        ck_assert_uint_eq(canceller.n_total, N_PICTURES);
        for (uint64_t k = 0; k < prepare_n_shards(f.options.index, SHARD_BYTES); k++) {
                char name[32], part[64];

                shard_name(k, name);
                snprintf(part, sizeof(part), "%s.part", name);
                ck_assert_int_eq(faccessat(f.out.fd, part, F_OK, 0), -1);
        }

        f.options.progress = NULL;
        f.options.cancel = NULL;
        fixture_run(&f);
        second = all_bytes(&f, &n_second);
        ck_assert_uint_eq(n_first, n_second);
        ck_assert(memcmp(first, second, n_first) == 0);
        free(first);
        free(second);
        fixture_fini(&f);
}
END_TEST

START_TEST(what_is_packed_already_is_refused) {
        struct fixture f;
        struct dataset *packed;

        fixture_init(&f, "");
        fixture_run(&f);
        open_dataset(&f.out, &f.indices, "packed", &packed);
        f.options.index = dataset_source(packed);
        ck_assert_int_eq(prepare_run(&f.options, &f.report, &f.why), -ENOTSUP);
        ck_assert_msg(strstr(f.why.text, "packed already"), "%s", f.why.text);
        dataset_unref(packed);
        fixture_fini(&f);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------------------------- */

struct purse {
        uint64_t n_paid;
};

static int pay_from_purse(void *userdata, uint64_t n_bytes) {
        struct purse *purse = userdata;

        purse->n_paid += n_bytes;
        return 0;
}

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

/* Of a picture in several scans, and of one that is transcoded, all coefficients lie in memory: 3 bytes a pixel at
 * 4:2:0. */
static const struct steps COSTLY_STEPS[] = {
        { .short_side = 64, .quality = 90, .encodes_all = true },
        { .quality = 95, .transcodes = true },
        { .quality = 95, .encodes_all = true, .transcodes = true },
};

START_TEST(a_picture_that_takes_more_memory_than_one_may_is_left_as_it_is) {
        struct jpegs_spec spec = { .quality = 20, .h = 2, .v = 2, .content = JPEGS_SMOOTH, .seed = 5 };
        struct maker *maker = NULL;

        ck_assert_int_eq(maker_new(&COSTLY_STEPS[_i], &maker, NULL), 0);
        for (uint32_t i = 0; i < 2; i++) {
                struct purse purse = {};
                struct maker_job job = { .pay = pay_from_purse, .is_cancelled = never, .userdata = &purse };
                struct block file = {};
                struct why why = {};
                size_t n_bytes;
                uint8_t *bytes;

                spec.width = i == 0 ? 6600 : 660;
                spec.height = i == 0 ? 5000 : 500;
                bytes = jpegs_make_other(&spec, JPEGS_PROGRESSIVE, &job.n_bytes);
                job.bytes = bytes;
                job.n_paid = job.n_bytes;
                if (i == 0) {
                        ck_assert_int_eq(maker_make(maker, &job, &file, &n_bytes, &why), MAKER_CANNOT);
                        ck_assert_msg(strstr(why.text, "limit"), "%s", why.text);
                        ck_assert_uint_eq(purse.n_paid, 0);
                } else {
                        ck_assert_int_eq(maker_make(maker, &job, &file, &n_bytes, &why), 0);
                        ck_assert_uint_gt(purse.n_paid, 660 * 500 * 3);
                        ck_assert_uint_gt(n_bytes, 100);
                        ck_assert(file.bytes[0] == 0xff && file.bytes[1] == 0xd8);
                }
                block_free(&file);
                free(bytes);
        }
        maker_free(maker);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "text", steps_are_read_with_and_without_their_keys, 0 },
                { "text", a_wrong_text_is_refused_with_its_column_and_what_was_expected, 0 },
                { "window", the_first_position_never_waits_for_memory_and_the_others_do, 0 },
                { "window", a_stopped_window_sends_home_who_waits_and_who_comes, 0 },
                { "window", memory_grows_over_to_pages_and_keeps_what_is_in_it, 0 },
                { "run", packing_alone_changes_no_byte_no_name_no_label_and_no_digest, 0 },
                { "run", the_same_bytes_come_from_any_number_of_workers_and_nodes, 0 },
                { "run", shards_of_all_nodes_together_hold_every_sample_once, 0 },
                { "run", what_cannot_be_decoded_is_packed_as_it_is_counted_and_named, 0 },
                { "run", pictures_get_the_short_side_and_are_never_enlarged, 0 },
                { "run", without_jpeg_a_picture_that_is_small_enough_keeps_its_bytes, 0 },
                { "again", whole_shards_of_an_earlier_run_are_kept_and_the_others_made_again, 0 },
                { "again", a_file_that_cannot_be_read_as_the_index_says_ends_it_with_its_name, 4 },
                { "again", a_cancelled_run_leaves_no_half_shard_and_can_go_on, 0 },
                { "again", what_is_packed_already_is_refused, 0 },
                { "memory", a_picture_that_takes_more_memory_than_one_may_is_left_as_it_is, ARRAY_SIZE(COSTLY_STEPS) },
        };

        return suite_run("prepare", rows, ARRAY_SIZE(rows));
}
