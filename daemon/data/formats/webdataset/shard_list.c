#include "daemon/data/formats/webdataset/shard_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/items/index_json.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define HEAD_BYTES 4096u

void shard_list_fini(struct shard_list *list) {
        growing_fini(&list->shards);
        growing_fini(&list->names);
}

int shard_list_is_it(int root_fd, const struct files *files) {
        const char *dot = files->n_names == 1 ? strrchr(files->names[0], '.') : NULL;
        _cleanup_(closep) int fd = -1;
        char head[HEAD_BYTES];
        ssize_t n;

        if (!dot || strcmp(dot, ".json") != 0)
                return 0;
        fd = beneath_open(root_fd, files->names[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        n = fd < 0 ? -errno : indexing_read_head(fd, head, sizeof(head));
        if (n < 0)
                return format_cannot_tell((int)n);
        return n > 0 &&
               (memmem(head, (size_t)n, "\"wids_version\"", 14) || memmem(head, (size_t)n, "\"shardlist\"", 11));
}

/* ---- where an archive is ----------------------------------------------------------------------------------------- */

/* What a list is read into, and of which part of it. */
struct reading {
        struct shard_list *list;
        const char *root;
        char base[PATH_MAX]; /* what urls of this part are relative to; "": the list's folder */
};

/* "file:///d/x", "/d/x" -> "/d/x"; NULL: of another scheme. */
static const char *without_scheme(const char *url) {
        if (strncmp(url, "file://", 7) == 0)
                return url + 7;
        if (strncmp(url, "file:", 5) == 0)
                return url + 5;
        return strstr(url, "://") || strncmp(url, "pipe:", 5) == 0 ? NULL : url;
}

/* "./a//./b" -> "a/b". */
static void tidy(char *path) {
        char *to = path;
        bool is_last = false;

        for (const char *at = path; !is_last;) {
                size_t n = strcspn(at, "/");

                is_last = at[n] == '\0'; /* asked before a slash is written there */
                if (n > 0 && !(n == 1 && at[0] == '.')) {
                        memmove(to, at, n);
                        to += n;
                        *to++ = '/';
                }
                at += n + 1;
        }
        if (to > path)
                to--;
        *to = '\0';
}

/* The archive's name relative to the root. */
static int shard_list_find_name(const struct reading *reading, const char *url, char ret_name[PATH_MAX],
                                struct why *why) {
        const char *path = without_scheme(url), *base = reading->base;
        size_t n_root = strlen(reading->root);
        char whole[PATH_MAX];

        if (!path)
                return why_set(why, -EINVAL,
                               "\"%s\" is not a file: stage the dataset, and name the archives relative to the list "
                               "(wids-index update --nodir does it)",
                               url);
        if (snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : base, path[0] == '/' || !base[0] ? "" : "/",
                     path) >= (int)sizeof(whole))
                return why_set(why, -ENAMETOOLONG, "\"%s\" is too long", url);
        path = whole;
        if (path[0] == '/' && strncmp(path, reading->root, n_root) == 0 && path[n_root] == '/')
                path += n_root;
        else if (path[0] == '/')
                return why_set(why, -EINVAL, "\"%s\" is not in the list's folder, %s", url, reading->root);
        snprintf(ret_name, PATH_MAX, "%s", path);
        tidy(ret_name);
        if (!ret_name[0] || !index_is_inner_path(ret_name))
                return why_set(why, -EINVAL, "\"%s\" leads out of the list's folder", url);
        return 0;
}

/* ---- its entries ------------------------------------------------------------------------------------------------- */

/* A number that need not be there. */
static int shard_list_read_count(const struct json_token *entry, const char *member, uint64_t *ret_count,
                                 struct why *why) {
        struct json_token value;
        int64_t number = -1;
        int r = index_json_member(entry, member, &value, why);

        *ret_count = SHARD_LIST_UNKNOWN;
        if (r == JSON_ABSENT)
                return 0;
        if (r == 0)
                r = index_json_number(entry, member, &number, why);
        if (r == 0 && number < 0)
                r = why_set(why, -EBADMSG, "\"%s\" is %" PRId64 "; expected a number that is not negative", member,
                            number);
        *ret_count = (uint64_t)number;
        return r;
}

static int shard_list_take_shard(void *userdata, const struct json_token *entry, struct why *why) {
        struct reading *reading = userdata;
        struct shard_list *list = reading->list;
        struct listed_shard shard = { .name = list->names.n_bytes };
        char url[PATH_MAX], name[PATH_MAX];
        int r = entry->kind == JSON_OBJECT ? index_json_text(entry, "url", url, sizeof(url), why)
                                           : why_set(why, -EBADMSG, "an entry of \"shardlist\" is not an object");

        if (r == 0)
                r = shard_list_find_name(reading, url, name, why);
        if (r == 0)
                r = shard_list_read_count(entry, "nsamples", &shard.n_samples, why);
        if (r == 0)
                r = shard_list_read_count(entry, "filesize", &shard.n_bytes, why);
        if (r < 0)
                return r;
        r = growing_append(&list->names, name, strlen(name) + 1);
        if (r >= 0)
                r = growing_append(&list->shards, &shard, sizeof(shard));
        return r < 0 ? why_errno(why, r, "its archives") : 0;
}

/* A part of the list may have a base of its own; what it says is in another file is not looked for. */
static int shard_list_take_part(void *userdata, const struct json_token *part, struct why *why) {
        struct reading *reading = userdata;
        struct json_token value;
        const char *path;
        int r = part->kind == JSON_OBJECT ? index_json_member(part, "source_url", &value, why)
                                          : why_set(why, -EBADMSG, "an entry of \"datasets\" is not an object");

        if (r == 0)
                return why_set(
                        why, -ENOTSUP,
                        "an entry of \"datasets\" is another list (source_url); write its archives into this one");
        if (r < 0)
                return r;
        reading->base[0] = '\0';
        r = index_json_member(part, "base", &value, why);
        if (r == 0)
                r = index_json_text(part, "base", reading->base, sizeof(reading->base), why);
        if (r < 0)
                return r;
        path = without_scheme(reading->base);
        if (!path)
                return why_set(why, -EINVAL, "the base \"%s\" is not a folder: stage the dataset", reading->base);
        memmove(reading->base, path, strlen(path) + 1);
        return index_json_each(part, "shardlist", shard_list_take_shard, reading, why);
}

static int shard_list_by_name(const void *one, const void *other) {
        return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int shard_list_check_twice(const struct shard_list *list, struct why *why) {
        const struct listed_shard *shards = (const void *)list->shards.bytes;
        size_t n = list->shards.n_bytes / sizeof(*shards);
        _cleanup_(freep) const char **names = calloc(n + 1, sizeof(*names));

        if (!names)
                return why_errno(why, -ENOMEM, "its archives");
        if (n == 0)
                return why_set(why, -EINVAL, "there is no archive in it");
        for (size_t i = 0; i < n; i++)
                names[i] = (const char *)list->names.bytes + shards[i].name;
        qsort(names, n, sizeof(*names), shard_list_by_name);
        for (size_t i = 1; i < n; i++)
                if (strcmp(names[i - 1], names[i]) == 0)
                        return why_set(why, -EINVAL, "%s is in it twice", names[i]);
        return 0;
}

static int shard_list_read_parts(struct shard_list *list, const struct index_json *json, const char *root,
                                 struct why *why) {
        struct json_token whole = { .kind = JSON_OBJECT, .bytes = json->bytes, .n_bytes = json->n_bytes }, value;
        struct reading reading = { .list = list, .root = root };
        int64_t version = 0;
        int r = index_json_number(&whole, "wids_version", &version, why);

        if (r == 0 && version != 1)
                return why_set(why, -ENOTSUP, "\"wids_version\" is %" PRId64 "; only 1 is known", version);
        if (r == 0)
                r = index_json_member(&whole, "shardlist", &value, why);
        if (r == 0)
                r = index_json_each(&whole, "shardlist", shard_list_take_shard, &reading, why);
        if (r >= 0)
                r = index_json_member(&whole, "datasets", &value, why);
        if (r == 0)
                r = index_json_each(&whole, "datasets", shard_list_take_part, &reading, why);
        return r < 0 ? r : shard_list_check_twice(list, why);
}

int shard_list_read(struct shard_list *list, int root_fd, const char *root, const char *name, int64_t *settled_ns,
                    struct why *why) {
        struct index_json json = { 0 };
        struct why detail;
        int r = index_json_read_as(&json, root_fd, root, name, settled_ns, why);

        if (r == 0) {
                list->status = json.status;
                r = shard_list_read_parts(list, &json, root, &detail);
                if (r < 0)
                        why_set(why, r, "%s/%s: %s", root, name, detail.text);
        }
        index_json_fini(&json);
        return r;
}
