#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/fetch/origin/origin_unpack.h"
#include "daemon/staging/nodes/nodes_moves.h"
#include "daemon/staging/run/run.h"
#include "daemon/staging/run/stage_files.h"
#include "proto/base/cleanup.h"

#define GROWTH_DEFAULT 100u       /* what comes out of an archive, unless the configuration says more */
#define LIMIT_MIN      (1u << 30) /* bytes: small archives of zeros are no bombs */
#define FILES_MIN      65536u     /* files and folders of one: those of a small one are no bomb either */
#define FILE_BYTES     16u        /* of an archive, for each more: a name takes as many, however it is compressed */
#define FILE_ROOM      512u       /* of unpack_limit: whoever says how much may come out allows so many */

struct link {
        char *path, *target;
};

/* The archives of a plan: each is read by a thread of its own as its chunks reach the disk, one after the other. */
struct unpacking {
        struct run *run;
        struct version *source, *result;
        char folder[PATH_MAX];      /* where the files lie until they are a version */
        char real_folder[PATH_MAX]; /* without links on the way there */
        int folder_fd;
        struct link *links; /* of the archive at hand: what they lead to may come after them */
        size_t n_links;

        pthread_mutex_t lock; /* covers the rest */
        pthread_cond_t changed;
        uint8_t *present; /* a bit a chunk of the source */
        bool is_over;     /* nothing more comes */
        struct plan *found;
        const struct plan_file *archive; /* that is being unpacked */
        int spool_fd;
        uint64_t idx_file, n_read; /* of it */
        struct why why;
};

/* ---- the archive's bytes, as they arrive ---- */

static void unpacking_on_written(void *userdata, uint64_t idx_chunk) {
        struct unpacking *unpacking = userdata;

        pthread_mutex_lock(&unpacking->lock);
        bit_set(unpacking->present, idx_chunk);
        pthread_cond_signal(&unpacking->changed);
        pthread_mutex_unlock(&unpacking->lock);
}

/* Waits until the chunk with the next byte is on the disk. Returns how many bytes of the archive may be read from there
 * on; 0 at its end; -ECANCELED if they will not come. */
static int64_t wait_for_bytes(struct unpacking *unpacking) {
        uint64_t first, n_chunks = chunks_of_file(unpacking->source->chunks, unpacking->idx_file, &first);
        uint64_t size = unpacking->archive->n_bytes, idx = unpacking->n_read / CHUNK_BYTES;
        uint64_t end;

        if (unpacking->n_read >= size)
                return 0;
        if (n_chunks == 1)
                idx = 0; /* a small one, in a chunk with others */
        pthread_mutex_lock(&unpacking->lock);
        while (!bit_is_set(unpacking->present, first + idx) && !unpacking->is_over)
                pthread_cond_wait(&unpacking->changed, &unpacking->lock);
        end = bit_is_set(unpacking->present, first + idx) ? (idx + 1) * CHUNK_BYTES : 0;
        pthread_mutex_unlock(&unpacking->lock);
        if (end == 0)
                return -ECANCELED;
        return (int64_t)((end < size ? end : size) - unpacking->n_read);
}

static ssize_t read_archive(void *userdata, uint8_t *into, size_t n) {
        struct unpacking *unpacking = userdata;
        int64_t available = wait_for_bytes(unpacking);
        ssize_t r;

        if (available <= 0)
                return (ssize_t)available;
        if (unpacking->spool_fd < 0) /* it is there since its first chunk is */
                unpacking->spool_fd = tree_spool_open(unpacking->source->tree, unpacking->idx_file, &unpacking->why);
        if (unpacking->spool_fd < 0)
                return unpacking->spool_fd;
        r = pread(unpacking->spool_fd, into, n < (size_t)available ? n : (size_t)available, (off_t)unpacking->n_read);
        if (r < 0)
                return -errno;
        if (r == 0)
                return -EIO; /* shorter than what was written */
        unpacking->n_read += (uint64_t)r;
        return r;
}

/* ---- what is in it ---- */

static int add_found(struct unpacking *unpacking, const char *path, uint64_t n_bytes, const uint8_t *sha256) {
        struct plan_file file = {
                .path = path,
                .n_bytes = n_bytes,
                .sha256 = sha256,
                .urls = unpacking->archive->urls,
                .n_urls = unpacking->archive->n_urls,
        };

        atomic_fetch_add(&unpacking->run->n_steps_done, 1);
        return plan_add(&unpacking->found, &file, &unpacking->why);
}

static int keep_link(struct unpacking *unpacking, const struct unpack_entry *entry) {
        struct link *links = realloc(unpacking->links, (unpacking->n_links + 1) * sizeof(*links)), *link;

        if (!links)
                return -ENOMEM;
        unpacking->links = links;
        link = &links[unpacking->n_links];
        link->path = strdup(entry->path);
        link->target = strdup(entry->link);
        unpacking->n_links++;
        return link->path && link->target ? 0 : -ENOMEM;
}

static int on_entry(void *userdata, const struct unpack_entry *entry) {
        struct unpacking *unpacking = userdata;

        return entry->link ? keep_link(unpacking, entry)
                           : add_found(unpacking, entry->path, entry->n_bytes, entry->sha256);
}

/* A version holds files only: a link to a file becomes another name of it. */
static int resolve_link(struct unpacking *unpacking, const struct link *link, uint8_t sha256[32],
                        uint64_t *ret_n_bytes) {
        size_t n = strlen(unpacking->real_folder);
        char real[PATH_MAX], path[PATH_MAX];
        int fd = unpacking->folder_fd;
        struct stat status;

        if (fstatat(fd, link->path, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISLNK(status.st_mode)) {
                if (snprintf(path, sizeof(path), "%s/%s", unpacking->real_folder, link->path) >= (int)sizeof(path))
                        return -ENAMETOOLONG;
                if (!realpath(path, real) || stat(real, &status) < 0)
                        return -errno;
                if (strncmp(real, unpacking->real_folder, n) != 0 || real[n] != '/' || !S_ISREG(status.st_mode))
                        return -EINVAL;
                if (unlinkat(fd, link->path, 0) < 0 || linkat(AT_FDCWD, real, fd, link->path, 0) < 0)
                        return -errno;
        }
        return hash_file_at(fd, link->path, sha256, ret_n_bytes);
}

/* After the archive's end everything is there that they may lead to. */
static int resolve_links(struct unpacking *unpacking) {
        for (size_t i = 0; i < unpacking->n_links; i++) {
                const struct link *link = &unpacking->links[i];
                uint64_t n_bytes = 0;
                uint8_t sha256[32];
                int r = resolve_link(unpacking, link, sha256, &n_bytes);

                if (r < 0)
                        return why_errno(&unpacking->why, r == -ENOENT ? -EINVAL : r,
                                         "%s: the link %s -> %s leads to no file of the archive (links to folders are "
                                         "not taken)",
                                         unpacking->archive->path, link->path, link->target);
                r = add_found(unpacking, link->path, n_bytes, sha256);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void forget_links(struct unpacking *unpacking) {
        for (size_t i = 0; i < unpacking->n_links; i++) {
                free(unpacking->links[i].path);
                free(unpacking->links[i].target);
        }
        free(unpacking->links);
        unpacking->links = NULL;
        unpacking->n_links = 0;
}

/* ---- one after the other ---- */

static int unpack_one(struct unpacking *unpacking, uint64_t idx_file) {
        const struct dataset_setting *dataset = unpacking->run->dataset;
        const struct plan_file *file = plan_file(unpacking->source->plan, idx_file);
        struct unpack_options options = {
                .archive = file->path,
                .root_fd = unpacking->folder_fd,
                .limit_bytes = dataset->unpack_limit > 0 ? dataset->unpack_limit : file->n_bytes * GROWTH_DEFAULT,
                .limit_files = FILES_MIN + file->n_bytes / FILE_BYTES + dataset->unpack_limit / FILE_ROOM,
                .read = read_archive,
                .entry = on_entry,
                .userdata = unpacking,
                .cancel = unpacking->run->cancel,
        };
        struct why why;
        int r;

        if (options.limit_bytes < LIMIT_MIN && dataset->unpack_limit == 0)
                options.limit_bytes = LIMIT_MIN;
        unpacking->archive = file;
        unpacking->idx_file = idx_file;
        unpacking->n_read = 0;
        unpacking->why.text[0] = '\0';
        r = unpack_run(&options, &why);
        if (r == 0)
                r = resolve_links(unpacking);
        forget_links(unpacking);
        if (unpacking->spool_fd >= 0)
                close(unpacking->spool_fd);
        unpacking->spool_fd = -1;
        if (r < 0 && !unpacking->why.text[0])
                unpacking->why = why;
        return r;
}

static int unpacking_unpack_all(struct run *run, void *argument, struct why *why) {
        struct unpacking *unpacking = argument;
        const struct plan *plan = unpacking->source->plan;
        int r = 0;

        for (uint64_t i = 0; i < plan_n_files(plan) && r == 0; i++)
                if (plan_file(plan, i)->unpack)
                        r = unpack_one(unpacking, i);
        return r < 0 ? why_set(why, r, "%s", unpacking->why.text) : 0;
}

/* ---- all of it ---- */

static int unpacking_begin(struct run *run, struct version *source, struct unpacking *unpacking, struct why *why) {
        uint64_t n_chunks = chunks_count(source->chunks);
        int r;

        *unpacking = (struct unpacking){ .run = run, .source = source, .folder_fd = -1, .spool_fd = -1 };
        r = version_folder(run, source, ".unpacked", unpacking->folder, &unpacking->folder_fd, why);
        if (r < 0)
                return r;
        if (!realpath(unpacking->folder, unpacking->real_folder))
                return why_errno(why, -errno, "%s", unpacking->folder);
        unpacking->present = malloc((n_chunks + 7) / 8 + 1);
        if (!unpacking->present)
                return why_errno(why, -ENOMEM, "unpacking");
        for (uint64_t i = 0; i < (n_chunks + 7) / 8; i++)
                unpacking->present[i] = (uint8_t)~tree_missing(source->tree)[i];
        pthread_mutex_init(&unpacking->lock, NULL);
        pthread_cond_init(&unpacking->changed, NULL);
        return 0;
}

static void unpacking_end(struct unpacking *unpacking) {
        if (unpacking->folder_fd >= 0)
                close(unpacking->folder_fd);
        free(unpacking->present);
        plan_free(unpacking->found);
}

/* Files of the origin that are not archives belong to the result as they are. */
static int add_plain_files(struct unpacking *unpacking, struct why *why) {
        const struct plan *plan = unpacking->source->plan;
        int r = 0;

        for (uint64_t i = 0; i < plan_n_files(plan) && r == 0; i++) {
                struct plan_file file = *plan_file(plan, i);

                if (file.unpack)
                        continue;
                file.sha256 = tree_sha256(unpacking->source->tree, i);
                r = plan_add(&unpacking->found, &file, why);
        }
        return r;
}

/* Moves each file to where it belongs. */
static int adopt_files(struct run *run, void *argument, struct why *why) {
        const struct unpacking *unpacking = argument;
        const struct plan *plan = unpacking->result->plan, *source = unpacking->source->plan;
        int r = 0;

        for (uint64_t i = 0; i < plan_n_files(plan) && r == 0; i++) {
                const char *path = plan_file(plan, i)->path;
                int64_t idx_source = plan_find(source, path);
                bool is_plain = idx_source >= 0 && !plan_file(source, (uint64_t)idx_source)->unpack;
                char from[PATH_MAX];

                if (tree_file_is_whole(unpacking->result->tree, i))
                        continue; /* linked from the version before */
                if (snprintf(from, sizeof(from), "%s/%s",
                             is_plain ? tree_root(unpacking->source->tree) : unpacking->folder,
                             path) >= (int)sizeof(from))
                        return why_set(why, -ENAMETOOLONG, "%s", path);
                r = tree_adopt(unpacking->result->tree, i, from, why);
                atomic_fetch_add(&run->n_steps_done, 1);
        }
        return r;
}

/* The plan of what came out: the first node's, which every other must have found, too. */
static int share_found(struct run *run, struct unpacking *unpacking, struct plan **ret_plan, struct why *why) {
        _cleanup_(plan_freep) struct plan *plan = NULL;
        char digest[PLACE_DIGEST_SIZE] = "";
        int r = 0;

        if (run->is_writer) {
                r = add_plain_files(unpacking, why);
                if (r == 0)
                        r = plan_finish(&unpacking->found, &plan, why);
        }
        if (r == 0 && run->node == 0)
                snprintf(digest, sizeof(digest), "%s", plan_digest(plan));
        r = agree(run, r, why);
        if (r == 0)
                run_share(run, 0, digest, sizeof(digest));
        if (r == 0 && plan && strcmp(digest, plan_digest(plan)) != 0)
                r = why_set(why, -EBADMSG, "what came out of the archives is not the same as on %s",
                            cluster_name(run->cluster, 0));
        r = agree(run, r, why);
        if (r == 0)
                r = share_plan(run, "the unpacked files", &plan, why);
        if (r == 0)
                *ret_plan = TAKE_PTR(plan);
        return r;
}

static int unpack_while_arriving(struct run *run, struct version *source, struct unpacking *unpacking,
                                 struct why *why) {
        struct why unpack_why;
        struct aside aside;
        int r, unpack_r;

        if (!run->is_writer)
                return version_complete(run, source, true, NULL, NULL, why);
        r = aside_start(&aside, run, unpacking_unpack_all, unpacking, why);
        if (r < 0)
                return r;
        r = version_complete(run, source, true, unpacking_on_written, unpacking, why);
        pthread_mutex_lock(&unpacking->lock);
        unpacking->is_over = true;
        pthread_cond_signal(&unpacking->changed);
        pthread_mutex_unlock(&unpacking->lock);
        run_phase(run, "unpacking");
        unpack_r = aside_wait(&aside, &unpack_why);
        if (r == 0 && unpack_r < 0) {
                *why = unpack_why;
                r = unpack_r;
        }
        return r;
}

int version_unpack(struct run *run, struct version *version, struct why *why) {
        struct unpacking unpacking = { .folder_fd = -1 };
        struct version result = { 0 };
        struct plan *plan = NULL;
        int r = 0;

        if (run->is_writer)
                r = unpacking_begin(run, version, &unpacking, why);
        r = agree(run, r, why);
        if (r == 0)
                r = unpack_while_arriving(run, version, &unpacking, why);
        r = agree(run, r, why);
        if (r == 0)
                r = share_found(run, &unpacking, &plan, why);
        if (r == 0)
                r = version_open(run, plan, &result, why);
        unpacking.result = &result;
        if (r == 0 && run->is_writer)
                r = run_aside(run, adopt_files, &unpacking, why);
        unpacking_end(&unpacking);
        r = agree(run, r, why);
        if (r < 0) {
                version_fini(&result);
                return r;
        }
        version_fini(version);
        *version = result;
        return 0;
}
