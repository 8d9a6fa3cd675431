/* store/cache/peers/peers_private.h: what finding the nodes and choosing among them share. */
#pragma once

#include <pthread.h>

#include "daemon/base/hosts.h"
#include "daemon/store/cache/peers/peers.h"

#define PEERS_NAME_SIZE    300u
#define PEERS_ADDRESS_SIZE (HOSTS_HOST_SIZE + 10u)
#define PEERS_PORT         7433u /* of nodes that are listed without one */

struct peer {
        char name[PEERS_NAME_SIZE];       /* what all nodes call it */
        char address[PEERS_ADDRESS_SIZE]; /* "HOST:PORT" */
        uint64_t hash;                    /* of its name */
        bool is_there;                    /* by what was found last */
        uint64_t until_ns;                /* left alone until then */
        uint32_t n_failed;                /* times in a row that it was left alone */
        uint32_t n_asked;                 /* requests that it has now */
};

struct peers {
        char *nodes, *folder;       /* one of them is NULL */
        char host[HOSTS_HOST_SIZE]; /* where it listens; "": at all addresses */
        uint16_t port;
        char name[PEERS_NAME_SIZE]; /* with a folder: of this node's file */
        char *key;
        int listen_fd;
        pthread_t thread; /* finds the others */
        bool has_thread;

        pthread_mutex_t lock; /* a leaf; of what follows */
        pthread_cond_t changed;
        bool is_ending, has_ended;       /* the thread is to end; has */
        struct peer rows[PEERS_MAX + 1]; /* numbers stay; [0]: this node */
        uint32_t n_rows;
};

/* What was found: all that are there now. One whose name is `self` is this node; NULL: it is not among them. */
struct peers_found {
        struct peer rows[PEERS_MAX];
        uint32_t n_rows;
        int64_t idx_self;
};

/* ---- peers.c ---- */

void peers_take(struct peers *peers, const struct peers_found *found);

/* ---- peers_find.c ---- */

int peers_find_start(struct peers *peers, struct why *why);
void peers_find_stop(struct peers *peers);

/* ---- peer_key.c ---- */

/* Of this file; "": of the folder, where it is made if there is none. */
int peer_key_read(const char *path, const char *folder, char **ret_key, struct why *why);
