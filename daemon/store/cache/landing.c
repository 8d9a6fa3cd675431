/* What comes of a flight is written into its place at once, as libcurl hands it over: it is in the processor's cache
 * then, and no memory has to hold a chunk. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/store/cache/cache_private.h"

static bool is_full_disk(int error) {
        return error == -ENOSPC || error == -EDQUOT;
}

int landing_error(const struct flight *flight, int error, struct why *why) {
        const struct cached *cached = flight->cached;

        if (is_full_disk(error))
                return why_set(why, error, "%s: no space left on its disk; make room there, or lower cache_limit",
                               cached->cache->dir);
        return why_errno(why, error, "%s/%s", cached->folder, flight->piece.file->path);
}

/* Others write to the disk as well: what is full before the limit is reached has a lower limit. */
static bool has_shrunk(struct flight *flight, int error) {
        struct cached *cached = flight->cached;
        struct why why;
        bool has_room;

        pthread_mutex_lock(&cached->cache->lock);
        has_room = room_shrink(cached);
        pthread_mutex_unlock(&cached->cache->lock);
        if (!has_room)
                return false;
        landing_error(flight, error, &why);
        log_warning("cache", "%s; until the daemon is started again, less is kept", why.text);
        return true;
}

int landing_take(struct fetch_piece *piece, uint32_t at, const uint8_t *bytes, size_t n_bytes) {
        struct flight *flight = (struct flight *)((char *)piece - offsetof(struct flight, piece));
        uint64_t offset = piece->offset + at;
        int r = 0;

        if (flight->fd < 0)
                flight->fd = openat(flight->cached->files_fd, piece->file->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (flight->fd < 0)
                r = -errno;
        if (r == 0)
                r = disk_write_at(flight->fd, bytes, n_bytes, offset);
        if (is_full_disk(r) && has_shrunk(flight, r))
                r = disk_write_at(flight->fd, bytes, n_bytes, offset);
        if (r == 0 && flight->is_chunk && at == 0)
                XXH3_64bits_reset(flight->digested);
        if (r == 0 && flight->is_chunk)
                XXH3_64bits_update(flight->digested, bytes, n_bytes);
        flight->write_error = r;
        return r;
}
