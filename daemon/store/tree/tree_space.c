/* Is there room for what is missing? */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>

#include "daemon/store/tree/tree_private.h"
#include "proto/base/bytes.h"

#define SPARE_BYTES (64ull << 20)
#define SPARE_SHARE 100u /* a hundredth: what file systems need beside */

struct need {
        uint64_t n_bytes;
        uint64_t n_inodes;
};

static uint64_t space_round_up(uint64_t n_bytes, uint64_t block) {
        return (n_bytes + block - 1) / block * block;
}

/* What of the missing parts of a large file is reserved already: an earlier run took all of its space. */
static uint64_t reserved(struct tree *tree, const struct plan_file *file, uint64_t n_missing) {
        struct stat status;
        uint64_t n_present = file->n_bytes - n_missing, n_taken;

        if (lookup_stat(roots_for(&tree->write_roots, file), file->path, &status) < 0 || !S_ISREG(status.st_mode))
                return 0;
        n_taken = (uint64_t)status.st_blocks * 512;
        n_taken = n_taken > n_present ? n_taken - n_present : 0;
        return n_taken < n_missing ? n_taken : n_missing;
}

static void add_large(struct tree *tree, uint64_t idx_file, uint64_t block, struct need *need) {
        const struct plan_file *file = plan_file(tree->plan, idx_file);
        uint64_t first, n = chunks_of_file(tree->chunks, idx_file, &first), n_missing = 0;

        for (uint64_t i = first; i < first + n; i++)
                if (state_is_missing(&tree->state, i))
                        n_missing += chunks_get(tree->chunks, i).n_bytes;
        if (n_missing == 0)
                return;
        need->n_bytes += space_round_up(n_missing, block);
        need->n_inodes += n_missing == file->n_bytes;
        if (n_missing < file->n_bytes && tree->root_fd >= 0)
                need->n_bytes -= reserved(tree, file, n_missing);
}

/* Folders are counted where the path's folder is not that of the file before: sorted, that is once each, nearly. */
static bool begins_folder(const struct plan *plan, uint64_t idx_file) {
        const char *path = plan_file(plan, idx_file)->path, *before, *slash = strrchr(path, '/');

        if (!slash)
                return false;
        if (idx_file == 0)
                return true;
        before = plan_file(plan, idx_file - 1)->path;
        return strncmp(path, before, (size_t)(slash - path) + 1) != 0;
}

static struct need needed(struct tree *tree, uint64_t block) {
        struct need need = { 0 };

        for (uint64_t i = 0; i < chunks_count(tree->chunks); i++) {
                struct chunk chunk = chunks_get(tree->chunks, i);

                if (file_is_large(plan_file(tree->plan, chunk.first_file))) {
                        if (chunk.offset == 0) {
                                add_large(tree, chunk.first_file, block, &need);
                                need.n_inodes += state_is_missing(&tree->state, i) &&
                                                 begins_folder(tree->plan, chunk.first_file);
                        }
                        continue;
                }
                for (uint32_t k = 0; k < chunk.n_files && state_is_missing(&tree->state, i); k++) {
                        if (state_is_whole(&tree->state, chunk.first_file + k))
                                continue;
                        need.n_bytes += space_round_up(plan_file(tree->plan, chunk.first_file + k)->n_bytes, block);
                        need.n_inodes += 1 + begins_folder(tree->plan, chunk.first_file + k);
                }
        }
        return need;
}

/* The folder, or what it will be made in. */
static int space_look(const struct tree *tree, struct statvfs *ret_status) {
        char parent[PATH_MAX];
        char *slash;

        if (tree->folder_fd >= 0)
                return fstatvfs(tree->folder_fd, ret_status) < 0 ? -errno : 0;
        strcpy(parent, tree->place.folder);
        slash = strrchr(parent, '/');
        slash[slash == parent] = '\0';
        return statvfs(parent, ret_status) < 0 ? -errno : 0;
}

int tree_check_space(struct tree *tree, struct why *why) {
        char needs[BYTES_TEXT_MAX], has[BYTES_TEXT_MAX], lacks[BYTES_TEXT_MAX];
        struct statvfs status;
        struct need need;
        uint64_t n_free;
        int r;

        r = space_look(tree, &status);
        if (r < 0)
                return why_errno(why, r, "%s", tree->place.folder);
        need = needed(tree, status.f_frsize ? status.f_frsize : 4096);
        if (need.n_bytes > 0)
                need.n_bytes += need.n_bytes / SPARE_SHARE + SPARE_BYTES;
        n_free = (uint64_t)status.f_bavail * status.f_frsize;
        if (need.n_bytes > n_free)
                return why_set(why, -ENOSPC,
                               "%s: %s are needed and %s are free; free %s more, or set `path` to another disk",
                               tree->place.folder, format_bytes(needs, need.n_bytes), format_bytes(has, n_free),
                               format_bytes(lacks, need.n_bytes - n_free));
        if (status.f_files > 0 && need.n_inodes > status.f_favail)
                return why_set(why, -ENOSPC,
                               "%s: %" PRIu64
                               " files and folders are to be made, and the file system has room for %" PRIu64
                               " more (inodes); remove %" PRIu64 " files, or set `path` to another disk",
                               tree->place.folder, need.n_inodes, (uint64_t)status.f_favail,
                               need.n_inodes - (uint64_t)status.f_favail);
        return 0;
}
