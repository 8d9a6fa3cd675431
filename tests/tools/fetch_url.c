/* fetch_url [OPTION VALUE]... get|look|fetch <lines: what staging makes of an origin, as JSON lines.
 *
 * Options: --endpoint --region --addressing --credentials --ca-file --files-below --stall --tries --connections --limit
 * --max-rate BYTES_PER_S --mirror --stop-after MS (ends the fetcher, or cancels, so long after the first line was
 * read).
 *
 *   get     a URL a line, then a tab and a query if there is one
 *   look    a URL a line
 *   fetch   a piece a line: job, path, size, offset, n_bytes, etag (or "-", or '@' and its Last-Modified), URL, more
 *           URLs; tabs between them. Lines of one job follow each other; after its number "!" makes it urgent
 *
 * Prints a line for each, with "result" ("0" or an errno's name) and "why"; fetch prints a line of counts at the end.
 */

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/threads/thread.h"
#include "daemon/fetch/fetch.h"
#include "daemon/fetch/fetch_http.h"
#include "proto/base/cleanup.h"

#define FIELDS_MAX 32
#define JOBS_MAX   4096

static struct http_options http_options = { .of_user = true };
static struct fetcher_options fetcher_options;
static size_t limit = 1 << 20;
static uint32_t idx_mirror;
static long stop_after_ms = -1;
static _Atomic bool is_canceled;

/* ---- output --------------------------------------------------------------------------------------------------- */

static void print_text(const char *text, size_t n_bytes) {
        putchar('"');
        for (size_t i = 0; i < n_bytes; i++) {
                if (text[i] == '"' || text[i] == '\\')
                        printf("\\%c", text[i]);
                else if (iscntrl((unsigned char)text[i]))
                        printf("\\u%04x", (unsigned char)text[i]);
                else
                        putchar(text[i]);
        }
        putchar('"');
}

static void print_result(int r, const struct why *why) {
        printf("{\"result\": \"%s\", \"why\": ", r == 0 ? "0" : strerrorname_np(-r));
        print_text(why->text, strlen(why->text));
}

static void print_digest(const uint8_t *bytes, size_t n_bytes) {
        uint8_t digest[SHA256_DIGEST_LENGTH];

        SHA256(bytes, n_bytes, digest);
        putchar('"');
        for (size_t i = 0; i < sizeof(digest); i++)
                printf("%02x", digest[i]);
        putchar('"');
}

/* ---- get and look --------------------------------------------------------------------------------------------- */

static void get(struct http *http, const char *url, const char *query) {
        struct http_answer answer = { 0 };
        struct why why = { 0 };
        int r = http_get(http, url, query, limit, &is_canceled, &answer, &why);

        print_result(r, &why);
        if (r == 0) {
                printf(", \"n_bytes\": %zu, \"url\": ", answer.n_bytes);
                print_text(answer.url, strlen(answer.url));
                printf(", \"sha256\": ");
                print_digest((const uint8_t *)answer.body, answer.n_bytes);
                printf(", \"body\": ");
                print_text(answer.body, answer.n_bytes < 4000 ? strlen(answer.body) : 0);
        }
        printf("}\n");
        free(answer.body);
        free(answer.url);
}

static void look(struct http *http, const char *url) {
        struct http_facts facts = { 0 };
        struct why why = { 0 };
        int r = http_look(http, url, &is_canceled, &facts, &why);

        print_result(r, &why);
        if (r == 0) {
                printf(", \"n_bytes\": %" PRId64 ", \"has_ranges\": %s, \"is_html\": %s, \"etag\": ",
                       (int64_t)facts.n_bytes, facts.has_ranges ? "true" : "false", facts.is_html ? "true" : "false");
                print_text(facts.etag, strlen(facts.etag));
        }
        printf("}\n");
}

/* ---- fetch ---------------------------------------------------------------------------------------------------- */

struct job {
        struct fetch_job job;
        struct plan_file *files;
        long number;
};

static struct job jobs[JOBS_MAX];
static uint32_t n_jobs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t n_done;

static void done(struct fetch_job *job) {
        pthread_mutex_lock(&lock);
        n_done++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
}

static void *room(void *memory, size_t n, size_t size) {
        void *larger = realloc(memory, n * size);

        if (!larger)
                abort();
        return larger;
}

static char *copy(const char *text) {
        char *text_copy = strdup(text);

        if (!text_copy)
                abort();
        return text_copy;
}

static const uint8_t SOME_DIGEST[SHA256_DIGEST_LENGTH]; /* a fetch does not compare it */

static void add_piece(char **fields, int n_fields) {
        long number = atol(fields[0]);
        struct job *job = n_jobs > 0 ? &jobs[n_jobs - 1] : NULL;
        const char **urls = room(NULL, FIELDS_MAX, sizeof(*urls));
        struct plan_file *file;
        struct fetch_piece *piece;

        if (!job || job->number != number) {
                if (n_jobs == JOBS_MAX)
                        abort();
                job = &jobs[n_jobs++];
                job->number = number;
                job->job.idx_mirror = idx_mirror;
                job->job.is_urgent = strchr(fields[0], '!');
        }
        job->job.pieces = room(job->job.pieces, job->job.n_pieces + 1, sizeof(*job->job.pieces));
        job->files = room(job->files, job->job.n_pieces + 1, sizeof(*job->files));
        file = &job->files[job->job.n_pieces];
        piece = &job->job.pieces[job->job.n_pieces++];
        for (int i = 6; i < n_fields; i++)
                urls[i - 6] = copy(fields[i]);
        *file = (struct plan_file){
                .path = copy(fields[1]),
                .n_bytes = strtoull(fields[2], NULL, 10),
                .etag = strchr("-@#", fields[5][0]) ? NULL : copy(fields[5]),
                .modified = strchr("@#", fields[5][0]) ? copy(fields[5] + 1) : NULL,
                .sha256 = fields[5][0] == '#' ? SOME_DIGEST : NULL,
                .urls = urls,
                .n_urls = (uint32_t)(n_fields - 6),
        };
        *piece = (struct fetch_piece){
                .offset = strtoull(fields[3], NULL, 10),
                .n_bytes = (uint32_t)strtoul(fields[4], NULL, 10),
        };
        piece->into = room(NULL, piece->n_bytes + 1, 1); /* no byte more: the sanitizer watches its end */
        if (piece->n_bytes > 0)
                piece->into = room(piece->into, piece->n_bytes, 1);
}

static void print_job(const struct job *job) {
        print_result(job->job.result, &job->job.why);
        printf(", \"job\": %ld, \"sha256\": [", job->number);
        for (uint32_t i = 0; i < job->job.n_pieces && job->job.result == 0; i++) {
                printf("%s", i ? ", " : "");
                print_digest(job->job.pieces[i].into, job->job.pieces[i].n_bytes);
        }
        printf("]}\n");
}

static void free_job(struct job *job) {
        for (uint32_t i = 0; i < job->job.n_pieces; i++) {
                for (uint32_t k = 0; k < job->files[i].n_urls; k++)
                        free((char *)job->files[i].urls[k]);
                free((void *)job->files[i].urls);
                free((char *)job->files[i].path);
                free((char *)job->files[i].etag);
                free((char *)job->files[i].modified);
                free(job->job.pieces[i].into);
        }
        free(job->job.pieces);
        free(job->files);
}

static int fetch(struct http *http) {
        struct fetcher_counts counts;
        struct fetcher *fetcher;
        struct timespec until;
        struct why why = { 0 };
        uint32_t n_in_time;
        int r;

        for (uint32_t i = 0; i < n_jobs; i++) { /* memory moves while lines are read, so files are tied now */
                jobs[i].job.userdata = &jobs[i];
                for (uint32_t k = 0; k < jobs[i].job.n_pieces; k++)
                        jobs[i].job.pieces[k].file = &jobs[i].files[k];
        }
        fetcher_options.http = http;
        fetcher_options.done = done;
        r = fetcher_start(&fetcher_options, &fetcher, &why);
        if (r < 0) {
                fprintf(stderr, "fetch_url: %s\n", why.text);
                return 1;
        }
        for (uint32_t i = 0; i < n_jobs; i++)
                fetcher_submit(fetcher, &jobs[i].job);

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += stop_after_ms < 0 ? 600 : stop_after_ms / 1000;
        until.tv_nsec += stop_after_ms < 0 ? 0 : stop_after_ms % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
        }
        pthread_mutex_lock(&lock);
        while (n_done < n_jobs && r != ETIMEDOUT)
                r = pthread_cond_timedwait(&changed, &lock, &until);
        n_in_time = n_done;
        pthread_mutex_unlock(&lock);
        fetcher_counts(fetcher, &counts);
        fetcher_stop(fetcher);

        for (uint32_t i = 0; i < n_jobs; i++) {
                print_job(&jobs[i]);
                free_job(&jobs[i]);
        }
        printf("{\"n_bytes\": %" PRIu64 ", \"n_requests\": %" PRIu64 ", \"n_retries\": %" PRIu64
               ", \"n_hedged\": %" PRIu64 ", \"n_paused\": %" PRIu64 ", \"n_done\": %u",
               counts.n_bytes, counts.n_requests, counts.n_retries, counts.n_hedged, counts.n_paused, n_in_time);
        printf(", \"n_answers\": %" PRIu64 ", \"median_ns\": %" PRIu64 ", \"p999_ns\": %" PRIu64
               ", \"bytes_per_s\": %" PRIu64 ", \"last\": ",
               counts.latency.n_answers, counts.latency.first_byte_median_ns, counts.latency.first_byte_p999_ns,
               counts.latency.bytes_per_s);
        print_text(counts.last.text, strlen(counts.last.text));
        printf("}\n");
        return 0;
}

/* ---- arguments and lines -------------------------------------------------------------------------------------- */

static int take_option(const char *name, const char *value) {
        const struct {
                const char *name;
                const char **text;
                uint32_t *number;
        } options[] = {
                { "--endpoint", &http_options.endpoint, NULL },
                { "--region", &http_options.region, NULL },
                { "--addressing", &http_options.addressing, NULL },
                { "--credentials", &http_options.credentials, NULL },
                { "--ca-file", &http_options.ca_file, NULL },
                { "--files-below", &http_options.files_below, NULL },
                { "--stall", NULL, &http_options.stall_s },
                { "--tries", NULL, &http_options.n_tries },
                { "--connections", NULL, &fetcher_options.n_connections },
                { "--mirror", NULL, &idx_mirror },
        };

        if (strcmp(name, "--limit") == 0) {
                limit = strtoul(value, NULL, 10);
                return 0;
        }
        if (strcmp(name, "--max-rate") == 0) {
                fetcher_options.max_bytes_per_s = strtoull(value, NULL, 10);
                return 0;
        }
        if (strcmp(name, "--stop-after") == 0) {
                stop_after_ms = atol(value);
                return 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
                if (strcmp(name, options[i].name) != 0)
                        continue;
                if (options[i].text)
                        *options[i].text = value;
                else
                        *options[i].number = (uint32_t)strtoul(value, NULL, 10);
                return 0;
        }
        fprintf(stderr, "fetch_url: no option %s\n", name);
        return -EINVAL;
}

static void *cancel_later(void *argument) {
        nanosleep(&(struct timespec){ stop_after_ms / 1000, stop_after_ms % 1000 * 1000000 }, NULL);
        atomic_store(&is_canceled, true);
        return NULL;
}

static void take_line(struct http *http, const char *command, char *line) {
        char *fields[FIELDS_MAX] = { NULL };
        int n_fields = 0;

        line[strcspn(line, "\n")] = '\0';
        while (line && n_fields < FIELDS_MAX)
                fields[n_fields++] = strsep(&line, "\t");
        if (strcmp(command, "get") == 0)
                get(http, fields[0], fields[1]);
        else if (strcmp(command, "look") == 0)
                look(http, fields[0]);
        else if (n_fields >= 7)
                add_piece(fields, n_fields);
        fflush(stdout);
}

int main(int argc, char **argv) {
        _cleanup_(freep) char *line = NULL;
        _cleanup_(http_freep) struct http *http = NULL;
        struct why why = { 0 };
        pthread_t canceler;
        size_t size = 0;
        int i = 1, r;

        for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2)
                if (take_option(argv[i], argv[i + 1]) < 0)
                        return 2;
        if (i + 1 != argc) {
                fprintf(stderr, "usage: fetch_url [OPTION VALUE]... get|look|fetch <lines\n");
                return 2;
        }
        r = http_new(&http_options, &http, &why);
        if (r < 0) {
                print_result(r, &why);
                printf("}\n");
                return 1;
        }
        if (strcmp(argv[i], "fetch") != 0 && stop_after_ms >= 0 &&
            thread_start(&canceler, "cancel", cancel_later, NULL) < 0)
                return 1;
        while (getline(&line, &size, stdin) > 0)
                take_line(http, argv[i], line);
        r = strcmp(argv[i], "fetch") == 0 ? fetch(http) : 0;
        if (strcmp(argv[i], "fetch") != 0 && stop_after_ms >= 0)
                thread_join(canceler);
        return r;
}
