#include "daemon/data/formats/parquet/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/disk.h"
#include "daemon/data/files/below.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/parquet/footer.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define ENDING ".parquet"

#define FOLDERS_TOLD 16u /* in a message */

struct finding {
        struct parquet_folder *folder;
        int root_fd;
        const char *root;
        int64_t *settled_ns;
        struct why *why;
};

/* The Parquet files of one folder, sorted. */
struct found {
        struct growing texts; /* names, each with a NUL */
        const char **names;
        size_t n;
};

static void found_fini(struct found *found) {
        growing_fini(&found->texts);
        free(found->names);
        *found = (struct found){ 0 };
}

static int no_memory(const struct finding *finding) {
        return why_set(finding->why, -ENOMEM, "%s: no memory for the names of its files", finding->root);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static bool is_parquet(const char *name) {
        size_t n = strlen(name), n_ending = strlen(ENDING);

        return name[0] != '.' && n > n_ending && strcmp(name + n - n_ending, ENDING) == 0;
}

/* ---- folders --------------------------------------------------------------------------------------------------- */

static int by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int sort(struct found *found) {
        const char *name = (const char *)found->texts.bytes;

        found->names = calloc(found->n + 1, sizeof(*found->names));
        if (!found->names)
                return -ENOMEM;
        for (size_t i = 0; i < found->n; i++, name += strlen(name) + 1)
                found->names[i] = name;
        qsort(found->names, found->n, sizeof(*found->names), by_name);
        return 0;
}

/* Lists a folder; none in one that is not there. */
static int list(int root_fd, const char *path, struct found *found) {
        int fd = beneath_open(root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                r = -errno;
                closep(&fd);
                return path[0] && (r == -ENOENT || r == -ENOTDIR) ? 0 : r;
        }
        while (r == 0) {
                errno = 0;
                entry = readdir(dir);
                if (!entry) {
                        r = -errno;
                        break;
                }
                if (entry->d_type == DT_DIR) /* Spark calls its folders so, too */
                        continue;
                if (!is_parquet(entry->d_name)) {
                        indexing_pass_over(entry->d_name, is_parquet);
                        continue;
                }
                r = growing_append(&found->texts, entry->d_name, strlen(entry->d_name) + 1);
                found->n++;
        }
        closedir(dir);
        return r < 0 ? r : sort(found);
}

/* The time of a folder, before it is read. Positive outcome: it is not there. */
#define NOT_THERE 1

static int note(const struct finding *finding, const char *path, struct stat *ret_status) {
        _cleanup_(closep) int fd = beneath_open(finding->root_fd, path[0] ? path : ".",
                                                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, finding->settled_ns, ret_status);

        if (path[0] && (r == -ENOENT || r == -ENOTDIR))
                return NOT_THERE;
        return r < 0 ? why_errno(finding->why, r, "%s/%s: the folder cannot be read", finding->root, path) : 0;
}

static int add_file(const struct finding *finding, const char *name) {
        struct parquet_folder *folder = finding->folder;
        const char *part = folder->part;

        if (strlen(part) + strlen(name) + 2 > PATH_MAX)
                return why_set(finding->why, -ENAMETOOLONG, "%s/%s: its path is too long", finding->root, name);
        if ((part[0] &&
             (growing_append(&folder->names, part, strlen(part)) < 0 || growing_append(&folder->names, "/", 1) < 0)) ||
            growing_append(&folder->names, name, strlen(name) + 1) < 0)
                return no_memory(finding);
        folder->n_files++;
        return 0;
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

/* Adds the files of a folder that belong to the split; of several splits one has to be chosen. There may be none of it
 * here, but in another folder. */
static int add_found(const struct finding *finding, struct found *found, const char *split) {
        size_t n_of_split = 0;
        int r = 0;

        for (size_t i = 0; i < found->n && split; i++)
                n_of_split += splits_has(found->names[i], split);
        if (split && n_of_split == 0)
                return 0;
        r = splits_choose(finding->root, split, found->names, &found->n, finding->why);
        for (size_t i = 0; i < found->n && r == 0; i++)
                r = add_file(finding, found->names[i]);
        return r;
}

/* Looks into one folder. */
static int look_into(const struct finding *finding, const char *part, const char *split) {
        struct parquet_folder *folder = finding->folder;
        _cleanup_(found_fini) struct found found = { 0 };
        int r = part[0] ? note(finding, part, &folder->part_status) : 0;

        if (r != 0)
                return r < 0 ? r : 0;
        r = list(finding->root_fd, part, &found);
        if (r < 0)
                return why_errno(finding->why, r, "%s/%s: the folder cannot be read", finding->root, part);
        snprintf(folder->part, sizeof(folder->part), "%s", part);
        return add_found(finding, &found, split);
}

/* ---- folders further below ------------------------------------------------------------------------------------- */

static const char *last_word(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
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
        const char *first = below->paths[0], *last = last_word(first);
        bool are_beside = true;
        char folders[1024], words[NAME_MAX + 32] = "";

        for (size_t i = 1; i < below->n; i++)
                are_beside &= last_word(below->paths[i]) - below->paths[i] == last - first &&
                              strncmp(below->paths[i], first, (size_t)(last - first)) == 0;
        if (are_beside)
                snprintf(words, sizeof(words), ", or with split = \"%s\"", last);
        list_folders(below, folders, sizeof(folders));
        return why_set(finding->why, -EINVAL,
                       "%s: has Parquet files in several folders: choose one in the path, as in %s/%s%s, or all of "
                       "them, as in %s/**/*" ENDING ": %s",
                       finding->root, finding->root, first, words, finding->root, folders);
}

/* The one folder below that has Parquet files, as a dataset of the hub with one configuration; or the one called as the
 * split. */
static int look_below(const struct finding *finding, const char *split) {
        _cleanup_(below_fini) struct below below = { 0 };
        const char *only = NULL;
        struct why detail;
        size_t n_named = 0;
        int r = below_find(finding->root_fd, is_parquet, false, &below, &detail);

        if (r < 0)
                return why_set(finding->why, r, "%s: %s", finding->root, detail.text);
        for (size_t i = 0; i < below.n && split; i++)
                if (strcmp(last_word(below.paths[i]), split) == 0 && n_named++ == 0)
                        only = below.paths[i];
        if (n_named == 1)
                return look_into(finding, only, NULL);
        if (below.n > 1)
                return refuse_folders(finding, &below);
        if (below.n == 1 && below.is_cut)
                return why_set(finding->why, -EINVAL,
                               "%s: has Parquet files in %s, and more folders than are looked into for others; choose "
                               "one in the path, as in %s/%s",
                               finding->root, below.paths[0], finding->root, below.paths[0]);
        return below.n == 1 ? look_into(finding, below.paths[0], split) : 0;
}

static int refuse(const struct finding *finding, const char *split) {
        _cleanup_(found_fini) struct found root = { 0 }, data = { 0 };
        const struct found *found = &root;
        char splits[256] = "";

        if (split && list(finding->root_fd, "", &root) == 0 &&
            list(finding->root_fd, finding->folder->part, &data) == 0)
                found = root.n > 0 ? &root : &data;
        if (splits_list(found->names, found->n, splits, sizeof(splits)) > 0)
                return why_set(finding->why, -EINVAL, "%s: has no split \"%s\"; choose one of: %s", finding->root,
                               split, splits);
        if (split)
                return why_set(finding->why, -EINVAL,
                               "%s: has no split \"%s\": no Parquet file or folder has this name, alone or "
                               "before -00000-of-00001" ENDING,
                               finding->root, split);
        return why_set(
                finding->why, -ENOENT,
                "%s: it has no Parquet file, nor has a folder below it; the path of a parquet dataset is a folder "
                "of " ENDING " files, or of one folder that has them, or such a file, or a pattern; split = "
                "\"train\" chooses train-*" ENDING " or a folder \"train\"",
                finding->root);
}

static int find_in_folder(const struct finding *finding, const char *split) {
        const char *bases[] = { "", "data" };
        int r = 0;

        if (split && (!split[0] || strchr(split, '/') || !index_is_inner_path(split)))
                return why_set(finding->why, -EINVAL, "%s: \"%s\" is not the name of a split", finding->root, split);
        for (size_t i = 0; i < ARRAY_SIZE(bases) && r == 0 && finding->folder->n_files == 0; i++)
                r = look_into(finding, bases[i], split);
        for (size_t i = 0; i < ARRAY_SIZE(bases) && r == 0 && split && finding->folder->n_files == 0; i++) {
                char part[PATH_MAX];

                if (snprintf(part, sizeof(part), "%s%s%s", bases[i], bases[i][0] ? "/" : "", split) < (int)sizeof(part))
                        r = look_into(finding, part, NULL);
        }
        if (r == 0 && finding->folder->n_files == 0)
                r = look_below(finding, split);
        return r == 0 && finding->folder->n_files == 0 ? refuse(finding, split) : r;
}

int parquet_folder_find(struct parquet_folder *folder, int root_fd, const struct files *files, const char *split,
                        int64_t *settled_ns, struct why *why) {
        const struct finding finding = {
                .folder = folder, .root_fd = root_fd, .root = files->root, .settled_ns = settled_ns, .why = why
        };
        int r = 0;

        if (files->n_names == 0) {
                r = note(&finding, "", &folder->root);
                return r < 0 ? r : find_in_folder(&finding, split);
        }
        if (split)
                return why_set(why, -EINVAL,
                               "%s/%s: the path names the files, so split = \"%s\" chooses "
                               "nothing; name the folder, or leave split out",
                               files->root, files->names[0], split);
        folder->is_named = true;
        if (beneath_stat(root_fd, ".", &folder->root) < 0)
                return why_errno(why, -errno, "%s: the folder cannot be looked at", files->root);
        for (size_t i = 0; i < files->n_names && r == 0; i++)
                r = add_file(&finding, files->names[i]);
        return r;
}

void parquet_folder_fini(struct parquet_folder *folder) {
        growing_fini(&folder->names);
        *folder = (struct parquet_folder){ .n_files = 0 };
}

/* ---- auto ------------------------------------------------------------------------------------------------------ */

static int begins_as_parquet(int root_fd, const char *path) {
        _cleanup_(closep) int fd = beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char magic[4];
        int r = fd < 0 ? -errno : disk_read_at(fd, magic, sizeof(magic), 0);

        if (r < 0)
                return format_cannot_tell(r);
        return memcmp(magic, "PAR", 3) == 0 && (magic[3] == '1' || magic[3] == 'E');
}

/* A folder of nothing but folders of Parquet files. */
static int is_above_parquet(int root_fd) {
        _cleanup_(below_fini) struct below below = { 0 };
        _cleanup_(found_fini) struct found found = { 0 };
        char path[PATH_MAX];
        int r = below_find(root_fd, is_parquet, true, &below, NULL);

        if (r == 0 && below.n > 0 && !below.other[0])
                r = list(root_fd, below.paths[0], &found);
        if (r < 0 || found.n == 0)
                return format_cannot_tell(r);
        snprintf(path, sizeof(path), "%s%s%s", below.paths[0], below.paths[0][0] ? "/" : "", found.names[0]);
        return begins_as_parquet(root_fd, path);
}

int parquet_folder_is_it(int root_fd, const struct files *files) {
        static const char *const PARTS[] = { "",           "data",       "train",           "test",
                                             "validation", "data/train", "data/validation", "data/test" };
        int r = 0;

        if (files->n_names > 0)
                return begins_as_parquet(root_fd, files->names[0]);
        for (size_t i = 0; i < ARRAY_SIZE(PARTS) && r == 0; i++) {
                _cleanup_(found_fini) struct found found = { 0 };
                char path[PATH_MAX];

                r = format_cannot_tell(list(root_fd, PARTS[i], &found));
                if (r < 0 || found.n == 0)
                        continue;
                snprintf(path, sizeof(path), "%s%s%s", PARTS[i], PARTS[i][0] ? "/" : "", found.names[0]);
                r = begins_as_parquet(root_fd, path);
        }
        return r != 0 ? r : is_above_parquet(root_fd);
}
