/* The fetcher, http and their callers: many threads submit, ask for counts and documents, and stop. The origin is a
 * file, so that no server is needed. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/fetch/fetch.h"
#include "tests/support/suite.h"

#define N_BYTES   (1u << 20)
#define N_THREADS 3u
#define N_JOBS    200u
#define N_PIECES  4u
#define PIECE     4096u

struct own_job {
        struct fetch_job job;
        struct fetch_piece pieces[N_PIECES];
        uint8_t into[N_PIECES][PIECE];
        _Atomic bool is_done;
};

static char path[] = "/tmp/test_fetch_threads_XXXXXX";
static char url[64];
static const char *urls[] = { url };
static struct plan_file file = { .path = "f", .n_bytes = N_BYTES, .urls = urls, .n_urls = 1 };
static struct own_job *jobs;
static struct http *http;
static struct fetcher *fetcher;
static _Atomic uint32_t n_done;

/* Each 32-bit word of the file is its own number. */
static void setup(void) {
        uint32_t *words = malloc(N_BYTES);
        const struct http_options options = { .n_tries = 2 };
        int fd;

        for (uint32_t i = 0; i < N_BYTES / 4; i++)
                words[i] = i;
        strcpy(path + strlen(path) - 6, "XXXXXX");
        fd = mkstemp(path);
        ck_assert_int_eq(write(fd, words, N_BYTES), N_BYTES);
        close(fd);
        free(words);
        snprintf(url, sizeof(url), "file://%s", path);
        jobs = calloc(N_THREADS * N_JOBS, sizeof(*jobs));
        n_done = 0;
        ck_assert_int_eq(http_new(&options, &http, NULL), 0);
}

static void teardown(void) {
        http_free(http);
        free(jobs);
        unlink(path);
}

static void on_done(struct fetch_job *job) {
        struct own_job *own = job->userdata;

        ck_assert(!atomic_exchange(&own->is_done, true)); /* once each */
        atomic_fetch_add(&n_done, 1);
}

static void begin(uint32_t n_connections) {
        const struct fetcher_options options = { .http = http, .n_connections = n_connections, .done = on_done };

        ck_assert_int_eq(fetcher_start(&options, &fetcher, NULL), 0);
}

static void submit_taken(uint32_t number, int (*take)(struct fetch_piece *, uint32_t, const uint8_t *, size_t)) {
        struct own_job *own = &jobs[number];

        for (uint32_t i = 0; i < N_PIECES; i++)
                own->pieces[i] = (struct fetch_piece){
                        .file = &file,
                        .offset = (number * 37 + i * 11) % (N_BYTES / PIECE) * PIECE,
                        .n_bytes = PIECE,
                        .into = take ? NULL : own->into[i],
                        .take = take,
                };
        own->job = (struct fetch_job){ .pieces = own->pieces, .n_pieces = N_PIECES, .userdata = own };
        fetcher_submit(fetcher, &own->job);
}

static void submit(uint32_t number) {
        submit_taken(number, NULL);
}

static void *submit_many(void *argument) {
        uint32_t first = (uint32_t)(uintptr_t)argument;
        struct fetcher_counts counts;

        for (uint32_t i = 0; i < N_JOBS; i++) {
                submit(first + i);
                fetcher_counts(fetcher, &counts);
        }
        return NULL;
}

static void submit_from_all_threads(void) {
        pthread_t threads[N_THREADS];

        for (uint32_t i = 0; i < N_THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_many, (void *)(uintptr_t)(i * N_JOBS)), 0);
        for (uint32_t i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
}

START_TEST(each_job_comes_back_once_with_its_own_bytes) {
        struct fetcher_counts counts;

        setup();
        begin(5);
        submit_from_all_threads();
        while (atomic_load(&n_done) < N_THREADS * N_JOBS)
                usleep(1000);
        fetcher_counts(fetcher, &counts);
        ck_assert_uint_eq(counts.n_bytes, (uint64_t)N_THREADS * N_JOBS * N_PIECES * PIECE);
        ck_assert_uint_eq(counts.n_retries, 0);
        fetcher_stop(fetcher);
        for (uint32_t i = 0; i < N_THREADS * N_JOBS; i++) {
                ck_assert_int_eq(jobs[i].job.result, 0);
                for (uint32_t k = 0; k < N_PIECES; k++) {
                        uint32_t word;

                        memcpy(&word, jobs[i].into[k] + PIECE - 4, 4);
                        ck_assert_uint_eq(word, (jobs[i].pieces[k].offset + PIECE) / 4 - 1);
                }
        }
        teardown();
}
END_TEST

/* ---- hurry and cancel ------------------------------------------------------------------------------------------- */

static uint32_t sequence[N_JOBS];
static uint32_t n_sequence;

static void submit_to(uint32_t number) {
        submit(number);
        if (number == 0 || number == 100)
                fetcher_cancel(fetcher,
                               &jobs[number].job); /* nothing of it can have begun: this is the fetcher's thread */
        if (number == 150)
                fetcher_hurry(fetcher, &jobs[number].job);
}

/* The first one that is done submits all others, so that the thread sees them at once. */
static void on_done_in_turn(struct fetch_job *job) {
        struct own_job *own = job->userdata;
        uint32_t number = (uint32_t)(own - jobs);

        if (number == N_JOBS - 1)
                for (uint32_t i = 0; i < N_JOBS - 1; i++)
                        submit_to(i);
        sequence[n_sequence++] = number;
        atomic_fetch_add(&n_done, 1);
}

START_TEST(a_job_that_is_hurried_comes_first_and_one_that_is_canceled_asks_for_nothing) {
        const struct fetcher_options options = { .n_connections = 1, .done = on_done_in_turn };
        struct fetcher_options with_http = options;
        struct fetcher_counts counts;

        setup();
        with_http.http = http;
        n_sequence = 0;
        ck_assert_int_eq(fetcher_start(&with_http, &fetcher, NULL), 0);
        submit(N_JOBS - 1);
        while (atomic_load(&n_done) < N_JOBS)
                usleep(1000);
        fetcher_counts(fetcher, &counts);
        fetcher_stop(fetcher);
        ck_assert_uint_eq(counts.n_requests, (N_JOBS - 2) * N_PIECES);
        ck_assert_uint_eq(sequence[0], N_JOBS - 1);
        ck_assert_uint_eq(sequence[1], 0); /* canceled: before anything is begun */
        ck_assert_uint_eq(sequence[2], 100);
        ck_assert_uint_eq(sequence[3], 150);
        ck_assert_uint_eq(sequence[4], 1);
        for (uint32_t i = 0; i < N_JOBS; i++)
                ck_assert_int_eq(jobs[i].job.result, i == 0 || i == 100 ? -ECANCELED : 0);
        ck_assert(jobs[150].job.is_urgent);
        teardown();
}
END_TEST

/* Who hurries and cancels knows under a lock of his own which jobs are done. */
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_done_locked(struct fetch_job *job) {
        pthread_mutex_lock(&own_lock);
        on_done(job);
        pthread_mutex_unlock(&own_lock);
}

static void *submit_and_change(void *argument) {
        uint32_t first = (uint32_t)(uintptr_t)argument;

        for (uint32_t i = 0; i < N_JOBS; i++) {
                uint32_t other = first + i / 2;

                submit(first + i);
                pthread_mutex_lock(&own_lock);
                if (!atomic_load(&jobs[other].is_done) && i % 2)
                        fetcher_hurry(fetcher, &jobs[other].job);
                else if (!atomic_load(&jobs[other].is_done))
                        fetcher_cancel(fetcher, &jobs[other].job);
                pthread_mutex_unlock(&own_lock);
        }
        return NULL;
}

START_TEST(jobs_are_hurried_and_canceled_by_many_threads_and_each_comes_back_once) {
        struct fetcher_options options = { .n_connections = 3, .done = on_done_locked };
        pthread_t threads[N_THREADS];

        setup();
        options.http = http;
        ck_assert_int_eq(fetcher_start(&options, &fetcher, NULL), 0);
        for (uint32_t i = 0; i < N_THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_and_change, (void *)(uintptr_t)(i * N_JOBS)),
                                 0);
        for (uint32_t i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        while (atomic_load(&n_done) < N_THREADS * N_JOBS)
                usleep(1000);
        fetcher_stop(fetcher);
        for (uint32_t i = 0; i < N_THREADS * N_JOBS; i++)
                ck_assert(jobs[i].job.result == 0 || jobs[i].job.result == -ECANCELED);
        teardown();
}
END_TEST

START_TEST(a_stop_gives_every_job_back) {
        setup();
        begin(1);
        submit_from_all_threads();
        fetcher_stop(fetcher); /* somewhere in the middle */
        ck_assert_uint_eq(atomic_load(&n_done), N_THREADS * N_JOBS);
        for (uint32_t i = 0; i < N_THREADS * N_JOBS; i++)
                ck_assert(jobs[i].job.result == 0 || jobs[i].job.result == -ECANCELED);
        teardown();
}
END_TEST

static void *get_many(void *argument) {
        for (uint32_t i = 0; i < 50; i++) {
                struct http_answer answer;
                struct http_facts facts;

                ck_assert_int_eq(http_get(http, url, NULL, N_BYTES, NULL, &answer, NULL), 0);
                ck_assert_uint_eq(answer.n_bytes, N_BYTES);
                free(answer.body);
                free(answer.url);
                ck_assert_int_eq(http_look(http, url, NULL, &facts, NULL), 0);
                ck_assert_uint_eq(facts.n_bytes, N_BYTES);
        }
        return NULL;
}

START_TEST(many_threads_ask_for_documents) {
        pthread_t threads[N_THREADS];

        setup();
        for (uint32_t i = 0; i < N_THREADS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, get_many, NULL), 0);
        for (uint32_t i = 0; i < N_THREADS; i++)
                pthread_join(threads[i], NULL);
        teardown();
}
END_TEST

/* A server that answers each of N_PIECES requests at once. */
static void *serve_pieces(void *argument) {
        int listen_fd = *(int *)argument;

        for (uint32_t i = 0; i < N_PIECES; i++) {
                char asked[4096] = "", answer[PIECE + 256];
                int fd = accept(listen_fd, NULL, NULL), n_head;
                unsigned long first;
                size_t n = 0;

                while (!strstr(asked, "\r\n\r\n"))
                        n += (size_t)read(fd, asked + n, sizeof(asked) - 1 - n);
                first = strtoul(strstr(asked, "bytes=") + 6, NULL, 10);
                n_head = snprintf(answer, sizeof(answer),
                                  "HTTP/1.1 206 P\r\nConnection: close\r\nContent-Range: bytes %lu-%lu/%u\r\n\r\n",
                                  first, first + PIECE - 1, N_BYTES);
                memset(answer + n_head, 'x', PIECE);
                ck_assert_int_eq(write(fd, answer, (size_t)n_head + PIECE), n_head + (int)PIECE);
                close(fd);
        }
        return NULL;
}

/* The first time it takes as long as on a disk that is slow to write to. */
static int take_slowly(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes) {
        static bool was_slow;

        (void)piece;
        (void)at;
        (void)bytes;
        (void)n_bytes;
        if (!was_slow)
                usleep(2000000);
        was_slow = true;
        return 0;
}

START_TEST(an_answer_is_not_late_because_the_fetcher_was_away) {
        struct fetcher_options options = { .n_connections = N_PIECES, .answer_ns = 1000000000, .done = on_done };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        int listen_fd = socket(AF_INET, SOCK_STREAM, 0);
        struct fetcher_counts counts;
        pthread_t server;

        setup();
        ck_assert_int_eq(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listen_fd, N_PIECES), 0);
        getsockname(listen_fd, (struct sockaddr *)&address, &(socklen_t){ sizeof(address) });
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/f", ntohs(address.sin_port));
        ck_assert_int_eq(pthread_create(&server, NULL, serve_pieces, &listen_fd), 0);
        options.http = http;
        ck_assert_int_eq(fetcher_start(&options, &fetcher, NULL), 0);
        submit_taken(0, take_slowly);
        while (atomic_load(&n_done) < 1)
                usleep(1000);
        pthread_join(server, NULL);
        close(listen_fd);
        fetcher_counts(fetcher, &counts);
        fetcher_stop(fetcher);
        ck_assert_int_eq(jobs[0].job.result, 0);
        ck_assert_uint_eq(counts.n_retries, 0);
        teardown();
}
END_TEST

START_TEST(a_fetcher_without_work_stops) {
        setup();
        begin(0);
        fetcher_stop(fetcher);
        fetcher_stop(NULL);
        begin(100000); /* more than there may be: bounded */
        fetcher_stop(fetcher);
        teardown();
}
END_TEST

START_TEST(a_job_of_nothing_and_one_of_empty_pieces_are_done) {
        struct fetch_piece piece = { .file = &file };

        setup();
        begin(2);
        jobs[0].job = (struct fetch_job){ .userdata = &jobs[0], .result = 1 };
        jobs[1].job = (struct fetch_job){ .userdata = &jobs[1], .result = 1, .pieces = &piece, .n_pieces = 1 };
        fetcher_submit(fetcher, &jobs[0].job);
        fetcher_submit(fetcher, &jobs[1].job);
        while (atomic_load(&n_done) < 2)
                usleep(1000);
        fetcher_stop(fetcher);
        ck_assert_int_eq(jobs[0].job.result, 0);
        ck_assert_int_eq(jobs[1].job.result, 0);
        teardown();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "threads", each_job_comes_back_once_with_its_own_bytes },
                { "threads", a_job_that_is_hurried_comes_first_and_one_that_is_canceled_asks_for_nothing },
                { "threads", jobs_are_hurried_and_canceled_by_many_threads_and_each_comes_back_once },
                { "threads", a_stop_gives_every_job_back },
                { "threads", many_threads_ask_for_documents },
                { "threads", an_answer_is_not_late_because_the_fetcher_was_away },
                { "ends", a_fetcher_without_work_stops },
                { "ends", a_job_of_nothing_and_one_of_empty_pieces_are_done },
        };

        return suite_run("fetch_threads", rows, sizeof(rows) / sizeof(rows[0]));
}
