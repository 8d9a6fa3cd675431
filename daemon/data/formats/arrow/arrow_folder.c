#include "daemon/data/formats/arrow/arrow_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/arrow/table/message.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

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

static int arrow_folder_no_memory(const struct finding *finding) {
        return why_set(finding->why, -ENOMEM, "%s: no memory for the names of its files", finding->root);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static int arrow_folder_read_text(const struct finding *finding, const char *name, struct growing *text) {
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

static int arrow_folder_read_json(const struct finding *finding, const char *name, struct indexing_json *json) {
        _cleanup_(growing_fini) struct growing text = { 0 };
        int r = arrow_folder_read_text(finding, name, &text);

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
        const char *part = finding->folder->listed.part;
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s%s", part, part[0] ? "/" : "", name);

        if (n >= (int)sizeof(path))
                return NOT_THERE;
        return arrow_folder_read_json(finding, path, json);
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* Adds the files of a list of state.json. */
static int add_listed(const struct finding *finding, const cJSON *files, struct listed *names) {
        const cJSON *file;

        cJSON_ArrayForEach(file, files) {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(file, "filename"));

                if (!name || !name[0] || !index_is_inner_path(name))
                        return why_set(finding->why, -EBADMSG,
                                       "%s: " STATE " lists \"%s\", which is not a file of the folder", finding->root,
                                       name ? name : "");
                if (strlen(names->part) + strlen(name) + 2 > PATH_MAX)
                        return why_set(finding->why, -ENAMETOOLONG, "%s/%s: its path is too long", finding->root, name);
                if (listed_add(names, name) < 0)
                        return arrow_folder_no_memory(finding);
        }
        return 0;
}

/* The files that state.json lists. Before 1.15 "datasets" did not write the rows in the sequence that shuffle() or
 * select() gave them, but a file of their numbers. */
static int list_saved(const struct finding *finding, const cJSON *state) {
        static const char *const INDICES[] = { "_indices_files", "_indices_data_files" };
        struct listed *listed = &finding->folder->listed, *indices = &finding->folder->indices;
        int r;

        listed_fini(listed); /* what the folder has: not all of it need be of the dataset */
        r = add_listed(finding, cJSON_GetObjectItemCaseSensitive(state, "_data_files"), listed);
        strcpy(indices->part, listed->part);
        for (size_t i = 0; i < ARRAY_SIZE(INDICES) && r == 0 && indices->n == 0; i++)
                r = add_listed(finding, cJSON_GetObjectItemCaseSensitive(state, INDICES[i]), indices);
        if (r == 0 && listed->n == 0)
                return why_set(finding->why, -ENOENT, "%s: " STATE " lists no file; the dataset has no rows",
                               finding->root);
        if (r == 0 && indices->n > 0 && listed->n > 1)
                return why_set(finding->why, -ENOTSUP,
                               "%s: the rows of %zu files are in the sequence of an indices file, as datasets "
                               "before 1.15 wrote it; load it, call flatten_indices() and save it again",
                               finding->root, listed->n);
        if (r == 0 && (listed_end(listed) < 0 || listed_end(indices) < 0))
                return arrow_folder_no_memory(finding);
        return r;
}

static bool arrow_folder_has_ending(const char *name) {
        return name[0] != '.' && (text_ends_with(name, ".arrow") || text_ends_with(name, ".feather"));
}

static bool is_cache(const char *name) {
        return arrow_folder_has_ending(name) && strncmp(name, "cache-", 6) == 0;
}

static bool is_arrow(const char *name) {
        return arrow_folder_has_ending(name) && !is_cache(name);
}

static const struct shards_kind SHARDS = {
        .what = "Arrow file",
        .pattern = "*.arrow",
        .path = "a folder that save_to_disk() wrote, a folder of .arrow files, or such a file",
        .is_taken = is_arrow,
        .is_else_taken = is_cache,
        .begins_so = true,
};

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
        int r = arrow_folder_read_json(finding, SPLITS, &dictionary);

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
                r = listed_note(&finding->folder->listed, finding->root_fd, finding->root, split, finding->settled_ns,
                                finding->why);
                return r <= 0 ? r
                              : why_errno(finding->why, -ENOENT, "%s/%s: the folder cannot be read", finding->root,
                                          split);
        }
        return refuse_split(finding, splits, split);
}

/* Of a folder that save_to_disk() has not written, or not as a whole: what lies in it, or below it. */
static int find_others(const struct finding *finding, const struct files *files, const char *split) {
        _cleanup_(indexing_json_fini) struct indexing_json state = { 0 };
        struct listed *listed = &finding->folder->listed;
        const char *slash;
        int r = shards_find(listed, finding->root_fd, files, &SHARDS, split, finding->settled_ns, finding->why);

        slash = strrchr(listed->part, '/');
        if (r == 0 && listed->part[0] && (!split || strcmp(slash ? slash + 1 : listed->part, split) == 0))
                r = read_json_of_part(finding, STATE, &state);
        return r == 0 && state.root ? list_saved(finding, state.root) : r < 0 ? r : 0;
}

static int arrow_folder_find_in_folder(const struct finding *finding, const struct files *files, const char *split) {
        struct listed *listed = &finding->folder->listed;
        _cleanup_(indexing_json_fini) struct indexing_json state = { 0 };
        int r = listed_note(listed, finding->root_fd, finding->root, "", finding->settled_ns, finding->why);

        if (r == 0)
                r = choose_split(finding, split);
        if (r == 0)
                r = read_json_of_part(finding, STATE, &state);
        if (r == NOT_THERE && listed->part[0])
                return why_set(finding->why, -ENOENT, "%s/%s: has no " STATE "; save the dataset again", finding->root,
                               listed->part);
        if (r == 0 && split && !listed->part[0])
                return why_set(finding->why, -EINVAL, "%s: has no splits, but split = \"%s\" is set", finding->root,
                               split);
        if (r >= 0)
                r = r == NOT_THERE ? find_others(finding, files, split) : list_saved(finding, state.root);
        if (r == 0)
                r = read_json_of_part(finding, INFO, &finding->folder->info);
        return r < 0 ? r : 0;
}

int arrow_folder_find(struct arrow_folder *folder, int root_fd, const struct files *files, const char *split,
                      int64_t *settled_ns, struct why *why) {
        const struct finding finding = {
                .folder = folder, .root_fd = root_fd, .root = files->root, .settled_ns = settled_ns, .why = why
        };

        return files->n_names == 0 ? arrow_folder_find_in_folder(&finding, files, split)
                                   : shards_find(&folder->listed, root_fd, files, &SHARDS, split, settled_ns, why);
}

void arrow_folder_fini(struct arrow_folder *folder) {
        listed_fini(&folder->listed);
        listed_fini(&folder->indices);
        indexing_json_fini(&folder->info);
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
        char path[PATH_MAX];
        struct stat status;
        int r;

        if (files->n_names == 0 && beneath_stat(root_fd, SPLITS, &status) == 0)
                return 1;
        if (files->n_names == 0 && format_cannot_tell(-errno) < 0)
                return -errno;
        r = shards_first(root_fd, files, &SHARDS, path);
        return r > 0 ? begins_as_arrow(root_fd, path) : r;
}
