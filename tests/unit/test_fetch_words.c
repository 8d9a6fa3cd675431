/* Addresses, headers, pauses: what is read and written before and between transfers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fetch/credentials.h"
#include "daemon/fetch/http_head.h"
#include "daemon/fetch/pauses.h"
#include "daemon/fetch/retry.h"
#include "daemon/fetch/s3_address.h"
#include "daemon/fetch/url_line.h"
#include "daemon/store/record/url.h"
#include "tests/support/suite.h"

#define SECOND_NS 1000000000ull

/* ---- URLs ----------------------------------------------------------------------------------------------------- */

static const struct {
        const char *url, *shown;
} SHOWN[] = {
        { "https://host/a/b.jpg", "https://host/a/b.jpg" },
        { "https://me:secret@host:8443/a", "https://host:8443/a" },
        { "https://me:s@cr@t@host/a", "https://host/a" },
        { "http://host/a?X-Amz-Signature=secret", "http://host/a?..." },
        { "http://host?token=secret", "http://host?..." },
        { "http://host/a#secret", "http://host/a?..." },
        { "s3://bucket/a?b#c", "s3://bucket/a?b#c" },
        { "file:///a/b", "file:///a/b" },
        { "ftp://me:secret@host/a", "ftp://host/a" },
        { "me:secret@host", "host" },
        { "", "" },
};

START_TEST(a_shown_url_has_no_password_and_no_query) {
        char shown[URL_SHOWN_SIZE];

        ck_assert_str_eq(url_show(SHOWN[_i].url, shown), SHOWN[_i].shown);
}
END_TEST

START_TEST(a_long_url_keeps_its_host_and_its_end) {
        char url[4096], shown[URL_SHOWN_SIZE];
        size_t n = (size_t)snprintf(url, sizeof(url), "https://me:secret@host/");

        memset(url + n, 'x', 2000);
        strcpy(url + n + 2000, "/the-name.jpg?secret");
        url_show(url, shown);
        ck_assert(strncmp(shown, "https://host/...", 16) == 0);
        ck_assert(strstr(shown, "/the-name.jpg?..."));
        ck_assert(!strstr(shown, "secret"));

        memset(url + 8, 'h', 3000); /* a host without end */
        url[3008] = '\0';
        url_show(url, shown);
        ck_assert_uint_lt(strlen(shown), URL_SHOWN_SIZE);
}
END_TEST

static const struct {
        const char *url, *query, *line;
} LINES[] = {
        { "http://h/a b", NULL, "http://h/a%20b" },
        { "http://h/\xc3\xbc%20\"<>", NULL, "http://h/%C3%BC%20%22%3C%3E" },
        { "http://h/a#b", "x=1", "http://h/a?x=1" },
        { "http://h/a?y=2", "x=1", "http://h/a?y=2&x=1" },
        { "http://h", "x=1", "http://h?x=1" },
        { "http://h/a", "", "http://h/a" },
};

START_TEST(what_may_not_go_over_the_line_is_encoded) {
        char *line = url_line(LINES[_i].url, LINES[_i].query);

        ck_assert_str_eq(line, LINES[_i].line);
        free(line);
}
END_TEST

START_TEST(a_server_is_scheme_host_and_port) {
        ck_assert(url_same_server("https://Host/a", "https://host:443/b?c"));
        ck_assert(url_same_server("http://me@host:80", "http://host/"));
        ck_assert(url_same_server("http://[::1]:8080/", "http://[::1]:8080"));
        ck_assert(!url_same_server("http://[::1]:8080/", "http://[::1]/"));
        ck_assert(!url_same_server("http://host/", "https://host/"));
        ck_assert(!url_same_server("https://host/", "https://host:8443/"));
        ck_assert(!url_same_server("https://host/", "https://host.evil/"));
        ck_assert(!url_same_server("https://host/", "https://host@evil/"));
        ck_assert(!url_same_server("https://host/", "https://evil#@host/"));
        ck_assert(!url_same_server("https:///", "https:///"));
        ck_assert(!url_same_server("s3://bucket", "s3://bucket"));
}
END_TEST

/* ---- object stores -------------------------------------------------------------------------------------------- */

static const struct {
        struct s3_store store;
        const char *url, *address; /* NULL: refused */
} ADDRESSES[] = {
        { { NULL, "eu-west-1", "auto" }, "s3://photos/a b", "https://photos.s3.eu-west-1.amazonaws.com/a%20b" },
        { { NULL, "eu-west-1", "auto" }, "s3://my.photos/a", "https://s3.eu-west-1.amazonaws.com/my.photos/a" },
        { { NULL, "eu-west-1", "path" }, "s3://photos", "https://s3.eu-west-1.amazonaws.com/photos" },
        { { NULL, "cn-north-1", "auto" }, "s3://p/", "https://p.s3.cn-north-1.amazonaws.com.cn/" },
        { { "http://h:9000", "r", "auto" }, "s3://photos/a/b", "http://h:9000/photos/a/b" },
        { { "http://h:9000//", "r", "auto" }, "s3://photos/", "http://h:9000/photos" },
        { { "https://h/store", "r", "path" }, "s3://photos/a", "https://h/store/photos/a" },
        { { "https://h:1", "r", "virtual" }, "s3://photos/a", "https://photos.h:1/a" },
        { { "http://h", "r", "auto" },
          "s3://p/a+b=c%20?#&;\xc3\xbc*'()!~",
          "http://h/p/a%2Bb%3Dc%2520%3F%23%26%3B%C3%BC%2A%27%28%29%21~" },
        { { "http://h", "r", "auto" }, "s3://p//a/../b/", "http://h/p//a/../b/" },
        { { "http://h", "r", "auto" }, "s3://", NULL },
        { { "http://h", "r", "auto" }, "s3://../a", NULL },
        { { "http://h", "r", "auto" }, "s3://me:x@p/a", NULL },
        { { "http://h", "r", "auto" }, "http://p/a", NULL },
};

START_TEST(a_key_goes_over_the_line_as_stores_encode_it) {
        struct why why;
        char *address = NULL;

        if (ADDRESSES[_i].address) {
                ck_assert_int_eq(s3_address(&ADDRESSES[_i].store, ADDRESSES[_i].url, &address, &why), 0);
                ck_assert_str_eq(address, ADDRESSES[_i].address);
                free(address);
        } else {
                ck_assert_int_eq(s3_address(&ADDRESSES[_i].store, ADDRESSES[_i].url, &address, &why), -EINVAL);
        }
}
END_TEST

START_TEST(a_key_beyond_what_stores_allow_is_refused) {
        const struct s3_store store = { "http://h", "r", "auto" };
        char url[2000] = "s3://p/";
        char *address;

        memset(url + 7, 'k', 1024);
        ck_assert_int_eq(s3_address(&store, url, &address, NULL), 0);
        free(address);
        url[7 + 1024] = 'k';
        ck_assert_int_eq(s3_address(&store, url, &address, NULL), -EINVAL);
}
END_TEST

/* ---- headers -------------------------------------------------------------------------------------------------- */

static struct http_head head_of(const char *lines) {
        struct http_head head;

        http_head_clear(&head);
        while (*lines) {
                size_t n = strcspn(lines, "\n") + 1;

                http_head_line(&head, lines, n);
                lines += n;
        }
        return head;
}

START_TEST(a_head_says_what_came) {
        struct http_head head = head_of("HTTP/1.1 302 Found\r\nETag: \"old\"\r\nContent-Length: 7\r\n\r\n"
                                        "HTTP/2 206 \r\ncontent-RANGE:  bytes 5-9/100 \r\netag:\"new\"\r\n"
                                        "Accept-Ranges: bytes\r\nContent-Type: Text/HTML; charset=x\r\n"
                                        "Content-Encoding: br\r\nRetry-After: 5\r\n\r\n");

        ck_assert_int_eq(head.status, 206);
        ck_assert(head.has_range && head.has_ranges && head.is_html && head.is_encoded);
        ck_assert_uint_eq(head.range_first, 5);
        ck_assert_uint_eq(head.range_last, 9);
        ck_assert_uint_eq(head.range_total, 100);
        ck_assert_uint_eq(head.n_bytes, UINT64_MAX); /* that was the redirect's */
        ck_assert_str_eq(head.etag, "\"new\"");
        ck_assert_str_eq(head.retry_after, "5");
}
END_TEST

static const char *const NO_RANGES[] = {
        "bytes 5-/100",
        "bytes -5/100",
        "bytes 9-5/100",
        "bytes 5-9",
        "bytes */100",
        "rows 5-9/100",
        "bytes 5-9/x",
        "bytes 99999999999999999999-5/6",
        "",
        "bytes",
        "bytes 5-9/99999999999999999999999999",
};

START_TEST(a_content_range_that_cannot_be_read_is_none) {
        char line[128];
        struct http_head head;

        http_head_clear(&head);
        snprintf(line, sizeof(line), "Content-Range: %s\r\n", NO_RANGES[_i]);
        http_head_line(&head, line, strlen(line));
        ck_assert(!head.has_range);
}
END_TEST

static const struct {
        const char *modified, *date;
        bool is_dated;
} DATES[] = {
        { "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT", true },
        { "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", false },
        { "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:36 GMT", false },
        { "Sun, 06 Nov 1994 08:49:37 GMT", "", true },
        { "Sun, 06 Nov 1994 08:49:37 GMT", "today", true },
        { "yesterday", "Sun, 06 Nov 1994 08:49:38 GMT", false },
        { "", "Sun, 06 Nov 1994 08:49:38 GMT", false },
};

START_TEST(a_date_tells_contents_apart_if_it_was_before_the_answer) {
        struct http_head head;
        char line[128];

        http_head_clear(&head);
        snprintf(line, sizeof(line), "Last-Modified: %s\r\n", DATES[_i].modified);
        http_head_line(&head, line, strlen(line));
        snprintf(line, sizeof(line), "Date: %s\r\n", DATES[_i].date);
        http_head_line(&head, line, strlen(line));
        ck_assert_str_eq(head.modified, DATES[_i].modified);
        ck_assert_int_eq(http_head_is_dated(&head), DATES[_i].is_dated);
}
END_TEST

START_TEST(headers_of_any_bytes_harm_nobody) {
        struct http_head head;
        char line[5000];

        http_head_clear(&head);
        memset(line, 'e', sizeof(line));
        memcpy(line, "ETag: ", 6);
        http_head_line(&head, line, sizeof(line));
        ck_assert_str_eq(head.etag, "");
        http_head_line(&head, line, 300); /* longer than is kept: none, rather than a part that agrees with nothing */
        ck_assert_str_eq(head.etag, "");
        http_head_line(&head, "\0\0:", 3);
        http_head_line(&head, "", 0);
        http_head_line(&head, ":", 1);
        http_head_line(&head, "Content-Length: -5", 18);
        http_head_line(&head, "Content-Length: 5, 5", 20);
        http_head_line(&head, "HTTP/", 5);
        ck_assert_uint_eq(head.n_bytes, UINT64_MAX);
        ck_assert_int_eq(head.status, 0);
}
END_TEST

START_TEST(etags_agree_but_for_their_weakness) {
        ck_assert(http_etag_agrees("\"a\"", "\"a\""));
        ck_assert(http_etag_agrees("W/\"a\"", "\"a\""));
        ck_assert(http_etag_agrees("\"a\"", ""));
        ck_assert(http_etag_agrees(NULL, "\"a\""));
        ck_assert(!http_etag_agrees("\"a\"", "\"b\""));
        ck_assert(!http_etag_agrees("W/\"a\"", "W/\"b\""));
}
END_TEST

START_TEST(a_stores_word_is_found_in_what_was_kept_of_it) {
        static const char BODY[] = "<Error><Code>SlowDown</Code><Message>Please\nreduce</Message><Cut>no end";
        struct http_head head;
        char text[64];

        http_head_clear(&head);
        head.n_error_bytes = sizeof(BODY) - 1;
        memcpy(head.error, BODY, sizeof(BODY) - 1);
        ck_assert_str_eq(http_head_error_element(&head, "Code", text, sizeof(text)), "SlowDown");
        ck_assert_str_eq(http_head_error_element(&head, "Message", text, sizeof(text)), "Please?reduce");
        ck_assert_str_eq(http_head_error_element(&head, "Message", text, 4), "Ple");
        ck_assert_str_eq(http_head_error_element(&head, "Cut", text, sizeof(text)), "");
        ck_assert_str_eq(http_head_error_element(&head, "Other", text, sizeof(text)), "");
}
END_TEST

/* ---- pauses --------------------------------------------------------------------------------------------------- */

START_TEST(pauses_grow_are_jittered_and_stay_below_their_limit) {
        for (uint32_t n_failed = 1; n_failed < 100; n_failed++) {
                uint64_t limit_ns = n_failed <= 7 ? SECOND_NS / 4 << (n_failed - 1) : RETRY_PAUSE_MAX_S * SECOND_NS;
                uint64_t least = UINT64_MAX, most = 0;

                for (int i = 0; i < 200; i++) {
                        uint64_t pause_ns = retry_pause_ns(n_failed, retry_random());

                        least = pause_ns < least ? pause_ns : least;
                        most = pause_ns > most ? pause_ns : most;
                }
                ck_assert_uint_le(most, limit_ns);
                ck_assert_uint_gt(most, limit_ns / 10 * 9);
                ck_assert_uint_lt(least, limit_ns / 10);
        }
        ck_assert_uint_eq(retry_pause_ns(1, 0), 0);
        ck_assert_uint_le(retry_pause_ns(0, UINT64_MAX), SECOND_NS / 4);
}
END_TEST

START_TEST(retry_after_is_seconds_or_a_date_by_the_answers_own_clock) {
        const char *date = "Tue, 15 Nov 1994 08:12:31 GMT";
        uint64_t pause_ns = 1;

        ck_assert(retry_after_ns("17", NULL, &pause_ns));
        ck_assert_uint_eq(pause_ns, 17 * SECOND_NS);
        ck_assert(retry_after_ns("Tue, 15 Nov 1994 08:13:01 GMT", date, &pause_ns));
        ck_assert_uint_eq(pause_ns, 30 * SECOND_NS);
        ck_assert(retry_after_ns("Tue, 15 Nov 1994 08:12:01 GMT", date, &pause_ns));
        ck_assert_uint_eq(pause_ns, 0);
        ck_assert(retry_after_ns("Tue, 15 Nov 1994 08:12:01 GMT", "", &pause_ns)); /* long ago by our own clock */
        ck_assert_uint_eq(pause_ns, 0);
        ck_assert(retry_after_ns("Fri, 31 Dec 9999 23:59:59 GMT", date, &pause_ns));
        ck_assert_uint_eq(pause_ns, (1ull << 32) * 1000000000);
        ck_assert(retry_after_ns("99999999999999999999999999", NULL, &pause_ns));
        ck_assert_uint_gt(pause_ns, RETRY_AFTER_MAX_S * SECOND_NS);
        ck_assert(!retry_after_ns("", date, &pause_ns));
        ck_assert(!retry_after_ns("soon", date, &pause_ns));
        ck_assert(!retry_after_ns("-5", date, &pause_ns));
}
END_TEST

START_TEST(a_pause_is_a_servers_whatever_is_asked_of_it) {
        struct pauses pauses = { 0 };
        char url[300];

        ck_assert_uint_eq(pauses_until(&pauses, "http://a/x"), 0);
        pauses_set(&pauses, "http://a/x", 50);
        pauses_set(&pauses, "http://a/y?z", 40);
        ck_assert_uint_eq(pauses_until(&pauses, "http://a"), 50);
        ck_assert_uint_eq(pauses_until(&pauses, "http://a:80/x"), 0);
        ck_assert_uint_eq(pauses_until(&pauses, "http://ab/x"), 0);
        for (unsigned int i = 0; i < 3 * PAUSES_MAX; i++) {
                snprintf(url, sizeof(url), "http://other%u/", i);
                pauses_set(&pauses, url, 60 + i);
                ck_assert_uint_eq(pauses_until(&pauses, url), 60 + i);
        }
        memset(url, 'h', sizeof(url) - 1); /* a name that nobody has */
        url[sizeof(url) - 1] = '\0';
        pauses_set(&pauses, url, 1000);
        ck_assert_uint_eq(pauses_until(&pauses, url), 0);
}
END_TEST

/* ---- credentials ---------------------------------------------------------------------------------------------- */

START_TEST(a_file_of_credentials_says_who_we_are_to_whom) {
        static const char TEXT[] =
                "; of mine\r\n[other]\naws_access_key_id = no\n [ default ] \r\n"
                "AWS_Access_Key_Id = AKIA \r\naws_secret_access_key = a=b#c ;d\nregion = x\n"
                "[https://h.example:443]\nuser = me\npassword = p w\n[http://[::1]:80/]\ntoken = t\n";
        char path[] = "/tmp/test_fetch_words_XXXXXX";
        struct credentials *credentials = NULL;
        const struct credentials_web *web;
        struct why why = { 0 };
        int fd = mkstemp(path);

        unsetenv("AWS_PROFILE");
        ck_assert_int_eq(write(fd, TEXT, sizeof(TEXT) - 1), sizeof(TEXT) - 1);
        close(fd);
        ck_assert_msg(credentials_read(path, &credentials, &why) == 0, "%s", why.text);
        unlink(path);
        ck_assert_str_eq(credentials_s3(credentials)->access_key, "AKIA");
        ck_assert_str_eq(credentials_s3(credentials)->secret_key, "a=b#c ;d");
        ck_assert_ptr_null(credentials_s3(credentials)->session_token);
        web = credentials_web(credentials, "https://H.example/a?b");
        ck_assert_ptr_nonnull(web);
        ck_assert_str_eq(web->user, "me");
        ck_assert_str_eq(web->password, "p w");
        ck_assert_str_eq(credentials_web(credentials, "http://[::1]/")->token, "t");
        ck_assert_ptr_null(credentials_web(credentials, "http://h.example/"));
        ck_assert_ptr_null(credentials_web(credentials, "s3://h.example/"));
        credentials_free(credentials);
        credentials_free(NULL);
}
END_TEST

START_TEST(without_a_file_the_environment_says_it) {
        struct credentials *credentials = NULL;

        unsetenv("AWS_ACCESS_KEY_ID");
        setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
        ck_assert_int_eq(credentials_of_environment(&credentials), 0);
        ck_assert_ptr_null(credentials_s3(credentials)); /* half of them is none */
        credentials_free(credentials);
        setenv("AWS_ACCESS_KEY_ID", "a", 1);
        setenv("AWS_SESSION_TOKEN", "", 1);
        ck_assert_int_eq(credentials_of_environment(&credentials), 0);
        ck_assert_str_eq(credentials_s3(credentials)->access_key, "a");
        ck_assert_ptr_null(credentials_s3(credentials)->session_token);
        credentials_free(credentials);
}
END_TEST

#define N(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void) {
        const struct suite_row rows[] = {
                { "urls", a_shown_url_has_no_password_and_no_query, N(SHOWN) },
                { "urls", a_long_url_keeps_its_host_and_its_end },
                { "urls", what_may_not_go_over_the_line_is_encoded, N(LINES) },
                { "urls", a_server_is_scheme_host_and_port },
                { "stores", a_key_goes_over_the_line_as_stores_encode_it, N(ADDRESSES) },
                { "stores", a_key_beyond_what_stores_allow_is_refused },
                { "heads", a_head_says_what_came },
                { "heads", a_content_range_that_cannot_be_read_is_none, N(NO_RANGES) },
                { "heads", a_date_tells_contents_apart_if_it_was_before_the_answer, sizeof(DATES) / sizeof(DATES[0]) },
                { "heads", headers_of_any_bytes_harm_nobody },
                { "heads", etags_agree_but_for_their_weakness },
                { "heads", a_stores_word_is_found_in_what_was_kept_of_it },
                { "pauses", pauses_grow_are_jittered_and_stay_below_their_limit },
                { "pauses", retry_after_is_seconds_or_a_date_by_the_answers_own_clock },
                { "pauses", a_pause_is_a_servers_whatever_is_asked_of_it },
                { "credentials", a_file_of_credentials_says_who_we_are_to_whom },
                { "credentials", without_a_file_the_environment_says_it },
        };

        return suite_run("fetch_words", rows, sizeof(rows) / sizeof(rows[0]));
}
