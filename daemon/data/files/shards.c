#include "daemon/data/files/shards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/data/files/below.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define FOLDERS_TOLD 16u /* in a message */

struct finding {
        struct listed *listed;
        int root_fd;
        const char *root;
        const struct shards_kind *kind;
        int64_t *settled_ns;
        struct why *why;
};

static int shards_list(const struct finding *finding, const char *part) {
        const struct shards_kind *kind = finding->kind;
        int r = listed_folder(finding->listed, finding->root_fd, finding->root, part, kind->is_taken,
                              finding->settled_ns, finding->why);

        return r == 0 && finding->listed->n == 0 && kind->is_else_taken
                       ? listed_folder(finding->listed, finding->root_fd, finding->root, part, kind->is_else_taken,
                                       finding->settled_ns, finding->why)
                       : r;
}

/* Looks into one folder. There may be no file of the split here, but in another folder. */
static int shards_look_into(const struct finding *finding, const char *part, const char *split) {
        struct listed *listed = finding->listed;
        int r = shards_list(finding, part);

        return r == 0 && (split || !finding->kind->is_of_several)
                       ? splits_choose(finding->root, split, finding->kind->numbers_splits, listed->names, &listed->n,
                                       finding->why)
                       : r;
}

/* ---- folders further below ------------------------------------------------------------------------------------- */

static int find_below(const struct finding *finding, bool is_alone, struct below *ret_below, struct why *why) {
        const struct shards_kind *kind = finding->kind;
        int r = below_find(finding->root_fd, kind->is_taken, is_alone, ret_below, why);

        if (r == 0 && ret_below->n == 0 && kind->is_else_taken) {
                below_fini(ret_below);
                r = below_find(finding->root_fd, kind->is_else_taken, is_alone, ret_below, why);
        }
        return r;
}

/* "data/de, data/en, ..." */
static void list_folders(const struct below *below, char *text, size_t size) {
        size_t at = 0;

        text[0] = '\0';
        for (size_t i = 0; i < below->n && i <= FOLDERS_TOLD && at < size; i++)
                at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? ", " : "",
                                       i < FOLDERS_TOLD ? below->paths[i] : "...");
}

static int refuse_folders(const struct finding *finding, const struct below *below) {
        const char *first = below->paths[0], *last = text_after_slash(first);
        bool are_beside = true;
        char folders[1024], words[NAME_MAX + 32] = "";

        for (size_t i = 1; i < below->n; i++)
                are_beside &= text_after_slash(below->paths[i]) - below->paths[i] == last - first &&
                              strncmp(below->paths[i], first, (size_t)(last - first)) == 0;
        if (are_beside)
                snprintf(words, sizeof(words), ", or with split = \"%s\"", last);
        list_folders(below, folders, sizeof(folders));
        return why_set(finding->why, -EINVAL,
                       "%s: has %ss in several folders: choose one in the path, as in %s/%s%s, or all of them, as in "
                       "%s/**/%s: %s",
                       finding->root, finding->kind->what, finding->root, first, words, finding->root,
                       finding->kind->pattern, folders);
}

/* The one folder below that has such files, as a dataset of the hub with one configuration; or the one called as the
 * split. */
static int look_below(const struct finding *finding, const char *split) {
        _cleanup_(below_fini) struct below below = { 0 };
        const char *only = NULL;
        struct why detail;
        size_t n_named = 0;
        int r = find_below(finding, false, &below, &detail);

        if (r < 0)
                return why_set(finding->why, r, "%s: %s", finding->root, detail.text);
        for (size_t i = 0; i < below.n && split; i++)
                if (strcmp(text_after_slash(below.paths[i]), split) == 0 && n_named++ == 0)
                        only = below.paths[i];
        if (n_named == 1)
                return shards_look_into(finding, only, NULL);
        if (below.n > 1)
                return refuse_folders(finding, &below);
        if (below.n == 1 && below.is_cut)
                return why_set(finding->why, -EINVAL,
                               "%s: has %ss in %s, and more folders than are looked into for others; choose one in the "
                               "path, as in %s/%s",
                               finding->root, finding->kind->what, below.paths[0], finding->root, below.paths[0]);
        return below.n == 1 ? shards_look_into(finding, below.paths[0], split) : 0;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

static const char *const BASES[] = { "", "data" };

static int shards_refuse(const struct finding *finding, const char *split) {
        const struct listed *listed = finding->listed;
        char splits[256] = "", last[PATH_MAX];
        const char *const parts[] = { BASES[0], BASES[1], last };

        strcpy(last, listed->part);
        for (size_t i = 0; i < ARRAY_SIZE(parts) && split && !splits[0]; i++)
                if (shards_list(finding, parts[i]) == 0)
                        splits_list(listed->names, listed->n, splits, sizeof(splits));
        if (splits[0])
                return why_set(finding->why, -ENOENT, "%s: has no split \"%s\"; choose one of: %s", finding->root,
                               split, splits);
        if (split)
                return why_set(finding->why, -ENOENT,
                               "%s: has no split \"%s\": no %s or folder has this name, alone or before "
                               "-00000-of-00001",
                               finding->root, split, finding->kind->what);
        return why_set(finding->why, -ENOENT,
                       "%s: it has no %s, nor has a folder below it; the path of such a dataset is %s", finding->root,
                       finding->kind->what, finding->kind->path);
}

static int shards_find_in_folder(const struct finding *finding, const char *split) {
        struct listed *listed = finding->listed;
        int r = 0;

        if (split && (!split[0] || strchr(split, '/') || !index_is_inner_path(split)))
                return why_set(finding->why, -EINVAL, "%s: \"%s\" is not the name of a split", finding->root, split);
        for (size_t i = 0; i < ARRAY_SIZE(BASES) && r == 0 && listed->n == 0; i++)
                r = shards_look_into(finding, BASES[i], split);
        for (size_t i = 0; i < ARRAY_SIZE(BASES) && r == 0 && split && listed->n == 0; i++) {
                char part[PATH_MAX];

                if (snprintf(part, sizeof(part), "%s%s%s", BASES[i], BASES[i][0] ? "/" : "", split) < (int)sizeof(part))
                        r = shards_look_into(finding, part, NULL);
        }
        if (r == 0 && listed->n == 0)
                r = look_below(finding, split);
        return r == 0 && listed->n == 0 ? shards_refuse(finding, split) : r;
}

int shards_find(struct listed *listed, int root_fd, const struct files *files, const struct shards_kind *kind,
                const char *split, int64_t *settled_ns, struct why *why) {
        const struct finding finding = { .listed = listed,
                                         .root_fd = root_fd,
                                         .root = files->root,
                                         .kind = kind,
                                         .settled_ns = settled_ns,
                                         .why = why };

        if (files->n_names == 0)
                return shards_find_in_folder(&finding, split);
        if (split)
                return why_set(why, -EINVAL,
                               "%s/%s: the path names the files, so split = \"%s\" chooses nothing; name the folder, "
                               "or leave split out",
                               files->root, files->names[0], split);
        return listed_find(listed, root_fd, files, kind->is_taken, settled_ns, why);
}

/* ---- auto ------------------------------------------------------------------------------------------------------ */

/* Where to look for files whose first bytes tell what they are. */
static const char *const LIKELY[] = { "",           "data",       "train",           "test",
                                      "validation", "data/train", "data/validation", "data/test" };

int shards_first(int root_fd, const struct files *files, const struct shards_kind *kind, char ret_path[PATH_MAX]) {
        _cleanup_(listed_fini) struct listed listed = { 0 };
        _cleanup_(below_fini) struct below below = { 0 };
        int64_t settled_ns = 0;
        const struct finding finding = { &listed, root_fd, files->root, kind, &settled_ns, NULL };
        int r = 0;

        if (files->n_names > 0) {
                snprintf(ret_path, PATH_MAX, "%s", files->names[0]);
                return 1;
        }
        for (size_t i = 0; i < (kind->begins_so ? ARRAY_SIZE(LIKELY) : 1) && r == 0 && listed.n == 0; i++)
                r = shards_list(&finding, LIKELY[i]);
        if (r == 0 && listed.n == 0 && !kind->is_common)
                r = find_below(&finding, true, &below, NULL);
        if (r == 0 && below.n > 0 && !below.other[0])
                r = shards_list(&finding, below.paths[0]);
        if (r < 0 || listed.n == 0)
                return format_cannot_tell(r);
        snprintf(ret_path, PATH_MAX, "%s", listed.names[0]);
        return 1;
}
