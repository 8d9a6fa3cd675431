/* store/cache/peers/peers.h: the other nodes of a run or a site, and which of them fetches what.
 *
 * Each chunk of an origin has an owner among the nodes: the one whose name has the highest hash together with the
 * chunk's (rendezvous hashing), so a node that comes or goes changes the owner of its own share alone. The owner
 * asks the origin, the others ask it. Nodes need not agree on who is there: whoever is asked asks the origin, and no
 * other node. A node that does not answer as it should is left alone for a while, and what it owned is the next one's.
 *
 * Who is there is what the configuration says, or what lies in a folder that all have: a file for each node, with its
 * address in it, written anew every few seconds (peers_find.c). There is no other protocol.
 *
 * Any thread; nothing here waits for another node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"

#define PEERS_MAX      256u
#define PEERS_URL_SIZE 400u

struct peers;

struct peers_options {
        const char *nodes, *listen, *key_file; /* the settings peers, peer_listen, peer_key_file */
        const char *socket;                    /* of the daemon: tells those of one machine apart */
};

/* Listens, has the key, and begins to look for the others. -EADDRINUSE, -EACCES, ... with `why`. */
int peers_new(const struct peers_options *options, struct peers **ret_peers, struct why *why);
void peers_free(struct peers *peers); /* NULL is fine */

int peers_listen_fd(const struct peers *peers); /* theirs */
const char *peers_key(const struct peers *peers);

/* The number of the node that is to fetch this chunk of the origin with this hash; 0: this one. Those whose place in
 * until_ns (of PEERS_MAX + 1) is later than now are passed over. */
uint32_t peers_owner(struct peers *peers, uint64_t origin, uint64_t chunk, const uint64_t *until_ns);

/* May it still be asked? */
bool peers_is_open(struct peers *peers, uint32_t peer);

/* "http://HOST:PORT" of a node that is asked from now on. */
void peers_begin(struct peers *peers, uint32_t peer, char ret_url[PEERS_URL_SIZE]);

/* It has answered as it should (NULL), or what was wrong: then it is left alone for a while. */
void peers_end(struct peers *peers, uint32_t peer, const char *wrong);

uint32_t peers_n_others(struct peers *peers);
