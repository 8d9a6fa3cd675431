/* Chunks: every byte of a plan is in one of them, once, in order; and where staged datasets lie. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/plan/chunks.h"
#include "daemon/store/record/record_place.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define N_PLANS 40

/* Files named by their place in the plan, so that sorting leaves them in this order. */
static struct plan *plan_of(const uint64_t *sizes, size_t n_files) {
        _cleanup_(plan_freep) struct plan *begun = NULL;
        const char *urls[] = { "http://h/x" };
        struct plan *plan = NULL;

        for (size_t i = 0; i < n_files; i++) {
                char path[32];
                struct plan_file file = { .path = path, .n_bytes = sizes[i], .urls = urls, .n_urls = 1 };

                snprintf(path, sizeof(path), "%08zu", i);
                ck_assert_int_eq(plan_add(&begun, &file, NULL), 0);
        }
        ck_assert_int_eq(plan_finish(&begun, &plan, NULL), 0);
        return plan;
}

/* Walks through the chunks with a finger on the plan. */
static void check(const struct plan *plan, const struct chunks *chunks) {
        uint64_t idx_file = 0, offset = 0;

        for (uint64_t i = 0; i < chunks_count(chunks); i++) {
                struct chunk chunk = chunks_get(chunks, i);
                uint64_t n_bytes = 0, first;

                ck_assert(chunk.first_file == idx_file);
                ck_assert(chunk.offset == offset);
                ck_assert(chunk.n_files >= 1);
                ck_assert(chunk.n_files <= CHUNK_FILES_MAX);
                ck_assert(chunk.n_bytes <= CHUNK_BYTES);
                if (plan_file(plan, idx_file)->n_bytes > CHUNK_BYTES) {
                        uint64_t n = chunks_of_file(chunks, idx_file, &first);

                        ck_assert(chunk.n_files == 1);
                        ck_assert(i >= first && i < first + n);
                        offset += chunk.n_bytes;
                        if (offset < plan_file(plan, idx_file)->n_bytes) {
                                ck_assert(chunk.n_bytes == CHUNK_BYTES);
                        } else {
                                ck_assert(offset == plan_file(plan, idx_file)->n_bytes);
                                ck_assert(i == first + n - 1);
                                idx_file++;
                                offset = 0;
                        }
                        continue;
                }
                for (uint32_t k = 0; k < chunk.n_files; k++) {
                        ck_assert(chunks_of_file(chunks, idx_file, &first) == 1);
                        ck_assert(first == i);
                        n_bytes += plan_file(plan, idx_file++)->n_bytes;
                }
                ck_assert(n_bytes == chunk.n_bytes);
                /* It is full: the next file would not have fitted, or is too many, or is cut. */
                if (idx_file < plan_n_files(plan))
                        ck_assert(chunk.n_files == CHUNK_FILES_MAX ||
                                  n_bytes + plan_file(plan, idx_file)->n_bytes > CHUNK_BYTES);
        }
        ck_assert(idx_file == plan_n_files(plan));
}

START_TEST(each_byte_is_in_one_chunk_in_the_plans_order) {
        static const uint64_t KINDS[] = { 0,
                                          1,
                                          70000,
                                          CHUNK_BYTES / 2,
                                          CHUNK_BYTES - 1,
                                          CHUNK_BYTES,
                                          CHUNK_BYTES + 1,
                                          3ull * CHUNK_BYTES,
                                          3ull * CHUNK_BYTES + 5 };
        unsigned seed = (unsigned)_i;
        uint64_t sizes[600];

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) /* some plans of tiny files alone, some of all kinds */
                sizes[i] = KINDS[(size_t)rand_r(&seed) % (_i % 2 ? ARRAY_SIZE(KINDS) : 3)];
        for (size_t n = 1; n <= ARRAY_SIZE(sizes); n = n < 8 ? n + 1 : 3 * n) {
                _cleanup_(plan_freep) struct plan *plan = plan_of(sizes, n);
                struct chunks *chunks = NULL;

                ck_assert_int_eq(chunks_new(plan, &chunks), 0);
                check(plan, chunks);
                chunks_free(chunks);
        }
}
END_TEST

START_TEST(a_file_far_above_four_gigabytes_is_cut_to_its_end) {
        const uint64_t sizes[] = { 1, (5ull << 40) + 1, 1 };
        _cleanup_(plan_freep) struct plan *plan = plan_of(sizes, 3);
        struct chunks *chunks = NULL;

        ck_assert_int_eq(chunks_new(plan, &chunks), 0);
        ck_assert_uint_eq(chunks_count(chunks), (5ull << 40) / CHUNK_BYTES + 3);
        check(plan, chunks);
        chunks_free(chunks);
}
END_TEST

/* ---- places -------------------------------------------------------------------------------------------------- */

START_TEST(a_staged_dataset_lies_beside_its_path) {
        char version[PLACE_VERSION_SIZE], path[PATH_MAX];
        struct place place;

        ck_assert_int_eq(place_init(&place, "/data/photos//", NULL), 0);
        ck_assert_str_eq(place.path, "/data/photos");
        ck_assert_str_eq(place.folder, "/data/.photos.staged");
        ck_assert_int_eq(place_init(&place, "/photos", NULL), 0);
        ck_assert_str_eq(place.folder, "/.photos.staged");
        place_version("8f3a09b2c4d1ffffffff", version);
        ck_assert_str_eq(version, "v-8f3a09b2c4d1");
        ck_assert_int_eq(place_file(&place, version, ".index", path), 0);
        ck_assert_str_eq(path, "/.photos.staged/v-8f3a09b2c4d1.index");
}
END_TEST

START_TEST(a_path_that_can_be_no_dataset_is_refused) {
        static const char *const NONE[] = { "", "photos", "./photos", "/", "///", "/data/.", "/data/../", "/.." };
        char path[PATH_MAX + 2] = "/";
        struct place place = { .path = "untouched" };

        for (size_t i = 0; i < ARRAY_SIZE(NONE); i++) {
                struct why why = { 0 };

                ck_assert_int_eq(place_init(&place, NONE[i], &why), -EINVAL);
                ck_assert_ptr_nonnull(strstr(why.text, NONE[i]));
        }
        memset(path + 1, 'n', 249); /* with the dot and ".staged" one byte too many for a name */
        ck_assert_int_eq(place_init(&place, path, NULL), -ENAMETOOLONG);
        path[248] = '\0';
        for (size_t i = 0; i < PATH_MAX; i++)
                path[i] = i % 100 ? 'n' : '/';
        path[PATH_MAX] = '\0';
        ck_assert_int_eq(place_init(&place, path, NULL), -ENAMETOOLONG);
        path[PATH_MAX - 3] = '\0';
        ck_assert_int_eq(place_init(&place, path, NULL), -ENAMETOOLONG);
        ck_assert_str_eq(place.path, "untouched");

        path[PATH_MAX - 50] = '\0';
        ck_assert_int_eq(place_init(&place, path, NULL), 0);
        path[90] = '\0';
        ck_assert_int_eq(place_file(&place, path, ".index", path), -ENAMETOOLONG);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "chunks", each_byte_is_in_one_chunk_in_the_plans_order, N_PLANS },
                { "chunks", a_file_far_above_four_gigabytes_is_cut_to_its_end },
                { "place", a_staged_dataset_lies_beside_its_path },
                { "place", a_path_that_can_be_no_dataset_is_refused },
        };

        return suite_run("chunks", rows, ARRAY_SIZE(rows));
}
