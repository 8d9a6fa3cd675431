#include "daemon/store/cache/uses.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/uses_private.h"

#define GOING_LOOKS 4096u /* chunks that are looked at for those that would go next: a tenth of a millisecond */

static void free_uses(struct cached_uses *uses) {
        free(uses->first[0]);
        free(uses->first[1]);
        free(uses);
}

bool cached_wants_uses(struct cached *cached, uint64_t *ret_n_bytes) {
        bool wants;

        *ret_n_bytes = 2 * (cached->n_chunks + 1) * sizeof(uint32_t);
        pthread_mutex_lock(&cached->cache->lock);
        wants = *ret_n_bytes <= DLP_USES_BYTES_MAX && room_is_short(cached->cache);
        pthread_mutex_unlock(&cached->cache->lock);
        return wants;
}

static void forget_uses(struct cached_uses *uses, uint32_t idx_epoch) {
        memset(uses->first[idx_epoch], 0xff, (uses->cached->n_chunks + 1) * sizeof(uint32_t)); /* DLP_USE_NEVER */
}

struct cached_uses *cached_uses_new(struct cached *cached) {
        struct cached_uses *uses = calloc(1, sizeof(*uses));

        if (!uses)
                return NULL;
        uses->cached = cached;
        for (uint32_t i = 0; i < 2; i++)
                uses->first[i] = malloc((cached->n_chunks + 1) * sizeof(*uses->first[i]));
        if (!uses->first[0] || !uses->first[1]) {
                free_uses(uses);
                return NULL;
        }
        forget_uses(uses, 0);
        forget_uses(uses, 1);
        pthread_mutex_lock(&cached->cache->lock);
        LIST_INSERT_HEAD(&cached->uses, uses, entry);
        pthread_mutex_unlock(&cached->cache->lock);
        return uses;
}

void cached_uses_free(struct cached_uses *uses) {
        if (!uses)
                return;
        pthread_mutex_lock(&uses->cached->cache->lock);
        LIST_REMOVE(uses, entry);
        pthread_mutex_unlock(&uses->cached->cache->lock);
        free_uses(uses);
}

void cached_uses_add(struct cached_uses *uses, bool is_next_epoch, const char *folder, const char *path,
                     uint64_t offset, uint64_t n_bytes, uint32_t k) {
        int64_t found = cached_find(uses->cached, folder, path);
        uint64_t chunk, end;

        if (found < 0)
                return;
        cached_chunks_of(uses->cached, (uint64_t)found, offset, n_bytes, &chunk, &end);
        pthread_mutex_lock(&uses->cached->cache->lock);
        for (; chunk < end; chunk++)
                if (uses->first[is_next_epoch][chunk] == DLP_USE_NEVER)
                        uses->first[is_next_epoch][chunk] = k;
        pthread_mutex_unlock(&uses->cached->cache->lock);
}

void cached_uses_turn(struct cached_uses *uses) {
        uint32_t *first = uses->first[0];

        pthread_mutex_lock(&uses->cached->cache->lock);
        uses->first[0] = uses->first[1];
        uses->first[1] = first;
        forget_uses(uses, 1);
        pthread_mutex_unlock(&uses->cached->cache->lock);
}

void cached_uses_at(struct cached_uses *uses, const struct dlp_uses_place *place) {
        pthread_mutex_lock(&uses->cached->cache->lock);
        uses->place = *place;
        pthread_mutex_unlock(&uses->cached->cache->lock);
}

uint64_t uses_next(const struct cached *cached, uint64_t chunk) {
        const struct cached_uses *uses;
        uint64_t soonest = UINT64_MAX, ns;

        LIST_FOREACH(uses, &cached->uses, entry) {
                ns = dlp_next_use(&uses->place, uses->first[0][chunk], uses->first[1][chunk]);
                soonest = ns < soonest ? ns : soonest;
        }
        return soonest;
}

/* Of what stays: nobody has it pinned, and nobody needs it soon. */
static bool uses_may_go(const void *userdata, uint64_t chunk) {
        const struct cached *cached = userdata;

        return cached->states[chunk] == CHUNK_THERE && cached->pins[chunk] == 0 && cached->marked[chunk] == 0;
}

static uint64_t next_of(const void *userdata, uint64_t chunk) {
        return uses_next(userdata, chunk);
}

static bool has_several(const struct cached *cached) {
        return !LIST_EMPTY(&cached->uses) && LIST_NEXT(LIST_FIRST(&cached->uses), entry);
}

bool uses_make_room(struct cached *cached, uint64_t soonest_ns) {
        const struct dlp_victims victims = {
                .n_chunks = cached->n_chunks, .may_go = uses_may_go, .next_use = next_of, .userdata = cached
        };
        uint64_t victim = has_several(cached) ? dlp_choose_victim(&victims, soonest_ns, &cached->choice) : UINT64_MAX;

        if (victim == UINT64_MAX)
                return false;
        room_drop(cached, victim);
        return true;
}

/* ---- what would go next ------------------------------------------------------------------------------------------ */

static void add_going(struct cached_going *going, const struct cached_going_chunk *chunk) {
        uint32_t i = going->n < CACHED_GOING_MAX ? going->n++ : going->n;

        for (; i > 0 && going->chunks[i - 1].next_ns < chunk->next_ns; i--)
                if (i < CACHED_GOING_MAX)
                        going->chunks[i] = going->chunks[i - 1];
        if (i < CACHED_GOING_MAX)
                going->chunks[i] = *chunk;
}

void cached_going(struct cached *cached, struct cached_going *ret_going) {
        struct cache *cache = cached->cache;
        uint64_t n_apart = cached->n_chunks / GOING_LOOKS + 1;

        *ret_going = (struct cached_going){ .rule = CACHED_GOING_NOTHING };
        pthread_mutex_lock(&cache->lock);
        if (room_is_short(cache))
                ret_going->rule = has_several(cached) ? CACHED_GOING_LAST : CACHED_GOING_PASSING;
        for (uint64_t i = 0; i < cached->n_chunks && ret_going->rule == CACHED_GOING_LAST; i += n_apart)
                if (uses_may_go(cached, i))
                        add_going(ret_going,
                                  &(struct cached_going_chunk){ .chunk = i, .next_ns = uses_next(cached, i) });
        pthread_mutex_unlock(&cache->lock);
        for (uint32_t i = 0; i < ret_going->n; i++) {
                struct chunk_place place = cached_place(cached, ret_going->chunks[i].chunk);

                ret_going->chunks[i].path = place.file->path;
                ret_going->chunks[i].offset = place.offset;
                ret_going->chunks[i].n_bytes = place.n_bytes;
        }
}
