/* Several threads look at files: each once, begun in their order; the first file's error counts; a cancel ends it. */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "daemon/data/files/together.h"
#include "tests/support/suite.h"

#define N_FILES 200u

static struct {
        _Atomic uint32_t n_looks[N_FILES];
        _Atomic uint32_t n_in[TOGETHER_MAX];
        _Atomic uint64_t n_done;
        size_t first_bad, second_bad, slow; /* N_FILES: none */
        uint64_t pause_ns;
        uint64_t last_progress;
        atomic_bool cancel;
} state;

static int look(void *userdata, uint32_t idx_thread, size_t file, struct why *why) {
        uint64_t pause_ns = file == state.slow                                    ? 20000000
                            : file == state.first_bad || file == state.second_bad ? 5000000
                                                                                  : state.pause_ns;

        ck_assert_ptr_eq(userdata, &state);
        ck_assert_uint_lt(idx_thread, TOGETHER_MAX);
        ck_assert_uint_eq(atomic_fetch_add(&state.n_in[idx_thread], 1), 0);
        atomic_fetch_add(&state.n_looks[file], 1);
        if (pause_ns > 0)
                nanosleep(&(struct timespec){ .tv_nsec = (long)pause_ns }, NULL);
        atomic_fetch_sub(&state.n_in[idx_thread], 1);
        atomic_fetch_add(&state.n_done, 1);
        if (file == state.first_bad || file == state.second_bad)
                return why_set(why, -EBADMSG, "file %zu", file);
        return 0;
}

static uint64_t count(void *userdata) {
        (void)userdata;
        return atomic_load(&state.n_done);
}

static void note_progress(void *userdata, uint64_t n) {
        (void)userdata;
        ck_assert_uint_ge(n, state.last_progress);
        state.last_progress = n;
        if (n > 20)
                atomic_store(&state.cancel, state.pause_ns > 0);
}

static int run(size_t n_files, struct why *why) {
        const struct index_watch watch = { .progress = note_progress, .cancel = &state.cancel };
        const struct together together = {
                .n_files = n_files, .look = look, .count = count, .userdata = &state, .watch = &watch
        };

        return together_run(&together, why);
}

/* Tests may share a process. */
static void begin(void) {
        for (size_t i = 0; i < N_FILES; i++)
                atomic_store(&state.n_looks[i], 0);
        atomic_store(&state.n_done, 0);
        atomic_store(&state.cancel, false);
        state.pause_ns = state.last_progress = 0;
        state.first_bad = state.second_bad = state.slow = N_FILES;
}

START_TEST(each_file_is_looked_at_once) {
        struct why why;

        begin();
        ck_assert_int_eq(run(N_FILES, &why), 0);
        for (size_t i = 0; i < N_FILES; i++)
                ck_assert_uint_eq(atomic_load(&state.n_looks[i]), 1);
        ck_assert_uint_eq(state.last_progress, N_FILES);
        ck_assert_int_eq(run(0, &why), 0);
        ck_assert_uint_eq(together_threads(0), 1);
        ck_assert_uint_eq(together_threads(3), 3);
        ck_assert_uint_eq(together_threads(1000000), TOGETHER_MAX);
}
END_TEST

/* Whichever of the two is known before. */
START_TEST(the_error_of_the_first_file_counts) {
        struct why why;

        begin();
        state.first_bad = 40;
        state.second_bad = 42;
        state.slow = _i ? 40 : 42;
        ck_assert_int_eq(run(N_FILES, &why), -EBADMSG);
        ck_assert_str_eq(why.text, "file 40");
        for (size_t i = 0; i <= 40; i++)
                ck_assert_uint_eq(atomic_load(&state.n_looks[i]), 1);
}
END_TEST

START_TEST(a_cancel_ends_it) {
        struct why why;

        begin();
        state.pause_ns = 30000000;
        ck_assert_int_eq(run(N_FILES, &why), -ECANCELED);
        ck_assert_uint_lt(atomic_load(&state.n_done), N_FILES);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "together", each_file_is_looked_at_once, 0 },
                { "together", the_error_of_the_first_file_counts, 2 },
                { "together", a_cancel_ends_it, 0 },
        };

        return suite_run("together", rows, sizeof(rows) / sizeof(rows[0]));
}
