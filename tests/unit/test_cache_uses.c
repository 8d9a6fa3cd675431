/* What stays in a cache that is too small for all jobs: the share of their reads that it spares, counted. The origin is
 * a folder, read through file: URLs. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/cache/cache.h"
#include "daemon/store/cache/uses.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define N_FILES    600u
#define FILE_BYTES 512u
#define N_EPOCHS   6u
#define N_COLD     2u /* epochs that are not counted */
#define JOBS_MAX   4u

struct player {
        uint32_t order[N_EPOCHS + 1][N_FILES]; /* of each epoch, and of one that nobody comes to */
        uint32_t pace;                         /* samples that it takes in a round of all */
        uint64_t k;
        struct cached_uses *uses;
};

static struct tree tree;
static struct cache *cache;
static struct cached *cached;
static struct player players[JOBS_MAX];
static uint64_t dice;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_done;

static uint32_t draw(uint32_t n) {
        dice = dice * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)((dice >> 33) % n);
}

static void shuffle(uint32_t order[N_FILES]) {
        for (uint32_t i = 0; i < N_FILES; i++) {
                uint32_t k = draw(i + 1);

                order[i] = order[k];
                order[k] = i;
        }
}

static char *name_of(uint32_t file, char name[16]) {
        snprintf(name, 16, "%06u", file);
        return name;
}

static void setup(void) {
        char url[160], dir[96], name[32], content[FILE_BYTES + 1];
        uint64_t limit = (uint64_t)N_FILES * FILE_BYTES / 5;
        struct why why;

        tree_make(&tree);
        for (uint32_t i = 0; i < N_FILES; i++) {
                snprintf(name, sizeof(name), "origin/%06u", i);
                snprintf(content, sizeof(content), "%0*u", (int)FILE_BYTES, i);
                tree_file(&tree, name, content);
        }
        snprintf(url, sizeof(url), "file://%s/origin", tree.root);
        snprintf(dir, sizeof(dir), "%s/cache", tree.root);
        ck_assert_int_eq(cache_new(&(struct cache_options){ .dir = dir, .limit = limit }, &cache), 0);
        if (cached_open(cache, &(struct cached_terms){ .url = url }, &cached, &why) < 0)
                ck_abort_msg("%s", why.text);
        dice = 34;
}

static void teardown(void) {
        cached_unref(cached);
        cache_cancel(cache);
        cache_free(cache);
        tree_remove(&tree);
}

static void on_done(struct cache_want *want) {
        (void)want;
        pthread_mutex_lock(&lock);
        is_done = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
}

/* Returns whether it was there. */
static bool read_file(uint32_t file) {
        struct cache_want want = { .n_bytes = FILE_BYTES, .done = on_done };
        char name[16];
        int r;

        is_done = false;
        r = cached_want(cached, &want, cached_path(cached), name_of(file, name));
        ck_assert_int_ge(r, 0);
        pthread_mutex_lock(&lock);
        while (r == 0 && !is_done)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        ck_assert_int_eq(want.result, 0);
        cached_release(cached, &want);
        return r == 1;
}

static void foresee(struct player *player, uint64_t epoch, bool is_next) {
        char name[16];

        for (uint32_t k = 0; k < N_FILES; k++)
                cached_uses_add(player->uses, is_next, cached_path(cached), name_of(player->order[epoch][k], name), 0,
                                FILE_BYTES, k);
}

/* Takes its next sample. Returns whether it was there. */
static bool play(struct player *player) {
        uint64_t epoch = player->k / N_FILES, k = player->k % N_FILES;
        struct dlp_uses_place place = { .k = (uint32_t)k + 1,
                                        .n_samples = N_FILES,
                                        .sample_ns = 1000000 / player->pace,
                                        .is_last_epoch = epoch + 1 == N_EPOCHS };

        if (k == 0 && epoch > 0)
                cached_uses_turn(player->uses);
        if (k == 0)
                foresee(player, epoch + 1, true);
        cached_uses_at(player->uses, &place);
        player->k++;
        return read_file(player->order[epoch][k]);
}

/* Jobs of other seeds side by side. Returns how many of 1,000 reads were there, once the cache is full. */
static uint32_t hits_of(uint32_t n_jobs, const uint32_t paces[JOBS_MAX]) {
        uint64_t n_hits = 0, n_reads = 0;
        bool is_over = false;

        setup();
        for (uint32_t j = 0; j < n_jobs; j++) {
                players[j] = (struct player){ .pace = paces[j], .uses = cached_uses_new(cached) };
                for (uint32_t epoch = 0; epoch <= N_EPOCHS; epoch++)
                        shuffle(players[j].order[epoch]);
                foresee(&players[j], 0, false);
        }
        while (!is_over)
                for (uint32_t j = 0; j < n_jobs; j++)
                        for (uint32_t i = 0; i < players[j].pace && !is_over; i++) {
                                bool is_counted = players[0].k >= N_COLD * N_FILES, is_hit = play(&players[j]);

                                n_reads += is_counted;
                                n_hits += is_counted && is_hit;
                                is_over = players[j].k == N_EPOCHS * N_FILES;
                        }
        for (uint32_t j = 0; j < n_jobs; j++)
                cached_uses_free(players[j].uses);
        teardown();
        return (uint32_t)(n_hits * 1000 / n_reads);
}

/* Of all that is known of the orders, the best would be 450, 440 and 510; what was used the longest ago: 110. */
START_TEST(what_all_jobs_need_last_makes_room) {
        static const struct {
                uint32_t n_jobs, paces[JOBS_MAX], least;
        } ROWS[] = { { 2, { 1, 1 }, 430 }, { 2, { 5, 3 }, 420 }, { 4, { 1, 1, 1, 1 }, 480 } };
        uint32_t hits = hits_of(ROWS[_i].n_jobs, ROWS[_i].paces);

        printf("%u jobs: %u of 1000 reads are hits\n", ROWS[_i].n_jobs, hits);
        ck_assert_uint_ge(hits, ROWS[_i].least);
}
END_TEST

/* One job alone has as many hits as has room: nothing that is here makes room. */
START_TEST(for_one_job_what_is_here_stays) {
        uint32_t hits = hits_of(1, (const uint32_t[JOBS_MAX]){ 1 });

        printf("1 job: %u of 1000 reads are hits\n", hits);
        ck_assert_uint_ge(hits, 190);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "jobs", what_all_jobs_need_last_makes_room, .n_loops = 3 },
                { "jobs", for_one_job_what_is_here_stays },
        };

        return suite_run("cache_uses", rows, sizeof(rows) / sizeof(rows[0]));
}
