#include "daemon/data/formats/arrow/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/splits.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/arrow/table/message.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define JSON_MAX (64u << 20) /* bytes of state.json and the like: one has a line for each file */
#define STATE    "state.json"
#define SPLITS   "dataset_dict.json"
#define INFO     "dataset_info.json"

struct finding {
        struct arrow_folder *folder;
        int root_fd;
        const char *root;
        int64_t *settled_ns;
        struct why *why;
};

static int no_memory(const struct finding *finding) {
        return why_set(finding->why, -ENOMEM, "%s: no memory for the names of its files", finding->root);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static int read_text(const struct finding *finding, const char *name, struct growing *text) {
        _cleanup_(closep) int fd = beneath_open(finding->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat status;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || status.st_size > JSON_MAX)
                return -EFBIG;
        if (growing_reserve(text, (size_t)status.st_size + 1) < 0)
                return -ENOMEM;
        text->n_bytes = (size_t)status.st_size;
        return indexing_read_at(fd, text->bytes, text->n_bytes, 0);
}

/* Reads a file of JSON. Positive outcome: it is not there. */
#define NOT_THERE 1

static int read_json(const struct finding *finding, const char *name, struct indexing_json *json) {
        _cleanup_(growing_fini) struct growing text = { 0 };
        int r = read_text(finding, name, &text);

        if (r == -ENOENT || r == -ENOTDIR)
                return NOT_THERE;
        if (r == 0)
                r = indexing_json_read(json, name, (const char *)text.bytes, text.n_bytes);
        if (r < 0)
                return why_errno(finding->why, r, "%s/%s cannot be read", finding->root, name);
        if (!json->root)
                return why_set(finding->why, -EBADMSG, "%s/%s: is not JSON; save the dataset again", finding->root,
                               name);
        return 0;
}

static int read_json_of_part(const struct finding *finding, const char *name, struct indexing_json *json) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s%s", finding->folder->part, finding->folder->part[0] ? "/" : "",
                         name);

        if (n >= (int)sizeof(path))
                return NOT_THERE;
        return read_json(finding, path, json);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

static int add_name(const struct finding *finding, struct growing *names, const char *name) {
        const char *part = finding->folder->part;

        if (strlen(part) + strlen(name) + 2 > PATH_MAX)
                return why_set(finding->why, -ENAMETOOLONG, "%s/%s: its path is too long", finding->root, name);
        if ((part[0] && (growing_append(names, part, strlen(part)) < 0 || growing_append(names, "/", 1) < 0)) ||
            growing_append(names, name, strlen(name) + 1) < 0)
                return no_memory(finding);
        return 0;
}

static int add_file(const struct finding *finding, const char *name) {
        int r = add_name(finding, &finding->folder->names, name);

        finding->folder->n_files += r == 0;
        return r;
}

/* Adds the files of a list of state.json. */
static int add_listed(const struct finding *finding, const cJSON *files, struct growing *names, uint64_t *n) {
        const cJSON *file;
        int r = 0;

        cJSON_ArrayForEach(file, files) {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file, "filename"));

                if (!name || !name[0] || !index_is_inner_path(name))
                        return why_set(finding->why, -EBADMSG,
                                       "%s: " STATE " lists \"%s\", which is not a file of the folder", finding->root,
                                       name ? name : "");
                r = add_name(finding, names, name);
                if (r < 0)
                        return r;
                ++*n;
        }
        return 0;
}

/* The files that state.json lists. Before 1.15 "datasets" did not write the rows in the sequence that shuffle() or
 * select() gave them, but a file of their numbers. */
static int list_saved(const struct finding *finding, const cJSON *state) {
        static const char *const INDICES[] = { "_indices_files", "_indices_data_files" };
        struct arrow_folder *folder = finding->folder;
        int r = add_listed(finding, cJSON_GetObjectItemCaseSensitive(state, "_data_files"), &folder->names,
                           &folder->n_files);

        for (size_t i = 0; i < ARRAY_SIZE(INDICES) && r == 0 && folder->n_indices == 0; i++)
                r = add_listed(finding, cJSON_GetObjectItemCaseSensitive(state, INDICES[i]), &folder->indices,
                               &folder->n_indices);
        if (r == 0 && folder->n_files == 0)
                return why_set(finding->why, -ENOENT, "%s: " STATE " lists no file; the dataset has no rows",
                               finding->root);
        if (r == 0 && folder->n_indices > 0 && folder->n_files > 1)
                return why_set(finding->why, -ENOTSUP,
                               "%s: the rows of %" PRIu64 " files are in the sequence of an indices file, as datasets "
                               "before 1.15 wrote it; load it, call flatten_indices() and save it again",
                               finding->root, folder->n_files);
        return r;
}

static bool ends_with(const char *name, const char *ending) {
        size_t n = strlen(name), n_ending = strlen(ending);

        return n > n_ending && strcmp(name + n - n_ending, ending) == 0;
}

static bool is_arrow(const char *name) {
        return name[0] != '.' && (ends_with(name, ".arrow") || ends_with(name, ".feather"));
}

static int by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* Adds the listed names in their order, without those of caches if there are others. */
static int add_sorted(const struct finding *finding, const char *names, size_t n, const char *split) {
        _cleanup_(freep) const char **sorted = calloc(n, sizeof(*sorted));
        size_t n_caches = 0, n_taken = 0;
        int r;

        if (!sorted)
                return no_memory(finding);
        for (size_t i = 0; i < n; i++, names += strlen(names) + 1) {
                sorted[i] = names;
                n_caches += strncmp(names, "cache-", 6) == 0;
        }
        qsort(sorted, n, sizeof(*sorted), by_name);
        for (size_t i = 0; i < n; i++)
                if (n_caches == n || strncmp(sorted[i], "cache-", 6) != 0)
                        sorted[n_taken++] = sorted[i];
        r = splits_choose(finding->root, split, sorted, &n_taken, finding->why);
        for (size_t i = 0; i < n_taken && r == 0; i++)
                r = add_file(finding, sorted[i]);
        return r;
}

static int list_folder(const struct finding *finding, const char *split) {
        _cleanup_(growing_fini) struct growing names = { 0 };
        int fd = beneath_open(finding->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *entry;
        size_t n = 0;

        if (!dir) {
                r = -errno;
                closep(&fd);
                return why_errno(finding->why, r, "%s: the folder cannot be read", finding->root);
        }
        while (r == 0) {
                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        break;
                if (!is_arrow(entry->d_name)) {
                        indexing_pass_over(entry->d_name, is_arrow);
                        continue;
                }
                r = growing_append(&names, entry->d_name, strlen(entry->d_name) + 1);
                n++;
        }
        if (r == 0)
                r = -errno;
        closedir(dir);
        if (r < 0)
                return why_errno(finding->why, r, "%s: the folder cannot be read to its end", finding->root);
        if (n == 0)
                return why_set(finding->why, -ENOENT,
                               "%s: it has no Arrow file; the path of an arrow dataset is a folder that "
                               "save_to_disk() wrote, a folder of .arrow files, or such a file",
                               finding->root);
        return add_sorted(finding, (const char *)names.bytes, n, split);
}

/* ---- splits ---------------------------------------------------------------------------------------------------- */

static int refuse_split(const struct finding *finding, const cJSON *splits, const char *split) {
        char known[256] = "";
        const cJSON *name;

        cJSON_ArrayForEach(name, splits) {
                size_t n = strlen(known);

                if (cJSON_IsString(name) && n < sizeof(known) - 1)
                        snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", name->valuestring);
        }
        if (!split)
                return why_set(finding->why, -EINVAL, "%s: has several splits: choose one with split = \"...\": %s",
                               finding->root, known);
        return why_set(finding->why, -EINVAL, "%s: has no split \"%s\"; choose one of: %s", finding->root, split,
                       known);
}

/* Finds the folder of the split. */
static int choose_split(const struct finding *finding, const char *split) {
        _cleanup_(indexing_json_fini) struct indexing_json dictionary = { 0 };
        const cJSON *splits, *name;
        int r = read_json(finding, SPLITS, &dictionary);

        if (r < 0)
                return r;
        if (r == NOT_THERE) /* names of files may say it */
                return 0;
        splits = cJSON_GetObjectItemCaseSensitive(dictionary.root, "splits");
        if (!split && cJSON_GetArraySize(splits) == 1)
                split = cJSON_GetStringValue(cJSON_GetArrayItem(splits, 0));
        cJSON_ArrayForEach(name, splits) {
                if (!split || !cJSON_IsString(name) || strcmp(name->valuestring, split) != 0)
                        continue;
                if (!split[0] || strchr(split, '/') || !index_is_inner_path(split))
                        return why_set(finding->why, -EBADMSG, "%s: \"%s\" is not the name of a split", finding->root,
                                       split);
                free(finding->folder->part);
                finding->folder->part = strdup(split);
                return finding->folder->part ? 0 : no_memory(finding);
        }
        return refuse_split(finding, splits, split);
}

/* The time of a folder, before it is read. */
static int note_folder(const struct finding *finding, const char *path, struct stat *ret_status) {
        _cleanup_(closep) int fd = beneath_open(finding->root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, finding->settled_ns, ret_status);

        return r < 0 ? why_errno(finding->why, r, "%s/%s: the folder cannot be read", finding->root, path) : 0;
}

static int find_in_folder(const struct finding *finding, const char *split) {
        struct arrow_folder *folder = finding->folder;
        _cleanup_(indexing_json_fini) struct indexing_json state = { 0 };
        int r = choose_split(finding, split);

        if (r == 0 && folder->part[0])
                r = note_folder(finding, folder->part, &folder->part_status);
        if (r == 0)
                r = read_json_of_part(finding, STATE, &state);
        if (r == NOT_THERE && folder->part[0])
                return why_set(finding->why, -ENOENT, "%s/%s: has no " STATE "; save the dataset again", finding->root,
                               folder->part);
        if (r == 0 && split && !folder->part[0])
                return why_set(finding->why, -EINVAL, "%s: has no splits, but split = \"%s\" is set", finding->root,
                               split);
        if (r >= 0)
                r = r == NOT_THERE ? list_folder(finding, split) : list_saved(finding, state.root);
        if (r == 0)
                r = read_json_of_part(finding, INFO, &folder->info);
        return r < 0 ? r : 0;
}

int arrow_folder_find(struct arrow_folder *folder, int root_fd, const struct files *files, const char *split,
                      int64_t *settled_ns, struct why *why) {
        const struct finding finding = {
                .folder = folder, .root_fd = root_fd, .root = files->root, .settled_ns = settled_ns, .why = why
        };
        int r;

        folder->part = strdup("");
        if (!folder->part)
                return no_memory(&finding);
        if (files->n_names == 0) {
                r = note_folder(&finding, ".", &folder->root);
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
        for (size_t i = 0; i < files->n_names; i++) {
                r = add_file(&finding, files->names[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

void arrow_folder_fini(struct arrow_folder *folder) {
        growing_fini(&folder->names);
        growing_fini(&folder->indices);
        free(folder->part);
        indexing_json_fini(&folder->info);
        *folder = (struct arrow_folder){ 0 };
}

/* ---- auto ------------------------------------------------------------------------------------------------------ */

/* Does it begin as one of the two containers? A stream begins with a message of a few hundred bytes. */
static int begins_as_arrow(int root_fd, const char *name) {
        _cleanup_(closep) int fd = beneath_open(root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        uint8_t bytes[8];
        uint32_t n;

        int r = fd < 0 ? -errno : indexing_read_at(fd, bytes, sizeof(bytes), 0);

        if (r < 0)
                return format_cannot_tell(r);
        n = le32(bytes + 4);
        return memcmp(bytes, "ARROW1\0\0", sizeof(bytes)) == 0 ||
               (le32(bytes) == UINT32_MAX && n > 0 && n % 8 == 0 && n <= ARROW_METADATA_MAX);
}

int arrow_folder_is_it(int root_fd, const struct files *files) {
        struct arrow_folder folder = { .part = NULL };
        struct stat status;
        int64_t settled_ns = 0;
        int r;

        if (files->n_names > 0)
                return begins_as_arrow(root_fd, files->names[0]);
        if (beneath_stat(root_fd, SPLITS, &status) == 0)
                return 1;
        if (format_cannot_tell(-errno) < 0)
                return -errno;
        r = arrow_folder_find(&folder, root_fd, files, NULL, &settled_ns, NULL);
        r = r < 0 ? format_cannot_tell(r) : begins_as_arrow(root_fd, (const char *)folder.names.bytes);
        arrow_folder_fini(&folder);
        return r;
}
