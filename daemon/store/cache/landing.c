/* What comes of a flight is written into its place while it comes, and no memory holds a chunk. libcurl hands over 16
 * KiB at most, at any offset: these are collected to parts of whole pages, which cost a disk's file system a third
 * less, and are still in the processor's cache then. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
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
        bool has_room;

        if (!landing_is_full(error))
                return false;
        pthread_mutex_lock(&cached->cache->lock);
        has_room = room_shrink(cached);
        pthread_mutex_unlock(&cached->cache->lock);
        if (!has_room)
                return false;
        landing_error(flight, error, &why);
        log_warning("cache", "%s; until the daemon is started again, less is kept", why.text);
        return true;
}

/* What has been collected, which ends at this byte of the piece. */
static int landing_put(struct flight *flight, uint32_t end) {
        const struct fetch_piece *piece = &flight->piece;
        uint64_t offset = piece->offset + end - flight->n_part;
        int r = 0;

        if (flight->fd < 0)
                flight->fd = openat(flight->cached->files_fd, piece->file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (flight->fd < 0)
                r = -errno;
        if (r == 0)
                r = disk_write_at(flight->fd, flight->part, flight->n_part, offset);
        if (landing_makes_room(flight, r))
                r = disk_write_at(flight->fd, flight->part, flight->n_part, offset);
        if (r == 0 && flight->is_chunk)
                XXH3_64bits_update(flight->digested, flight->part, flight->n_part);
        flight->n_part = 0;
        return r;
}

int landing_take(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes) {
        struct flight *flight = (struct flight *)((char *)piece - offsetof(struct flight, piece));
        int r = 0;

        if (at == 0)
                flight->n_part = 0;
        if (at == 0 && flight->is_chunk)
                XXH3_64bits_reset(flight->digested);
        if (!flight->part && !(flight->part = malloc(PART_BYTES)))
                r = -ENOMEM;
        while (n_bytes > 0 && r == 0) {
                size_t n = PART_BYTES - (piece->offset + at) % PART_BYTES;

                n = n < n_bytes ? n : n_bytes;
                memcpy(flight->part + flight->n_part, bytes, n);
                flight->n_part += (uint32_t)n;
                at += (uint32_t)n;
                bytes += n;
                n_bytes -= n;
                if ((piece->offset + at) % PART_BYTES == 0)
                        r = landing_put(flight, at);
        }
        flight->write_error = r;
        return r;
}

void landing_end(struct flight *flight) {
        if (flight->job.result == 0 && flight->n_part > 0)
                flight->write_error = landing_put(flight, flight->piece.n_bytes);
        free(TAKE_PTR(flight->part));
}
