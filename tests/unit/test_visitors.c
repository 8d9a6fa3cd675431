/* Visitors of a page, on a unix socket: who makes room for whom, what the thread that opened it is asked. */

#include <check.h>
#include <event2/event.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/http/visitor.h"
#include "tests/support/suite.h"

#define PLACES 4

static struct visitors visitors;
static struct event_base *base;
static struct sockaddr_un address;
static int listen_fd;
static _Atomic unsigned n_left;

static enum MHD_Result serve(void *arg, struct visitor *visitor, const char *path) {
        char text[64] = "";

        (void)arg;
        if (strcmp(path, "/ask") == 0 && !visitors_ask(visitor->visitors, text))
                return MHD_NO;
        return visitor_answer(visitor, MHD_HTTP_OK, visitor_sentence("%s %s", path, text));
}

static void hear(void *arg, void *question) {
        snprintf(question, 64, "%s by %d", (const char *)arg, gettid());
}

static void leave(int fd) {
        (void)fd;
        n_left++;
}

static void open_page(void) {
        static const struct visitor_header HEADERS[] = { { "X-Page", "ours" }, { NULL, NULL } };
        static char arg[] = "heard";
        const struct visitors_options options = {
                .n_max = { PLACES },
                .silent_s = 100,
                .headers = HEADERS,
                .arg = arg,
                .serve = serve,
                .leave = leave,
                .hear = hear,
        };
        socklen_t n = sizeof(address);

        listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        ck_assert(bind(listen_fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0); /* the kernel finds a name */
        ck_assert(getsockname(listen_fd, (struct sockaddr *)&address, &n) == 0);
        ck_assert(listen(listen_fd, 100) == 0);
        base = event_base_new();
        ck_assert(base != NULL);
        n_left = 0;
        ck_assert_int_eq(visitors_open(&visitors, base, &options, listen_fd), 0);
}

static void close_page(void) {
        visitors_close(&visitors);
        close(listen_fd);
        event_base_free(base);
}

static int come(void) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert(connect(fd, (struct sockaddr *)&address, sizeof(sa_family_t) + 6) == 0);
        return fd;
}

static void ask(int fd, const char *path) {
        ck_assert(dprintf(fd, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path) > 0);
}

/* What comes next; "": the connection is closed. */
static const char *next_bytes(int fd) {
        static char text[4096];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        return text;
}

static bool is_closed(int fd) {
        struct pollfd look = { .fd = fd, .events = POLLIN };

        return poll(&look, 1, 0) == 1 && recv(fd, &(char){ 0 }, 1, MSG_PEEK) <= 0;
}

static void wait_for(int fd) {
        struct pollfd look = { .fd = fd, .events = POLLIN };

        ck_assert_int_eq(poll(&look, 1, 30000), 1);
}

START_TEST(the_thread_that_opened_the_page_is_asked) {
        char expected[64];
        const char *answer;
        int fd;

        open_page();
        fd = come();
        ask(fd, "/ask");
        ck_assert_int_eq(event_base_loop(base, EVLOOP_ONCE), 0);
        answer = next_bytes(fd);
        snprintf(expected, sizeof(expected), "/ask heard by %d\n", gettid());
        ck_assert(strncmp(answer, "HTTP/1.1 200 ", 13) == 0);
        ck_assert(strstr(answer, "X-Page: ours") != NULL);
        ck_assert(strstr(answer, expected) != NULL);
        close(fd);
        close_page();
        ck_assert_uint_eq(n_left, 1);
}
END_TEST

START_TEST(a_question_that_nobody_hears_does_not_hold_up_the_end) {
        int fd;

        open_page();
        fd = come();
        ask(fd, "/ask");
        wait_for(visitors.asked_fd);
        close_page();
        ck_assert_str_eq(next_bytes(fd), "");
        close(fd);
}
END_TEST

START_TEST(those_who_never_ask_make_room_first) {
        int talks, silent[PLACES], last;

        open_page();
        talks = come();
        ask(talks, "/once");
        ck_assert(strstr(next_bytes(talks), "/once") != NULL);
        for (unsigned i = 0; i < PLACES; i++)
                silent[i] = come(); /* the last of them has no place */
        wait_for(silent[0]);
        ck_assert_str_eq(next_bytes(silent[0]), "");
        last = come();
        wait_for(silent[1]);
        ck_assert(is_closed(silent[1]) && !is_closed(silent[2]) && !is_closed(silent[3]));
        ask(talks, "/again");
        ck_assert(strstr(next_bytes(talks), "/again") != NULL);
        ask(last, "/last");
        ck_assert(strstr(next_bytes(last), "/last") != NULL);
        close_page();
        ck_assert_uint_eq(n_left, PLACES + 2);
        close(talks);
        close(last);
        for (unsigned i = 0; i < PLACES; i++)
                close(silent[i]);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "questions", the_thread_that_opened_the_page_is_asked },
                { "questions", a_question_that_nobody_hears_does_not_hold_up_the_end },
                { "room", those_who_never_ask_make_room_first },
        };

        return suite_run("visitors", rows, sizeof(rows) / sizeof(rows[0]));
}
