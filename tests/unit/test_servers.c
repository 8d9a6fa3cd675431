/* What the fetcher knows of servers: pauses, how many requests side by side, how long answers take; and its rate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/engine/bandwidth.h"
#include "daemon/fetch/engine/latency.h"
#include "daemon/fetch/engine/servers.h"
#include "tests/support/suite.h"

#define SECOND_NS 1000000000ull
#define MS_NS     1000000ull

static struct servers *begin(void) {
        struct servers *servers = malloc(sizeof(*servers));

        servers_init(servers);
        return servers;
}

START_TEST(a_pause_is_a_servers_whatever_is_asked_of_it) {
        struct servers *servers = begin();
        struct server *a = servers_get(servers, "http://a/x", 1);

        ck_assert(server_is_open(a, 1));
        ck_assert(server_refused(a, 1, 50, 0, 100));
        ck_assert_uint_eq(a->until_ns, 150);
        ck_assert(!server_refused(a, 1, 40, 0, 100)); /* of the same storm; never shortened */
        ck_assert_uint_eq(a->until_ns, 150);
        ck_assert(!server_is_open(a, 149));
        ck_assert(server_is_open(a, 150));
        ck_assert_ptr_eq(servers_get(servers, "http://a/y?z", 1), a);
        ck_assert_ptr_eq(servers_get(servers, "http://a", 1), a);
        ck_assert_ptr_ne(servers_get(servers, "http://a:80/x", 1), a);
        ck_assert_ptr_ne(servers_get(servers, "http://ab/x", 1), a);
        free(servers);
}
END_TEST

START_TEST(one_request_is_under_way_until_a_servers_name_is_known_unless_many_share_its_row) {
        struct servers *servers = begin();
        struct server *server = servers_get(servers, "http://a/x", 1);

        server->n_running = 1;
        ck_assert(!server_is_open(server, 1));
        server_answered(server, 1000);
        ck_assert(server_is_open(server, 1));
        servers->rows[0].n_running = 1;
        ck_assert(server_is_open(&servers->rows[0], 1));
        free(servers);
}
END_TEST

START_TEST(a_server_that_is_in_use_keeps_its_row_and_the_least_missed_makes_room) {
        struct servers *servers = begin();
        struct server *busy = servers_get(servers, "http://busy/", 1),
                      *paused = servers_get(servers, "http://paused/", 2);
        char url[300];

        busy->n_running = 1;
        server_refused(paused, 1, SECOND_NS, 0, 1);
        for (unsigned int i = 0; i < 3 * SERVERS_MAX; i++) {
                struct server *other;

                snprintf(url, sizeof(url), "http://other%u/", i);
                other = servers_get(servers, url, 3 + i);
                ck_assert_ptr_eq(servers_get(servers, url, 3 + i), other);
                ck_assert_ptr_ne(other, busy);
                ck_assert_ptr_ne(other, paused);
        }
        ck_assert_ptr_eq(servers_get(servers, "http://busy/x", 900), busy);
        ck_assert_ptr_eq(servers_get(servers, "http://paused/x", 900), paused);
        for (uint32_t i = 1; i < servers->n_rows; i++)
                servers->rows[i].n_running = 1;
        ck_assert_ptr_eq(servers_get(servers, "http://one/", 901), &servers->rows[0]); /* shared by those without */
        memset(url, 'h', sizeof(url) - 1);                                             /* a name that does not fit */
        url[sizeof(url) - 1] = '\0';
        ck_assert_ptr_eq(servers_get(servers, url, 902), &servers->rows[0]);
        free(servers);
}
END_TEST

START_TEST(refusals_in_a_row_make_one_pause_that_grows_and_halve_the_requests_once) {
        struct servers *servers = begin();
        struct server *server = servers_get(servers, "http://a/", 1);
        uint64_t now_ns = SECOND_NS;
        uint32_t n_most = 64;

        for (uint32_t n = 1; n <= 8; n++) {
                server->n_running = n_most;
                ck_assert(server_refused(server, now_ns, 0, SECOND_NS / 4, now_ns + 1));
                for (uint32_t i = 1; i < n_most; i++) /* the others that were under way */
                        ck_assert(!server_refused(server, now_ns, 0, UINT64_MAX, now_ns + 1 + i));
                n_most = n_most > 1 ? n_most / 2 : 1;
                ck_assert_uint_eq(server->n_most, n_most);
                ck_assert_uint_eq(server->n_refused, n);
                ck_assert_uint_eq(server->until_ns, now_ns + 1 + SECOND_NS / 4); /* what the random number made of it */
                server->n_running = 0;
                now_ns = server->until_ns;
        }
        for (uint32_t i = 0; i < 1 + 2 + 3; i++)
                server_answered(server, 1000);
        ck_assert_uint_eq(server->n_refused, 0);
        ck_assert_uint_eq(server->n_most, 4);
        server->n_running = 4;
        ck_assert(!server_is_open(server, now_ns));
        for (uint32_t i = 0; i < 600000; i++)
                server_answered(server, 1000);
        ck_assert_uint_eq(server->n_most, SERVER_N_UNLIMITED);
        free(servers);
}
END_TEST

START_TEST(late_is_the_slowest_hundredth_thrice_the_median_and_no_less_than_fifty_ms) {
        struct servers *servers = begin();
        struct server *server = servers_get(servers, "http://a/", 1);

        for (uint32_t i = 0; i < 99; i++)
                server_answered(server, 1000);
        ck_assert_uint_eq(server->late_ns, 0); /* too few */
        for (uint32_t i = 0; i < 901; i++)
                server_answered(server, 1000);
        ck_assert_uint_eq(server->late_ns, SERVER_HEDGE_MIN_NS);
        server = servers_get(servers, "http://b/", 1);
        for (uint32_t i = 0; i < 1024; i++)
                server_answered(server, 30000);
        ck_assert_uint_ge(server->late_ns, 90 * MS_NS);
        ck_assert_uint_le(server->late_ns, 102 * MS_NS);
        server = servers_get(servers, "http://c/", 1);
        for (uint32_t i = 0; i < 1024; i++)
                server_answered(server, i % 50 ? 30000 : 400000);
        ck_assert_uint_ge(server->late_ns, 400 * MS_NS);
        ck_assert_uint_le(server->late_ns, 450 * MS_NS);
        free(servers);
}
END_TEST

START_TEST(quantiles_are_at_most_an_eighth_too_large_and_forget) {
        static struct latency latency;
        uint64_t us = 1;

        ck_assert_uint_eq(latency_quantile_us(&latency, 500), 0);
        for (; us < 1ull << 40; us = us * 5 / 4 + 1) {
                uint64_t kept_us = us < 1ull << 28 ? us : (1ull << 28) - 1;
                uint64_t told_us;

                latency = (struct latency){ 0 };
                latency_add(&latency, us);
                told_us = latency_quantile_us(&latency, 1000);
                ck_assert_uint_ge(told_us, kept_us);
                ck_assert_uint_le(told_us, kept_us + kept_us / 8);
                ck_assert_uint_eq(latency_quantile_us(&latency, 0), told_us);
        }
        latency = (struct latency){ 0 };
        for (uint32_t i = 0; i < 1000; i++)
                latency_add(&latency, i < 990 ? 100 : 90000);
        ck_assert_uint_lt(latency_quantile_us(&latency, 990), 120);
        ck_assert_uint_ge(latency_quantile_us(&latency, 991), 90000);
        for (uint32_t i = 0; i < 20 * LATENCY_TIMES_MAX; i++)
                latency_add(&latency, 5000);
        ck_assert_uint_le(latency.n, LATENCY_TIMES_MAX);
        ck_assert_uint_ge(latency_quantile_us(&latency, 1), 5000);
}
END_TEST

START_TEST(a_limited_rate_is_kept_however_it_is_read) {
        const struct {
                uint64_t bytes_per_s, n_at_once;
        } ROWS[] = { { 1 << 20, 1 << 18 }, { 1 << 20, 1 }, { 1000, 77 }, { 3ull << 30, 1 << 16 } };
        struct bandwidth bandwidth;
        uint64_t begin_ns = 77 * SECOND_NS, now_ns = begin_ns, n_bytes = 0;

        bandwidth_init(&bandwidth, ROWS[_i].bytes_per_s);
        for (uint32_t i = 0; i < 100000 && now_ns < begin_ns + 100 * SECOND_NS; i++) {
                n_bytes += ROWS[_i].n_at_once;
                bandwidth_take(&bandwidth, ROWS[_i].n_at_once, now_ns);
                now_ns += bandwidth_wait_ns(&bandwidth, now_ns);
        }
        ck_assert_double_ge((double)n_bytes, 0.98 * (double)ROWS[_i].bytes_per_s * (double)(now_ns - begin_ns) / 1e9);
        ck_assert_double_le((double)n_bytes,
                            (double)ROWS[_i].bytes_per_s * ((double)(now_ns - begin_ns) / 1e9 + 0.06) + 1);
        bandwidth_init(&bandwidth, 0);
        bandwidth_take(&bandwidth, 1ull << 40, now_ns);
        ck_assert_uint_eq(bandwidth_wait_ns(&bandwidth, now_ns), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "servers", a_pause_is_a_servers_whatever_is_asked_of_it },
                { "servers", one_request_is_under_way_until_a_servers_name_is_known_unless_many_share_its_row },
                { "servers", a_server_that_is_in_use_keeps_its_row_and_the_least_missed_makes_room },
                { "servers", refusals_in_a_row_make_one_pause_that_grows_and_halve_the_requests_once },
                { "servers", late_is_the_slowest_hundredth_thrice_the_median_and_no_less_than_fifty_ms },
                { "latency", quantiles_are_at_most_an_eighth_too_large_and_forget },
                { "bandwidth", a_limited_rate_is_kept_however_it_is_read, 4 },
        };

        return suite_run("servers", rows, sizeof(rows) / sizeof(rows[0]));
}
