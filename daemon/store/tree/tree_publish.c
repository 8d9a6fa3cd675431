/* The last steps, in an order in which any of them may be the last one that happens:
 *
 *   1. data, names and journal are on the disk (tree_sync)
 *   2. the manifest is
 *   3. the dataset's path is a link to this version: people see it
 *   4. the stamp names it: daemons serve it
 *   5. what nobody needs any longer is removed
 *
 * Each step may be done again. Whoever asks the stamp never finds a version that is not whole on the disk. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/record/version_lock.h"
#include "daemon/store/tree/lock.h"
#include "daemon/store/tree/sweep.h"
#include "daemon/store/tree/tree_private.h"
#include "proto/base/cleanup.h"

static int publish_check_whole(const struct tree *tree, struct why *why) {
        uint64_t n_chunks = chunks_count(tree->chunks), missing = state_first_missing(&tree->state, 0, n_chunks);

        if (missing < n_chunks)
                return why_set(why, -EINVAL, "%s is not whole: %s is missing", tree->root_path,
                               plan_file(tree->plan, chunks_get(tree->chunks, missing).first_file)->path);
        for (uint64_t i = 0; i < plan_n_files(tree->plan); i++)
                if (!state_is_whole(&tree->state, i))
                        return why_set(why, -EINVAL, "%s is not whole: %s was not verified", tree->root_path,
                                       plan_file(tree->plan, i)->path);
        return 0;
}

/* The link is made under another name and renamed over the old one: there is one at every moment. */
static int swap_link(const struct tree *tree, struct why *why) {
        const struct place *place = &tree->place;
        char target[PATH_MAX], temporary[PATH_MAX];
        int kind = look_at_path(place, why);

        if (kind < 0)
                return kind;
        if (place_file(place, "link", ".new", temporary) < 0 ||
            snprintf(target, sizeof(target), "%s/%s", strrchr(place->folder, '/') + 1, tree->version) >=
                    (int)sizeof(target))
                return why_errno(why, -ENAMETOOLONG, "%s", place->folder);
        if (unlink(temporary) < 0 && errno != ENOENT)
                return why_errno(why, -errno, "%s", temporary);
        if (symlink(target, temporary) < 0)
                return why_errno(why, -errno, "%s", temporary);
        if (kind == PATH_EMPTY && rmdir(place->path) < 0 && errno != ENOENT)
                return why_errno(why, -errno, "%s", place->path);
        if (rename(temporary, place->path) < 0)
                return why_errno(why, -errno, "%s", place->path);
        return disk_sync_folder_of(place->path, why);
}

static void publish_fill_in(const struct tree *tree, struct stamp *stamp) {
        const char *digest = plan_digest(tree->plan);

        snprintf(stamp->dataset, sizeof(stamp->dataset), "%s", tree->options.dataset);
        snprintf(stamp->manifest, sizeof(stamp->manifest), "%s", digest);
        snprintf(stamp->version, sizeof(stamp->version), "%s", tree->version);
        if (stamp->source[0] == '\0') {
                snprintf(stamp->source, sizeof(stamp->source), "%s", digest);
                snprintf(stamp->source_version, sizeof(stamp->source_version), "%s", tree->version);
        }
        stamp->n_files = plan_n_files(tree->plan);
        stamp->n_bytes = plan_n_bytes(tree->plan);
        stamp->when = (uint64_t)time(NULL);
}

int tree_publish(struct tree *tree, struct stamp *stamp, struct why *why) {
        struct stamp before = { 0 };
        bool is_new;
        int r;

        r = publish_check_whole(tree, why);
        if (r == 0)
                r = tree_sync(tree, why);
        if (r < 0)
                return r;
        is_new = stamp_read(&tree->place, &before, why) != 0 || strcmp(before.version, tree->version) != 0;
        publish_fill_in(tree, stamp);
        version_lock_prepare(tree->folder_fd, tree->version); /* if it fails readers lock the folder */
        r = swap_link(tree, why);
        if (r == 0)
                r = stamp_write(&tree->place, stamp, why);
        if (r < 0)
                return r;
        if (is_new) { /* else it is not known which one was before */
                const char *const keep[] = { stamp->version, before.version, stamp->source_version };

                sweep_versions(tree->folder_fd, keep, ARRAY_SIZE(keep));
        }
        return 0;
}
