#include "daemon/store/cache/cache_folders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/threads/thread.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define FOLDERS_MAX 64u
#define LEAST_SHARE 8u /* of an equal part, so much is always ours: what passes through lies somewhere */
#define ASK_NS      5000000000ull

/* What `.lock` holds; of a folder that nobody has, what its last daemon said. */
struct folder_says {
        uint64_t n_held, n_wanted; /* bytes; wanted includes held */
};

static void cache_folders_path(const struct cache *cache, uint32_t idx, char ret_path[PATH_MAX]) {
        if (idx == 1)
                snprintf(ret_path, PATH_MAX, "%s", cache->root);
        else
                snprintf(ret_path, PATH_MAX, "%s/%u", cache->root, idx);
}

static int cache_folders_open(const struct cache *cache, uint32_t idx, int flags) {
        char folder[PATH_MAX], path[PATH_MAX + 8];
        int fd;

        cache_folders_path(cache, idx, folder);
        if ((flags & O_CREAT) && idx > 1 && mkdir(folder, 0700) < 0 && errno != EEXIST)
                return -errno;
        snprintf(path, sizeof(path), "%s/.lock", folder);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        return fd < 0 ? -errno : fd;
}

/* Locks of the open file, not of the process: they can be looked at without being taken, so who looks never keeps a
 * folder from who begins. 0; -EBUSY; an errno. */
static int folder_lock(int fd) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
                return 0;
        return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

static bool folder_is_taken(int fd) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int cache_folders_take(struct cache *cache, struct why *why) {
        for (uint32_t idx = 1; idx <= FOLDERS_MAX; idx++) {
                _cleanup_(closep) int fd = cache_folders_open(cache, idx, O_CREAT);
                char path[PATH_MAX], *dir;
                int r = fd < 0 ? fd : folder_lock(fd);

                cache_folders_path(cache, idx, path);
                if (r == -EBUSY)
                        continue;
                if (r < 0)
                        return why_errno(why, r, "cache_dir: %s/.lock", path);
                dir = strdup(path);
                if (!dir)
                        return why_errno(why, -ENOMEM, "cache_dir");
                free(cache->dir);
                cache->dir = dir;
                cache->idx_folder = idx;
                cache->lock_fd = take_fd(&fd);
                return 0;
        }
        return why_set(why, -EBUSY,
                       "cache_dir: %u daemons use %s, and no more can; give this one a folder of its own, as in "
                       "DATALOADERD_PRIVATE=\"cache_dir=/scratch/mine\"",
                       FOLDERS_MAX, cache->root);
}

/* ---- what others say --------------------------------------------------------------------------------------------- */

struct others {
        uint64_t n_held, n_wanted;
        uint64_t n_left; /* of n_held, in folders that nobody has */
        uint32_t n_daemons;
};

static uint64_t plus(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t minus(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

static void look_at_others(const struct cache *cache, struct others *ret_others) {
        *ret_others = (struct others){ 0 };
        for (uint32_t idx = 1; idx <= FOLDERS_MAX; idx++) {
                _cleanup_(closep) int fd = idx == cache->idx_folder ? -1 : cache_folders_open(cache, idx, 0);
                struct folder_says says;
                bool is_taken;

                if (fd < 0 || disk_read_at(fd, &says, sizeof(says), 0) < 0)
                        continue;
                is_taken = folder_is_taken(fd);
                ret_others->n_daemons += is_taken;
                ret_others->n_held = plus(ret_others->n_held, says.n_held);
                ret_others->n_left = plus(ret_others->n_left, is_taken ? 0 : says.n_held);
                ret_others->n_wanted = plus(ret_others->n_wanted,
                                            is_taken && says.n_wanted > says.n_held ? says.n_wanted : says.n_held);
        }
}

uint64_t cache_folders_elsewhere(struct cache *cache) {
        struct others others;

        look_at_others(cache, &others);
        return others.n_held;
}

/* Never more than others leave; and of that, what is beyond an equal part only as long as they do not want it. */
static uint64_t part_of_limit(uint64_t whole, const struct others *others) {
        uint64_t equal = whole / (others->n_daemons + 1), left = minus(whole, others->n_held);
        uint64_t wanted = minus(whole, others->n_wanted), part = equal > wanted ? equal : wanted;

        if (part > left)
                part = left;
        return part > equal / LEAST_SHARE ? part : equal / LEAST_SHARE;
}

/* Bytes of the origins that are open and not here. */
static uint64_t n_absent(const struct cache *cache) {
        uint64_t n_bytes = cache->n_origin_bytes;
        const struct cached *cached;

        LIST_FOREACH(cached, &cache->origins, entry)
                n_bytes -= cached->n_bytes;
        return n_bytes;
}

void cache_folders_look(struct cache *cache) {
        struct folder_says mine;
        struct others others;
        uint64_t part;

        pthread_mutex_lock(&cache->lock);
        mine.n_held = cache->n_bytes;
        mine.n_wanted = cache->n_asking > 0 ? UINT64_MAX : cache->n_bytes + n_absent(cache);
        pthread_mutex_unlock(&cache->lock);
        disk_write_at(cache->lock_fd, &mine, sizeof(mine), 0); /* on a full disk others know what was said before */
        look_at_others(cache, &others);
        part = part_of_limit(cache->whole_limit, &others);
        pthread_mutex_lock(&cache->lock);
        cache->n_others = others.n_daemons;
        cache->equal_part = minus(cache->whole_limit, others.n_left) / (others.n_daemons + 1);
        cache->limit = part < cache->disk_limit ? part : cache->disk_limit;
        if (others.n_left > 0)
                cache->has_no_closed = false;
        pthread_cond_broadcast(&cache->changed);
        pthread_mutex_unlock(&cache->lock);
}

void cache_folders_ask(struct cache *cache) {
        uint64_t until_ns = clock_now_ns() + ASK_NS;

        pthread_mutex_lock(&cache->lock);
        cache->n_asking++;
        while (cache->limit < cache->equal_part && cache->limit < cache->disk_limit && clock_now_ns() < until_ns &&
               !cache->is_cancelled)
                thread_wait_until(&cache->changed, &cache->lock, until_ns);
        cache->n_asking--;
        pthread_mutex_unlock(&cache->lock);
}

/* ---- what nobody has any more ------------------------------------------------------------------------------------ */

uint64_t cache_folders_make_room(struct cache *cache) {
        uint64_t n_removed = 0;

        for (uint32_t idx = 1; idx <= FOLDERS_MAX && n_removed == 0; idx++) {
                _cleanup_(closep) int fd = idx == cache->idx_folder ? -1 : cache_folders_open(cache, idx, 0);
                struct folder_says says = { 0 };
                char dir[PATH_MAX];

                if (fd < 0 || folder_lock(fd) < 0)
                        continue;
                cache_folders_path(cache, idx, dir);
                n_removed = room_remove_oldest(cache, dir);
                says.n_held = says.n_wanted = room_bytes_in(dir);
                disk_write_at(fd, &says, sizeof(says), 0);
        }
        if (n_removed > 0)
                cache_folders_look(cache);
        return n_removed;
}
