#include "daemon/store/cache/peers/peers.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "daemon/base/log.h"
#include "daemon/store/cache/peers/peers_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define BACKLOG     256
#define ALONE_NS    10000000000ull /* the first time; twice as long each time after it, */
#define ALONE_TIMES 5u             /* so often */

/* ---- which of them ----------------------------------------------------------------------------------------------- */

/* One that has failed is tried with one request before others follow. */
static bool peer_is_open(const struct peer *peer, uint64_t now_ns) {
        return peer->is_there && now_ns >= peer->until_ns && (peer->n_failed == 0 || peer->n_asked == 0);
}

static uint64_t weight(const struct peer *peer, uint64_t origin, uint64_t chunk) {
        const uint64_t words[] = { origin, chunk, peer->hash };

        return XXH3_64bits(words, sizeof(words));
}

uint32_t peers_owner(struct peers *peers, uint64_t origin, uint64_t chunk, const uint64_t *until_ns) {
        uint64_t now_ns = clock_now_ns(), most = 0;
        uint32_t owner = 0;

        pthread_mutex_lock(&peers->lock);
        if (peers->rows[0].is_there)
                most = weight(&peers->rows[0], origin, chunk);
        for (uint32_t i = 1; i < peers->n_rows; i++) {
                const struct peer *peer = &peers->rows[i];

                if (!peer_is_open(peer, now_ns) || until_ns[i] > now_ns || weight(peer, origin, chunk) <= most)
                        continue;
                most = weight(peer, origin, chunk);
                owner = i;
        }
        pthread_mutex_unlock(&peers->lock);
        return owner;
}

bool peers_is_open(struct peers *peers, uint32_t peer) {
        bool is_open;

        pthread_mutex_lock(&peers->lock);
        is_open = peer_is_open(&peers->rows[peer], clock_now_ns());
        pthread_mutex_unlock(&peers->lock);
        return is_open;
}

void peers_begin(struct peers *peers, uint32_t peer, char ret_url[PEERS_URL_SIZE]) {
        pthread_mutex_lock(&peers->lock);
        peers->rows[peer].n_asked++;
        snprintf(ret_url, PEERS_URL_SIZE, "http://%s", peers->rows[peer].address);
        pthread_mutex_unlock(&peers->lock);
}

void peers_end(struct peers *peers, uint32_t number, const char *wrong) {
        struct peer *peer = &peers->rows[number];
        uint64_t now_ns = clock_now_ns(), alone_ns = 0;
        char address[PEERS_ADDRESS_SIZE];

        pthread_mutex_lock(&peers->lock);
        peer->n_asked--;
        memcpy(address, peer->address, sizeof(address));
        if (!wrong) {
                peer->n_failed = 0;
        } else if (now_ns >= peer->until_ns) { /* else it is what was under way when it was left alone */
                alone_ns = ALONE_NS << (peer->n_failed < ALONE_TIMES ? peer->n_failed : ALONE_TIMES);
                peer->until_ns = now_ns + alone_ns;
                peer->n_failed++;
        }
        pthread_mutex_unlock(&peers->lock);
        if (alone_ns > 0)
                log_warning("peers",
                            "%s: %s; it is not asked for %llu s, and what it would have given comes from elsewhere",
                            address, wrong, (unsigned long long)(alone_ns / 1000000000ull));
}

uint32_t peers_n_others(struct peers *peers) {
        uint32_t n = 0;

        pthread_mutex_lock(&peers->lock);
        for (uint32_t i = 1; i < peers->n_rows; i++)
                n += peers->rows[i].is_there;
        pthread_mutex_unlock(&peers->lock);
        return n;
}

/* ---- who is there ------------------------------------------------------------------------------------------------ */

/* NULL: there are too many. */
static struct peer *peers_row(struct peers *peers, const struct peer *found) {
        for (uint32_t i = 1; i < peers->n_rows; i++)
                if (strcmp(peers->rows[i].name, found->name) == 0)
                        return &peers->rows[i];
        if (peers->n_rows > PEERS_MAX)
                return NULL;
        peers->rows[peers->n_rows] = *found;
        return &peers->rows[peers->n_rows++];
}

/* One with another address was started again: what went wrong before says nothing of it. */
static void peers_take_one(struct peers *peers, const struct peer *found) {
        struct peer *peer = peers_row(peers, found);

        if (!peer)
                return;
        if (strcmp(peer->address, found->address) != 0) {
                memcpy(peer->address, found->address, sizeof(peer->address));
                peer->until_ns = 0;
                peer->n_failed = 0;
        }
        peer->is_there = true;
}

void peers_take(struct peers *peers, const struct peers_found *found) {
        uint32_t n_before = peers_n_others(peers), n_now;

        pthread_mutex_lock(&peers->lock);
        for (uint32_t i = 0; i < peers->n_rows; i++)
                peers->rows[i].is_there = false;
        for (uint32_t i = 0; i < found->n_rows; i++)
                if (i != found->idx_self)
                        peers_take_one(peers, &found->rows[i]);
        if (found->idx_self >= 0) {
                peers->rows[0] = found->rows[found->idx_self];
                peers->rows[0].is_there = true;
        }
        pthread_mutex_unlock(&peers->lock);
        n_now = peers_n_others(peers);
        if (n_now != n_before)
                log_info("peers", "%u other nodes: chunks are fetched by one of them all, and had from there", n_now);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static int listen_at(struct peers *peers, const char *port, struct why *why) {
        const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
        struct sockaddr_storage address = { 0 };
        socklen_t n_address = sizeof(address);
        struct addrinfo *found = NULL;
        int r = getaddrinfo(peers->host[0] ? peers->host : "0.0.0.0", port, &hints, &found);

        if (r != 0)
                return why_set(why, -EADDRNOTAVAIL, "peer_listen: %s: %s", peers->host, gai_strerror(r));
        peers->listen_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        r = peers->listen_fd < 0 ||
                            setsockopt(peers->listen_fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
                            bind(peers->listen_fd, found->ai_addr, found->ai_addrlen) < 0 ||
                            listen(peers->listen_fd, BACKLOG) < 0 ||
                            getsockname(peers->listen_fd, (struct sockaddr *)&address, &n_address) < 0
                    ? -errno
                    : 0;
        freeaddrinfo(found);
        if (r < 0)
                return why_errno(why, r, "peer_listen: %s:%s", peers->host, port);
        peers->port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                                          : ((struct sockaddr_in *)&address)->sin_port);
        return 0;
}

/* "" and "0.0.0.0" and "::" are all addresses. */
static int peers_listen(struct peers *peers, const char *listen, struct why *why) {
        char port[8];
        uint16_t number = 0;
        int r = hosts_next_place(&listen, peers->host, &number, why);

        if (r < 0)
                return r;
        if (number == 0 && !peers->folder)
                number = PEERS_PORT;
        snprintf(port, sizeof(port), "%u", number);
        r = listen_at(peers, port, why);
        if (strcmp(peers->host, "0.0.0.0") == 0 || strcmp(peers->host, "::") == 0)
                peers->host[0] = '\0';
        return r;
}

/* A node that starts again has its name again. */
static void name_node(struct peers *peers, const char *socket) {
        char host[HOSTS_HOST_SIZE] = "node";

        if (gethostname(host, sizeof(host) - 1) < 0 || !host[0] || strchr(host, '/'))
                snprintf(host, sizeof(host), "node");
        snprintf(peers->name, sizeof(peers->name), "%s-%08x", host, (uint32_t)XXH3_64bits(socket, strlen(socket)));
}

int peers_new(const struct peers_options *options, struct peers **ret_peers, struct why *why) {
        struct peers *peers = calloc(1, sizeof(*peers));
        bool is_folder = options->nodes[0] == '/';
        int r = -ENOMEM;

        if (!peers)
                return why_errno(why, -ENOMEM, "peers");
        pthread_mutex_init(&peers->lock, NULL);
        pthread_cond_init(&peers->changed, NULL);
        peers->listen_fd = -1;
        peers->n_rows = 1;
        peers->nodes = is_folder ? NULL : strdup(options->nodes);
        peers->folder = is_folder ? strdup(options->nodes) : NULL;
        if (is_folder && mkdir(options->nodes, 0700) < 0 && errno != EEXIST)
                r = why_errno(why, -errno, "peers: %s", options->nodes);
        else if (peers->nodes || peers->folder)
                r = peer_key_read(options->key_file, peers->folder, &peers->key, why);
        else
                why_errno(why, r, "peers");
        if (r == 0)
                r = peers_listen(peers, options->listen, why);
        if (r == 0) {
                name_node(peers, options->socket);
                r = peers_find_start(peers, why);
        }
        if (r < 0)
                peers_free(peers);
        else
                *ret_peers = peers;
        return r;
}

void peers_free(struct peers *peers) {
        if (!peers)
                return;
        peers_find_stop(peers);
        if (peers->listen_fd >= 0)
                close(peers->listen_fd);
        if (peers->has_thread)
                return; /* it hangs in the folder: the process ends with it */
        if (peers->key)
                explicit_bzero(peers->key, strlen(peers->key));
        free(peers->key);
        free(peers->nodes);
        free(peers->folder);
        pthread_cond_destroy(&peers->changed);
        pthread_mutex_destroy(&peers->lock);
        free(peers);
}

int peers_listen_fd(const struct peers *peers) {
        return peers->listen_fd;
}

const char *peers_key(const struct peers *peers) {
        return peers->key;
}
