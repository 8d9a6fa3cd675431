/* Walks through a shard: which samples it has, and where their fields lie. The rules are those of an index of the same
 * archives (formats/webdataset/webdataset.c), except that one bad shard does not refuse the whole dataset. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/intake/intake_private.h"
#include "proto/base/cleanup.h"

#define NO_FIELD UINT32_MAX
#define DAMAGED  3 /* haul->damage says what */

void haul_fini(struct haul *haul) {
        growing_fini(&haul->samples);
        growing_fini(&haul->members);
        growing_fini(&haul->names);
}

static struct haul_sample *last_sample(const struct haul *haul) {
        return (struct haul_sample *)(void *)haul->samples.bytes + haul->n_samples - 1;
}

static int intake_walk_damage(struct haul *haul, const struct tar_member *member, const char *what) {
        why_set(&haul->damage, 0, "at byte %llu: \"%s\": %s", (unsigned long long)member->header, member->name, what);
        return DAMAGED;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

static void intake_walk_add_field(struct intake *intake, const char *name) {
        struct intake_field *field = &intake->fields[intake->n_fields++];

        *field = (struct intake_field){ .described = { .kind = member_kind(name), .is_stored = true } };
        strcpy(field->described.name, name);
}

/* A field that the first shard does not have cannot be asked for, as the schema is made already. */
static void tell_unknown(struct intake *intake, const char *shard, const char *name) {
        if (strcmp(intake->unknown, name) == 0)
                return;
        snprintf(intake->unknown, sizeof(intake->unknown), "%s", name);
        log_warning("stream", "%s/%s: the field %s is not served: the first shard of the stream does not have it",
                    intake->root, shard, name);
}

static int intake_walk_find_field(struct intake *intake, const char *shard, const char *name, bool is_first,
                                  struct haul *haul, const struct tar_member *member, uint32_t *ret_idx) {
        *ret_idx = NO_FIELD;
        for (uint32_t i = 0; i < intake->n_fields; i++)
                if (strcmp(intake->fields[i].described.name, name) == 0)
                        *ret_idx = i;
        if (*ret_idx != NO_FIELD)
                return 0;
        if (!is_first) {
                tell_unknown(intake, shard, name);
                return 0;
        }
        if (intake->n_fields == INTAKE_FIELDS_MAX)
                return intake_walk_damage(haul, member, "too many fields, a dataset has 128 at most");
        *ret_idx = intake->n_fields;
        intake_walk_add_field(intake, name);
        return 0;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

static int begin_sample(struct haul *haul, const struct member_place *place) {
        struct haul_sample sample = { .name = haul->names.n_bytes,
                                      .first_member = haul->members.n_bytes / sizeof(struct haul_member) };
        int r;

        memcpy(haul->key, place->key, place->n_key);
        haul->key[place->n_key] = '\0';
        r = growing_append(&haul->names, haul->key, place->n_key + 1);
        if (r >= 0)
                r = growing_append(&haul->samples, &sample, sizeof(sample));
        if (r < 0)
                return r;
        haul->n_samples++;
        return 0;
}

/* The member that the last sample has for a field already; NULL: none. */
static const struct haul_member *intake_walk_member_of(const struct haul *haul, uint32_t idx_field) {
        const struct haul_member *members = (const void *)haul->members.bytes;
        const struct haul_sample *sample = last_sample(haul);

        for (uint64_t i = 0; i < sample->n_members; i++)
                if (members[sample->first_member + i].idx_field == idx_field)
                        return &members[sample->first_member + i];
        return NULL;
}

static int intake_walk_take_member(struct intake *intake, int fd, const char *shard, bool is_first, struct haul *haul,
                                   const struct tar_member *member) {
        struct haul_member taken = { .offset = member->offset, .n_bytes = member->n_bytes };
        const struct haul_member *before;
        struct member_place place;
        struct intake_field *field;
        const char *refusal;
        struct why why;
        uint32_t idx;
        int r;

        switch (member_name_read(member->name, INTAKE_NAME_MAX, &place, &refusal)) {
        case MEMBER_IS_FIELD:
                break;
        case MEMBER_IS_REFUSED:
                return intake_walk_damage(haul, member, refusal);
        default:
                return 0;
        }
        r = intake_walk_find_field(intake, shard, place.field, is_first, haul, member, &idx);
        if (r == 0 && (haul->n_samples == 0 || !member_is_of(&place, haul->key)))
                r = begin_sample(haul, &place);
        if (r != 0 || idx == NO_FIELD)
                return r;
        before = intake_walk_member_of(haul, idx);
        if (before)
                return before->offset == taken.offset
                               ? 0
                               : intake_walk_damage(haul, member, "the sample has this field twice");
        field = &intake->fields[idx];
        taken.idx_field = idx;
        if (is_first && member_is_npy(field->described.name)) {
                r = npy_survey_take(&field->npy, fd, member->offset, member->n_bytes, &why);
                if (r < 0)
                        return intake_walk_damage(haul, member, why.text);
        }
        r = growing_append(&haul->members, &taken, sizeof(taken));
        if (r == 0)
                last_sample(haul)->n_members++;
        return r;
}

/* ---- a shard --------------------------------------------------------------------------------------------------- */

/* What was met in the middle of a sample: that sample may lack fields, so it goes with the rest of the shard. */
static void leave_out_last(struct haul *haul) {
        struct why damage = haul->damage;

        if (haul->n_samples == 0)
                return;
        haul->n_samples--;
        why_set(&haul->damage, 0,
                "%s; the sample %s, which may not be complete, and what comes after it are left "
                "out",
                damage.text, haul->key);
}

int intake_walk(struct intake *intake, int fd, const char *name, const struct stat *status, bool is_first,
                struct haul *haul, struct why *why) {
        _cleanup_(tar_closep) struct tar *tar = NULL;
        struct tar_member member;
        int r = tar_open(fd, (uint64_t)status->st_size, &tar, why);

        while (r == 0 && (r = tar_next(tar, intake->stopped, &member, why)) == 0) {
                uint64_t n_samples = haul->n_samples, begin = haul->end;

                r = intake_walk_take_member(intake, fd, name, is_first, haul, &member);
                if (haul->n_samples > n_samples)
                        haul->last_begin = begin;
                haul->end = member.end;
                if (r == 0 && atomic_load_explicit(intake->stopped, memory_order_relaxed))
                        return why_set(why, -ECANCELED, "%s: cancelled", name);
        }
        if (r == -ENOMEM)
                return why_errno(why, r, "%s", name);
        if (r == -EBADMSG || r == -ENOTSUP)
                haul->damage = *why;
        else if (r < 0)
                return r;
        haul->is_cut = tar && tar_is_cut(tar);
        snprintf(haul->passed_over, sizeof(haul->passed_over), "%s", tar ? tar_passed_over(tar) : "");
        if (haul->damage.text[0])
                leave_out_last(haul);
        return 0;
}
