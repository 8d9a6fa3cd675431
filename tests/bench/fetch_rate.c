/* fetch_rate ours|bare CONNECTIONS TURNS <lines: the fetcher beside a bare libcurl multi loop.
 *
 * A line is a URL, a tab and its length. All are fetched TURNS times, each into its place in memory, over so many
 * connections that stay open: by the fetcher, a job each, or by the loop that libcurl's own example makes
 * (curl_multi_perform() and curl_multi_poll(), a handle a connection, used again). Prints seconds, CPU seconds and
 * bytes as JSON. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/fetch/fetch.h"
#include "proto/base/clock.h"

#define LINES_MAX 100000u

struct object {
        struct plan_file file;
        struct fetch_piece piece;
        struct fetch_job job;
        const char *url;
        uint8_t *memory;
        size_t n_bytes, n_done;
};

static struct object objects[LINES_MAX];
static uint32_t n_objects, n_connections, n_turns;

static void fail(const char *what) {
        fprintf(stderr, "fetch_rate: %s\n", what);
        exit(EXIT_FAILURE);
}

/* What lies beside each other is received beside each other, into memory that is there already. */
static void read_lines(void) {
        char *line = NULL;
        size_t size = 0;

        while (n_objects < LINES_MAX && getline(&line, &size, stdin) > 0) {
                struct object *object = &objects[n_objects++];
                char *tab = strchr(line, '\t');

                if (!tab)
                        fail("a line without a tab");
                *tab = '\0';
                object->url = strdup(line);
                object->n_bytes = strtoull(tab + 1, NULL, 10);
                object->memory = malloc(object->n_bytes);
                if (!object->url || !object->memory)
                        fail("no memory");
                memset(object->memory, 1, object->n_bytes);
        }
        free(line);
}

/* ---- ours ------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t n_done;

static void on_done(struct fetch_job *job) {
        if (job->result < 0)
                fail(job->why.text);
        pthread_mutex_lock(&lock);
        if (++n_done == n_objects)
                pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
}

static void fetch_ours(struct fetcher *fetcher) {
        n_done = 0;
        for (uint32_t i = 0; i < n_objects; i++) {
                struct object *object = &objects[i];

                object->file = (struct plan_file){
                        .path = object->url, .n_bytes = object->n_bytes, .urls = &object->url, .n_urls = 1
                };
                object->piece = (struct fetch_piece){ .file = &object->file,
                                                      .n_bytes = (uint32_t)object->n_bytes,
                                                      .into = object->memory };
                object->job = (struct fetch_job){ .pieces = &object->piece, .n_pieces = 1 };
                fetcher_submit(fetcher, &object->job);
        }
        pthread_mutex_lock(&lock);
        while (n_done < n_objects)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
}

static void ours(void) {
        struct fetcher_options options = { .n_connections = n_connections, .done = on_done };
        const struct http_options http_options = { 0 };
        struct fetcher *fetcher;
        struct why why;

        if (http_new(&http_options, &options.http, &why) < 0 || fetcher_start(&options, &fetcher, &why) < 0)
                fail(why.text);
        for (uint32_t i = 0; i < n_turns; i++)
                fetch_ours(fetcher);
        fetcher_stop(fetcher);
        http_free(options.http);
}

/* ---- bare ------------------------------------------------------------------------------------------------------- */

static size_t on_body(char *bytes, size_t size, size_t n, void *userdata) {
        struct object *object = userdata;

        if (n > object->n_bytes - object->n_done)
                return 0;
        memcpy(object->memory + object->n_done, bytes, n);
        object->n_done += n;
        return n;
}

static void begin(CURLM *multi, CURL *easy, struct object *object) {
        object->n_done = 0;
        curl_easy_setopt(easy, CURLOPT_URL, object->url);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, object);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, object);
        curl_multi_add_handle(multi, easy);
}

static void fetch_bare(CURLM *multi, CURL **easies) {
        uint32_t n_begun = 0, n_ended = 0;
        CURLMsg *message;
        int n;

        for (; n_begun < n_connections && n_begun < n_objects; n_begun++)
                begin(multi, easies[n_begun], &objects[n_begun]);
        while (n_ended < n_objects) {
                curl_multi_perform(multi, &n);
                while ((message = curl_multi_info_read(multi, &n))) {
                        CURL *easy = message->easy_handle;
                        struct object *object;

                        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&object);
                        if (message->data.result != CURLE_OK || object->n_done != object->n_bytes)
                                fail(curl_easy_strerror(message->data.result));
                        curl_multi_remove_handle(multi, easy);
                        n_ended++;
                        if (n_begun < n_objects)
                                begin(multi, easy, &objects[n_begun++]);
                }
                if (n_ended < n_objects)
                        curl_multi_poll(multi, NULL, 0, 1000, NULL);
        }
}

static void bare(void) {
        CURL **easies = calloc(n_connections, sizeof(*easies));
        CURLM *multi = curl_multi_init();

        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)n_connections);
        for (uint32_t i = 0; i < n_connections; i++)
                easies[i] = curl_easy_init();
        for (uint32_t i = 0; i < n_turns; i++)
                fetch_bare(multi, easies);
        for (uint32_t i = 0; i < n_connections; i++)
                curl_easy_cleanup(easies[i]);
        curl_multi_cleanup(multi);
        free(easies);
}

int main(int argc, char **argv) {
        uint64_t begin_ns, n_bytes = 0;
        struct rusage usage, before;

        if (argc != 4)
                fail("usage: fetch_rate ours|bare CONNECTIONS TURNS <lines");
        n_connections = (uint32_t)atoi(argv[2]);
        n_turns = (uint32_t)atoi(argv[3]);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        read_lines();
        for (uint32_t i = 0; i < n_objects; i++)
                n_bytes += objects[i].n_bytes * n_turns;
        getrusage(RUSAGE_SELF, &before);
        begin_ns = clock_now_ns();
        if (strcmp(argv[1], "ours") == 0)
                ours();
        else
                bare();
        begin_ns = clock_now_ns() - begin_ns;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"seconds\": %.6f, \"cpu_s\": %.6f, \"n_bytes\": %llu}\n", (double)begin_ns / 1e9,
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec - before.ru_utime.tv_sec -
                        before.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec - before.ru_utime.tv_usec -
                                before.ru_stime.tv_usec) /
                               1e6,
               (unsigned long long)n_bytes);
        return EXIT_SUCCESS;
}
