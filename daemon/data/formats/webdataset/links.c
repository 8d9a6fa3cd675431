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
        uint64_t name, target; /* offsets into names; what a link says */
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

static const char *links_text_at(const struct tar_links *links, uint64_t at) {
        return (const char *)links->names.bytes + at;
}

static int links_compare(const struct tar_links *links, const char *name, uint64_t header, const struct target *other) {
        int order = strcmp(name, links_text_at(links, other->name));

        return order != 0 ? order : header < other->member.header ? -1 : header > other->member.header;
}

static int links_by_name(const void *one, const void *other, void *links) {
        const struct target *target = one;

        return links_compare(links, links_text_at(links, target->name), target->member.header, other);
}

static int links_add(struct tar_links *links, const struct tar_member *member) {
        const char *name = tar_plain_name(member->name);
        struct target target = { .member = *member, .name = links->names.n_bytes };
        int r = growing_append(&links->names, name, strlen(name) + 1);

        target.target = links->names.n_bytes;
        if (r >= 0)
                r = growing_append(&links->names, member->target, strlen(member->target) + 1);
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
                r = links_add(links, &member);
                if (r < 0)
                        return why_errno(why, r, "a table of links");
        }
        if (r < 0 && r != -EBADMSG && r != -ENOTSUP) /* what is damaged is told where it stands */
                return r;
        links->is_cut = tar_is_cut(tar);
        links->n = links->targets.n_bytes / sizeof(struct target);
        r = links->n > 0 ? indexing_sort(links->targets.bytes, links->n, sizeof(struct target), links_by_name, links)
                         : 0;
        if (r < 0)
                return why_errno(why, r, "a table of links");
        *ret_links = TAKE_PTR(links);
        return 0;
}

/* The first target that is not before this name and header. */
static size_t links_place_of(const struct tar_links *links, const char *name, uint64_t header) {
        size_t begin = 0, end = links->n;

        while (begin < end) {
                size_t middle = begin + (end - begin) / 2;

                if (links_compare(links, name, header, target_at(links, middle)) > 0)
                        begin = middle + 1;
                else
                        end = middle;
        }
        return begin;
}

static bool links_is_called(const struct target *target, const struct tar_links *links, const char *name) {
        return strcmp(links_text_at(links, target->name), name) == 0;
}

/* The last one of this name before the header, as where it is unpacked; else the first one after it. */
static const struct target *find_before(const struct tar_links *links, const char *name, uint64_t header) {
        size_t begin = links_place_of(links, name, header);

        if (begin > 0 && links_is_called(target_at(links, begin - 1), links, name))
                return target_at(links, begin - 1);
        if (begin < links->n && target_at(links, begin)->member.header == header) /* the link itself */
                begin++;
        return begin < links->n && links_is_called(target_at(links, begin), links, name) ? target_at(links, begin)
                                                                                         : NULL;
}

/* The last one of this name: what a symbolic link leads to is looked at when all is unpacked. */
static const struct target *find_last(const struct tar_links *links, const char *name) {
        size_t end = links_place_of(links, name, UINT64_MAX);

        return end > 0 && links_is_called(target_at(links, end - 1), links, name) ? target_at(links, end - 1) : NULL;
}

/* Has the archive something in a folder of this name? */
static bool links_is_folder(const struct tar_links *links, const char *name) {
        char inner[PATH_MAX + 1];
        size_t n = strlen(name), i;

        if (n == 0)
                return false;
        memcpy(inner, name, n);
        memcpy(inner + n, "/", 2);
        i = links_place_of(links, inner, 0);
        return i < links->n && strncmp(links_text_at(links, target_at(links, i)->name), inner, n + 1) == 0;
}

/* ---- the way of a link ----------------------------------------------------------------------------------------- */

struct way {
        char path[PATH_MAX]; /* where it has come to: a name of the archive; "": its top */
        char ahead[2 * PATH_MAX];
        uint32_t n_steps;
};

static void go_up(struct way *way) {
        char *slash = strrchr(way->path, '/');

        *(slash ? slash : way->path) = '\0';
}

/* The name of what is ahead next, or of a link, is at the end of `path`. */
static int go_down(struct way *way, const char *name, size_t n) {
        size_t at = strlen(way->path);

        if (at + n + 2 > sizeof(way->path))
                return TAR_LINK_LEADS_NOWHERE;
        if (at > 0)
                way->path[at++] = '/';
        memcpy(way->path + at, name, n);
        way->path[at + n] = '\0';
        return 0;
}

/* `path` is a symbolic link: it goes on from its folder, with its target and then what was ahead. */
static int links_turn(struct way *way, const char *target) {
        size_t n = strlen(target), n_ahead = strlen(way->ahead);

        if (target[0] == '/')
                return TAR_LINK_LEADS_OUT;
        if (way->n_steps++ >= STEPS_MAX || n + n_ahead + 2 > sizeof(way->ahead))
                return TAR_LINK_LEADS_NOWHERE;
        memmove(way->ahead + n + 1, way->ahead, n_ahead + 1);
        memcpy(way->ahead, target, n);
        way->ahead[n] = '/';
        go_up(way);
        return 0;
}

/* One name after the other, as the kernel does it, since a folder may be a link as well. */
static int links_walk(const struct tar_links *links, struct way *way) {
        int r = 0;

        while (r == 0 && way->ahead[0]) {
                char name[2 * PATH_MAX];
                size_t n = strcspn(way->ahead, "/"), n_passed = n + (way->ahead[n] == '/');
                const struct target *found;

                memcpy(name, way->ahead, n);
                name[n] = '\0';
                memmove(way->ahead, way->ahead + n_passed, strlen(way->ahead + n_passed) + 1);
                if (n == 0 || strcmp(name, ".") == 0)
                        continue;
                if (strcmp(name, "..") == 0) {
                        if (!way->path[0])
                                return TAR_LINK_LEADS_OUT;
                        go_up(way);
                        continue;
                }
                r = go_down(way, name, n);
                found = r == 0 ? find_last(links, way->path) : NULL;
                if (found && found->member.kind == TAR_SOFT_LINK)
                        r = links_turn(way, links_text_at(links, found->target));
        }
        return r;
}

/* The last member of where the way leads. */
static int links_follow(const struct tar_links *links, struct way *way, const char *target,
                        const struct target **ret_found) {
        int r = links_turn(way, target);

        if (r == 0)
                r = links_walk(links, way);
        *ret_found = r == 0 ? find_last(links, way->path) : NULL;
        if (r == 0 && !*ret_found)
                r = links_is_folder(links, way->path) ? TAR_LINK_IS_FOLDER : TAR_LINK_LEADS_NOWHERE;
        return r;
}

int tar_links_find(const struct tar_links *links, const struct tar_member *link, struct tar_member *ret_member) {
        struct way way = { .n_steps = 0 };
        struct tar_member member = *link;

        strcpy(way.path, tar_plain_name(link->name));
        while (member.kind != TAR_FILE) {
                const struct target *found;
                int r = 0;

                if (member.kind == TAR_SOFT_LINK)
                        r = links_follow(links, &way, member.target, &found);
                else if (way.n_steps++ < STEPS_MAX)
                        found = find_before(links, tar_plain_name(member.target), member.header);
                else
                        r = -ELOOP;
                if (r != 0)
                        return r;
                if (!found)
                        return -ENOENT;
                member = found->member;
                member.target = links_text_at(links, found->target);
        }
        ret_member->offset = member.offset;
        ret_member->n_bytes = member.n_bytes;
        return 0;
}
