/* store/cache/peers/peer_server.h: what is cached here, for the other nodes, over HTTP.
 *
 *     GET /now/NAME/FILE     Range: bytes=FIRST-LAST, within a chunk of 8 MiB      (/soon/: nobody waits for it yet)
 *
 * NAME is what nodes call an origin by its listing (struct cached), FILE the number of a file in it. Who asks has the
 * key: "Authorization: Bearer KEY". The answer begins at once. What is not here is fetched from the origin, never from
 * another node, and the bytes follow then; after them comes their digest, "Chunk-XXH3". Of a part, it is that which is
 * fetched, if it is small, and the chunk later. 404: no such origin is
 * open here. 409: this node waits for somebody itself, or has too much to do. 403: another key. If the
 * origin does not give the chunk, the answer ends before its bytes.
 *
 * A thread of libmicrohttpd's serves all; it reads files, and waits for nobody. */
#pragma once

#include "proto/base/why.h"

struct cache;
struct event_base;
struct peer_server;
struct peers;

/* Serves at the socket of `peers` until peer_server_close(), which comes after cache_cancel() and before cache_free().
 */
int peer_server_open(struct event_base *base, struct cache *cache, struct peers *peers, struct peer_server **ret_server,
                     struct why *why);
void peer_server_close(struct peer_server *server); /* NULL is fine */
