/* Addresses, headers, pauses: what is read and written before and between transfers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fetch/credentials.h"
#include "daemon/fetch/http_head.h"
#include "daemon/fetch/hub_address.h"
#include "daemon/fetch/of_user.h"
#include "daemon/fetch/retry.h"
#include "daemon/fetch/s3_address.h"
#include "daemon/fetch/s3_regions.h"
#include "daemon/fetch/url_line.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

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

static const char *const USER_VARIABLES[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "HF_ENDPOINT",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HF_TOKEN_PATH",
        "HF_HOME",
        "XDG_CACHE_HOME",
};

/* A home folder with these files (NULL: none), and an environment of these "NAME=value"; what is read of them. */
static struct of_user *user_of(const struct tree *home, const char *credentials, const char *config, const char *token,
                               const char *const environment[4]) {
        struct of_user *user = NULL;
        const struct {
                const char *path, *text;
        } files[] = { { ".aws/credentials", credentials },
                      { ".aws/config", config },
                      { ".cache/huggingface/token", token } };

        for (size_t i = 0; i < ARRAY_SIZE(USER_VARIABLES); i++)
                unsetenv(USER_VARIABLES[i]);
        setenv("HOME", home->root, 1);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                unlinkat(home->fd, files[i].path, 0);
                if (!files[i].text)
                        continue;
                tree_file(home, files[i].path, files[i].text);
                ck_assert_int_eq(fchmodat(home->fd, files[i].path, 0600, 0), 0);
        }
        for (size_t i = 0; i < 4 && environment[i]; i++)
                putenv((char *)(uintptr_t)environment[i]);
        ck_assert_int_eq(of_user_read(&user), 0);
        return user;
}

#define KEYS(of) "aws_access_key_id = " of "-id\naws_secret_access_key = " of "-secret\n"

static const struct {
        const char *credentials, *config, *token;
        const char *environment[4];
        const char *key, *session, *region, *endpoint; /* NULL: there is none */
        const char *hub_token, *hub_endpoint;
        const char *s3_says, *hub_says; /* of what is refused */
} USERS[] = {
        { .key = NULL },
        { .environment = { "AWS_ACCESS_KEY_ID=e-id", "AWS_SECRET_ACCESS_KEY=s" }, .key = "e-id" },
        { .environment = { "AWS_ACCESS_KEY_ID=e-id", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t" },
          .key = "e-id",
          .session = "t" },
        { .environment = { "AWS_SECRET_ACCESS_KEY=s" }, .s3_says = "the first is not set" },
        { .environment = { "AWS_ACCESS_KEY_ID=e-id" }, .s3_says = "the second is not set" },
        { .credentials = "[default]\n" KEYS("c"),
          .config = "[default]\nregion = eu-west-1\ns3 =\n  endpoint_url = http://nested\n" KEYS("f"),
          .key = "c-id",
          .region = "eu-west-1" },
        { .credentials = "[default]\n" KEYS("c"),
          .environment = { "AWS_ACCESS_KEY_ID=e-id", "AWS_SECRET_ACCESS_KEY=s", "AWS_DEFAULT_REGION=r" },
          .key = "e-id",
          .region = "r" },
        { .config = "[profile mine]\nendpoint_url = http://h:9000\naws_session_token = t\n" KEYS("f") "[mine]\n" KEYS(
                  "x"),
          .environment = { "AWS_PROFILE=mine" },
          .key = "f-id",
          .session = "t",
          .endpoint = "http://h:9000" },
        { .credentials = "[mine]\n" KEYS("m") "[default]\n" KEYS("d"),
          .environment = { "AWS_PROFILE=mine" },
          .key = "m-id" },
        { .credentials = "[default]\n" KEYS("d"),
          .environment = { "AWS_PROFILE=mine" },
          .s3_says = "AWS_PROFILE is \"mine\"" },
        { .config = "[default]\nendpoint_url = http://h\n",
          .environment = { "AWS_ENDPOINT_URL=http://all", "AWS_ENDPOINT_URL_S3=http://store" },
          .endpoint = "http://store" },
        { .environment = { "AWS_ENDPOINT_URL=http://all" }, .endpoint = "http://all" },
        { .environment = { "AWS_ENDPOINT_URL=all" }, .s3_says = "is not an address" },
        { .config = "[default]\nsso_session = x\n",
          .s3_says = "gets its keys by sso_session, which is not supported: run" },
        { .config = "[default]\ncredential_process = /bin/x\n", .s3_says = "by credential_process" },
        { .config = "[default]\nsso_session = x\n",
          .environment = { "AWS_ACCESS_KEY_ID=e-id", "AWS_SECRET_ACCESS_KEY=s" },
          .key = "e-id" },
        { .credentials = "[default]\nrole_arn = arn:x\n" KEYS("c"), .s3_says = "by role_arn" },
        { .credentials = "[default]\naws_access_key_id = x\n", .s3_says = "needs both" },
        { .config = "[default]\nservices = s\n", .s3_says = "[services s]" },
        { .environment = { "AWS_WEB_IDENTITY_TOKEN_FILE=/x" }, .s3_says = "AWS_WEB_IDENTITY_TOKEN_FILE is set" },
        { .environment = { "AWS_SHARED_CREDENTIALS_FILE=/nowhere" }, .s3_says = "credentials /nowhere: No such file" },
        { .token = "hf_file\n", .hub_token = "hf_file" },
        { .token = "hf_file\n", .environment = { "HF_TOKEN= hf_e\n" }, .hub_token = "hf_e" },
        { .environment = { "HUGGING_FACE_HUB_TOKEN=hf_old" }, .hub_token = "hf_old" },
        { .token = " \n", .hub_token = NULL },
        { .token = "hf_file", .environment = { "HF_HOME=~/.cache/huggingface" }, .hub_token = "hf_file" },
        { .token = "hf_file", .environment = { "HF_HOME=/nowhere" }, .hub_token = NULL },
        { .token = "hf_file", .environment = { "HF_TOKEN_PATH=/nowhere" }, .hub_token = NULL },
        { .environment = { "HF_TOKEN=a b" }, .hub_says = "is not a token" },
        { .environment = { "HF_TOKEN=a\nX-Other: b" }, .hub_says = "is not a token" },
        { .environment = { "HF_ENDPOINT=https://mirror//" }, .hub_endpoint = "https://mirror" },
        { .environment = { "HF_ENDPOINT=mirror" }, .hub_says = "HF_ENDPOINT is not an address" },
};

static void is_text(const char *text, const char *expected) {
        ck_assert_msg(!text == !expected && (!text || strcmp(text, expected) == 0), "\"%s\", not \"%s\"", text,
                      expected);
}

START_TEST(a_users_own_settings_are_those_of_his_tools) {
        struct of_user *user;
        struct tree home;

        tree_make(&home);
        user = user_of(&home, USERS[_i].credentials, USERS[_i].config, USERS[_i].token, USERS[_i].environment);
        ck_assert_msg(!user->s3_error == !USERS[_i].s3_says, "%s", user->s3_why.text);
        ck_assert_msg(!user->hub_error == !USERS[_i].hub_says, "%s", user->hub_why.text);
        ck_assert(!USERS[_i].s3_says || strstr(user->s3_why.text, USERS[_i].s3_says));
        ck_assert(!USERS[_i].hub_says || strstr(user->hub_why.text, USERS[_i].hub_says));
        if (!USERS[_i].s3_says) {
                is_text(user->s3.access_key, USERS[_i].key);
                is_text(user->s3.session_token, USERS[_i].session);
                is_text(user->s3_region, USERS[_i].region);
                is_text(user->s3_endpoint, USERS[_i].endpoint);
        }
        if (!USERS[_i].hub_says) {
                is_text(user->hub_token, USERS[_i].hub_token);
                is_text(user->hub_endpoint, USERS[_i].hub_endpoint);
        }
        of_user_free(user);
        tree_remove(&home);
}
END_TEST

START_TEST(a_users_own_files_that_others_may_read_are_refused_once_they_are_needed) {
        static const char *const PATHS[] = { ".aws/credentials", ".aws/config", ".cache/huggingface/token" };
        static const char *const NO_ENVIRONMENT[4];

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                struct of_user *user;
                struct tree home;

                tree_make(&home);
                of_user_free(user_of(&home, NULL, NULL, NULL, NO_ENVIRONMENT));
                tree_file(&home, PATHS[i], "hush");
                ck_assert_int_eq(fchmodat(home.fd, PATHS[i], 0644, 0), 0);
                ck_assert_int_eq(of_user_read(&user), 0);
                ck_assert_int_eq(i < 2 ? user->s3_error : user->hub_error, -EACCES);
                ck_assert_ptr_nonnull(strstr(i < 2 ? user->s3_why.text : user->hub_why.text, "chmod 600"));
                ck_assert_int_eq(i < 2 ? user->hub_error : user->s3_error, 0);
                of_user_free(user);
                tree_remove(&home);
        }
}
END_TEST

/* ---- the hub -------------------------------------------------------------------------------------------------- */

static const struct {
        const char *url, *address; /* NULL: refused */
} HUB_ADDRESSES[] = {
        { "hf://datasets/o/n/a b.txt", "http://h/datasets/o/n/resolve/main/a%20b.txt" },
        { "hf://datasets/o/n@v1.0/d/a?b#c%41", "http://h/datasets/o/n/resolve/v1.0/d/a%3Fb%23c%2541" },
        { "hf://datasets/o/n@refs%2Fpr%2F7/a", "http://h/datasets/o/n/resolve/refs%2Fpr%2F7/a" },
        { "hf://datasets/o/n@refs/pr/7/a", "http://h/datasets/o/n/resolve/refs%2Fpr%2F7/a" },
        { "hf://datasets/o/n@refs/convert/parquet/d/a", "http://h/datasets/o/n/resolve/refs%2Fconvert%2Fparquet/d/a" },
        { "hf://datasets/o/n@refs/a", "http://h/datasets/o/n/resolve/refs/a" },
        { "HF://datasets/o-1/n_2.3/a", "http://h/datasets/o-1/n_2.3/resolve/main/a" },
        { "hf://api/datasets/o/n/tree/main", "http://h/api/datasets/o/n/tree/main" },
        { "hf://datasets/o/n", NULL },
        { "hf://datasets/o/n@main", NULL },
        { "hf://datasets/o", NULL },
        { "hf://datasets", NULL },
        { "hf://datasets/o/", NULL },
        { "hf://datasets//n/a", NULL },
        { "hf://datasets/o/../a", NULL },
        { "hf://datasets/o/n@/a", NULL },
        { "hf://datasets/o/n@%zz/a", NULL },
        { "hf://datasets/o/n@%00/a", NULL },
        { "hf://datasets/o/n?x/a", NULL },
        { "hf://o/n/a", NULL },
        { "hf://me@datasets/o/n/a", NULL },
        { "hf://", NULL },
};

START_TEST(a_file_of_the_hub_is_asked_for_at_its_revision) {
        char *address = NULL;
        struct why why = { 0 };
        int r = hub_address("http://h", HUB_ADDRESSES[_i].url, &address, &why);

        if (HUB_ADDRESSES[_i].address) {
                ck_assert_msg(r == 0, "%s", why.text);
                ck_assert_str_eq(address, HUB_ADDRESSES[_i].address);
        } else {
                ck_assert_int_eq(r, -EINVAL);
                ck_assert(why.text[0] && !address);
        }
        free(address);
}
END_TEST

START_TEST(the_next_page_and_the_hubs_words_are_found_in_a_head) {
        static const char *const LINES_OF_HEAD[] = {
                "Link: <https://h/a?cursor=1&x=2>; rel=\"prev\", <https://h/a?cursor=x,y>; rel=\"next\"\r\n",
                "X-Error-Code: GatedRepo\r\n",
                "x-error-message: Access to it, is restricted\r\n",
                "RateLimit: \"api\";r=0;t=55\r\n",
        };
        static const char *const OTHERS[] = { "Link: <https://h/a>; rel=\"last\"", "Link: next",
                                              "RateLimit: \"api\";r=7;t=55" };
        struct http_head head;

        http_head_clear(&head);
        for (size_t i = 0; i < ARRAY_SIZE(LINES_OF_HEAD); i++)
                http_head_line(&head, LINES_OF_HEAD[i], strlen(LINES_OF_HEAD[i]));
        ck_assert_str_eq(head.link_next, "https://h/a?cursor=x,y");
        ck_assert_str_eq(head.error_code, "GatedRepo");
        ck_assert_str_eq(head.error_message, "Access to it, is restricted");
        ck_assert_str_eq(head.rate_reset, "55");
        http_head_clear(&head);
        for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++)
                http_head_line(&head, OTHERS[i], strlen(OTHERS[i]));
        ck_assert_str_eq(head.link_next, "");
        ck_assert_str_eq(head.rate_reset, "");
}
END_TEST

/* ---- regions -------------------------------------------------------------------------------------------------- */

START_TEST(a_buckets_region_is_the_one_that_was_told_last) {
        char region[S3_REGION_SIZE], bucket[16], name[300];
        struct s3_regions regions;

        s3_regions_init(&regions);
        s3_regions_get(&regions, "b", "here", region);
        ck_assert_str_eq(region, "here");
        s3_regions_set(&regions, "b", "there");
        s3_regions_set(&regions, "b", "elsewhere");
        s3_regions_get(&regions, "b", "here", region);
        ck_assert_str_eq(region, "elsewhere");
        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        s3_regions_set(&regions, name, "there");
        s3_regions_set(&regions, "c", name);
        s3_regions_get(&regions, "c", "here", region);
        ck_assert_str_eq(region, "here");
        for (unsigned i = 0; i < 3 * S3_REGIONS_MAX; i++) {
                snprintf(bucket, sizeof(bucket), "b%u", i);
                s3_regions_set(&regions, bucket, "there");
                s3_regions_get(&regions, bucket, "here", region);
                ck_assert_str_eq(region, "there");
        }
        s3_regions_fini(&regions);
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
                { "credentials", a_file_of_credentials_says_who_we_are_to_whom },
                { "credentials", a_users_own_settings_are_those_of_his_tools, N(USERS) },
                { "credentials", a_users_own_files_that_others_may_read_are_refused_once_they_are_needed },
                { "hub", a_file_of_the_hub_is_asked_for_at_its_revision, N(HUB_ADDRESSES) },
                { "hub", the_next_page_and_the_hubs_words_are_found_in_a_head },
                { "stores", a_buckets_region_is_the_one_that_was_told_last },
        };

        return suite_run("fetch_words", rows, sizeof(rows) / sizeof(rows[0]));
}
