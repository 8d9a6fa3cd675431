#include "daemon/data/formats/webdataset/tar_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_MEMBERS 4096u /* between two checks of the cancel flag */

void walk_fini(struct walk *walk) {
        growing_fini(&walk->members);
        growing_fini(&walk->keys);
        growing_fini(&walk->names);
}

static int tar_walk_add_name(struct walk *walk, const char *name, size_t n, uint64_t *ret_at) {
        uint64_t at = walk->names.n_bytes;
        int r = growing_append(&walk->names, name, n);

        if (r >= 0)
                r = growing_append(&walk->names, "", 1);
        if (r < 0)
                return r;
        *ret_at = at;
        return 0;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int tar_walk_refuse(const struct walk *walk, const char *shard, const struct tar_member *member,
                           const char *what) {
        return why_set(walk->why, -EBADMSG, "%s/%s: at byte %" PRIu64 ": \"%s\": %s", walk->root, shard, member->header,
                       member->name, what);
}

/* Finds the number of a field. A field that is met for the first time gets a new number. */
static int tar_walk_find_field(struct walk *walk, const char *shard, const struct tar_member *member, const char *name,
                               uint32_t *ret_idx) {
        for (uint32_t i = 0; i < walk->n_fields; i++)
                if (strcmp(walk->fields[i].name, name) == 0) {
                        *ret_idx = i;
                        return 0;
                }
        if (walk->n_fields == WALK_FIELDS_MAX)
                return tar_walk_refuse(walk, shard, member,
                                       "too many fields, 5120 can be listed; a field is what follows the "
                                       "first dot of a name");
        _Static_assert(WALK_FIELDS_MAX == 5120, "as the message says");
        strcpy(walk->fields[walk->n_fields].name, name);
        walk->fields[walk->n_fields].is_npy = member_is_npy(name);
        *ret_idx = walk->n_fields++;
        return 0;
}

/* ---- one archive ----------------------------------------------------------------------------------------------- */

static int tar_walk_look_up(const struct walk *walk) {
        if (walk->n_members % LOOK_UP_MEMBERS != 0 || !walk->watch)
                return 0;
        if (walk->watch->cancel && atomic_load_explicit(walk->watch->cancel, memory_order_relaxed))
                return why_set(walk->why, -ECANCELED, "%s: indexing was cancelled", walk->root);
        return 0;
}

/* Does the file belong to the same sample as the one before? */
static bool is_same_key(const struct walk *walk, const struct found_shard *shard, const struct member_place *place) {
        const uint64_t *keys = (const void *)walk->keys.bytes;

        return shard->n_keys > 0 &&
               member_is_of(place, (const char *)walk->names.bytes + keys[shard->first_key + shard->n_keys - 1]);
}

/* The member that the sample has for a field already; NULL: none. */
static const struct found_member *tar_walk_member_of(const struct walk *walk, const struct found_shard *shard,
                                                     uint32_t idx_field) {
        const struct found_member *members = (const void *)walk->members.bytes;

        for (uint64_t i = shard->first_member + shard->n_members; i > shard->first_member; i--) {
                if (members[i - 1].idx_sample != shard->n_keys - 1)
                        return NULL;
                if (members[i - 1].idx_field == idx_field)
                        return &members[i - 1];
        }
        return NULL;
}

static int survey_member(struct walk *walk, int fd, const char *shard, const struct tar_member *member,
                         struct found_field *field) {
        struct why detail;
        int r = field->is_npy ? npy_survey_take(&field->npy, fd, member->offset, member->n_bytes, &detail) : 0;

        return r < 0 ? tar_walk_refuse(walk, shard, member, detail.text) : 0;
}

static int tar_walk_take_member(struct walk *walk, int fd, struct found_shard *shard, const char *shard_name,
                                const struct tar_member *member) {
        struct found_member taken = { .offset = member->offset, .n_bytes = member->n_bytes };
        const struct found_member *before;
        struct member_place place;
        const char *refusal;
        uint64_t at;
        int r;

        switch (member_name_read(member->name, PATH_MAX - 2, &place, &refusal)) {
        case MEMBER_IS_FIELD:
                break;
        case MEMBER_IS_REFUSED:
                return tar_walk_refuse(walk, shard_name, member, refusal);
        case MEMBER_IS_HIDDEN:
                indexing_count_hidden();
                return 0;
        default:
                return 0;
        }
        r = tar_walk_find_field(walk, shard_name, member, place.field, &taken.idx_field);
        if (r < 0)
                return r;
        if (!is_same_key(walk, shard, &place)) {
                r = tar_walk_add_name(walk, place.key, place.n_key, &at);
                if (r >= 0)
                        r = growing_append(&walk->keys, &at, sizeof(at));
                if (r < 0)
                        return index_builder_refused(r, walk->root, walk->why);
                shard->n_keys++;
                atomic_fetch_add_explicit(&walk->n_samples, 1, memory_order_relaxed);
        } else if ((before = tar_walk_member_of(walk, shard, taken.idx_field))) {
                if (before->offset == taken.offset) /* a link: a.JPG beside a.jpg */
                        return 0;
                return tar_walk_refuse(walk, shard_name, member, "the sample has this field twice");
        }
        r = survey_member(walk, fd, shard_name, member, &walk->fields[taken.idx_field]);
        if (r < 0)
                return r;
        taken.idx_sample = (uint32_t)(shard->n_keys - 1);
        r = growing_append(&walk->members, &taken, sizeof(taken));
        if (r < 0)
                return index_builder_refused(r, walk->root, walk->why);
        walk->fields[taken.idx_field].n_samples++;
        shard->n_members++;
        walk->n_members++;
        return tar_walk_look_up(walk);
}

static int walk_archive(struct walk *walk, int fd, struct found_shard *shard, const char *name) {
        _cleanup_(tar_closep) struct tar *tar = NULL;
        const atomic_bool *cancel = walk->watch ? walk->watch->cancel : NULL;
        uint64_t n_bytes = (uint64_t)shard->status.st_size, at = 0;
        struct tar_member member;
        struct why detail;
        int r = tar_open(fd, n_bytes, &tar, &detail);

        seen_file(walk->seen, n_bytes);
        while (r == 0 && (r = tar_next(tar, cancel, &member, &detail)) == 0) {
                r = tar_walk_take_member(walk, fd, shard, name, &member);
                if (r < 0)
                        return r;
                shard->has_links |= member.kind != TAR_FILE;
                seen_add(walk->seen, member.header - at);
                at = member.header;
        }
        seen_add(walk->seen, n_bytes - at);
        return r == TAR_END ? 0 : why_set(walk->why, r, "%s/%s: %s", walk->root, name, detail.text);
}

int walk_shard(struct walk *walk, const char *name, struct found_shard *ret_shard) {
        struct found_shard shard = {
                .walk = walk,
                .first_member = walk->members.n_bytes / sizeof(struct found_member),
                .first_key = walk->keys.n_bytes / sizeof(uint64_t),
        };
        _cleanup_(closep) int fd = listed_open(walk->root_fd, walk->root, name, &walk->settled_ns, &shard.status,
                                               walk->why);
        int r;

        if (fd < 0)
                return fd;
        r = walk_archive(walk, fd, &shard, name);
        if (r == 0)
                *ret_shard = shard;
        return r;
}
