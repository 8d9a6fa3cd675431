/* tests/unit/test_base.c: queues, threads, the budget and sizes in words. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/budget.h"
#include "daemon/base/logging/log_limits.h"
#include "daemon/base/threads/mailbox.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/columns.h"
#include "proto/base/shown/shorten.h"
#include "proto/base/text.h"
#include "proto/base/utf8.h"
#include "proto/base/why.h"

#define N_PRODUCERS 4u
#define N_ITEMS     20000u /* of each producer */

/* An item tells who pushed it and as which of its own; never NULL. */
static void *item_of(unsigned producer, unsigned number) {
        return (void *)(uintptr_t)((uint64_t)(producer + 1) << 32 | number);
}

static unsigned item_producer(const void *item) {
        return (unsigned)((uintptr_t)item >> 32) - 1;
}

static unsigned item_number(const void *item) {
        return (unsigned)(uintptr_t)item;
}

static bool is_readable(int fd, int timeout_ms) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

        return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* ---- mailbox ------------------------------------------------------------------------------------------------- */

START_TEST(a_mailbox_gives_back_in_order_and_refuses_when_full) {
        for (uint32_t capacity = 1; capacity <= 5; capacity++) {
                struct mailbox mailbox;

                ck_assert_int_eq(mailbox_init(&mailbox, capacity), 0);
                for (unsigned round = 0; round < 4; round++) {
                        for (unsigned i = 0; i < capacity; i++)
                                ck_assert_int_eq(mailbox_push(&mailbox, item_of(round, i)), 0);
                        ck_assert_int_eq(mailbox_push(&mailbox, item_of(9, 9)), -EAGAIN);
                        for (unsigned i = 0; i < capacity; i++)
                                ck_assert_ptr_eq(mailbox_pop(&mailbox), item_of(round, i));
                        ck_assert_ptr_null(mailbox_pop(&mailbox));
                }
                mailbox_fini(&mailbox);
        }
}
END_TEST

START_TEST(a_burst_wakes_a_sleeping_consumer_once_and_an_awake_one_never) {
        struct mailbox mailbox;
        uint64_t n_writes;

        ck_assert_int_eq(mailbox_init(&mailbox, 8), 0);

        mailbox_push(&mailbox, item_of(0, 0)); /* nobody said yet that it would sleep */
        ck_assert(!is_readable(mailbox_fd(&mailbox), 0));
        ck_assert_ptr_nonnull(mailbox_pop(&mailbox));
        ck_assert_ptr_null(mailbox_pop(&mailbox));
        ck_assert(!is_readable(mailbox_fd(&mailbox), 0));

        for (unsigned i = 0; i < 3; i++)
                mailbox_push(&mailbox, item_of(0, i));
        ck_assert(is_readable(mailbox_fd(&mailbox), 0));
        for (unsigned i = 0; i < 3; i++)
                ck_assert_ptr_eq(mailbox_pop(&mailbox), item_of(0, i));
        ck_assert_ptr_null(mailbox_pop(&mailbox));
        ck_assert(!is_readable(mailbox_fd(&mailbox), 0)); /* quiet again, or the consumer would never sleep */

        for (unsigned i = 0; i < 5; i++)
                mailbox_push(&mailbox, item_of(0, i));
        ck_assert_int_eq(read(mailbox_fd(&mailbox), &n_writes, sizeof(n_writes)), sizeof(n_writes));
        ck_assert_uint_eq(n_writes, 1);
        mailbox_fini(&mailbox);
}
END_TEST

struct producer {
        struct mailbox *mailbox;
        unsigned number;
};

static void *mailbox_producer_main(void *argument) {
        struct producer *producer = argument;

        for (unsigned i = 0; i < N_ITEMS; i++)
                while (mailbox_push(producer->mailbox, item_of(producer->number, i)) == -EAGAIN)
                        sched_yield();
        return NULL;
}

/* What another thread does just before the mailbox's fd is read, once. */
static void (*before_read)(void);

ssize_t read(int fd, void *buffer, size_t n_bytes) {
        void (*act)(void) = before_read;

        before_read = NULL;
        if (act)
                act();
        return syscall(SYS_read, fd, buffer, n_bytes);
}

static struct mailbox held_up;

static void push_after_the_gap(void) {
        mailbox_push(&held_up, item_of(0, 2));
}

START_TEST(a_push_while_the_consumer_arms_does_not_take_the_wakeup_of_one_that_was_held_up) {
        ck_assert_int_eq(mailbox_init(&held_up, 8), 0);
        ck_assert_ptr_null(mailbox_pop(&held_up));
        mailbox_push(&held_up, item_of(0, 0)); /* writes to the fd */
        ck_assert_ptr_eq(mailbox_pop(&held_up), item_of(0, 0));

        atomic_fetch_add(&held_up.n_claimed, 1); /* a producer has claimed the next cell, and does not run now */
        before_read = push_after_the_gap;
        ck_assert_ptr_null(mailbox_pop(&held_up));
        ck_assert_ptr_null(before_read);
        atomic_store(&held_up.n_claimed, 1); /* it goes on */
        mailbox_push(&held_up, item_of(0, 1));
        atomic_store(&held_up.n_claimed, 3);
        ck_assert(is_readable(mailbox_fd(&held_up), 0));
        ck_assert_ptr_eq(mailbox_pop(&held_up), item_of(0, 1));
        ck_assert_ptr_eq(mailbox_pop(&held_up), item_of(0, 2));
        ck_assert_ptr_null(mailbox_pop(&held_up));
        ck_assert(!is_readable(mailbox_fd(&held_up), 0));
        mailbox_fini(&held_up);
}
END_TEST

START_TEST(many_producers_lose_nothing_and_no_wakeup) {
        struct producer producers[N_PRODUCERS];
        unsigned n_seen[N_PRODUCERS] = { 0 };
        pthread_t threads[N_PRODUCERS];
        struct mailbox mailbox;
        unsigned n = 0;

        /* Small, so that it is often full and often empty. */
        ck_assert_int_eq(mailbox_init(&mailbox, _i == 0 ? 1 : 7), 0);
        for (unsigned i = 0; i < N_PRODUCERS; i++) {
                producers[i] = (struct producer){ .mailbox = &mailbox, .number = i };
                ck_assert_int_eq(thread_start(&threads[i], "producer", mailbox_producer_main, &producers[i]), 0);
        }

        while (n < N_PRODUCERS * N_ITEMS) {
                void *item = mailbox_pop(&mailbox);

                if (!item) {
                        ck_assert_msg(is_readable(mailbox_fd(&mailbox), 10000), "a wake-up was lost after %u items", n);
                        continue;
                }
                /* The next of its producer: none lost, none twice, none overtaken. */
                ck_assert_uint_eq(item_number(item), n_seen[item_producer(item)]);
                n_seen[item_producer(item)]++;
                n++;
        }

        for (unsigned i = 0; i < N_PRODUCERS; i++)
                thread_join(threads[i]);
        /* A write that came late may still be in the fd; one more look takes it out. */
        ck_assert_ptr_null(mailbox_pop(&mailbox));
        ck_assert(!is_readable(mailbox_fd(&mailbox), 0));
        mailbox_fini(&mailbox);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------------- */

static void *mask_main(void *argument) {
        pthread_sigmask(SIG_BLOCK, NULL, argument);
        return NULL;
}

START_TEST(a_thread_leaves_signals_to_the_main_thread_but_not_its_own_faults) {
        sigset_t before, after, of_thread;
        pthread_t thread;

        pthread_sigmask(SIG_BLOCK, NULL, &before);
        sigemptyset(&of_thread);
        ck_assert_int_eq(thread_start(&thread, "masked", mask_main, &of_thread), 0);
        thread_join(thread);
        pthread_sigmask(SIG_BLOCK, NULL, &after);

        ck_assert(sigismember(&of_thread, SIGTERM) && sigismember(&of_thread, SIGHUP));
        ck_assert(!sigismember(&of_thread, SIGSEGV) && !sigismember(&of_thread, SIGBUS));
        ck_assert_int_eq(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}
END_TEST

static void *wait_main(void *argument) {
        sem_wait(argument);
        return NULL;
}

START_TEST(a_thread_has_its_name) {
        pthread_t thread;
        char name[16];
        sem_t go_on;

        sem_init(&go_on, 0, 0);
        ck_assert_int_eq(thread_start(&thread, "fifteen-letters", wait_main, &go_on), 0);
        ck_assert_int_eq(pthread_getname_np(thread, name, sizeof(name)), 0);
        ck_assert_str_eq(name, "fifteen-letters");
        sem_post(&go_on);
        thread_join(thread);
        sem_destroy(&go_on);
}
END_TEST

/* ---- budget -------------------------------------------------------------------------------------------------- */

START_TEST(the_budget_refuses_with_the_numbers) {
        struct budget budget = { .limit_bytes = 64 << 20 };
        struct why why;

        ck_assert_int_eq(budget_reserve(&budget, 56 << 20, "the first ring", &why), 0);
        ck_assert_int_eq(budget_reserve(&budget, 12897485, "the ring of rank 3", &why), -ENOMEM);
        ck_assert_str_eq(why.text,
                         "memory_limit: the ring of rank 3 needs 12.3 MiB, 8.0 MiB of 64.0 MiB are free: raise "
                         "memory_limit, or ask for a smaller batch or fewer slots");
        ck_assert_uint_eq(budget_used(&budget), 56 << 20); /* a refusal costs nothing */

        ck_assert_int_eq(budget_reserve(&budget, 8 << 20, "the rest", &why), 0);
        ck_assert_int_eq(budget_reserve(&budget, 1, "one more", NULL), -ENOMEM);
        budget_release(&budget, 64 << 20);
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

START_TEST(the_budget_says_bytes_where_rounding_would_hide_the_difference) {
        struct budget budget = { .limit_bytes = 8 << 20 };
        struct why why;

        ck_assert_int_eq(budget_reserve(&budget, (8 << 20) + 1, "a ring", &why), -ENOMEM);
        ck_assert_str_eq(why.text,
                         "memory_limit: a ring needs 8.0 MiB (8388609 bytes), 8.0 MiB (8388608 bytes) of 8.0 MiB "
                         "are free: raise memory_limit, or ask for a smaller batch or fewer slots");
}
END_TEST

START_TEST(the_budget_says_which_variable_raises_it) {
        struct budget budget = { .limit_bytes = 64 << 20, .variable = "SETTINGS" };
        struct why why;

        ck_assert_int_eq(budget_reserve(&budget, 60 << 20, "the first ring", &why), 0);
        ck_assert_int_eq(budget_reserve(&budget, 12897485, "the ring of rank 3", &why), -ENOMEM);
        ck_assert_str_eq(why.text,
                         "memory_limit: the ring of rank 3 needs 12.3 MiB, 4.0 MiB of 64.0 MiB are free: ask for a "
                         "smaller batch or fewer slots; or end this daemon (dlctl stop) and open the loader with "
                         "SETTINGS=\"memory_limit=86MiB\" in the environment, which starts one with more");
        ck_assert_int_eq(budget_reserve(&budget, 5ull << 30, "a large ring", &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "memory_limit=11GiB"));
        ck_assert_int_eq(budget_reserve(&budget, UINT64_MAX, "all there is", &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "memory_limit=34359738369GiB"));
}
END_TEST

START_TEST(a_share_is_a_percentage_of_what_others_leave) {
        struct budget whole = { .limit_bytes = 1000 }, one, other, all;
        struct why why;

        budget_share_init(&one, &whole, 1001, 50);
        budget_share_init(&other, &whole, 1002, 50);
        budget_share_init(&all, &whole, 1003, 100);
        ck_assert_int_eq(budget_reserve(&one, 501, "a ring", &why), -ENOMEM);
        ck_assert_msg(strncmp(why.text, "user_memory: a ring needs", 25) == 0, "%s", why.text);
        ck_assert_ptr_nonnull(strstr(why.text, "user 1001"));
        ck_assert_int_eq(budget_reserve(&one, 300, "a ring", &why), 0);
        ck_assert_int_eq(budget_reserve(&one, 200, "a ring", &why), 0);
        ck_assert_int_eq(budget_reserve(&one, 1, "a ring", &why), -ENOMEM);
        ck_assert_uint_eq(budget_used(&whole), 500);

        ck_assert_int_eq(budget_reserve(&other, 251, "a ring", &why), -ENOMEM);
        ck_assert_int_eq(budget_reserve(&other, 250, "a ring", &why), 0);
        budget_release(&one, 200); /* 300 of its own; others leave 750, of which it may have 375 */
        ck_assert_int_eq(budget_reserve(&one, 76, "a ring", &why), -ENOMEM);
        ck_assert_int_eq(budget_reserve(&one, 75, "a ring", &why), 0);

        ck_assert_int_eq(budget_reserve(&whole, 375, "the rest", &why), 0); /* who has no share takes what is there */
        ck_assert_int_eq(budget_reserve(&all, 1, "a ring", &why), -ENOMEM);
        ck_assert_int_eq(budget_reserve(&all, UINT64_MAX, "a ring", &why), -ENOMEM);
        ck_assert_uint_eq(budget_used(&all), 0);
        budget_release(&whole, 375);
        budget_release(&one, 375);
        budget_release(&other, 250);
        ck_assert_uint_eq(budget_used(&whole), 0);
        ck_assert_uint_eq(budget_used(&one), 0);
}
END_TEST

START_TEST(the_budget_does_not_overflow) {
        struct budget small = { .limit_bytes = 100 }, unlimited = { .limit_bytes = UINT64_MAX };

        ck_assert_int_eq(budget_reserve(&small, 60, "a", NULL), 0);
        ck_assert_int_eq(budget_reserve(&small, UINT64_MAX, "b", NULL), -ENOMEM);
        ck_assert_int_eq(budget_reserve(&small, UINT64_MAX - 59, "c", NULL), -ENOMEM); /* 60 + this = 0 */
        ck_assert_int_eq(budget_reserve(&unlimited, UINT64_MAX - 1, "d", NULL), 0);
        ck_assert_int_eq(budget_reserve(&unlimited, 2, "e", NULL), -ENOMEM);
        ck_assert_int_eq(budget_reserve(&unlimited, 1, "f", NULL), 0);
}
END_TEST

#define SPENDER_LIMIT 10u

struct spender {
        struct budget *budget;
        _Atomic unsigned *n_held;
        unsigned n_over, n_refused;
};

static void *spender_main(void *argument) {
        struct spender *spender = argument;

        for (unsigned i = 0; i < 20000; i++) {
                unsigned n = 1 + i % 7;

                if (budget_reserve(spender->budget, n, "a try", NULL) < 0) {
                        spender->n_refused++;
                        continue;
                }
                if (atomic_fetch_add(spender->n_held, n) + n > SPENDER_LIMIT)
                        spender->n_over++;
                if (i % 64 == 0)
                        sched_yield();
                atomic_fetch_sub(spender->n_held, n);
                budget_release(spender->budget, n);
        }
        return NULL;
}

START_TEST(threads_together_never_get_more_than_the_limit) {
        struct budget budget = { .limit_bytes = SPENDER_LIMIT };
        struct spender spenders[4];
        _Atomic unsigned n_held = 0;
        pthread_t threads[4];

        for (unsigned i = 0; i < 4; i++) {
                spenders[i] = (struct spender){ .budget = &budget, .n_held = &n_held };
                ck_assert_int_eq(thread_start(&threads[i], "spender", spender_main, &spenders[i]), 0);
        }
        for (unsigned i = 0; i < 4; i++) {
                thread_join(threads[i]);
                ck_assert_uint_eq(spenders[i].n_over, 0);
        }
        ck_assert_uint_eq(budget_used(&budget), 0);
}
END_TEST

/* ---- sizes in words ------------------------------------------------------------------------------------------ */

START_TEST(sizes_are_written_with_one_decimal) {
        static const struct {
                uint64_t n_bytes;
                const char *text;
        } CASES[] = {
                { 0, "0 bytes" },          { 1023, "1023 bytes" },      { 1024, "1.0 KiB" },
                { 1075, "1.0 KiB" },       { 1076, "1.1 KiB" },    /* 1.05078 */
                { 1048524, "1023.9 KiB" }, { 1048525, "1.0 MiB" }, /* 1023.9502 KiB: the rounding carries into the next
                                                                      unit */
                { 12897485, "12.3 MiB" },  { 64ull << 20, "64.0 MiB" }, { 8ull << 30, "8.0 GiB" },
                { 3ull << 39, "1.5 TiB" }, { UINT64_MAX, "16.0 EiB" },
        };
        char text[BYTES_TEXT_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
                ck_assert_str_eq(format_bytes(text, CASES[i].n_bytes), CASES[i].text);
}
END_TEST

START_TEST(sizes_that_are_compared_never_read_alike) {
        char one[AMOUNT_TEXT_MAX], other[AMOUNT_TEXT_MAX];

        format_compared(one, 3 << 20, other, 1 << 20);
        ck_assert_str_eq(one, "3.0 MiB");
        ck_assert_str_eq(other, "1.0 MiB");
        format_compared(one, (1 << 20) + 1, other, 1 << 20);
        ck_assert_str_eq(one, "1.0 MiB (1048577 bytes)");
        ck_assert_str_eq(other, "1.0 MiB (1048576 bytes)");
        format_compared(one, UINT64_MAX, other, UINT64_MAX);
        ck_assert_str_eq(other, "16.0 EiB (18446744073709551615 bytes)");
        format_compared(one, 7, other, 7);
        ck_assert_str_eq(one, "7 bytes");
}
END_TEST

START_TEST(sizes_are_read_exactly_or_refused) {
        static const struct {
                const char *text;
                int result;
                uint64_t n_bytes;
        } CASES[] = {
                { "0", 0, 0 },
                { "4096", 0, 4096 },
                { "64KiB", 0, 65536 },
                { "512MiB", 0, 512ull << 20 },
                { "8GiB", 0, 8ull << 30 },
                { "2TiB", 0, 2ull << 40 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "17179869183GiB", 0, 17179869183ull << 30 },
                { "18446744073709551616", -ERANGE, 0 },
                { "17179869184GiB", -ERANGE, 0 },
                { "99999999999999999999999999999999KiB", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "GiB", -EINVAL, 0 },
                { "8 GiB", -EINVAL, 0 },
                { " 8GiB", -EINVAL, 0 },
                { "8GiB ", -EINVAL, 0 },
                { "8GiBs", -EINVAL, 0 },
                { "8GB", -EINVAL, 0 },
                { "8gib", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { "1.5GiB", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "99999999999999999999999999999999 KiB", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
                uint64_t n_bytes = 42;

                ck_assert_msg(parse_bytes(CASES[i].text, &n_bytes) == CASES[i].result, "\"%s\"", CASES[i].text);
                ck_assert_uint_eq(n_bytes, CASES[i].result == 0 ? CASES[i].n_bytes : 42);
        }
}
END_TEST

/* ---- texts --------------------------------------------------------------------------------------------------- */

START_TEST(what_is_no_utf8_or_controls_a_terminal_becomes_question_marks) {
        static const struct {
                const char *text, *printable;
        } rows[] = {
                { "plain", "plain" },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
                { "a\nb\x1b[1m\x7f", "a?b?[1m?" },
                { "\xff\x80", "??" },
                { "\xc0\xaf", "??" },           /* longer than needed */
                { "\xe0\x80\xaf", "???" },      /* the same */
                { "\xed\xa0\x80", "???" },      /* half of a pair of UTF-16 */
                { "\xf4\x90\x80\x80", "????" }, /* above U+10FFFF */
                { "\xe2\x82", "??" },           /* cut */
                { "a\xc2\x9b"
                  "31m",
                  "a??31m" }, /* U+009B, which some terminals take for ESC [ */
                { "a\xe2\x80\xae"
                  "b",
                  "a???b" }, /* U+202E: what follows is shown from right to left */
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char text[32];

                snprintf(text, sizeof(text), "%s", rows[i].text);
                ck_assert_int_eq(text_is_printable(text), strcmp(rows[i].text, rows[i].printable) == 0);
                text_make_printable(text);
                ck_assert_str_eq(text, rows[i].printable);
                ck_assert(text_is_printable(text));
        }
}
END_TEST

START_TEST(a_name_may_have_what_nobody_sees_but_no_controls) {
        static const char *const NAMES[] = { "", "plain", "\xd7\x90\xe2\x80\x8f", "a\xe2\x80\xae", "\xf3\xa0\x80\xa0" };
        static const char *const OTHERS[] = { "a\n", "\x7f", "\xc2\x80", "\xc2\x9b", "\xff", "\xe2\x80" };

        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                ck_assert(text_is_name(NAMES[i]));
        for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++)
                ck_assert(!text_is_name(OTHERS[i]));
        ck_assert(text_is_name("\xc2\xa0"));
}
END_TEST

/* Each line is of another user, as of one who has a range of subordinate uids. */
START_TEST(a_crowd_of_users_causes_no_more_lines_than_are_counted) {
        const uint32_t n_users = 3000, n_counted = 256;
        struct log_left_out left_out;
        uint64_t now_ns = LOG_USER_NS, n_said = 0, n_left_out = 0;

        for (uint32_t round = 0; round < 2 * LOG_USER_LINES; round++)
                for (uint32_t user = 0; user < n_users; user++)
                        n_said += limits_allow(&(struct log_kind){ LOG_LEVEL_INFO, "test", "%u", user }, now_ns);
        ck_assert_uint_le(n_said, (n_counted + 1) * LOG_USER_LINES);
        while (limits_take_left_out(now_ns + LOG_USER_NS, &left_out))
                n_left_out += left_out.n;
        ck_assert_uint_eq(n_said + n_left_out, 2ull * LOG_USER_LINES * n_users);
        ck_assert(limits_allow(&(struct log_kind){ LOG_LEVEL_INFO, "test", "%u", 0 }, now_ns + LOG_USER_NS));
}
END_TEST

/* Unicode's categories Cc, Cf, Zl and Zp and its property Default_Ignorable_Code_Point, from its own data and not from
 * the code's table. Those that are drawn, or that scripts and pictures are written with, are printable; all others are
 * not, and neither is half of a pair. */
START_TEST(of_all_code_points_no_control_and_no_invisible_one_is_printable) {
        static const struct {
                uint32_t first, last;
                bool is_printable;
        } ROWS[] = {
                { 0x1, 0x1f, false },        { 0x7f, 0x9f, false },       { 0xad, 0xad, false },
                { 0x34f, 0x34f, false },     { 0x600, 0x605, true },      { 0x61c, 0x61c, false },
                { 0x6dd, 0x6dd, true },      { 0x70f, 0x70f, true },      { 0x890, 0x891, true },
                { 0x8e2, 0x8e2, true },      { 0x115f, 0x1160, false },   { 0x17b4, 0x17b5, false },
                { 0x180b, 0x180d, true },    { 0x180e, 0x180e, false },   { 0x180f, 0x180f, true },
                { 0x200b, 0x200b, false },   { 0x200c, 0x200d, true },    { 0x200e, 0x200f, false },
                { 0x2028, 0x202e, false },   { 0x2060, 0x206f, false },   { 0x3164, 0x3164, false },
                { 0xd800, 0xdfff, false },   { 0xfe00, 0xfe0f, true },    { 0xfeff, 0xfeff, false },
                { 0xffa0, 0xffa0, false },   { 0xfff0, 0xfffb, false },   { 0x110bd, 0x110bd, true },
                { 0x110cd, 0x110cd, true },  { 0x13430, 0x13438, true },  { 0x1bca0, 0x1bca3, false },
                { 0x1d173, 0x1d17a, false }, { 0xe0000, 0xe00ff, false }, { 0xe0100, 0xe01ef, true },
                { 0xe01f0, 0xe0fff, false },
        };
        size_t row = 0;
        struct columns shown;
        char cells[32];

        for (uint32_t point = 1; point <= 0x10ffff; point++) {
                char text[5] = { 0 };
                bool expected;
                int n = 0;

                while (row + 1 < ARRAY_SIZE(ROWS) && point > ROWS[row].last)
                        row++;
                expected = point < ROWS[row].first || point > ROWS[row].last || ROWS[row].is_printable;
                if (point >= 0x10000)
                        text[n++] = (char)(0xf0 | point >> 18), text[n++] = (char)(0x80 | (point >> 12 & 63));
                else if (point >= 0x800)
                        text[n++] = (char)(0xe0 | point >> 12);
                if (point >= 0x800)
                        text[n++] = (char)(0x80 | (point >> 6 & 63));
                else if (point >= 0x80)
                        text[n++] = (char)(0xc0 | point >> 6);
                text[n] = (char)(point >= 0x80 ? 0x80 | (point & 63) : point);
                ck_assert_msg(text_is_printable(text) == expected, "U+%04X", point);
                shown = (struct columns){ .bytes = cells, .size = sizeof(cells), .utf8 = true };
                columns_text(&shown, text, 0, 8); /* tables and dlctl top */
                ck_assert_msg(expected || !strstr(cells, text), "U+%04X in a table", point);
        }
}
END_TEST

/* Wrong bytes at every place of a text, which is looked at in words of eight bytes where it can be. */
START_TEST(the_valid_beginning_of_a_text_ends_before_what_is_not_utf8) {
        static const char *const WRONG[] = {
                "\x80", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xff"
        };
        char text[64];

        for (size_t at = 0; at < 24; at++)
                for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
                        memset(text, 'a', sizeof(text));
                        memcpy(text + 30, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9);
                        ck_assert_uint_eq(utf8_valid(text, sizeof(text)), sizeof(text));
                        memcpy(text + at, WRONG[i], strlen(WRONG[i]));
                        ck_assert_uint_eq(utf8_valid(text, sizeof(text)), at);
                }
        memcpy(text, "\xe2\x82\xac", 3);
        ck_assert_uint_eq(utf8_valid(text, 2), 0);
        ck_assert_uint_eq(utf8_valid("a\0b", 3), 3);
        ck_assert_uint_eq(utf8_valid(NULL, 0), 0);
}
END_TEST

static const char *shortened(size_t size, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *shortened(size_t size, const char *format, ...) {
        static char text[256];
        char expected[256];
        va_list arguments;
        size_t n;

        memset(text, '#', sizeof(text));
        va_start(arguments, format);
        n = shorten_format(text, size, format, arguments);
        va_end(arguments);
        ck_assert_uint_eq(n, strlen(text));
        ck_assert_uint_lt(n, size);
        for (size_t i = size; i < sizeof(text); i++)
                ck_assert_int_eq(text[i], '#');
        ck_assert(text_is_printable(text));
        va_start(arguments, format);
        if (vsnprintf(expected, sizeof(expected), format, arguments) < (int)size)
                ck_assert_str_eq(text, expected);
        va_end(arguments);
        return text;
}

START_TEST(the_longest_strings_of_a_text_lose_their_middles_only_if_not_all_fits) {
        const char *path = "/data/photos/train/n01440764/n01440764_10026.JPEG", *what = "is not a file; remove it";

        ck_assert_str_eq(shortened(76, "%s: %s", path, what),
                         "/data/photos/train/n01440764/n01440764_10026.JPEG: is not a file; "
                         "remove it");
        ck_assert_str_eq(shortened(58, "%s: %s", path, what),
                         "/data/pho...01440764_10026.JPEG: is not a file; remove it");
        ck_assert_str_eq(shortened(28, "%s: %s", path, what), "/da...6.JPEG: is ...ove it");
        ck_assert_str_eq(shortened(60, "%s: field \"%s\", %s", path, "a", "cut"),
                         "/data/photos/...440764/n01440764_10026.JPEG: field \"a\", cut");
        ck_assert_str_eq(shortened(50, "%s/%s: %5d %llu %zu %.2f %% %c", path, path, 3, 4ull, (size_t)5, 1.5, 'x'),
                         "/da...026.JPEG//da...026.JPEG:     3 4 5 1.50 % x");
        ck_assert_str_eq(shortened(40, "%.*s: %s", 30, path, path), "/data...01440764/n: /data...10026.JPEG");
        ck_assert_str_eq(shortened(24, "\u20ac%s", "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"),
                         "\u20ac\u20ac...\u20ac\u20ac\u20ac\u20ac");
        ck_assert_str_eq(shortened(30, "what stands between is too long by itself %s", "x"),
                         "what stands between is too...");
        ck_assert_str_eq(shortened(30, "%*d is not known: %s", 3, 4, path), "  4 is not known: /data/ph...");
        for (size_t size = 5; size < 120; size++)
                shortened(size, "%s: %.10s: \u20ac%d %s", path, path, 17, "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac");
}
END_TEST

START_TEST(a_reason_keeps_its_end_and_names_the_errno_behind_it) {
        struct why why;
        char long_text[DLP_TEXT_MAX + 10];

        memset(long_text, 'x', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = '\0';
        ck_assert_int_eq(why_set(&why, -EINVAL, "%s", long_text), -EINVAL);
        ck_assert_uint_eq(strlen(why.text), DLP_TEXT_MAX - 1);
        ck_assert_ptr_nonnull(strstr(why.text, "xxx...xxx"));
        ck_assert_int_eq(why_errno(&why, -ENOENT, "%s is not there", long_text), -ENOENT);
        ck_assert_uint_eq(strlen(why.text), DLP_TEXT_MAX - 1);
        ck_assert_ptr_nonnull(strstr(why.text, "xxx is not there: No such file or directory"));
        ck_assert_int_eq(why_errno(&why, -ENOENT, "file \"%s\"", "a\nb"), -ENOENT);
        ck_assert_str_eq(why.text, "file \"a?b\": No such file or directory");
        ck_assert_int_eq(why_errno(&why, -9999, "what"), -9999);
        ck_assert_str_eq(why.text, "what: unknown error");
        ck_assert_int_eq(why_set(NULL, -EPERM, "nobody asked"), -EPERM);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("base");
        TCase *queues = tcase_create("queues"), *rest = tcase_create("rest");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(queues, 60);
        tcase_add_test(queues, a_mailbox_gives_back_in_order_and_refuses_when_full);
        tcase_add_test(queues, a_burst_wakes_a_sleeping_consumer_once_and_an_awake_one_never);
        tcase_add_test(queues, a_push_while_the_consumer_arms_does_not_take_the_wakeup_of_one_that_was_held_up);
        tcase_add_loop_test(queues, many_producers_lose_nothing_and_no_wakeup, 0, 2);
        suite_add_tcase(suite, queues);

        tcase_set_timeout(rest, 60);
        tcase_add_test(rest, what_is_no_utf8_or_controls_a_terminal_becomes_question_marks);
        tcase_add_test(rest, a_name_may_have_what_nobody_sees_but_no_controls);
        tcase_add_test(rest, a_crowd_of_users_causes_no_more_lines_than_are_counted);
        tcase_add_test(rest, of_all_code_points_no_control_and_no_invisible_one_is_printable);
        tcase_add_test(rest, the_valid_beginning_of_a_text_ends_before_what_is_not_utf8);
        tcase_add_test(rest, the_longest_strings_of_a_text_lose_their_middles_only_if_not_all_fits);
        tcase_add_test(rest, a_reason_keeps_its_end_and_names_the_errno_behind_it);
        tcase_add_test(rest, a_thread_leaves_signals_to_the_main_thread_but_not_its_own_faults);
        tcase_add_test(rest, a_thread_has_its_name);
        tcase_add_test(rest, the_budget_refuses_with_the_numbers);
        tcase_add_test(rest, the_budget_says_bytes_where_rounding_would_hide_the_difference);
        tcase_add_test(rest, the_budget_says_which_variable_raises_it);
        tcase_add_test(rest, the_budget_does_not_overflow);
        tcase_add_test(rest, a_share_is_a_percentage_of_what_others_leave);
        tcase_add_test(rest, threads_together_never_get_more_than_the_limit);
        tcase_add_test(rest, sizes_are_written_with_one_decimal);
        tcase_add_test(rest, sizes_that_are_compared_never_read_alike);
        tcase_add_test(rest, sizes_are_read_exactly_or_refused);
        suite_add_tcase(suite, rest);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? 0 : 1;
}
