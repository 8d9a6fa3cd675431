/* Files that several threads read in pieces: the index, and what is refused, are byte for byte those of one thread. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/files/parted.h"
#include "daemon/data/format.h"
#include "proto/base/cleanup.h"
#include "tests/support/outcomes.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define FILE_MAX (1u << 20)
/* How close memory that is not enough comes to what is. The search has one thread: TSan has nothing to say of it.
 * Sanitizers see in one damage of each file what they see at all. */
#if defined(__SANITIZE_THREAD__)
#define MEMORY_STEP (1u << 18)
#define N_DAMAGES   1u
#elif defined(__SANITIZE_ADDRESS__)
#define MEMORY_STEP (1u << 10)
#define N_DAMAGES   1u
#else
#define MEMORY_STEP 1u
#define N_DAMAGES   5u
#endif

static struct tree tree;

static void setup(void) {
        tree_make(&tree);
}

static void teardown(void) {
        CUTS_LIMITS.n_threads = 0;
        CUTS_LIMITS.is_patient = false;
        tree_remove(&tree);
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

struct sum {
        uint64_t n_taken, n_found, fails_at;
        _Atomic uint64_t n_kept;
};

static void *look(void *userdata, uint64_t piece, const atomic_bool *is_over) {
        struct sum *sum = userdata;
        uint64_t *found = piece % 7 == 3 ? NULL : malloc(sizeof(*found)); /* some are of no use */

        (void)is_over;
        if (found) {
                *found = piece;
                sum->n_kept++;
        }
        return found;
}

static int take(void *userdata, uint64_t piece, const void *found) {
        struct sum *sum = userdata;
        const uint64_t *kept = found;

        ck_assert_uint_eq(piece, sum->n_taken);
        ck_assert(!kept || *kept == piece);
        sum->n_taken++;
        sum->n_found += kept != NULL;
        return piece == sum->fails_at ? -EDOM : 0;
}

static void let_go(void *found) {
        free(found);
}

START_TEST(pieces_are_taken_in_order_whoever_looked_at_them) {
        for (uint32_t n_threads = 1; n_threads <= CUTS_THREADS + 1; n_threads++) {
                CUTS_LIMITS.is_patient = n_threads % 2 == 0;
                for (uint64_t n = 0; n < 300; n = n * 2 + 1) {
                        struct sum sum = { .fails_at = UINT64_MAX };
                        struct parted parted = { .n = n, .look = look, .take = take, .free = let_go, .userdata = &sum };

                        CUTS_LIMITS.n_threads = n_threads;
                        ck_assert_int_eq(parted_run(&parted), 0);
                        ck_assert_uint_eq(sum.n_taken, n);
                        ck_assert_uint_eq(sum.n_found, sum.n_kept);
                        ck_assert(n_threads > 1 || sum.n_found == 0);
                        sum = (struct sum){ .fails_at = n / 2 };
                        ck_assert_int_eq(parted_run(&parted), n > 0 ? -EDOM : 0);
                        ck_assert_uint_eq(sum.n_taken, n > 0 ? n / 2 + 1 : 0);
                }
        }
        CUTS_LIMITS.n_threads = 0;
        CUTS_LIMITS.is_patient = false;
}
END_TEST

START_TEST(files_are_cut_into_as_many_pieces_as_threads_need) {
        CUTS_LIMITS.n_threads = 1;
        ck_assert_uint_eq(parted_pieces(1), 1);
        ck_assert_uint_eq(parted_pieces(3), 3);
        CUTS_LIMITS.n_threads = 4;
        ck_assert_uint_eq(parted_pieces(0), 0);
        ck_assert_uint_eq(parted_pieces(1), 16);
        ck_assert_uint_eq(parted_pieces(5), 20);
        ck_assert_uint_eq(parted_pieces(100), 100);
        CUTS_LIMITS.n_threads = 0;
        CUTS_LIMITS.is_patient = false;
}
END_TEST

/* ---- an index as bytes ----------------------------------------------------------------------------------------- */

static void build(const struct format *format, const char *name, uint64_t max_copied, uint32_t n_threads,
                  struct outcome *outcome) {
        CUTS_LIMITS.n_threads = n_threads;
        outcome_find(&tree, format, name, NULL, &(struct index_watch){ .max_copied = max_copied }, outcome);
}

/* Once with whoever is faster, and once with parts alone. Returns what one thread said. */
static int compare(const struct format *format, const char *name, uint64_t max_copied, uint32_t n_threads,
                   const char *what) {
        _cleanup_(outcome_fini) struct outcome alone, usual, parts;

        tree_age(&tree, ".");
        build(format, name, max_copied, 1, &alone);
        build(format, name, max_copied, n_threads, &usual);
        outcome_expect_same(&alone, &usual, what, "by several threads");
        CUTS_LIMITS.is_patient = true;
        build(format, name, max_copied, n_threads, &parts);
        CUTS_LIMITS.is_patient = false;
        outcome_expect_same(&alone, &parts, what, "by parts alone");
        return alone.r;
}

/* ---- what writers wrote ---------------------------------------------------------------------------------------- */

static void write_file(const char *name, const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(closep) int fd = openat(tree.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        ck_assert(fd >= 0 && disk_write_at(fd, bytes, n_bytes, 0) == 0);
        tree_age(&tree, name);
}

static size_t read_vector(const char *path, uint8_t *bytes) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        off_t n = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;

        ck_assert(n >= 0 && n <= (off_t)FILE_MAX && disk_read_at(fd, bytes, (size_t)n, 0) == 0);
        return (size_t)n;
}

/* With not quite enough memory for what is copied, and with enough. */
static void compare_memory(const struct format *format, const char *what) {
        uint64_t low = 1, high = 1u << 20;

        while (high - low > MEMORY_STEP) {
                uint64_t max = low + (high - low) / 2;
                _cleanup_(outcome_fini) struct outcome outcome;

                build(format, NULL, max, 1, &outcome);
                *(outcome.r < 0 ? &low : &high) = max;
        }
        compare(format, NULL, low, 2 + (uint32_t)(low % 4), what);
        compare(format, NULL, high, 3, what);
}

/* The file alone; beside others like it; damaged; with memory for a part of it. */
static void compare_vector(const struct format *format, const char *ending, const char *path) {
        static uint8_t bytes[FILE_MAX];
        size_t n = read_vector(path, bytes);
        char first[32], names[3][32];

        for (int i = 0; i < 3; i++) {
                snprintf(names[i], sizeof(names[i]), "%d%s", i, ending);
                write_file(names[i], bytes, n);
        }
        snprintf(first, sizeof(first), "0%s", ending);
        if (compare(format, NULL, 0, 2, path) == 0) {
                compare(format, first, 0, 5, path);
                compare_memory(format, path);
        }
        for (size_t i = 0; i < N_DAMAGES && n > 0; i++) {
                size_t at = (2 * i + 1) * n / (2 * N_DAMAGES);

                bytes[at] ^= (uint8_t)(1u << i % 8);
                write_file(names[1], bytes, n);
                bytes[at] ^= (uint8_t)(1u << i % 8);
                compare(format, NULL, 0, 3, path);
        }
        write_file(names[1], bytes, n * 2 / 3);
        compare(format, NULL, 0, 3, path);
        for (int i = 0; i < 3; i++)
                ck_assert(unlinkat(tree.fd, names[i], 0) == 0);
}

static void compare_vectors(const struct format *format, const char *folder, const char *ending) {
        DIR *dir = opendir(folder);
        struct dirent *entry;
        unsigned n = 0;

        ck_assert(dir != NULL);
        setup();
        while ((entry = readdir(dir))) {
                size_t n_name = strlen(entry->d_name), n_ending = strlen(ending);
                char path[PATH_MAX];

                if (n_name <= n_ending || strcmp(entry->d_name + n_name - n_ending, ending) != 0 ||
                    strncmp(entry->d_name, "bomb", 4) == 0) /* they take long */
                        continue;
                snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
                compare_vector(format, ending, path);
                n++;
        }
        closedir(dir);
        ck_assert_uint_gt(n, 20);
        teardown();
}

/* ---- folders of shards ----------------------------------------------------------------------------------------- */

static bool is_file(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

/* Returns how many files there are. */
static unsigned copy_folder(const char *folder) {
        static uint8_t bytes[FILE_MAX];
        DIR *dir = opendir(folder);
        struct dirent *entry;
        unsigned n = 0;

        ck_assert(dir != NULL);
        while ((entry = readdir(dir))) {
                char path[PATH_MAX + NAME_MAX + 2];

                if (!is_file(entry))
                        continue;
                snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
                write_file(entry->d_name, bytes, read_vector(path, bytes));
                n++;
        }
        closedir(dir);
        return n;
}

/* The folder as it was written, and with each file damaged in its turn. */
static int compare_folder(const struct format *format, const char *folder) {
        static uint8_t bytes[FILE_MAX];
        struct dirent *entry;
        DIR *dir;
        int r;

        setup();
        ck_assert(copy_folder(folder) > 1);
        r = compare(format, NULL, 0, 3, folder);
        dir = opendir(folder);
        while ((entry = readdir(dir))) {
                char path[PATH_MAX + NAME_MAX + 2];
                size_t n;

                if (!is_file(entry))
                        continue;
                snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
                n = read_vector(path, bytes);
                for (size_t i = 0; i < N_DAMAGES && n > 0; i++) {
                        size_t at = (2 * i + 1) * n / (2 * N_DAMAGES);

                        bytes[at] ^= (uint8_t)(1u << i % 8);
                        write_file(entry->d_name, bytes, n);
                        compare(format, NULL, 0, 2 + (uint32_t)i % 4, path);
                        bytes[at] ^= (uint8_t)(1u << i % 8);
                }
                write_file(entry->d_name, bytes, n);
        }
        closedir(dir);
        teardown();
        return r;
}

static void compare_folders(const struct format *format, const char *root) {
        DIR *dir = opendir(root);
        struct dirent *entry;
        unsigned n_served = 0;

        ck_assert(dir != NULL);
        while ((entry = readdir(dir))) {
                char folder[PATH_MAX];

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                snprintf(folder, sizeof(folder), "%s/%s", root, entry->d_name);
                n_served += compare_folder(format, folder) == 0;
        }
        closedir(dir);
        ck_assert_uint_gt(n_served, 1);
}

#define N_SHARDS 6u

/* A shard of MDS with three arrays of float32, n_rows by n_columns each. */
static void write_arrays(const char *name, uint32_t n_rows, uint32_t n_columns) {
        static const char CONFIG[] = "{\"version\": 2}";
        uint8_t bytes[1024] = { 3 };
        uint32_t n_array = 4 + 4 * n_rows * n_columns, at = 4 * 5 + sizeof(CONFIG) - 1;

        memcpy(bytes + 4 * 5, CONFIG, sizeof(CONFIG) - 1);
        for (uint32_t i = 0; i <= 3; i++) {
                const uint8_t prefix[4] = { 34, 2 << 2, (uint8_t)n_rows, (uint8_t)n_columns };

                memcpy(bytes + 4 + (size_t)4 * i, &at, sizeof(at));
                if (i == 3)
                        break;
                memcpy(bytes + at, &n_array, sizeof(n_array));
                memcpy(bytes + at + 4, prefix, sizeof(prefix));
                at += 4 + n_array;
        }
        ck_assert(at < sizeof(bytes));
        write_file(name, bytes, at);
}

START_TEST(arrays_may_be_of_another_length_in_each_shard) {
        char index[4096];
        int n = snprintf(index, sizeof(index), "{\"version\": 2, \"shards\": [");

        setup();
        for (uint32_t i = 0; i < N_SHARDS; i++) {
                char name[16];

                snprintf(name, sizeof(name), "%u.mds", i);
                write_arrays(name, 2 + i, 2);
                n += snprintf(index + n, sizeof(index) - (size_t)n,
                              "%s{\"column_encodings\": [\"ndarray\"], \"column_names\": [\"x\"], \"column_sizes\": "
                              "[null], \"compression\": null, \"format\": \"mds\", \"raw_data\": {\"basename\": "
                              "\"%s\", \"bytes\": %u}, \"samples\": 3, \"version\": 2, \"zip_data\": null}",
                              i > 0 ? ", " : "", name, 34 + 3 * (8 + 8 * (2 + i)));
        }
        n += snprintf(index + n, sizeof(index) - (size_t)n, "]}");
        write_file("index.json", (const uint8_t *)index, (size_t)n);
        ck_assert_int_eq(compare(&format_mds, NULL, 0, 3, "arrays of other lengths"), 0);
        write_arrays("4.mds", 4, 3);
        ck_assert_int_eq(compare(&format_mds, NULL, 0, 3, "an array of another shape"), -ENOTSUP);
        teardown();
}
END_TEST

START_TEST(shards_of_items_are_the_same_however_many_threads_read_them) {
        compare_folders(&format_mds, "tests/vectors/mds");
        compare_folders(&format_litdata, "tests/vectors/litdata");
}
END_TEST

START_TEST(parquet_is_the_same_however_many_threads_read_it) {
        compare_vectors(&format_parquet, "tests/vectors/parquet", ".parquet");
}
END_TEST

START_TEST(arrow_is_the_same_however_many_threads_read_it) {
        compare_vectors(&format_arrow, "tests/vectors/arrow", ".arrow");
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pieces", pieces_are_taken_in_order_whoever_looked_at_them },
                { "pieces", files_are_cut_into_as_many_pieces_as_threads_need },
                { "formats", parquet_is_the_same_however_many_threads_read_it },
                { "formats", arrays_may_be_of_another_length_in_each_shard },
                { "formats", shards_of_items_are_the_same_however_many_threads_read_them },
                { "formats", arrow_is_the_same_however_many_threads_read_it },
        };

        return suite_run("parted", rows, ARRAY_SIZE(rows));
}
