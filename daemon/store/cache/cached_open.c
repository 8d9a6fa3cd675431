/* Opens an origin: who is asked for it, what it has, and where that is kept here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/fetch/origin/origin.h"
#include "daemon/store/cache/cached_folder.h"
#include "daemon/store/plan/digest.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define STALL_S    10u
#define TRIES      5u /* then the dataset cannot be read, and its jobs wait (pipeline/failure/outage.h) */
#define WORD_BYTES 40u
#define UNUSED_NS  600000000000ull /* then an origin that nobody uses is closed */

static void cached_free(struct cached *cached) {
        if (!cached)
                return;
        fetcher_stop(cached->fetcher);
        http_free(cached->http);
        cache_journal_close(&cached->journal);
        if (cached->files_fd >= 0)
                close(cached->files_fd);
        plan_free(cached->plan);
        for (size_t i = 0; i < ARRAY_SIZE(cached->texts); i++)
                free(cached->texts[i]);
        free(cached->first);
        free(cached->states);
        free(cached->pins);
        free(cached->marked);
        free(cached->due_s);
        free(cached->digests);
        free(cached->key);
        free(cached);
}

static void cached_freep(struct cached **cached) {
        cached_free(*cached);
}

/* ---- what it is called here -------------------------------------------------------------------------------------- */

/* Its last word is for people who look into the folder. */
static void cached_name(struct cached *cached, const char *url) {
        char word[WORD_BYTES + 1];
        size_t n = 0, end = strlen(url), begin;

        while (end > 0 && url[end - 1] == '/')
                end--;
        for (begin = end; begin > 0 && url[begin - 1] != '/'; begin--)
                ;
        for (; begin < end && url[begin] != '?' && n < WORD_BYTES; begin++)
                if ((url[begin] >= 'a' && url[begin] <= 'z') || (url[begin] >= 'A' && url[begin] <= 'Z') ||
                    (url[begin] >= '0' && url[begin] <= '9') || (n > 0 && strchr("._-", url[begin])))
                        word[n++] = url[begin];
        word[n] = '\0';
        snprintf(cached->folder, sizeof(cached->folder), "%s/%s%s%016llx", cached->cache->dir, word, n > 0 ? "-" : "",
                 (unsigned long long)XXH3_64bits(cached->key, strlen(cached->key)));
}

static int cached_new(struct cache *cache, const struct cached_terms *terms, struct cached **ret_cached) {
        const char *const texts[N_CACHED_TEXTS] = { [CACHED_URL] = terms->url,
                                                    [CACHED_ENDPOINT] = terms->endpoint,
                                                    [CACHED_REGION] = terms->region,
                                                    [CACHED_ADDRESSING] = terms->addressing,
                                                    [CACHED_CREDENTIALS] = terms->credentials,
                                                    [CACHED_CA_FILE] = terms->ca_file,
                                                    [CACHED_MIRROR] = terms->mirror };
        struct cached *cached = calloc(1, sizeof(*cached));

        if (!cached)
                return -ENOMEM;
        cached->cache = cache;
        cached->refs = 1;
        cached->files_fd = cached->journal.fd = -1;
        cached->n_connections = terms->n_connections ? terms->n_connections : DLP_ORIGIN_CONNECTIONS;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                cached->texts[i] = texts[i] && *texts[i] ? strdup(texts[i]) : NULL;
                if (texts[i] && *texts[i] && !cached->texts[i])
                        goto no_memory;
        }
        if (asprintf(&cached->key, "%s\n%s\n%s\n%s\n%s", terms->url, terms->kind ? terms->kind : "auto",
                     terms->endpoint ? terms->endpoint : "", terms->credentials ? terms->credentials : "",
                     terms->mirror ? terms->mirror : "") < 0) {
                cached->key = NULL;
                goto no_memory;
        }
        cached_name(cached, terms->url);
        *ret_cached = cached;
        return 0;

no_memory:
        cached_free(cached);
        return -ENOMEM;
}

/* ---- what it has ------------------------------------------------------------------------------------------------- */

static int cached_connect(struct cached *cached, struct why *why) {
        struct http_options options = { .endpoint = cached->texts[CACHED_ENDPOINT],
                                        .region = cached->texts[CACHED_REGION],
                                        .addressing = cached->texts[CACHED_ADDRESSING],
                                        .credentials = cached->texts[CACHED_CREDENTIALS],
                                        .ca_file = cached->texts[CACHED_CA_FILE],
                                        .of_user = cached->cache->options.is_private,
                                        .origin = cached->texts[CACHED_URL],
                                        .stall_s = STALL_S,
                                        .n_tries = TRIES };

        return http_new(&options, &cached->http, why);
}

/* Can the listing of an earlier time be used in its place? Not if the origin says that there is none, or not for us. */
static bool is_outage(int error) {
        return error == -ETIMEDOUT || error == -EIO || error == -ECONNREFUSED || error == -ENETUNREACH ||
               error == -EHOSTUNREACH || error == -EPROTO;
}

static int list_origin(struct cached *cached, const struct cached_terms *terms, struct why *why) {
        struct origin_options options = { .url = terms->url,
                                          .kind = terms->kind ? terms->kind : "auto",
                                          .unpack = "no",
                                          .n_connections = cached->n_connections,
                                          .progress = terms->progress,
                                          .userdata = terms->userdata,
                                          .cancel = terms->cancel };
        int r = origin_survey(cached->http, &options, &cached->plan, why);

        if (r < 0 && is_outage(r) && cached_folder_listing(cached, &cached->plan, NULL) == 0) {
                snprintf(cached->notice, sizeof(cached->notice),
                         "the origin does not answer (%.300s); it is used as it was listed last", why->text);
                r = 0;
        }
        return r;
}

/* Who writes an index to the data must not make other data of them by that. */
static int digest_data(struct cached *cached, struct why *why) {
        _cleanup_(plan_freep) struct plan *begun = NULL, *data = NULL;
        int64_t index = plan_n_files(cached->plan) > 1 ? plan_find(cached->plan, CACHE_INDEX_NAME) : -1;
        int r = 0;

        for (uint64_t i = 0; index >= 0 && i < plan_n_files(cached->plan) && r == 0; i++)
                if (i != (uint64_t)index)
                        r = plan_add(&begun, plan_file(cached->plan, i), why);
        if (r == 0 && index >= 0)
                r = plan_finish(&begun, &data, why);
        if (r == 0)
                snprintf(cached->data_digest, sizeof(cached->data_digest), "%s",
                         plan_digest(data ? data : cached->plan));
        return r;
}

/* The mirror has each file below its URL, by the same path. It is asked first (struct fetch_job, idx_mirror); what it
 * says of its ETag holds for itself alone. */
static int add_mirror(struct cached *cached, struct why *why) {
        _cleanup_(plan_freep) struct plan *begun = NULL, *listed = cached->plan;
        struct url mirror;
        int r = url_parse(cached->texts[CACHED_MIRROR], &mirror, why);

        cached->plan = NULL;
        for (uint64_t i = 0; i < plan_n_files(listed) && r == 0; i++) {
                struct plan_file file = *plan_file(listed, i);
                _cleanup_(freep) char *text = malloc(strlen(mirror.text) + 3 * strlen(file.path) + 2);
                const char *urls[] = { file.urls[0], text };

                if (!text)
                        return why_errno(why, -ENOMEM, "mirror");
                url_below(&mirror, file.path, text);
                file.urls = urls;
                file.n_urls = ARRAY_SIZE(urls);
                r = plan_add(&begun, &file, why);
        }
        return r == 0 ? plan_finish(&begun, &cached->plan, why) : r;
}

/* ---- where it is kept -------------------------------------------------------------------------------------------- */

static int make_tables(struct cached *cached) {
        cached->first = cached_folder_number(cached->plan);
        if (!cached->first)
                return -ENOMEM;
        cached->n_chunks = cached->first[plan_n_files(cached->plan)];
        cached->states = calloc(cached->n_chunks + 1, sizeof(*cached->states));
        cached->pins = calloc(cached->n_chunks + 1, sizeof(*cached->pins));
        cached->marked = calloc(cached->n_chunks + 1, sizeof(*cached->marked));
        cached->due_s = calloc(cached->n_chunks + 1, sizeof(*cached->due_s));
        cached->digests = calloc(cached->n_chunks + 1, sizeof(*cached->digests));
        return cached->states && cached->pins && cached->marked && cached->due_s && cached->digests ? 0 : -ENOMEM;
}

/* An origin that is one file is that file; all else is a folder. */
static void set_path(struct cached *cached) {
        const char *url = cached->texts[CACHED_URL], *only = plan_file(cached->plan, 0)->path;
        size_t n_url = strcspn(url, "?#"), n_only = strlen(only);
        bool is_file = plan_n_files(cached->plan) == 1 && n_url > n_only && url[n_url - n_only - 1] == '/' &&
                       memcmp(url + n_url - n_only, only, n_only) == 0;

        snprintf(cached->path, sizeof(cached->path), "%s/files%s%s", cached->folder, is_file ? "/" : "",
                 is_file ? only : "");
}

static int open_folder(struct cached *cached, const atomic_bool *cancel, struct why *why) {
        char path[PATH_MAX];
        int r;

        if (mkdir(cached->folder, 0700) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", cached->folder);
        snprintf(path, sizeof(path), "%s/files", cached->folder);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", path);
        cached->files_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (cached->files_fd < 0)
                return why_errno(why, -errno, "%s", path);
        r = make_tables(cached);
        if (r < 0)
                return why_errno(why, r, "%s", path);
        set_path(cached);
        return cached_folder_open(cached, cancel, why);
}

static int start_fetching(struct cached *cached, const struct cached_terms *terms, struct why *why) {
        struct fetcher_options options = { .http = cached->http, .done = keeper_take };

        options.n_connections = cached->n_connections;
        options.max_bytes_per_s = cached->cache->options.fetch_limit;
        return fetcher_start(&options, &cached->fetcher, why);
}

/* One that somebody uses is used by others as it was listed. */
static struct cached *find_used(struct cache *cache, const char *key) {
        struct cached *cached;

        pthread_mutex_lock(&cache->lock);
        LIST_FOREACH(cached, &cache->origins, entry)
                if (cached->refs > 0 && strcmp(cached->key, key) == 0) {
                        cached->refs++;
                        break;
                }
        pthread_mutex_unlock(&cache->lock);
        return cached;
}

/* Nobody uses it, and it was opened before: if it is listed as it was then, it goes on. Others that have not been used
 * for a while are closed. The cache's `opening` is held, so nothing is opened or closed meanwhile. */
static struct cached *find_unused(struct cache *cache, const struct cached *now) {
        struct cached *cached, *next, *found = NULL;
        uint64_t now_ns = clock_now_ns();

        for (cached = LIST_FIRST(&cache->origins); cached; cached = next) {
                bool is_this = strcmp(cached->key, now->key) == 0;
                bool is_used;

                next = LIST_NEXT(cached, entry);
                pthread_mutex_lock(&cache->lock);
                is_used = cached->refs > 0;
                if (!is_used && is_this && strcmp(plan_digest(cached->plan), plan_digest(now->plan)) == 0) {
                        cached->refs++;
                        found = cached;
                }
                pthread_mutex_unlock(&cache->lock);
                if (!is_used && !found && (is_this || now_ns - cached->used_ns > UNUSED_NS))
                        cached_close(cached);
        }
        return found;
}

/* What nodes have in common: where it lies, and all that tells its files' contents. The URL is in it because a web
 * server may tell nothing but sizes. */
static void name_for_peers(struct cached *cached) {
        const char *const texts[] = { cached->texts[CACHED_URL], cached->texts[CACHED_ENDPOINT],
                                      plan_state(cached->plan) };
        struct digest128 digest = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct digest128 parts[] = { digest,
                                             digest128_of(texts[i] ? texts[i] : "", texts[i] ? strlen(texts[i]) : 0) };

                digest = digest128_of(parts, sizeof(parts));
        }
        snprintf(cached->name, sizeof(cached->name), "%016" PRIx64 "%016" PRIx64, digest.high, digest.low);
        cached->name_hash = digest.low;
}

/* It is listed. */
static int open_listed(struct cached **listed, const struct cached_terms *terms, struct cached **ret_cached,
                       struct why *why) {
        struct cached *cached = *listed;
        struct cache *cache = cached->cache;
        uint64_t n_before;
        int r;

        *ret_cached = find_used(cache, cached->key); /* by another one that was faster */
        if (!*ret_cached)
                *ret_cached = find_unused(cache, cached);
        if (*ret_cached)
                return 0;
        n_before = cached_folder_bytes(cached); /* which were counted when the cache was measured */
        name_for_peers(cached);
        r = open_folder(cached, terms->cancel, why);
        if (r == 0)
                r = start_fetching(cached, terms, why);
        if (r < 0)
                return r;
        pthread_mutex_lock(&cache->lock);
        cached->used_ns = clock_now_ns();
        cache->n_bytes += cached->n_bytes - n_before;
        cache->n_origin_bytes += plan_n_bytes(cached->plan);
        cache->n_reserved_bytes = 0;
        LIST_INSERT_HEAD(&cache->origins, cached, entry);
        pthread_mutex_unlock(&cache->lock);
        *ret_cached = TAKE_PTR(*listed);
        return 0;
}

int cached_open(struct cache *cache, const struct cached_terms *terms, struct cached **ret_cached, struct why *why) {
        _cleanup_(cached_freep) struct cached *cached = NULL;
        int r = cache_begin(cache, why);

        if (r == 0 && cached_new(cache, terms, &cached) < 0)
                r = why_errno(why, -ENOMEM, "cache");
        if (r < 0)
                return r;
        *ret_cached = find_used(cache, cached->key);
        if (*ret_cached)
                return 0;
        r = cached_connect(cached, why);
        if (r == 0)
                r = list_origin(cached, terms, why);
        if (r == 0)
                r = digest_data(cached, why);
        if (r == 0 && cached->texts[CACHED_MIRROR])
                r = add_mirror(cached, why);
        if (r < 0)
                return r;
        pthread_mutex_lock(&cache->opening);
        r = open_listed(&cached, terms, ret_cached, why);
        pthread_mutex_unlock(&cache->opening);
        return r;
}

/* ---- references -------------------------------------------------------------------------------------------------- */

void cached_unref(struct cached *cached) {
        if (!cached)
                return;
        pthread_mutex_lock(&cached->cache->lock);
        cached->refs--;
        pthread_mutex_unlock(&cached->cache->lock);
}

void cached_stop(struct cached *cached) {
        struct fetcher *fetcher;

        pthread_mutex_lock(&cached->cache->lock);
        fetcher = TAKE_PTR(cached->fetcher);
        pthread_mutex_unlock(&cached->cache->lock);
        fetcher_stop(fetcher);
}

void cached_close(struct cached *cached) {
        struct cache *cache = cached->cache;

        pthread_mutex_lock(&cache->lock);
        flights_drop(cached, FLIGHT_QUEUED);
        pthread_mutex_unlock(&cache->lock);
        cache_keep_counts(cached);
        cached_stop(cached);
        pthread_mutex_lock(&cache->lock);
        while (flights_are_flying(cached) || cache->kept_of == cached)
                pthread_cond_wait(&cache->changed, &cache->lock);
        flights_drop(cached, FLIGHT_LANDED);
        LIST_REMOVE(cached, entry);
        room_forget_marks(cached);
        cache->n_origin_bytes -= plan_n_bytes(cached->plan);
        cache->n_reserved_bytes = 0; /* whoever is left says how much he needs */
        cache->has_no_closed = false;
        pthread_mutex_unlock(&cache->lock);
        cached_free(cached);
}

const char *cached_path(const struct cached *cached) {
        return cached->path;
}

const char *cached_digest(const struct cached *cached) {
        return cached->data_digest;
}

const char *cached_notice(const struct cached *cached) {
        return cached->notice;
}
