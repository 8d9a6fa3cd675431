/* store/cache/cache_folders.h: several daemons in one cache_dir, each in a folder of its own.
 *
 * The first has cache_dir itself, the next ones have the folders 2, 3, ... in it: the first that is free, so what a
 * daemon leaves is found by the one that comes after it. Whoever has a folder holds a lock of its file `.lock`, which
 * ends with the process, and writes there how much the folder holds and would like to hold. From these two numbers each
 * daemon computes its part of cache_limit: what others hold is not its own, and what is more than an equal part is
 * given up as soon as others want it. What lies in a folder that nobody has makes room first. */
#pragma once

#include <stdint.h>

#include "daemon/store/cache/cache_private.h"

/* Takes a folder: cache->lock_fd, ->dir, ->idx_folder. 0; -EBUSY: all are taken; an errno, with `why`. */
int cache_folders_take(struct cache *cache, struct why *why);

/* Bytes in the folders of others. */
uint64_t cache_folders_elsewhere(struct cache *cache);

/* Tells the others what is here, and sets cache->limit by what they say. Without locks; the keeper's, once it runs. */
void cache_folders_look(struct cache *cache);

/* Whoever unpacks cannot say how much it will be: asks for an equal part, and waits a little until others have given it
 * up. */
void cache_folders_ask(struct cache *cache);

/* Removes what is the oldest in the folders that nobody has. Returns its bytes; 0: there is none. */
uint64_t cache_folders_make_room(struct cache *cache);
