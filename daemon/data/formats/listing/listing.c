#include "daemon/data/formats/listing/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/files/cuts.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/listing/parts.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define LOOK_UP_SAMPLES 4096u

void listing_fini(struct text_listing *listing) {
        text_window_fini(&listing->window);
        growing_fini(&listing->listed);
        growing_fini(&listing->names);
        listed_fini(&listing->found);
}

const char *listing_name(const struct text_listing *listing) {
        return (const char *)listing->names.bytes + listing_file(listing, listing_n_files(listing) - 1)->name;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

int listing_refuse(const struct text_listing *listing, uint64_t line, int error, const struct why *detail) {
        if (line == 0)
                return why_set(listing->why, error, "%s/%s: %s", listing->files->root, listing_name(listing),
                               detail->text);
        return why_set(listing->why, error, "%s/%s: line %" PRIu64 ": %s", listing->files->root, listing_name(listing),
                       line, detail->text);
}

int listing_look_up(struct text_listing *listing, uint64_t n_rows) {
        if (listing->n_samples - listing->n_looked < LOOK_UP_SAMPLES || !listing->watch)
                return 0;
        listing->n_looked = listing->n_samples;
        if (format_look_up(listing->watch, listing->n_samples, listing->files->root, listing->why) < 0)
                return -ECANCELED;
        if (n_rows > 0 && listing->watch->part) {
                listing->watch->part(listing->watch->userdata, listing->n_samples, n_rows, "samples");
        } else if (n_rows == 0) {
                seen_at(&listing->seen, listing->n_file, text_window_place(&listing->window));
                seen_tell(&listing->seen, listing->watch);
        }
        return 0;
}

/* ---- the files ------------------------------------------------------------------------------------------------- */

int listing_begin_file(struct text_listing *listing, const char *name, const struct stat *status) {
        struct listed_file file = { .name = listing->names.n_bytes,
                                    .first_sample = listing->n_samples,
                                    .status = *status };
        int r = growing_append(&listing->names, name, strlen(name) + 1);

        listing->n_file = (uint64_t)status->st_size;
        seen_file(&listing->seen, listing->n_file);

        if (r == 0)
                r = growing_append(&listing->listed, &file, sizeof(file));
        return r < 0 ? index_builder_refused(r, listing->files->root, listing->why) : 0;
}

static int listing_read_file(struct text_listing *listing, const char *name, listing_read read, void *userdata) {
        _cleanup_(closep) int fd = -1;
        struct stat status;
        struct why detail;
        int r;

        fd = listed_open(listing->root_fd, listing->files->root, name, &listing->settled_ns, &status, listing->why);
        if (fd < 0)
                return fd;
        r = listing_begin_file(listing, name, &status);
        if (r < 0)
                return r;
        listing->window = (struct text_window){ .fd = fd, .n_file = (uint64_t)status.st_size };
        r = text_window_begin(&listing->window, &detail);
        r = r < 0 ? listing_refuse(listing, 0, r, &detail) : read(listing, userdata);
        text_window_fini(&listing->window);
        return r;
}

int listing_walk(struct text_listing *listing, const struct shards_kind *kind, listing_read read,
                 const struct listing_parts *parts, void *userdata) {
        int r = shards_find(&listing->found, listing->root_fd, listing->files, kind, listing->split,
                            &listing->settled_ns, listing->why);

        seen_begin(&listing->seen, listing->found.n);
        if (r == 0 && parts && cuts_threads() > 1)
                r = parts_walk(listing, parts, userdata);
        else
                for (size_t i = 0; i < listing->found.n && r == 0; i++)
                        r = listing_read_file(listing, listing->found.names[i], read, userdata);
        if (r == 0 && listing->n_samples == 0)
                return why_set(listing->why, -ENOENT, "%s/%s%s: there is no sample in it", listing->files->root,
                               listing->found.names[0], listing->found.n > 1 ? " and the other files" : "");
        return r;
}

bool listing_has_ending(const char *name, const char *ending) {
        return name[0] != '.' && text_ends_with(name, ending);
}

/* ---- is it? ---------------------------------------------------------------------------------------------------- */

/* What lies beside the files of many a dataset. */
static bool listing_is_bystander(const char *name) {
        return name[0] == '.' || strncmp(name, "README", 6) == 0 || strncmp(name, "LICENSE", 7) == 0 ||
               listing_has_ending(name, ".md") || listing_has_ending(name, ".index");
}

static int look_for_others(void *userdata, const struct dirent *entry) {
        bool (*const *is_taken)(const char *name) = userdata;

        return !(*is_taken)(entry->d_name) && !listing_is_bystander(entry->d_name);
}

bool listing_begins_as_text(const uint8_t *bytes, size_t n_bytes) {
        return !memchr(bytes, '\0', n_bytes);
}

int listing_is_it(int root_fd, const struct files *files, const struct shards_kind *kind,
                  bool (*is_named_so)(const char *name), bool may_have_others,
                  bool (*begins_well)(const uint8_t *bytes, size_t n_bytes)) {
        char path[PATH_MAX];
        uint8_t bytes[8192];
        ssize_t n;
        int fd, r = files->n_names > 0 ? format_names_files(root_fd, files, is_named_so) : 1;

        if (r > 0)
                r = shards_first(root_fd, files, kind, path);
        if (r > 0 && files->n_names == 0 && !may_have_others && !strchr(path, '/')) {
                r = format_look_into(root_fd, look_for_others, &is_named_so);
                r = r < 0 ? r : r == 0;
        }
        if (r <= 0)
                return r;
        fd = beneath_open(root_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        n = fd < 0 ? -errno : indexing_read_head(fd, bytes, sizeof(bytes));
        if (n < 0)
                r = format_cannot_tell((int)n);
        closep(&fd);
        return n < 0 ? r : n > 0 && begins_well(bytes, (size_t)n);
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

size_t listing_n_files(const struct text_listing *listing) {
        return listing->listed.n_bytes / sizeof(struct listed_file);
}

const struct listed_file *listing_file(const struct text_listing *listing, size_t idx) {
        return &((const struct listed_file *)(const void *)listing->listed.bytes)[idx];
}

int listing_give_root(const struct text_listing *listing, struct index_builder *builder) {
        return listed_give_root(&listing->found, listing->files, builder);
}

int listing_give_file(const struct text_listing *listing, struct index_builder *builder, size_t idx) {
        const struct listed_file *file = listing_file(listing, idx);

        return index_builder_add_shard(builder, (const char *)listing->names.bytes + file->name, &file->status);
}
