/* A chunk that is sent while a piece of it is on its way leaves the piece out, and is complete once that has come, or
 * comes whole if that does not. The origin is a server that answers the piece last, once all else of the chunk is sent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/store/cache/cache.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#define N_FILE  CACHE_CHUNK_BYTES
#define AT      (3u << 20)
#define N_PIECE 100000u

static struct tree tree;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t n_sent; /* bytes of the file; the lock's, as what follows */
static bool is_asked;   /* for the piece */
static uint32_t n_done;
static int listen_fd;

static uint8_t byte_at(uint64_t offset) {
        return (uint8_t)(offset * 0x9e3779b97f4a7c15ull >> 56);
}

static void send_all(int fd, const void *bytes, size_t n) {
        for (ssize_t r; n > 0 && (r = send(fd, bytes, n, MSG_NOSIGNAL)) > 0; n -= (size_t)r)
                bytes = (const uint8_t *)bytes + r;
}

static void send_bytes(int fd, uint64_t first, uint64_t n) {
        uint8_t *bytes = malloc(n);
        char head[256];

        for (uint64_t i = 0; i < n; i++)
                bytes[i] = byte_at(first + i);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 %s\r\nETag: \"e\"\r\nContent-Length: %lu\r\nContent-Range: bytes %lu-%lu/%u\r\n\r\n",
                 n < N_FILE ? "206 Partial Content" : "200 OK", (unsigned long)n, (unsigned long)first,
                 (unsigned long)(first + n - 1), N_FILE);
        send_all(fd, head, strlen(head));
        send_all(fd, bytes, n);
        free(bytes);
        pthread_mutex_lock(&lock);
        n_sent += n;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static void wait_until_all_else_is_sent(void) {
        pthread_mutex_lock(&lock);
        is_asked = true;
        pthread_cond_broadcast(&changed);
        while (n_sent < N_FILE - N_PIECE)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        usleep(200000); /* the chunk is waiting for the piece by then, as a rule */
}

static bool has_piece; /* the origin gives it */

static void answer(int fd, const char *asked) {
        static const char ABSENT[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        const char *range = strstr(asked, "Range: bytes=");
        unsigned long first = 0, last = N_FILE - 1;
        char head[128];

        if (range)
                sscanf(range, "Range: bytes=%lu-%lu", &first, &last);
        if (strncmp(asked, "HEAD", 4) == 0) {
                snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: %u\r\n\r\n", N_FILE);
                send_all(fd, head, strlen(head));
                return;
        }
        if (first == AT)
                wait_until_all_else_is_sent();
        if (first == AT && !has_piece)
                send_all(fd, ABSENT, sizeof(ABSENT) - 1);
        else
                send_bytes(fd, first, last - first + 1);
}

static void *serve_connection(void *argument) {
        int fd = (int)(intptr_t)argument;
        char asked[8192];
        size_t n = 0;

        for (ssize_t r; (r = recv(fd, asked + n, sizeof(asked) - 1 - n, 0)) > 0;) {
                n += (size_t)r;
                asked[n] = '\0';
                if (!strstr(asked, "\r\n\r\n"))
                        continue;
                answer(fd, asked);
                n = 0;
        }
        close(fd);
        return NULL;
}

static void *serve(void *argument) {
        int fd;

        (void)argument;
        while ((fd = accept(listen_fd, NULL, NULL)) >= 0) {
                pthread_t thread;

                ck_assert_int_eq(pthread_create(&thread, NULL, serve_connection, (void *)(intptr_t)fd), 0);
                pthread_detach(thread);
        }
        return NULL;
}

static void on_done(struct cache_want *want) {
        (void)want;
        pthread_mutex_lock(&lock);
        n_done++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static void check_file(struct cached *cached) {
        uint8_t *bytes = malloc(N_FILE);
        FILE *file = fopen(cached_path(cached), "rb");

        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fread(bytes, 1, N_FILE, file), N_FILE);
        for (uint64_t i = 0; i < N_FILE; i++)
                if (bytes[i] != byte_at(i))
                        ck_abort_msg("byte %lu", (unsigned long)i);
        fclose(file);
        free(bytes);
}

START_TEST(a_chunk_waits_for_a_piece_that_is_on_its_way_and_comes_whole_without_it) {
        struct cache_want piece = { .offset = AT, .n_bytes = N_PIECE, .done = on_done };
        struct cache_want want = { .n_bytes = N_FILE, .done = on_done };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        char url[64], dir[160];
        struct cache *cache;
        struct cached *cached;
        struct why why;
        pthread_t server;

        has_piece = _i == 0;
        n_done = 0;
        n_sent = 0;
        is_asked = false;
        tree_make(&tree);
        listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
        ck_assert_int_eq(listen(listen_fd, 16), 0);
        getsockname(listen_fd, (struct sockaddr *)&address, &(socklen_t){ sizeof(address) });
        ck_assert_int_eq(pthread_create(&server, NULL, serve, NULL), 0);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/f.bin", ntohs(address.sin_port));
        snprintf(dir, sizeof(dir), "%s/cache", tree.root);
        ck_assert_int_eq(cache_new(&(struct cache_options){ .dir = dir, .limit = 1ull << 30 }, &cache), 0);
        if (cached_open(cache, &(struct cached_terms){ .url = url }, &cached, &why) < 0)
                ck_abort_msg("%s", why.text);

        ck_assert_int_eq(cached_want(cached, &piece, "", "f.bin"), 0);
        pthread_mutex_lock(&lock);
        while (!is_asked)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        ck_assert_int_eq(cached_want(cached, &want, "", "f.bin"), 0);
        pthread_mutex_lock(&lock);
        while (n_done < 2)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        ck_assert_int_eq(piece.result, has_piece ? 0 : -ENOENT);
        ck_assert_int_eq(want.result, 0);
        check_file(cached);
        pthread_mutex_lock(&lock);
        while (n_sent < (has_piece ? N_FILE : 2 * N_FILE - N_PIECE)) /* it is counted after it was sent */
                pthread_cond_wait(&changed, &lock);
        ck_assert_uint_eq(n_sent, has_piece ? N_FILE : 2 * N_FILE - N_PIECE);
        pthread_mutex_unlock(&lock);

        if (has_piece)
                cached_release(cached, &piece);
        cached_release(cached, &want);
        cached_unref(cached);
        cache_cancel(cache);
        cache_free(cache);
        shutdown(listen_fd, SHUT_RDWR);
        pthread_join(server, NULL);
        close(listen_fd);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pieces", .test = a_chunk_waits_for_a_piece_that_is_on_its_way_and_comes_whole_without_it,
                  .n_loops = 2 },
        };

        return suite_run("cache_pieces", rows, sizeof(rows) / sizeof(rows[0]));
}
