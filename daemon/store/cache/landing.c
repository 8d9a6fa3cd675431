/* What comes of a flight is written into its place while it comes, and no memory holds a chunk. libcurl hands over 16
 * KiB at most, at any offset: these are collected to parts of whole pages, which cost a disk's file system a third
 * less, and are still in the processor's cache then. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/store/cache/cache_private.h"
#include "proto/base/cleanup.h"

#define PART_BYTES (64u << 10)

bool landing_is_full(int error) {
        return error == -ENOSPC || error == -EDQUOT;
}

int landing_error(const struct flight *flight, int error, struct why *why) {
        const struct cached *cached = flight->cached;

        if (landing_is_full(error))
                return why_set(why, error, "%s: no space left on its disk; make room there, or lower cache_limit",
                               cached->cache->dir);
        return why_errno(why, error, "%s/%s", cached->folder, flight->piece.file->path);
}

/* Others write to the disk as well: what is full before the limit is reached has a lower limit. */
bool landing_makes_room(struct flight *flight, int error) {
        struct cached *cached = flight->cached;
        struct why why;
        bool has_room, is_news;

        if (!landing_is_full(error))
                return false;
        pthread_mutex_lock(&cached->cache->lock);
        is_news = cached->cache->full_bytes == 0;
        has_room = room_shrink(cached);
        pthread_mutex_unlock(&cached->cache->lock);
        landing_error(flight, error, &why);
        if (is_news)
                log_warning("cache", "%s; until there is, less is kept", why.text);
        return has_room;
}

/* Bytes of the file, which are to be written from `offset` on: but for what pieces have, if they come as a whole. */
static int write_holes(const struct flight *flight, const uint8_t *bytes, uint32_t n_bytes, uint64_t offset) {
        uint64_t end = offset + n_bytes;
        int r = 0;

        if (!flight->holes || flight->job.pieces == flight->holes)
                return disk_write_at(flight->fd, bytes, n_bytes, offset);
        for (uint32_t i = 0; i < flight->n_holes && r == 0; i++) {
                const struct fetch_piece *hole = &flight->holes[i];
                uint64_t first = hole->offset > offset ? hole->offset : offset, last = hole->offset + hole->n_bytes;

                last = last < end ? last : end;
                if (first < last)
                        r = disk_write_at(flight->fd, bytes + (first - offset), last - first, first);
        }
        return r;
}

/* What has been collected, which ends at this byte of the piece. */
static int landing_put(struct flight *flight, struct landing *landing, const struct fetch_piece *piece, uint32_t end) {
        uint64_t offset = piece->offset + end - landing->n_part;
        int r = 0;

        if (flight->fd < 0)
                flight->fd = openat(flight->cached->files_fd, piece->file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (flight->fd < 0)
                r = -errno;
        if (r == 0)
                r = write_holes(flight, landing->part, landing->n_part, offset);
        if (landing_makes_room(flight, r))
                r = write_holes(flight, landing->part, landing->n_part, offset);
        if (r == 0 && flight->is_chunk && piece == &flight->piece)
                XXH3_64bits_update(flight->digested, landing->part, landing->n_part);
        landing->n_part = 0;
        return r;
}

int landing_take(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes) {
        struct flight *flight = piece->userdata;
        struct landing *landing = piece == &flight->piece ? &flight->landing : &flight->landings[piece - flight->holes];
        int r = 0;

        if (at == 0)
                landing->n_part = 0;
        if (at == 0 && flight->is_chunk && piece == &flight->piece)
                XXH3_64bits_reset(flight->digested);
        if (!landing->part && !(landing->part = malloc(PART_BYTES)))
                r = -ENOMEM;
        while (n_bytes > 0 && r == 0) {
                size_t n = PART_BYTES - (piece->offset + at) % PART_BYTES;

                n = n < n_bytes ? n : n_bytes;
                memcpy(landing->part + landing->n_part, bytes, n);
                landing->n_part += (uint32_t)n;
                at += (uint32_t)n;
                bytes += n;
                n_bytes -= n;
                if ((piece->offset + at) % PART_BYTES == 0 || at == piece->n_bytes)
                        r = landing_put(flight, landing, piece, at);
        }
        if (at == piece->n_bytes)
                free(TAKE_PTR(landing->part));
        if (r < 0)
                flight->write_error = r;
        return r;
}

void landing_end(struct flight *flight) {
        free(TAKE_PTR(flight->landing.part));
        for (uint32_t i = 0; i < flight->n_holes; i++)
                free(TAKE_PTR(flight->landings[i].part));
}
