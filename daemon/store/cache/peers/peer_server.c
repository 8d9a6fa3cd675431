#include "daemon/store/cache/peers/peer_server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/http/visitor.h"

#define VISITORS_MAX 512u
#define ANSWERS_MAX  1024u       /* at once, also of those that have left while their chunk is fetched */
#define HEAD_BYTES   (64u << 10) /* of a connection: what is sent at once */
#define BLOCK_BYTES  (256u << 10)
#define SILENT_S     60u
#define STOP_NS      5000000000ull

struct peer_server {
        struct cache *cache;
        const char *key;
        struct visitors visitors;
        bool is_open;
        pthread_mutex_t lock; /* of what follows, and of answers */
        pthread_cond_t changed;
        uint32_t n_answers, n_waiting; /* of them: for their chunk */
};

/* The response's, and until done() the cache's. */
struct peer_answer {
        struct peer_server *server;
        struct cached *cached;
        struct cache_want want;
        struct MHD_Connection *connection;
        struct MHD_Response *response;
        uint64_t chunk, offset, n_bytes;
        int fd;
        XXH3_state_t *digested; /* of a part of a chunk: what was read; NULL of a whole one */
        uint32_t n_users;       /* server->lock */
        bool is_waiting;        /* for its chunk; server->lock */
        bool is_suspended;      /* server->lock */
        bool has_place;         /* what it wants is pinned */
};

/* ---- an answer --------------------------------------------------------------------------------------------------- */

static void answer_unref(struct peer_answer *answer) {
        struct peer_server *server = answer->server;
        bool is_last;

        pthread_mutex_lock(&server->lock);
        is_last = --answer->n_users == 0;
        server->n_answers -= is_last;
        pthread_mutex_unlock(&server->lock);
        if (!is_last)
                return;
        if (answer->has_place && answer->want.result == 0)
                cached_release(answer->cached, &answer->want);
        cached_unref(answer->cached);
        if (answer->fd >= 0)
                close(answer->fd);
        XXH3_freeState(answer->digested);
        free(answer);
}

static void on_chunk(struct cache_want *want) {
        struct peer_answer *answer = want->userdata;
        struct peer_server *server = answer->server;

        pthread_mutex_lock(&server->lock);
        answer->is_waiting = false;
        server->n_waiting--;
        if (answer->is_suspended)
                MHD_resume_connection(answer->connection);
        answer->is_suspended = false;
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
        answer_unref(answer);
}

/* Its connection stands still until the chunk is here. */
static bool is_waiting(struct peer_answer *answer) {
        bool waits;

        pthread_mutex_lock(&answer->server->lock);
        waits = answer->is_waiting;
        if (waits)
                MHD_suspend_connection(answer->connection);
        answer->is_suspended = waits;
        pthread_mutex_unlock(&answer->server->lock);
        return waits;
}

static void add_digest(struct peer_answer *answer) {
        struct cache *cache = answer->cached->cache;
        char text[17];

        pthread_mutex_lock(&cache->lock);
        snprintf(text, sizeof(text), "%016" PRIx64,
                 answer->digested ? XXH3_64bits_digest(answer->digested) : answer->cached->digests[answer->chunk]);
        cache->counts.n_peer_sent += answer->n_bytes;
        pthread_mutex_unlock(&cache->lock);
        MHD_add_response_footer(answer->response, "Chunk-XXH3", text); /* without it, the bytes are not taken */
}

static ssize_t answer_read(void *userdata, uint64_t at, char *into, size_t n_room) {
        struct peer_answer *answer = userdata;
        uint64_t n_left = answer->n_bytes - at;
        const struct plan_file *file;

        if (is_waiting(answer))
                return 0;
        if (answer->want.result < 0)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (n_left == 0) {
                add_digest(answer);
                return MHD_CONTENT_READER_END_OF_STREAM;
        }
        file = plan_file(answer->cached->plan, answer->want.idx_file);
        if (answer->fd < 0)
                answer->fd = openat(answer->cached->files_fd, file->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (n_room > n_left)
                n_room = n_left;
        if (answer->fd < 0 || disk_read_at(answer->fd, into, n_room, answer->offset + at) < 0)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (answer->digested)
                XXH3_64bits_update(answer->digested, (const uint8_t *)into, n_room);
        return (ssize_t)n_room;
}

static void answer_free(void *userdata) {
        answer_unref(userdata);
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* Takes as long whatever is wrong with it. */
static bool has_our_key(const struct peer_server *server, struct MHD_Connection *connection) {
        const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
        size_t n_key = strlen(server->key), n_given;
        unsigned differs;

        if (!given || strncmp(given, "Bearer ", 7) != 0)
                return false;
        given += 7;
        n_given = strlen(given);
        differs = n_given != n_key;
        for (size_t i = 0; i < n_key; i++)
                differs |= (unsigned char)server->key[i] ^ (unsigned char)(i < n_given ? given[i] : 0);
        return differs == 0;
}

/* Digits alone; moves *at past them and past `end`, which must follow. */
static bool take_number(const char **at, char end, uint64_t *ret_number) {
        char *rest;

        if (**at < '0' || **at > '9' || strspn(*at, "0123456789") > 18)
                return false;
        *ret_number = strtoull(*at, &rest, 10);
        if (*rest != end)
                return false;
        *at = rest + (end != '\0');
        return true;
}

struct peer_question {
        char name[33];
        bool is_urgent;
        uint64_t idx_file, first, last;
        bool is_all; /* of a file */
};

static bool question_parse(struct MHD_Connection *connection, const char *path, struct peer_question *ret_question) {
        const char *range = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_RANGE);
        struct peer_question question = { .is_urgent = strncmp(path, "/now/", 5) == 0, .is_all = !range };

        if (!question.is_urgent && strncmp(path, "/soon/", 6) != 0)
                return false;
        path += question.is_urgent ? 5 : 6;
        if (strspn(path, "0123456789abcdef") != 32 || path[32] != '/')
                return false;
        memcpy(question.name, path, 32);
        path += 33;
        if (!take_number(&path, '\0', &question.idx_file))
                return false;
        if (range) {
                if (strncmp(range, "bytes=", 6) != 0)
                        return false;
                range += 6;
                if (!take_number(&range, '-', &question.first) || !take_number(&range, '\0', &question.last) ||
                    question.last < question.first)
                        return false;
        }
        *ret_question = question;
        return true;
}

/* One that some dataset has open; it stays until cached_unref(). */
static struct cached *find_origin(struct cache *cache, const char *name) {
        struct cached *cached;

        pthread_mutex_lock(&cache->lock);
        LIST_FOREACH(cached, &cache->origins, entry)
                if (cached->refs > 0 && strcmp(cached->name, name) == 0) {
                        cached->refs++;
                        break;
                }
        pthread_mutex_unlock(&cache->lock);
        return cached;
}

/* False: it is not within a chunk. */
static bool question_chunk(struct peer_answer *answer, const struct peer_question *question) {
        const struct cached *cached = answer->cached;
        uint64_t first = question->first, last = question->last, n_file, chunk, end;

        if (question->idx_file >= plan_n_files(cached->plan))
                return false;
        n_file = plan_file(cached->plan, question->idx_file)->n_bytes;
        if (question->is_all)
                last = n_file - 1;
        if (n_file == 0 || last >= n_file)
                return false;
        cached_chunks_of(cached, question->idx_file, first, last - first + 1, &chunk, &end);
        answer->chunk = chunk;
        answer->offset = first;
        answer->n_bytes = last - first + 1;
        return end == chunk + 1;
}

/* The digest that is noted is of the whole chunk. */
static bool digest_part(struct peer_answer *answer) {
        if (answer->n_bytes == cached_place(answer->cached, answer->chunk).n_bytes)
                return true;
        answer->digested = XXH3_createState();
        return answer->digested && XXH3_64bits_reset(answer->digested) == XXH_OK;
}

/* Asks the cache. An errno: nothing comes. */
static int answer_begin(struct peer_answer *answer, bool is_urgent) {
        struct peer_server *server = answer->server;
        struct cache *cache = server->cache;
        int r;

        pthread_mutex_lock(&server->lock);
        answer->is_waiting = true;
        answer->n_users++;
        server->n_waiting++;
        pthread_mutex_unlock(&server->lock);
        answer->want = (struct cache_want){
                .offset = answer->offset, .n_bytes = answer->n_bytes, .done = on_chunk, .userdata = answer
        };
        pthread_mutex_lock(&cache->lock);
        r = cached_want_asked(answer->cached, &answer->want, answer->chunk, is_urgent);
        answer->has_place = r >= 0;
        pthread_mutex_unlock(&cache->lock);
        if (r != 0) { /* on_chunk() does not come */
                answer->want.result = r < 0 ? r : 0;
                on_chunk(&answer->want);
        }
        return r < 0 ? r : 0;
}

static enum MHD_Result answer_send(struct visitor *visitor, struct peer_answer *answer,
                                   const struct peer_question *question) {
        uint64_t n_file = plan_file(answer->cached->plan, question->idx_file)->n_bytes;
        char range[80];

        snprintf(range, sizeof(range), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, answer->offset,
                 answer->offset + answer->n_bytes - 1, n_file);
        answer->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, answer_read, answer,
                                                             answer_free);
        if (!answer->response) {
                answer_unref(answer);
                return MHD_NO;
        }
        if (!question->is_all &&
            MHD_add_response_header(answer->response, MHD_HTTP_HEADER_CONTENT_RANGE, range) != MHD_YES) {
                MHD_destroy_response(answer->response);
                return MHD_NO;
        }
        return visitor_answer(visitor, question->is_all ? MHD_HTTP_OK : MHD_HTTP_PARTIAL_CONTENT, answer->response);
}

static struct peer_answer *answer_new(struct peer_server *server, struct MHD_Connection *connection,
                                      struct cached *cached) {
        struct peer_answer *answer = calloc(1, sizeof(*answer));
        bool has_room;

        pthread_mutex_lock(&server->lock);
        has_room = answer && server->n_answers < ANSWERS_MAX;
        server->n_answers += has_room;
        pthread_mutex_unlock(&server->lock);
        if (!has_room) {
                free(answer);
                cached_unref(cached);
                return NULL;
        }
        *answer = (struct peer_answer){
                .server = server, .cached = cached, .connection = connection, .fd = -1, .n_users = 1
        };
        return answer;
}

static enum MHD_Result peer_server_serve(void *arg, struct visitor *visitor, const char *path) {
        struct peer_server *server = arg;
        struct peer_question question;
        struct peer_answer *answer;
        struct cached *cached;

        if (!has_our_key(server, visitor->connection))
                return visitor_answer(visitor, MHD_HTTP_FORBIDDEN,
                                      visitor_sentence("The key is not that of this node: see peer_key_file."));
        if (!question_parse(visitor->connection, path, &question))
                return visitor_answer(visitor, MHD_HTTP_BAD_REQUEST,
                                      visitor_sentence("Not a chunk: see daemon/store/cache/peers/peer_server.h."));
        cached = find_origin(server->cache, question.name);
        if (!cached)
                return visitor_answer(visitor, MHD_HTTP_NOT_FOUND,
                                      visitor_sentence("No dataset with this listing is open here."));
        answer = answer_new(server, visitor->connection, cached);
        if (!answer)
                return visitor_answer(visitor, MHD_HTTP_CONFLICT, visitor_sentence("Too much is asked at once."));
        if (!question_chunk(answer, &question)) {
                answer_unref(answer);
                return visitor_answer(visitor, MHD_HTTP_RANGE_NOT_SATISFIABLE,
                                      visitor_sentence("The range is not within a chunk of a file."));
        }
        if (!digest_part(answer) || answer_begin(answer, question.is_urgent) < 0) {
                answer_unref(answer);
                return visitor_answer(visitor, MHD_HTTP_CONFLICT,
                                      visitor_sentence("This node waits for the chunk itself."));
        }
        return answer_send(visitor, answer, &question);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

int peer_server_open(struct event_base *base, struct cache *cache, struct peers *peers, struct peer_server **ret_server,
                     struct why *why) {
        static const struct visitor_header NO_HEADERS[] = { { NULL, NULL } };
        struct peer_server *server = calloc(1, sizeof(*server));
        const struct visitors_options options = { .n_max = { VISITORS_MAX },
                                                  .silent_s = SILENT_S,
                                                  .head_bytes = HEAD_BYTES,
                                                  .headers = NO_HEADERS,
                                                  .arg = server,
                                                  .serve = peer_server_serve };
        int r;

        if (!server)
                return why_errno(why, -ENOMEM, "peers");
        server->cache = cache;
        server->key = peers_key(peers);
        pthread_mutex_init(&server->lock, NULL);
        pthread_cond_init(&server->changed, NULL);
        r = visitors_open(&server->visitors, base, &options, peers_listen_fd(peers));
        server->is_open = true;
        if (r < 0) {
                peer_server_close(server);
                return why_errno(why, r, "peers");
        }
        *ret_server = server;
        return 0;
}

void peer_server_close(struct peer_server *server) {
        uint64_t until_ns = clock_now_ns() + STOP_NS;
        uint32_t n_waiting;

        if (!server)
                return;
        pthread_mutex_lock(&server->lock); /* libmicrohttpd ends with no connection suspended */
        while (server->n_waiting > 0 && clock_now_ns() < until_ns)
                thread_wait_until(&server->changed, &server->lock, until_ns);
        n_waiting = server->n_waiting;
        pthread_mutex_unlock(&server->lock);
        if (n_waiting > 0) {
                log_warning("peers", "the cache hangs; ending without what %u nodes wait for", n_waiting);
                return;
        }
        visitors_close(&server->visitors);
        pthread_cond_destroy(&server->changed);
        pthread_mutex_destroy(&server->lock);
        free(server);
}
