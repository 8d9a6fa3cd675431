/* Versions of a staged dataset other than the stamped one. They are kept while jobs are served from them. When a daemon
 * that was restarted is asked for one, it finds the version again by its content. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define KEPT_NS      60000000000ull /* a version that was found is kept for ranks that were told to ask again */
#define NOT_FOUND_NS 10000000000ull /* before a version that was not found is searched for again */

struct catalog_dataset *versions_find(const struct catalog_staged *staged, const char *digest) {
        struct catalog_dataset *dataset;

        TAILQ_FOREACH(dataset, &staged->older, older)
                if (strcmp(dataset_source(dataset->dataset)->digest, digest) == 0)
                        return dataset;
        return NULL;
}

void versions_retire(struct catalog_staged *staged, struct catalog_dataset *open) {
        TAILQ_INSERT_TAIL(&staged->older, open, older);
}

static void catalog_versions_drop(struct catalog_staged *staged, struct catalog_dataset *dataset) {
        TAILQ_REMOVE(&staged->older, dataset, older);
        catalog_dataset_unref(dataset);
}

void versions_drop_unused(struct catalog_staged *staged) {
        struct catalog_dataset *dataset, *next;
        uint64_t now_ns = clock_now_ns();

        TAILQ_FOREACH_SAFE(dataset, &staged->older, older, next)
                if (atomic_load_explicit(&dataset->refs, memory_order_acquire) == 1 && now_ns >= dataset->kept_until_ns)
                        catalog_versions_drop(staged, dataset);
}

void versions_fini(struct catalog_staged *staged) {
        struct catalog_dataset *dataset;

        while ((dataset = TAILQ_FIRST(&staged->older)))
                catalog_versions_drop(staged, dataset);
}

/* ---- searching for a version --------------------------------------------------------------------------------- */

/* Is it "v-", twelve digits and ".index", with this content? This only selects a file: opening it checks all of it. */
static bool is_index_of(int folder_fd, const char *name, const char *digest, struct index_header *header) {
        _cleanup_(closep) int fd = -1;

        if (strncmp(name, "v-", 2) != 0 || strspn(name + 2, "0123456789abcdef") != 12 ||
            strcmp(name + 14, ".index") != 0)
                return false;
        fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return fd >= 0 && disk_read_at(fd, header, sizeof(*header), 0) == 0 &&
               memcmp(header->magic, INDEX_MAGIC, sizeof(header->magic)) == 0 &&
               strncmp(header->digest, digest, sizeof(header->digest)) == 0 &&
               memchr(header->format, '\0', sizeof(header->format));
}

static int catalog_versions_find(struct opening *opening) {
        DIR *folder = opendir(opening->place.folder);
        const struct dirent *entry;
        struct index_header header;
        int r = -ENOENT;

        if (!folder)
                return -errno;
        while (r == -ENOENT && (entry = readdir(folder)))
                if (is_index_of(dirfd(folder), entry->d_name, opening->digest, &header)) {
                        snprintf(opening->version, sizeof(opening->version), "%.14s", entry->d_name);
                        snprintf(opening->format, sizeof(opening->format), "%s", header.format);
                        r = place_file(&opening->place, opening->version, "", opening->path);
                        if (r == 0)
                                r = place_file(&opening->place, opening->version, ".index", opening->index);
                }
        closedir(folder);
        return r;
}

static void seek_work(void *userdata) {
        struct opening *opening = userdata;

        opening->result = catalog_versions_find(opening);
        if (opening->result == 0)
                opening_work(opening);
}

static void seek_done(void *userdata) {
        struct opening *opening = userdata;
        struct catalog_entry *entry = opening->entry;
        struct catalog_dataset *open = opening_take(opening);

        opening_leave_doubts(opening);
        entry->is_opening = false;
        if (open && strcmp(dataset_source(open->dataset)->digest, opening->digest) != 0)
                catalog_dataset_unref(TAKE_PTR(open)); /* its own index could not be used, so another one was taken */
        if (!entry->is_wanted) {
                catalog_dataset_unref(open);
                entry_free(entry);
        } else if (open) {
                entry->staged->sought[0] = '\0';
                open->kept_until_ns = clock_now_ns() + KEPT_NS;
                versions_retire(entry->staged, open);
                log_info("dataset", "%s: version %s is open for a job that had it before", entry->name,
                         opening->version);
        }
        opening_free(opening);
}

bool versions_seek(struct catalog_entry *entry, const char *digest) {
        struct catalog_staged *staged = entry->staged;
        struct opening *opening;

        if (entry->is_opening)
                return true; /* the running search may be for this version; if not, its turn comes later */
        if (strcmp(staged->sought, digest) == 0 && clock_now_ns() - staged->sought_ns < NOT_FOUND_NS)
                return false;
        opening = calloc(1, sizeof(*opening));
        if (opening)
                opening->options = strdup(entry->options);
        if (!opening || !opening->options) {
                opening_free(opening);
                return false;
        }
        opening->entry = entry;
        opening->errands = entry_errands(entry);
        opening->place = staged->place;
        snprintf(opening->digest, sizeof(opening->digest), "%s", digest);
        snprintf(staged->sought, sizeof(staged->sought), "%s", digest);
        staged->sought_ns = clock_now_ns();
        atomic_store_explicit(&entry->cancelled, false, memory_order_relaxed);
        entry->is_opening = background_run(entry->catalog->background, seek_work, seek_done, opening) == 0;
        if (!entry->is_opening)
                opening_free(opening);
        return entry->is_opening;
}
