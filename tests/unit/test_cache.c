/* The cache: its journal, whatever it holds; the bytes of wants, whoever else wants them, and whatever makes room; what
 * a later daemon finds. The origin is a folder, read through file: URLs. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache.h"
#include "daemon/store/cache/cache_journal.h"
#include "daemon/store/cache/compressed.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define LISTING   "8f3a09b2c4d1000000000000000000000000000000000000000000000000cafe"
#define OTHER     "8f3a09b2c4d1000000000000000000000000000000000000000000000000caff"
#define HEADER    80
#define RECORD    32
#define LARGE     ((2ull << 23) + 12345) /* two chunks and a bit */
#define N_WANTERS 4
#define N_WANTS   150

static struct tree tree;
static struct cache *cache;
static struct cached *cached;
static char url[160], dir[96];
static const char *mirror;
static struct why why;

/* ---- the journal ------------------------------------------------------------------------------------------------- */

static struct cache_journal journal;
static char path[128];
static char taken[256]; /* a letter a record: kind, chunk; capital: of this boot */

static void on_take(void *userdata, const struct journal_record *record, bool is_of_boot) {
        size_t n = strlen(taken);

        (void)userdata;
        snprintf(taken + n, sizeof(taken) - n, "%c%lu ", is_of_boot ? "TGS"[record->kind] : "tgs"[record->kind],
                 (unsigned long)record -> chunk);
}

static void on_take_nothing(void *userdata, const struct journal_record *record, bool is_of_boot) {
        (void)userdata;
        (void)record;
        (void)is_of_boot;
}

static const char *reopen(const char *listing) {
        cache_journal_close(&journal);
        taken[0] = '\0';
        ck_assert_int_eq(cache_journal_open(&journal, path, listing, on_take, NULL, &why), 0);
        return taken;
}

static void note(enum journal_kind kind, uint64_t chunk, uint64_t n_bytes) {
        struct journal_record record = { .chunk = chunk, .n_bytes = n_bytes, .kind = kind, .digest = 7 * chunk };

        ck_assert_int_eq(cache_journal_add(&journal, &record), 0);
}

/* As if it had been written before the machine was started. */
static void note_boot(void) {
        ck_assert_int_eq(cache_journal_add(&journal, &(struct journal_record){ .kind = JOURNAL_BOOT, .digest = 5 }), 0);
}

static void setup_journal(void) {
        tree_make(&tree);
        snprintf(path, sizeof(path), "%s/journal", tree.root);
        journal.fd = -1;
        ck_assert_str_eq(reopen(LISTING), "");
}

static void teardown_journal(void) {
        cache_journal_close(&journal);
        tree_remove(&tree);
}

START_TEST(what_is_noted_is_read_and_another_listing_has_none) {
        note(JOURNAL_THERE, 1, 10);
        note(JOURNAL_THERE, 2, 10);
        note(JOURNAL_GONE, 1, 10);
        ck_assert_str_eq(reopen(LISTING), "T1 T2 G1 ");
        ck_assert_uint_eq(cache_journal_bytes(path), 10);
        ck_assert_str_eq(reopen(OTHER), "");
        ck_assert_str_eq(reopen(LISTING), "");
        ck_assert_uint_eq(cache_journal_bytes(path), 0);
}
END_TEST

START_TEST(a_torn_record_ends_it_and_the_next_one_takes_its_place) {
        struct stat status;

        for (uint64_t i = 0; i < 3; i++)
                note(JOURNAL_THERE, i, 1);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_int_eq(status.st_size, HEADER + 4 * RECORD); /* and the mark of the boot */
        for (off_t cut = 1; cut < RECORD; cut += 10) {
                ck_assert_int_eq(truncate(path, HEADER + 4 * RECORD - cut), 0);
                ck_assert_str_eq(reopen(LISTING), "T0 T1 ");
                note(JOURNAL_THERE, 7, 1);
                ck_assert_str_eq(reopen(LISTING), "T0 T1 T7 ");
        }
        ck_assert_int_eq(truncate(path, HEADER - 1), 0);
        ck_assert_str_eq(reopen(LISTING), "");
        note(JOURNAL_THERE, 8, 1);
        ck_assert_str_eq(reopen(LISTING), "T8 ");
}
END_TEST

START_TEST(what_was_noted_before_this_boot_is_in_doubt_until_it_is_noted_again) {
        note(JOURNAL_THERE, 1, 1);
        note_boot();
        note(JOURNAL_THERE, 2, 1);
        ck_assert_str_eq(reopen(LISTING), "t1 t2 ");
        note(JOURNAL_SEEN, 1, 1);
        note(JOURNAL_THERE, 3, 1);
        ck_assert_str_eq(reopen(LISTING), "t1 t2 S1 T3 ");
        ck_assert_int_eq(cache_journal_mark(&journal), 0);
        note(JOURNAL_THERE, 4, 1);
        ck_assert_str_eq(reopen(LISTING), "t1 t2 s1 t3 T4 ");
        ck_assert_uint_eq(cache_journal_bytes(path), 4);
}
END_TEST

START_TEST(what_has_gone_without_having_been_there_takes_nothing_from_the_sum) {
        note(JOURNAL_GONE, 1, 1000);
        note(JOURNAL_THERE, 2, 10);
        ck_assert_uint_eq(cache_journal_bytes(path), 10);
}
END_TEST

START_TEST(a_journal_that_cannot_grow_is_forgotten_and_goes_on) {
        const struct rlimit now = { HEADER + 2 * RECORD, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
        struct journal_record record = { .chunk = 1, .kind = JOURNAL_GONE };

        note(JOURNAL_THERE, 1, 10);
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
        ck_assert_int_lt(cache_journal_add(&journal, &record), 0);
        cache_journal_forget(&journal);
        note(JOURNAL_THERE, 2, 10);
        setrlimit(RLIMIT_FSIZE, &none);
        ck_assert_str_eq(reopen(LISTING), "t2 "); /* of which boot is unknown, too */
}
END_TEST

START_TEST(a_journal_is_known_by_its_first_bytes) {
        char other[128];

        tree_file(&tree, "diary", "dear journal");
        tree_file(&tree, "empty", "");
        tree_fifo(&tree, "pipe");
        ck_assert(cache_journal_is_one(path));
        for (size_t i = 0; i < 4; i++) {
                snprintf(other, sizeof(other), "%s/%s", tree.root,
                         (const char *[]){ "diary", "empty", "pipe", "none" }[i]);
                ck_assert_msg(!cache_journal_is_one(other), "%s", other);
        }
}
END_TEST

/* ---- names ------------------------------------------------------------------------------------------------------- */

START_TEST(a_compressed_name_has_something_before_its_ending) {
        static const struct {
                const char *name;
                size_t n_plain;
        } ROWS[] = {
                { "a.jsonl.gz", 7 }, { "a.zst", 1 },     { "d/a.zstd", 3 }, { "a.b.xz", 3 },  { "x.bz2", 1 },
                { "x.lz4", 1 },      { ".gz", 0 },       { "d/.gz", 0 },    { "a.jsonl", 0 }, { "gz", 0 },
                { "a.gz/b", 0 },     { "a.gz/b.gz", 6 }, { "", 0 },         { "a.GZ", 0 },    { "a.br", 0 },
        };

        ck_assert_uint_eq(compressed_plain_length(ROWS[_i].name), ROWS[_i].n_plain);
}
END_TEST

/* ---- an origin --------------------------------------------------------------------------------------------------- */

static uint8_t byte_at(uint64_t offset) {
        return (uint8_t)(offset * 0x9e3779b97f4a7c15ull >> 56);
}

static void make_large(const char *name) {
        uint8_t *bytes = malloc(LARGE);
        int fd;

        for (uint64_t i = 0; i < LARGE; i++)
                bytes[i] = byte_at(i);
        tree_file(&tree, name, "");
        fd = openat(tree.fd, name, O_WRONLY);
        ck_assert_int_eq(write(fd, bytes, LARGE), (ssize_t)LARGE);
        close(fd);
        free(bytes);
}

static void begin(uint64_t limit) {
        ck_assert_int_eq(cache_new(&(struct cache_options){ .dir = dir, .limit = limit }, &cache), 0);
        if (cached_open(cache, &(struct cached_terms){ .url = url, .mirror = mirror }, &cached, &why) < 0)
                ck_abort_msg("%s", why.text);
}

static void finish(void) {
        cached_unref(cached);
        cache_cancel(cache);
        cache_free(cache);
        cache = NULL;
}

static void setup(void) {
        tree_make(&tree);
        make_large("origin/large");
        tree_file(&tree, "origin/d e%/\xc3\xa9", "0123456789");
        tree_file(&tree, "origin/empty", "");
        snprintf(url, sizeof(url), "file://%s/origin", tree.root);
        snprintf(dir, sizeof(dir), "%s/cache", tree.root);
        mirror = NULL;
        begin(1ull << 30);
}

static void teardown(void) {
        if (cache)
                finish();
        tree_remove(&tree);
}

struct waiting {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_done;
};

static void on_done(struct cache_want *want) {
        struct waiting *waiting = want->userdata;

        pthread_mutex_lock(&waiting->lock);
        waiting->is_done = true;
        pthread_cond_signal(&waiting->changed);
        pthread_mutex_unlock(&waiting->lock);
}

/* Returns its result; 0: it is there, and was not released. */
static int want_and_wait(struct cache_want *want, const char *name) {
        struct waiting waiting = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        int r;

        want->done = on_done;
        want->userdata = &waiting;
        r = cached_want(cached, want, cached_path(cached), name);
        if (r != 0)
                return r < 0 ? r : 0;
        pthread_mutex_lock(&waiting.lock);
        while (!waiting.is_done)
                pthread_cond_wait(&waiting.changed, &waiting.lock);
        pthread_mutex_unlock(&waiting.lock);
        return want->result;
}

static int open_file(const char *name) {
        char file[256];

        snprintf(file, sizeof(file), "%s/%s", cached_path(cached), name);
        return open(file, O_RDONLY | O_CLOEXEC);
}

static void check_part(int fd, uint64_t offset, uint64_t n_bytes) {
        uint8_t *bytes = malloc(n_bytes);

        ck_assert_int_eq(pread(fd, bytes, n_bytes, (off_t)offset), (ssize_t)n_bytes);
        for (uint64_t i = 0; i < n_bytes; i++)
                if (bytes[i] != byte_at(offset + i))
                        ck_abort_msg("byte %lu", (unsigned long)(offset + i));
        free(bytes);
}

static void read_part(uint64_t offset, uint64_t n_bytes) {
        struct cache_want want = { .offset = offset, .n_bytes = n_bytes };
        int fd = open_file("large");

        ck_assert_int_eq(want_and_wait(&want, "large"), 0);
        check_part(fd, offset, n_bytes);
        cached_release(cached, &want);
        close(fd);
}

static uint64_t n_fetched(void) {
        struct cache_counts counts;

        ck_assert(cache_counts(cache, &counts));
        return counts.n_fetched;
}

static uint64_t n_held(void) {
        struct cache_counts counts;

        ck_assert(cache_counts(cache, &counts));
        return counts.n_bytes;
}

static uint64_t n_on_disk(void) {
        struct stat status;
        int fd = open_file("large");

        ck_assert_int_eq(fstat(fd, &status), 0);
        close(fd);
        return (uint64_t)status.st_blocks * 512;
}

START_TEST(wants_of_nothing_are_there_and_those_of_no_file_are_refused) {
        static const struct {
                const char *name;
                uint64_t offset, n_bytes;
        } ROWS[] = { { "large", 0, 0 },         { "large", 5, 0 }, { "large", LARGE, 1 },
                     { "large", LARGE + 9, 9 }, { "empty", 0, 0 }, { "empty", 0, 9 } };
        struct cache_want want;

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                want = (struct cache_want){ .offset = ROWS[i].offset, .n_bytes = ROWS[i].n_bytes };
                ck_assert_int_eq(cached_want(cached, &want, cached_path(cached), ROWS[i].name), 1);
                cached_release(cached, &want);
        }
        ck_assert_int_eq(cached_want(cached, &want, cached_path(cached), "none"), -ENOENT);
        ck_assert_ptr_nonnull(strstr(want.why.text, "none"));
        ck_assert_uint_eq(n_fetched(), 0);
}
END_TEST

START_TEST(parts_around_the_ends_of_chunks_are_the_bytes_of_the_origin) {
        static const uint64_t AT[] = {
                0, 1, CACHE_CHUNK_BYTES - 1, CACHE_CHUNK_BYTES, 2 * CACHE_CHUNK_BYTES - 100, LARGE - 1
        };
        static const uint64_t N[] = { 1, 100, 3000000, CACHE_CHUNK_BYTES, CACHE_CHUNK_BYTES + 100 };

        for (size_t i = 0; i < sizeof(AT) / sizeof(AT[0]); i++)
                for (size_t k = 0; k < sizeof(N) / sizeof(N[0]); k++)
                        read_part(AT[i], N[k] < LARGE - AT[i] ? N[k] : LARGE - AT[i]);
}
END_TEST

START_TEST(a_name_with_anything_in_it_is_that_of_a_file) {
        struct cache_want want = { .n_bytes = 10 };
        char text[11] = "";
        int fd = open_file("d e%/\xc3\xa9");

        ck_assert_int_eq(want_and_wait(&want, "d e%/\xc3\xa9"), 0);
        ck_assert_int_eq(pread(fd, text, 10, 0), 10);
        ck_assert_str_eq(text, "0123456789");
        cached_release(cached, &want);
        close(fd);
}
END_TEST

START_TEST(a_piece_goes_with_its_last_reader_and_is_fetched_again) {
        struct cache_want one = { .offset = 1000, .n_bytes = 50000 }, same = one;
        int fd = open_file("large");

        ck_assert_int_eq(want_and_wait(&one, "large"), 0);
        ck_assert_int_eq(want_and_wait(&same, "large"), 0);
        ck_assert_uint_eq(n_fetched(), 50000);
        cached_release(cached, &one);
        check_part(fd, 1000, 50000);
        read_part(1000, 50000);
        ck_assert_uint_eq(n_fetched(), 50000);
        cached_release(cached, &same);
        ck_assert_uint_le(n_on_disk(), 2 * 4096); /* pages that are partly its own */
        ck_assert_uint_eq(n_held(), 0);
        read_part(1000, 50000);
        ck_assert_uint_eq(n_fetched(), 100000);
        close(fd);
}
END_TEST

START_TEST(a_piece_within_another_one_is_released_for_itself) {
        struct cache_want inner = { .offset = 4096, .n_bytes = 4096 }, outer = { .n_bytes = 65536 };
        int fd = open_file("large");

        ck_assert_int_eq(want_and_wait(&inner, "large"), 0);
        ck_assert_int_eq(want_and_wait(&outer, "large"), 0);
        cached_release(cached, &inner);
        check_part(fd, 0, 65536);
        cached_release(cached, &outer);
        ck_assert_uint_eq(n_on_disk(), 0);
        close(fd);
}
END_TEST

START_TEST(pieces_that_are_kept_stay_until_their_chunk_comes) {
        struct cache_want piece = { .offset = 100, .n_bytes = 1000, .keeps_pieces = true };

        ck_assert_int_eq(want_and_wait(&piece, "large"), 0);
        cached_release(cached, &piece);
        read_part(500000, 2000); /* which goes */
        read_part(100, 1000);
        ck_assert_uint_eq(n_fetched(), 3000);
        read_part(0, CACHE_CHUNK_BYTES);
        ck_assert_uint_eq(n_held(), CACHE_CHUNK_BYTES);
}
END_TEST

START_TEST(what_is_forgotten_is_not_done_and_leaves_nothing) {
        struct waiting waiting = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

        for (uint32_t i = 0; i < 200; i++) {
                struct cache_want want = { .offset = i * 4096, .n_bytes = 4096, .done = on_done, .userdata = &waiting };

                waiting.is_done = false;
                if (cached_want(cached, &want, cached_path(cached), "large") == 0 && !cached_forget(cached, &want)) {
                        pthread_mutex_lock(&waiting.lock);
                        while (!waiting.is_done)
                                pthread_cond_wait(&waiting.changed, &waiting.lock);
                        pthread_mutex_unlock(&waiting.lock);
                        cached_release(cached, &want);
                }
        }
        read_part(0, LARGE);
        ck_assert_uint_eq(n_held(), LARGE);
}
END_TEST

START_TEST(a_later_daemon_fetches_nothing_that_is_here) {
        read_part(0, LARGE);
        finish();
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), 0);
        ck_assert_uint_eq(n_held(), LARGE);
}
END_TEST

static void find_journal(char file[256]) {
        snprintf(file, 256, "%s", cached_path(cached));
        snprintf(strstr(file, "/files"), 20, "/journal");
}

/* The machine was started again meanwhile, and a page of the first chunk has not reached the disk. */
static void damage(const char *file) {
        char large[256];
        int fd;

        snprintf(large, sizeof(large), "%s/large", cached_path(cached));
        finish();
        journal.fd = open(file, O_RDWR | O_CLOEXEC);
        journal.end = (uint64_t)lseek(journal.fd, 0, SEEK_END);
        note_boot();
        cache_journal_close(&journal);
        fd = open(large, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, "zeros", 5, 4096), 5);
        close(fd);
}

START_TEST(what_is_from_before_this_boot_is_compared_and_what_is_wrong_is_fetched) {
        char file[256];

        read_part(0, LARGE);
        find_journal(file);
        damage(file);
        if (_i > 0)
                tree_file(&tree, "origin/another", "the listing changes as well");
        begin(1ull << 30);
        if (_i > 1) { /* and nobody looks until the next start */
                finish();
                begin(1ull << 30);
        }
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), CACHE_CHUNK_BYTES);
        finish();
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), 0);
}
END_TEST

#define N_NOTED 6000u

/* More records for chunks that are there, which say nothing new. */
static void swell_journal(const char *file) {
        struct journal_record record = { .chunk = 1, .n_bytes = CACHE_CHUNK_BYTES, .kind = JOURNAL_SEEN };
        struct cache_journal swollen;
        struct journal_record first;
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        char digest[65] = "";

        ck_assert_int_eq(pread(fd, digest, 64, 8), 64);
        for (off_t at = HEADER; pread(fd, &first, RECORD, at) == RECORD; at += RECORD)
                if (first.kind == JOURNAL_THERE && first.chunk == record.chunk)
                        record.digest = first.digest;
        close(fd);
        ck_assert_int_eq(cache_journal_open(&swollen, file, digest, on_take_nothing, NULL, &why), 0);
        for (uint32_t i = 0; i < N_NOTED; i++)
                ck_assert_int_eq(cache_journal_add(&swollen, &record), 0);
        cache_journal_close(&swollen);
}

static off_t length_of(const char *file) {
        struct stat status;

        return stat(file, &status) == 0 ? status.st_size : -1;
}

/* At the chunk's beginning, within it, one over the end of another, and at its end; one is too small for that. */
START_TEST(what_pieces_have_brought_does_not_come_again_with_their_chunk) {
        static const uint64_t PLACES[][2] = { { 0, 65536 },
                                              { 1000000, 100001 },
                                              { 1050000, 200000 },
                                              { 3000000, 1000 },
                                              { CACHE_CHUNK_BYTES - 65536, 65536 } };
        uint64_t n_pieces = 0;
        char file[256];

        for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
                struct cache_want piece = { .offset = CACHE_CHUNK_BYTES + PLACES[i][0],
                                            .n_bytes = PLACES[i][1],
                                            .keeps_pieces = true };

                ck_assert_int_eq(want_and_wait(&piece, "large"), 0);
                cached_release(cached, &piece);
                n_pieces += piece.n_bytes;
        }
        ck_assert_uint_eq(n_fetched(), n_pieces);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), LARGE + 1000 + (1000000 + 100001 - 1050000));
        find_journal(file);
        damage(file); /* of the chunk before */
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), CACHE_CHUNK_BYTES); /* so the digest of this one is that of its bytes */
}
END_TEST

START_TEST(a_journal_that_says_little_is_written_anew_and_says_the_same) {
        char file[256];

        read_part(0, LARGE);
        find_journal(file);
        finish();
        swell_journal(file);
        ck_assert_int_gt(length_of(file), N_NOTED * RECORD);
        begin(1ull << 30);
        ck_assert_int_lt(length_of(file), HEADER + 16 * RECORD);
        read_part(0, LARGE);
        finish();
        journal.fd = open(file, O_RDWR | O_CLOEXEC);
        journal.end = (uint64_t)lseek(journal.fd, 0, SEEK_END);
        note_boot(); /* as if it were of another boot: the rest is compared */
        cache_journal_close(&journal);
        swell_journal(file);
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), 0);
        ck_assert_uint_eq(n_held(), LARGE);
}
END_TEST

START_TEST(killed_while_a_journal_is_written_anew_the_next_one_has_all_of_it) {
        char file[256];

        read_part(0, LARGE);
        find_journal(file);
        finish();
        for (uint32_t round = 0; round < 30; round++) {
                pid_t pid = fork();

                ck_assert_int_ge(pid, 0);
                for (; pid == 0; finish()) {
                        swell_journal(file);
                        begin(1ull << 30);
                }
                usleep(1000 * (10 + round));
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                begin(1ull << 30);
                ck_assert_uint_eq(n_held(), LARGE);
                read_part(0, LARGE);
                ck_assert_uint_eq(n_fetched(), 0);
                finish();
        }
}
END_TEST

START_TEST(bytes_that_no_journal_knows_are_given_back) {
        char file[256], junk[4096];
        int fd;

        memset(junk, 'x', sizeof(junk));
        read_part(CACHE_CHUNK_BYTES, CACHE_CHUNK_BYTES); /* the one in the middle */
        snprintf(file, sizeof(file), "%s/large", cached_path(cached));
        finish();
        fd = open(file, O_WRONLY | O_CLOEXEC);
        ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), 4096), 4096);
        ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), CACHE_CHUNK_BYTES - 4096), 4096);
        ck_assert_int_eq(pwrite(fd, junk, 10, 2 * CACHE_CHUNK_BYTES + 5), 10);
        close(fd);
        begin(1ull << 30);
        ck_assert_uint_eq(n_on_disk(), CACHE_CHUNK_BYTES);
        ck_assert_uint_eq(n_held(), CACHE_CHUNK_BYTES);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), LARGE - CACHE_CHUNK_BYTES);
}
END_TEST

#define N_SMALL 600u /* more than are asked for, or compared, at once */

static uint32_t n_done;

static void on_one_of_many(struct cache_want *want) {
        struct waiting *waiting = want->userdata;

        pthread_mutex_lock(&waiting->lock);
        ck_assert_int_eq(want->result, 0);
        n_done++;
        pthread_cond_signal(&waiting->changed);
        pthread_mutex_unlock(&waiting->lock);
}

static void want_all_small(void) {
        struct waiting waiting = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        static struct cache_want wants[N_SMALL];
        char name[16];

        n_done = 0;
        for (uint32_t i = 0; i < N_SMALL; i++) {
                wants[i] = (struct cache_want){ .n_bytes = 10, .done = on_one_of_many, .userdata = &waiting };
                snprintf(name, sizeof(name), "small/%u", i);
                if (cached_want(cached, &wants[i], cached_path(cached), name) == 1)
                        on_one_of_many(&wants[i]);
        }
        pthread_mutex_lock(&waiting.lock);
        while (n_done < N_SMALL)
                pthread_cond_wait(&waiting.changed, &waiting.lock);
        pthread_mutex_unlock(&waiting.lock);
        for (uint32_t i = 0; i < N_SMALL; i++)
                cached_release(cached, &wants[i]);
}

START_TEST(of_what_is_from_before_this_boot_all_is_compared_however_much_it_is) {
        char file[256], name[32];

        finish();
        for (uint32_t i = 0; i < N_SMALL; i++) {
                snprintf(name, sizeof(name), "origin/small/%u", i);
                tree_file(&tree, name, "0123456789");
        }
        begin(1ull << 30);
        want_all_small();
        find_journal(file);
        damage(file);
        begin(1ull << 30);
        want_all_small();
        ck_assert_uint_eq(n_fetched(), 0);
}
END_TEST

START_TEST(what_comes_short_leaves_no_bytes_but_those_of_pieces) {
        struct cache_want piece = { .offset = 1 << 20, .n_bytes = 65536, .keeps_pieces = true };
        struct cache_want want = { .n_bytes = CACHE_CHUNK_BYTES };
        char file[128];

        ck_assert_int_eq(want_and_wait(&piece, "large"), 0);
        snprintf(file, sizeof(file), "%s/origin/large", tree.root);
        ck_assert_int_eq(truncate(file, CACHE_CHUNK_BYTES / 2), 0);
        ck_assert_int_lt(want_and_wait(&want, "large"), 0);
        ck_assert_ptr_nonnull(strstr(want.why.text, "it ended after"));
        ck_assert_uint_eq(n_on_disk(), 65536);
        ck_assert_uint_eq(n_held(), 0);
        read_part(1 << 20, 65536);
        ck_assert_uint_eq(n_fetched(), CACHE_CHUNK_BYTES / 2);
        cached_release(cached, &piece);
}
END_TEST

START_TEST(what_cannot_be_written_is_asked_for_once_and_says_where) {
        struct cache_want want = { .n_bytes = CACHE_CHUNK_BYTES };
        struct cache_counts counts;
        char file[256];

        finish();
        mirror = _i == 0 ? NULL : url;
        begin(1ull << 30);
        snprintf(file, sizeof(file), "%s/large", cached_path(cached));
        ck_assert_int_eq(unlink(file), 0);
        ck_assert_int_eq(want_and_wait(&want, "large"), -ENOENT);
        ck_assert_ptr_nonnull(strstr(want.why.text, "/large: "));
        ck_assert_ptr_nonnull(strstr(want.why.text, dir));
        cache_counts(cache, &counts);
        ck_assert_uint_eq(counts.n_requests, 1);
        ck_assert_uint_eq(counts.n_bytes, 0);
}
END_TEST

/* The mirror's file ends within the second chunk, which then comes from the origin, from its beginning on. */
START_TEST(what_a_mirror_has_begun_and_the_origin_sends_anew_is_whole) {
        char elsewhere[160], file[256];

        finish();
        make_large("mirror/large");
        snprintf(file, sizeof(file), "%s/mirror/large", tree.root);
        ck_assert_int_eq(truncate(file, CACHE_CHUNK_BYTES * 3 / 2 + 777), 0);
        snprintf(elsewhere, sizeof(elsewhere), "file://%s/mirror", tree.root);
        mirror = elsewhere;
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), LARGE + CACHE_CHUNK_BYTES / 2 + 777);
        find_journal(file);
        damage(file);
        begin(1ull << 30);
        read_part(0, LARGE);
        ck_assert_uint_eq(n_fetched(), CACHE_CHUNK_BYTES); /* of all else the digest is that of its bytes */
}
END_TEST

START_TEST(after_the_end_wants_are_canceled) {
        struct cache_want want = { .n_bytes = LARGE };
        int r;

        cache_cancel(cache);
        r = want_and_wait(&want, "large");
        ck_assert_int_eq(r, -ECANCELED);
        ck_assert_ptr_nonnull(want.why.text[0] ? want.why.text : NULL);
        cached_ahead(cached, cached_path(cached), "large", 0, LARGE, 0);
        ck_assert_uint_eq(n_fetched(), 0);
}
END_TEST

START_TEST(what_does_not_fit_passes_through_and_folders_of_others_stay) {
        struct stat status;
        char diary[128];

        finish();
        tree_file(&tree, "cache/mine/journal", "a diary");
        begin(CACHE_CHUNK_BYTES);
        for (uint32_t round = 0; round < 3; round++)
                for (uint64_t at = 0; at < LARGE; at += CACHE_CHUNK_BYTES)
                        read_part(at, LARGE - at < CACHE_CHUNK_BYTES ? LARGE - at : CACHE_CHUNK_BYTES);
        ck_assert_uint_le(n_held(), 2 * CACHE_CHUNK_BYTES);
        ck_assert_uint_le(n_on_disk(), 2 * CACHE_CHUNK_BYTES + 65536);
        snprintf(diary, sizeof(diary), "%s/cache/mine/journal", tree.root);
        ck_assert_int_eq(stat(diary, &status), 0);
}
END_TEST

/* ---- many at once ------------------------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

static void *wanter(void *userdata) {
        uint64_t dice = (uintptr_t)userdata * 0x9e3779b97f4a7c15ull + 1;

        for (uint32_t i = 0; i < N_WANTS; i++) {
                uint64_t offset = draw(&dice) % LARGE, n = draw(&dice) % (i % 16 == 0 ? 9000000 : 60000) + 1;

                if (i % 3 == 0)
                        cached_ahead(cached, cached_path(cached), "large", draw(&dice) % LARGE, 5000,
                                     draw(&dice) % 2 ? 0 : 1000000);
                read_part(offset, n < LARGE - offset ? n : LARGE - offset);
        }
        return NULL;
}

/* Pieces, chunks and what makes room for them, side by side: each reader reads its bytes, never a hole. */
START_TEST(readers_side_by_side_read_what_they_wanted_whatever_makes_room) {
        pthread_t threads[N_WANTERS];

        finish();
        begin(_i == 0 ? CACHE_CHUNK_BYTES / 2 : _i == 1 ? 2 * CACHE_CHUNK_BYTES : 1ull << 30);
        for (uintptr_t i = 0; i < N_WANTERS; i++)
                ck_assert_int_eq(thread_start(&threads[i], "wanter", wanter, (void *)(i + 1)), 0);
        for (uint32_t i = 0; i < N_WANTERS; i++)
                thread_join(threads[i]);
        finish();
        begin(1ull << 30);
        read_part(0, LARGE); /* what the journal says is here, is */
}
END_TEST

static void add(Suite *suite, const char *name, SFun setup_one, SFun teardown_one, const struct suite_row *rows,
                size_t n) {
        TCase *cases = tcase_create(name);

        tcase_add_checked_fixture(cases, setup_one, teardown_one);
        for (size_t i = 0; i < n; i++)
                tcase_add_loop_test(cases, rows[i].test, 0, rows[i].n_loops > 0 ? rows[i].n_loops : 1);
        tcase_set_timeout(cases, 60);
        suite_add_tcase(suite, cases);
}

int main(void) {
        const struct suite_row of_journal[] = {
                { .test = what_is_noted_is_read_and_another_listing_has_none },
                { .test = a_torn_record_ends_it_and_the_next_one_takes_its_place },
                { .test = what_was_noted_before_this_boot_is_in_doubt_until_it_is_noted_again },
                { .test = what_has_gone_without_having_been_there_takes_nothing_from_the_sum },
                { .test = a_journal_that_cannot_grow_is_forgotten_and_goes_on },
                { .test = a_journal_is_known_by_its_first_bytes },
                { .test = a_compressed_name_has_something_before_its_ending, .n_loops = 15 },
        };
        const struct suite_row of_cache[] = {
                { .test = wants_of_nothing_are_there_and_those_of_no_file_are_refused },
                { .test = parts_around_the_ends_of_chunks_are_the_bytes_of_the_origin },
                { .test = a_name_with_anything_in_it_is_that_of_a_file },
                { .test = a_piece_goes_with_its_last_reader_and_is_fetched_again },
                { .test = a_piece_within_another_one_is_released_for_itself },
                { .test = pieces_that_are_kept_stay_until_their_chunk_comes },
                { .test = what_pieces_have_brought_does_not_come_again_with_their_chunk },
                { .test = what_is_forgotten_is_not_done_and_leaves_nothing },
                { .test = a_later_daemon_fetches_nothing_that_is_here },
                { .test = what_is_from_before_this_boot_is_compared_and_what_is_wrong_is_fetched, .n_loops = 3 },
                { .test = of_what_is_from_before_this_boot_all_is_compared_however_much_it_is },
                { .test = a_journal_that_says_little_is_written_anew_and_says_the_same },
                { .test = killed_while_a_journal_is_written_anew_the_next_one_has_all_of_it },
                { .test = bytes_that_no_journal_knows_are_given_back },
                { .test = what_comes_short_leaves_no_bytes_but_those_of_pieces },
                { .test = what_cannot_be_written_is_asked_for_once_and_says_where, .n_loops = 2 },
                { .test = what_a_mirror_has_begun_and_the_origin_sends_anew_is_whole },
                { .test = after_the_end_wants_are_canceled },
                { .test = what_does_not_fit_passes_through_and_folders_of_others_stay },
                { .test = readers_side_by_side_read_what_they_wanted_whatever_makes_room, .n_loops = 3 },
        };
        Suite *suite = suite_create("cache");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        add(suite, "journal", setup_journal, teardown_journal, of_journal, sizeof(of_journal) / sizeof(of_journal[0]));
        add(suite, "cache", setup, teardown, of_cache, sizeof(of_cache) / sizeof(of_cache[0]));
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
