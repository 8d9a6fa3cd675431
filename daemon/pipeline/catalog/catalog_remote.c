#include "daemon/pipeline/catalog/catalog_remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/pipeline/catalog/catalog.h"
#include "proto/base/cleanup.h"

static int on_read(void *userdata, int fd, void *into, size_t n_bytes, uint64_t offset, const atomic_bool *cancel) {
        struct remote *remote = userdata;
        struct why why;
        int r = cached_read(remote->cached, fd, into, n_bytes, offset, remote->is_arriving, cancel, &why);

        if (r >= 0 || r == -ENODATA || r == -ECANCELED)
                return r;
        pthread_mutex_lock(&remote->lock);
        if (!remote->why.text[0])
                remote->why = why;
        pthread_mutex_unlock(&remote->lock);
        return r;
}

static bool on_mark(void *userdata, int fd, uint64_t *ret_mark) {
        struct remote *remote = userdata;

        return cached_mark(remote->cached, fd, ret_mark);
}

static int on_look(void *userdata, const atomic_bool *cancel, struct why *why) {
        struct remote *remote = userdata;

        return cached_look(remote->cached, cancel, why);
}

static void on_hold(void *userdata) {
        struct remote *remote = userdata;

        atomic_fetch_add_explicit(&remote->refs, 1, memory_order_relaxed);
}

static void on_release(void *userdata) {
        remote_unref(userdata);
}

int remote_open(struct cache *cache, const struct cached_terms *terms, const struct index_watch *watch,
                struct remote **ret_remote, struct why *why) {
        struct cached_terms watched = *terms;
        struct remote *remote = calloc(1, sizeof(*remote));
        int r;

        if (!remote)
                return why_errno(why, -ENOMEM, "%s", terms->url);
        atomic_init(&remote->refs, 1);
        pthread_mutex_init(&remote->lock, NULL);
        if (watch) {
                watched.cancel = watch->cancel;
                watched.progress = watch->progress;
                watched.userdata = watch->userdata;
        }
        r = cached_open(cache, &watched, &remote->cached, why);
        if (r < 0) {
                remote_unref(remote);
                return r;
        }
        remote->origin = (struct indexing_origin){ .read = on_read,
                                                   .mark = on_mark,
                                                   .look = on_look,
                                                   .hold = on_hold,
                                                   .release = on_release,
                                                   .digest = cached_digest(remote->cached),
                                                   .userdata = remote };
        *ret_remote = remote;
        return 0;
}

#define INDEX_PART_BYTES (1u << 20)

void remote_fetch_index(struct remote *remote, const atomic_bool *cancel, char ret_path[PATH_MAX]) {
        int n = snprintf(ret_path, PATH_MAX, "%s/" CACHE_INDEX_NAME, cached_path(remote->cached));
        _cleanup_(closep) int fd = n < PATH_MAX ? open(ret_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        _cleanup_(freep) void *part = fd >= 0 ? malloc(INDEX_PART_BYTES) : NULL;
        struct stat status;
        struct why why;
        int r = part && fstat(fd, &status) == 0 ? 0 : -ENOENT;

        for (off_t at = 0; r >= 0 && at < status.st_size; at += INDEX_PART_BYTES)
                r = cached_read(remote->cached, fd, part,
                                status.st_size - at < INDEX_PART_BYTES ? (size_t)(status.st_size - at)
                                                                       : INDEX_PART_BYTES,
                                (uint64_t)at, false, cancel, &why);
        if (r < 0)
                ret_path[0] = '\0'; /* it is made here, which says what there is to say */
}

void remote_unref(struct remote *remote) {
        if (!remote || atomic_fetch_sub_explicit(&remote->refs, 1, memory_order_acq_rel) > 1)
                return;
        cached_unref(remote->cached);
        pthread_mutex_destroy(&remote->lock);
        free(remote);
}

void remote_explain(struct remote *remote, struct why *why) {
        pthread_mutex_lock(&remote->lock);
        if (remote->why.text[0])
                *why = remote->why;
        remote->why.text[0] = '\0';
        pthread_mutex_unlock(&remote->lock);
}

bool remote_report(const struct catalog_dataset *dataset, struct dlp_origin *ret_origin) {
        const struct remote *remote = dataset->remote ? dataset->remote : dataset->feeding;

        if (remote) {
                cached_report(remote->cached, ret_origin);
                return true;
        }
        for (uint32_t k = 0; k < dataset->n_parts; k++)
                if (remote_report(dataset->parts[k], ret_origin))
                        return true;
        return false;
}
