#include "daemon/data/formats/webdataset/links.h"

/* A table of all members, sorted by name and then by place. It is made only of archives that have links. */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/growing.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

#define STEPS_MAX 32u /* from link to link: programs write one */

struct target {
        uint64_t name, target; /* offsets into names */
        struct tar_member member;
};

struct tar_links {
        struct growing names, targets;
        size_t n;
        bool is_cut;
};

void tar_links_free(struct tar_links *links) {
        if (!links)
                return;
        growing_fini(&links->names);
        growing_fini(&links->targets);
        free(links);
}

static void tar_links_freep(struct tar_links **links) {
        tar_links_free(*links);
}

bool tar_links_are_cut(const struct tar_links *links) {
        return links->is_cut;
}

static struct target *target_at(const struct tar_links *links, size_t i) {
        return (struct target *)(void *)links->targets.bytes + i;
}

static const char *text_at(const struct tar_links *links, uint64_t at) {
        return (const char *)links->names.bytes + at;
}

static int compare(const struct tar_links *links, const char *name, uint64_t header, const struct target *other) {
        int order = strcmp(name, text_at(links, other->name));

        return order != 0 ? order : header < other->member.header ? -1 : header > other->member.header;
}

static int by_name(const void *one, const void *other, void *links) {
        const struct target *target = one;

        return compare(links, text_at(links, target->name), target->member.header, other);
}

/* Where a symbolic link leads to, as a name of the archive: from the folder that it is in. An absolute one, or one that
 * leaves the archive's top folder, is "", which no member is called. */
static void follow(const char *name, const char *target, char ret_path[2 * PATH_MAX]) {
        const char *slash = strrchr(name, '/'), *end;
        size_t n = slash && target[0] != '/' ? (size_t)(slash - name) : 0;

        memcpy(ret_path, name, n);
        ret_path[n] = '\0';
        for (const char *at = target; target[0] != '/' && *at; at = *end ? end + 1 : end) {
                end = strchrnul(at, '/');
                if (end == at || (end == at + 1 && at[0] == '.'))
                        continue;
                if (end == at + 2 && strncmp(at, "..", 2) == 0) {
                        char *last = strrchr(ret_path, '/');

                        if (n == 0)
                                break;
                        n = last ? (size_t)(last - ret_path) : 0;
                        ret_path[n] = '\0';
                        continue;
                }
                if (n > 0)
                        ret_path[n++] = '/';
                memcpy(ret_path + n, at, (size_t)(end - at));
                n += (size_t)(end - at);
                ret_path[n] = '\0';
        }
}

/* The name that a link leads to. */
static const char *leads_to(const struct tar_member *link, char room[2 * PATH_MAX]) {
        if (link->kind != TAR_SOFT_LINK)
                return tar_plain_name(link->target);
        follow(tar_plain_name(link->name), link->target, room);
        return room;
}

static int add(struct tar_links *links, const struct tar_member *member) {
        char room[2 * PATH_MAX];
        const char *name = tar_plain_name(member->name), *target_name = leads_to(member, room);
        struct target target = { .member = *member, .name = links->names.n_bytes };
        int r = growing_append(&links->names, name, strlen(name) + 1);

        target.target = links->names.n_bytes;
        if (r >= 0)
                r = growing_append(&links->names, target_name, strlen(target_name) + 1);
        return r < 0 ? r : growing_append(&links->targets, &target, sizeof(target));
}

int tar_links_read(int fd, uint64_t n_bytes, const atomic_bool *cancel, struct tar_links **ret_links, struct why *why) {
        _cleanup_(tar_links_freep) struct tar_links *links = calloc(1, sizeof(*links));
        _cleanup_(tar_closep) struct tar *tar = NULL;
        struct tar_member member;
        int r = links ? tar_open(fd, n_bytes, &tar, why) : why_errno(why, -ENOMEM, "a table of links");

        while (r == 0 && (r = tar_step(tar, &member, why)) == 0) {
                if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
                        return why_set(why, -ECANCELED, "cancelled");
                r = add(links, &member);
                if (r < 0)
                        return why_errno(why, r, "a table of links");
        }
        if (r < 0 && r != -EBADMSG && r != -ENOTSUP) /* what is damaged is told where it stands */
                return r;
        links->is_cut = tar_is_cut(tar);
        links->n = links->targets.n_bytes / sizeof(struct target);
        r = links->n > 0 ? indexing_sort(links->targets.bytes, links->n, sizeof(struct target), by_name, links) : 0;
        if (r < 0)
                return why_errno(why, r, "a table of links");
        *ret_links = TAKE_PTR(links);
        return 0;
}

/* The first target that is not before this name and header. */
static size_t place_of(const struct tar_links *links, const char *name, uint64_t header) {
        size_t begin = 0, end = links->n;

        while (begin < end) {
                size_t middle = begin + (end - begin) / 2;

                if (compare(links, name, header, target_at(links, middle)) > 0)
                        begin = middle + 1;
                else
                        end = middle;
        }
        return begin;
}

/* The last one of this name before the header, else the first one after it. */
static const struct target *find(const struct tar_links *links, const char *name, uint64_t header) {
        size_t begin = place_of(links, name, header);

        if (begin > 0 && strcmp(text_at(links, target_at(links, begin - 1)->name), name) == 0)
                return target_at(links, begin - 1);
        if (begin < links->n && target_at(links, begin)->member.header == header) /* the link itself */
                begin++;
        return begin < links->n && strcmp(text_at(links, target_at(links, begin)->name), name) == 0
                       ? target_at(links, begin)
                       : NULL;
}

/* Has the archive something in a folder of this name? */
static bool is_folder(const struct tar_links *links, const char *name) {
        char inner[2 * PATH_MAX + 1];
        size_t n = strlen(name), i;

        if (n == 0)
                return false;
        memcpy(inner, name, n);
        memcpy(inner + n, "/", 2);
        i = place_of(links, inner, 0);
        return i < links->n && strncmp(text_at(links, target_at(links, i)->name), inner, n + 1) == 0;
}

int tar_links_find(const struct tar_links *links, const struct tar_member *link, struct tar_member *ret_member) {
        char room[2 * PATH_MAX];
        const char *name = leads_to(link, room);
        uint64_t header = link->header;

        for (uint32_t i = 0; i < STEPS_MAX; i++) {
                const struct target *found = find(links, name, header);

                if (!found)
                        return is_folder(links, name) ? TAR_LINK_IS_FOLDER : -ENOENT;
                if (found->member.kind == TAR_FILE) {
                        ret_member->offset = found->member.offset;
                        ret_member->n_bytes = found->member.n_bytes;
                        return 0;
                }
                name = text_at(links, found->target);
                header = found->member.header;
        }
        return -ELOOP;
}
