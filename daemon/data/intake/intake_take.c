/* Takes a whole shard in: its samples are appended to the source, and published together. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/intake/intake_private.h"
#include "proto/base/cleanup.h"

#define LIMIT_FACTOR 8u          /* a field may be this much longer than the longest of the first shard, */
#define LIMIT_MIN    (16u << 10) /* and at least have this many bytes */
#define HEADERS_MAX  4096u       /* bytes of headers and padding before a member: usually 512 to 1,535 */

/* ---- the first shard ------------------------------------------------------------------------------------------- */

static const struct haul_member *take_member_of(const struct haul *haul, const struct haul_sample *sample, uint64_t i) {
        return (const struct haul_member *)(const void *)haul->members.bytes + sample->first_member + i;
}

static const struct haul_sample *take_sample_of(const struct haul *haul, uint64_t i) {
        return (const struct haul_sample *)(const void *)haul->samples.bytes + i;
}

static void take_measure(struct intake *intake, const struct haul *haul) {
        for (uint64_t i = 0; i < haul->n_samples; i++)
                for (uint64_t k = 0; k < take_sample_of(haul, i)->n_members; k++) {
                        const struct haul_member *member = take_member_of(haul, take_sample_of(haul, i), k);
                        struct intake_field *field = &intake->fields[member->idx_field];

                        field->n_samples++;
                        if (member->n_bytes > field->longest)
                                field->longest = member->n_bytes;
                }
}

/* All that jobs rely on is decided by the first shard, so that it is the same on every node and after a restart. */
static void take_describe(struct intake *intake, const struct haul *haul) {
        struct source *source = &intake->source;

        for (uint32_t i = 0; i < intake->n_fields; i++) {
                struct intake_field *field = &intake->fields[i];
                uint64_t many = field->longest < UINT64_MAX / LIMIT_FACTOR ? field->longest * LIMIT_FACTOR : UINT64_MAX;

                field->described.may_be_absent = field->n_samples < haul->n_samples;
                if (!npy_survey_describe(&field->npy, &field->described) && member_is_npy(field->described.name))
                        field->described.coding = CODING_NPY;
                field->limit = intake->field_limit > 0 ? intake->field_limit : many < LIMIT_MIN ? LIMIT_MIN : many;
                source->max_length = field->limit > source->max_length ? field->limit : source->max_length;
                source->max_span += field->limit + HEADERS_MAX;
                source->schema.fields[i] = field->described;
        }
        source->schema.n_fields = intake->n_fields;
        source->schema.fields[source->schema.n_fields++] = (struct schema_field){ .name = "__key__",
                                                                                  .kind = FIELD_NAME };
}

static int take_make_digest(struct intake *intake, const char *name, const struct haul *haul) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, "stream", 7) && EVP_DigestUpdate(context, name, strlen(name) + 1);

        for (uint64_t i = 0; i < haul->n_samples && is_fine; i++) {
                const char *key = (const char *)haul->names.bytes + take_sample_of(haul, i)->name;

                is_fine = EVP_DigestUpdate(context, key, strlen(key) + 1);
                for (uint64_t k = 0; k < take_sample_of(haul, i)->n_members && is_fine; k++) {
                        const struct haul_member *member = take_member_of(haul, take_sample_of(haul, i), k);
                        const char *field = intake->fields[member->idx_field].described.name;
                        const uint64_t place[] = { member->offset, member->n_bytes };

                        is_fine = EVP_DigestUpdate(context, field, strlen(field) + 1) &&
                                  EVP_DigestUpdate(context, place, sizeof(place));
                }
        }
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        for (size_t i = 0; i < 32 && is_fine; i++)
                snprintf(intake->digest + 2 * i, 3, "%02x", digest[i]);
        return is_fine ? 0 : -ENOMEM;
}

/* ---- samples that cannot be served ----------------------------------------------------------------------------- */

static const struct taken_row *find_long(const struct intake *intake, const struct taken_sample *sample,
                                         uint32_t *ret_idx) {
        for (uint32_t i = 0; i < intake->n_fields; i++)
                if (sample->rows[i].offset != ROW_ABSENT && sample->rows[i].n_bytes > intake->fields[i].limit) {
                        *ret_idx = i;
                        return &sample->rows[i];
                }
        return NULL;
}

static uint64_t take_span_of(const struct intake *intake, const struct taken_sample *sample) {
        uint64_t begin = UINT64_MAX, end = 0;

        for (uint32_t i = 0; i < intake->n_fields; i++) {
                const struct taken_row *row = &sample->rows[i];

                if (row->offset == ROW_ABSENT)
                        continue;
                begin = row->offset < begin ? row->offset : begin;
                end = row->offset + row->n_bytes > end ? row->offset + row->n_bytes : end;
        }
        return end > begin ? end - begin : 0;
}

static const char *missing_field(const struct intake *intake, const struct taken_sample *sample) {
        for (uint32_t i = 0; i < intake->n_fields; i++)
                if (sample->rows[i].offset == ROW_ABSENT && !intake->fields[i].described.may_be_absent)
                        return intake->fields[i].described.name;
        return NULL;
}

/* Why the sample does not fit to what the first shard said of the stream; false: it does. */
static bool is_broken(const struct intake *intake, const char *shard, const struct taken_sample *sample,
                      struct why *ret_why) {
        const char *missing = missing_field(intake, sample);
        const struct taken_row *row;
        uint32_t idx = 0;

        if (missing) {
                why_set(ret_why, 0, "%s: it has no %s, which all samples of the first shard have", shard, missing);
                return true;
        }
        row = find_long(intake, sample, &idx);
        if (row) {
                why_set(ret_why, 0, "%s: its %s has %llu bytes, %llu are allowed; set field_limit", shard,
                        intake->fields[idx].described.name, (unsigned long long)row->n_bytes,
                        (unsigned long long)intake->fields[idx].limit);
                return true;
        }
        if (take_span_of(intake, sample) <= intake->source.max_span)
                return false;
        why_set(ret_why, 0, "%s: its fields lie farther apart than %llu bytes; set field_limit", shard,
                (unsigned long long)intake->source.max_span);
        return true;
}

/* ---- appending ------------------------------------------------------------------------------------------------- */

static int break_sample(struct intake *intake, struct taken_sample *sample, const struct why *reason, struct why *why) {
        sample->broken = text_pool_add(&intake->texts, reason->text, strlen(reason->text), why);
        return sample->broken ? 0 : -ENOMEM;
}

static struct taken_sample *append_sample(struct intake *intake, uint32_t idx_shard, const char *name,
                                          struct why *why) {
        struct taken_sample *sample = pieces_append(&intake->samples, why);

        if (!sample)
                return NULL;
        sample->idx_shard = idx_shard;
        for (uint32_t i = 0; i < intake->n_fields; i++)
                sample->rows[i].offset = ROW_ABSENT;
        sample->name = text_pool_add(&intake->texts, name, strlen(name), why);
        return sample->name ? sample : NULL;
}

static int append_found(struct intake *intake, uint32_t idx_shard, const char *shard, const struct haul *haul,
                        const struct haul_sample *found, struct why *why) {
        struct taken_sample *sample = append_sample(intake, idx_shard, (const char *)haul->names.bytes + found->name,
                                                    why);
        struct why reason;

        if (!sample)
                return -ENOMEM;
        for (uint64_t k = 0; k < found->n_members; k++) {
                const struct haul_member *member = take_member_of(haul, found, k);

                sample->rows[member->idx_field] = (struct taken_row){ member->offset, member->n_bytes };
        }
        return is_broken(intake, shard, sample, &reason) ? break_sample(intake, sample, &reason, why) : 0;
}

/* The rest of a damaged shard is one sample, which is damaged. */
static int append_damage(struct intake *intake, uint32_t idx_shard, const char *shard, const struct why *damage,
                         struct why *why) {
        struct taken_sample *sample = append_sample(intake, idx_shard, shard, why);

        return sample ? break_sample(intake, sample, damage, why) : -ENOMEM;
}

static int append_all(struct intake *intake, const char *name, const char *path, const struct haul *haul,
                      struct why *why) {
        uint32_t idx_shard = (uint32_t)intake->shards.n;
        struct taken_shard *shard = pieces_append(&intake->shards, why);
        int r = 0;

        if (!shard)
                return -ENOMEM;
        shard->name = text_pool_add(&intake->texts, name, strlen(name), why);
        shard->path = path ? text_pool_add(&intake->texts, path, strlen(path), why) : shard->name;
        if (!shard->name || !shard->path)
                return -ENOMEM;
        for (uint64_t i = 0; i < haul->n_samples && r == 0; i++)
                r = append_found(intake, idx_shard, name, haul, take_sample_of(haul, i), why);
        if (r == 0 && haul->damage.text[0])
                r = append_damage(intake, idx_shard, name, &haul->damage, why);
        return r;
}

/* All or nothing: without memory for the whole shard, none of it is there. */
static int take_append(struct intake *intake, const char *name, const char *path, const struct haul *haul,
                       struct why *why) {
        uint64_t n_samples = intake->samples.n, n_shards = intake->shards.n;
        struct text_pool_mark mark = text_pool_mark(&intake->texts);
        int r = append_all(intake, name, path, haul, why);

        if (r == 0)
                return 0;
        pieces_cut(&intake->samples, n_samples);
        pieces_cut(&intake->shards, n_shards);
        text_pool_rewind(&intake->texts, &mark);
        return r;
}

/* ---- the roll ----------------------------------------------------------------------------------------------- */

/* FNV-1a of names and places: tells that a shard is another one, not that somebody wants to deceive. */
static uint64_t take_digest_of(const struct haul *haul) {
        const struct growing *parts[] = { &haul->samples, &haul->members, &haul->names };
        uint64_t digest = 0xcbf29ce484222325ull;

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                for (size_t k = 0; k < parts[i]->n_bytes; k++)
                        digest = (digest ^ parts[i]->bytes[k]) * 0x100000001b3ull;
        return digest;
}

/* Is it the shard that the roll has in this place? */
static bool is_as_noted(struct intake *intake, const char *name, uint64_t n_samples, uint64_t digest) {
        const char *noted_name;
        const struct roll_line *noted;

        if (intake->is_pipe || intake->shards.n >= roll_n(&intake->roll))
                return true;
        noted = roll_at(&intake->roll, intake->shards.n, &noted_name);
        if (strcmp(noted_name, name) == 0 && noted->n_samples == n_samples && noted->digest == digest)
                return true;
        intake_wait_for(intake,
                        "waits for the shard %s to be as it was: it has changed since the stream took it (%llu samples "
                        "then, %llu now); restore it, or remove %s, and the stream begins anew",
                        noted_name, (unsigned long long)noted->n_samples, (unsigned long long)n_samples,
                        intake->roll.path);
        return false;
}

static void take_note(struct intake *intake, const char *name, uint64_t n_samples, uint64_t digest) {
        struct why why;

        if (intake->is_pipe || intake->shards.n < roll_n(&intake->roll))
                return;
        if (roll_add(&intake->roll, n_samples, digest, name, &why) < 0)
                intake_trouble(intake, &why);
}

/* ---- a shard --------------------------------------------------------------------------------------------------- */

/* Shards without a sample before the first one that has some. */
static int take_note_empty(struct intake *intake, uint64_t idx_shard, struct why *why) {
        const struct taken_shard *shard = pieces_at(&intake->shards, idx_shard);

        return roll_add(&intake->roll, 0, take_digest_of(&(struct haul){ 0 }), shard->name, why);
}

/* The first shard that has samples: from it on the stream can be served. */
static int begin_stream(struct intake *intake, const char *name, const struct stat *status, const struct haul *haul,
                        struct why *why) {
        int r;

        if (haul->damage.text[0])
                return why_set(why, -EBADMSG, "%s/%s: %s; it is the first shard of a stream", intake->root, name,
                               haul->damage.text);
        take_measure(intake, haul);
        take_describe(intake, haul);
        r = take_make_digest(intake, name, haul);
        if (r == 0)
                r = pieces_init(&intake->samples,
                                sizeof(struct taken_sample) + intake->n_fields * sizeof(struct taken_row),
                                intake->budget, "the samples of a stream");
        if (r < 0)
                return why_errno(why, r, "a stream");
        intake->first = *status;
        if (intake->is_pipe || strcmp(intake->roll.digest, intake->digest) == 0)
                return 0;
        r = roll_begin(&intake->roll, intake->digest, why);
        for (uint64_t i = 0; i < intake->shards.n && r == 0; i++)
                r = take_note_empty(intake, i, why);
        if (r < 0)
                intake_trouble(intake, why);
        return 0;
}

int intake_take_walked(struct intake *intake, const char *name, const char *path, const struct stat *status,
                       const struct haul *haul, struct why *why) {
        uint64_t n_samples = haul->n_samples + (haul->damage.text[0] != '\0'), digest = take_digest_of(haul);
        struct growth_report *report;
        bool is_first = !intake->samples.pieces;
        int r = 0;

        if (is_first && n_samples == 0) /* it says nothing of the fields, and is noted with the first that does */
                return take_append(intake, name, path, haul, why) < 0 ? -ENOMEM : INTAKE_TAKEN;
        if (is_first)
                r = begin_stream(intake, name, status, haul, why);
        if (r == 0 && !is_as_noted(intake, name, n_samples, digest))
                return INTAKE_WAITS;
        if (r == 0)
                r = take_append(intake, name, path, haul, why);
        if (r < 0)
                return r;
        take_note(intake, name, n_samples, digest);
        report = growth_report_begin(intake->growth);
        report->n_shards = intake->shards.n;
        report->n_bytes += (uint64_t)status->st_size;
        report->waiting.text[0] = '\0';
        growth_report_end(intake->growth);
        if (haul->damage.text[0])
                log_error("stream", "%s/%s: %s", intake->root, name, haul->damage.text);
        growth_publish(intake->growth, intake->samples.n, false);
        return INTAKE_TAKEN;
}

static int take_wait_for_end(struct intake *intake, const char *name, const struct stat *status) {
        intake->tried = *status;
        intake_wait_for(intake, "waits for the end of the shard %s, which has %llu bytes so far", name,
                        (unsigned long long)status->st_size);
        return INTAKE_WAITS;
}

static int walk_and_take(struct intake *intake, int fd, const char *name, const struct stat *status, bool is_complete,
                         struct why *why) {
        _cleanup_(haul_fini) struct haul haul = { 0 };
        bool is_first = !intake->samples.pieces;
        int r = intake_walk(intake, fd, name, status, is_first, &haul, why);

        if (r == 0 && haul.is_cut && !is_complete)
                r = take_wait_for_end(intake, name, status);
        if (r == 0)
                r = intake_take_walked(intake, name, NULL, status, &haul, why);
        if (!intake->samples.pieces) /* the fields of a shard that was not taken do not count */
                intake->n_fields = 0;
        return r;
}

/* ---- compressed shards ----------------------------------------------------------------------------------------- */

/* What was unpacked is a file as any other, except that it does not grow. If the compressed data are damaged, the
 * archive ends there. */
static int take_unpacked(struct intake *intake, int fd, const char *name, const char *path, const struct stat *status,
                         enum unpacked how, const struct why *damage, struct why *why) {
        _cleanup_(haul_fini) struct haul haul = { 0 };
        bool is_first = !intake->samples.pieces;
        struct stat unpacked;
        int r = fstat(fd, &unpacked) < 0 ? why_errno(why, -errno, "%s", path) : 0;

        if (r == 0)
                r = intake_walk(intake, fd, name, &unpacked, is_first, &haul, why);
        if (r == 0 && haul.is_cut && how == UNPACKED_DAMAGED)
                why_set(&haul.damage, 0, "%s; what comes after it is left out", damage->text);
        if (r == 0)
                r = intake_take_walked(intake, name, path, status, &haul, why);
        if (!intake->samples.pieces)
                intake->n_fields = 0;
        if (r != INTAKE_TAKEN)
                spool_drop_last(&intake->spool, (uint64_t)unpacked.st_size);
        return r;
}

static int unpack_and_take(struct intake *intake, int fd, const char *name, const struct stat *status, bool is_complete,
                           struct why *why) {
        _cleanup_(closep) int unpacked = -1;
        uint64_t n_before = intake->spool.used_bytes;
        struct why damage = { 0 };
        char path[PATH_MAX];
        int r = 0;

        if (!intake->spool.folder)
                r = spool_open(&intake->spool, intake->spool_path, intake->spool_limit, why);
        if (r == 0)
                r = spool_unpack(&intake->spool, fd, intake->stopped, path, &unpacked, &damage);
        if (r < 0 && damage.text[0])
                *why = damage;
        if (r < 0)
                return r;
        if (r == UNPACKED_CUT && !is_complete) {
                spool_drop_last(&intake->spool, intake->spool.used_bytes - n_before);
                return take_wait_for_end(intake, name, status);
        }
        return take_unpacked(intake, unpacked, name, path, status, (enum unpacked)r, &damage, why);
}

/* ---- any shard ------------------------------------------------------------------------------------------------- */

int intake_take(struct intake *intake, const char *name, bool is_complete, struct why *why) {
        /* O_NONBLOCK: opening a FIFO must not block. */
        _cleanup_(closep) int fd = beneath_open(intake->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat status;
        int r;

        if (fd < 0 && errno == ENOENT) {
                intake_wait_for(intake, "waits for the shard %s", name);
                return INTAKE_WAITS;
        }
        if (fd < 0 || fstat(fd, &status) < 0) {
                intake_wait_for(intake, "waits for the shard %s, which cannot be read: %s", name, why_text(-errno));
                return INTAKE_WAITS;
        }
        if (!S_ISREG(status.st_mode)) {
                intake_wait_for(intake, "waits for the shard %s, which is not a regular file now", name);
                return INTAKE_WAITS;
        }
        if (!is_complete && file_is_same(&status, &intake->tried))
                return INTAKE_WAITS;
        r = spool_wants(fd);
        if (r < 0)
                why_errno(why, r, "%s: cannot be read", name);
        else if (r > 0)
                r = unpack_and_take(intake, fd, name, &status, is_complete, why);
        else
                r = walk_and_take(intake, fd, name, &status, is_complete, why);
        if (r >= 0 || r == -ECANCELED || !intake->samples.pieces)
                return r;
        intake_wait_for(intake, "waits for the shard %s, which cannot be taken: %s", name, why->text);
        return INTAKE_WAITS;
}
