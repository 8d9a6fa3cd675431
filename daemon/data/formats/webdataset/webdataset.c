#include "daemon/data/format.h"

/* webdataset: tar archives, either all of a folder or those that the path names. Files that follow each other and
 * differ only after the first dot of their names are the fields of one sample: "a/000.jpg", "a/000.cls" -> sample
 * "a/000" with the fields jpg and cls.
 *
 * The rules are those of the webdataset library. Where the library silently skips data because an archive is damaged,
 * this reports an error with archive and byte: a dataset that ends early would be a different one. Archives are taken
 * in the order of their names, or in the order in which the path or a list of wids names them. Only headers are read,
 * also where DALI has left an index beside an archive: to trust it, one would have to compare it with them. After that,
 * any order and any resume is as exact as for a folder of files.
 *
 * Further archives may be merged with those of the path, one with each: their fields go to the samples with the same
 * keys. Those samples and their sequence are the dataset's. */

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/files/shards.h"
#include "daemon/data/files/together.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/formats/webdataset/merge.h"
#include "daemon/data/formats/webdataset/shard_list.h"
#include "daemon/data/formats/webdataset/tar_cut.h"
#include "daemon/data/formats/webdataset/tar_walk.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

/* An archive, and what a list says of it. */
struct shard {
        const char *name;
        const struct listed_shard *listed; /* NULL: nothing */
        struct found_shard found;
};

#define LEFT_OUT UINT32_MAX

/* What is known of all archives. */
struct survey {
        int root_fd;
        const struct files *files;
        const char *root;
        const struct index_watch *watch;
        struct why *why;
        struct refusals *refusals;
        struct listed listed;
        struct shard_list list;
        struct shard *shards;
        size_t n_shards;    /* n_of_a_list of the path, whose samples count, then those of each list to merge */
        size_t n_of_a_list; /* the same number for each */
        struct walk *walks; /* one a thread */
        uint32_t n_walks;
        uint32_t (*idx_fields)[WALK_FIELDS_MAX]; /* [walk][its number of a field]: that of the dataset, or LEFT_OUT */
        struct found_field fields[INDEX_FIELDS_MAX];
        struct seen seen;
        size_t shard_of_field[INDEX_FIELDS_MAX]; /* the first that has it */
        uint32_t n_fields;
        uint64_t n_samples; /* while archives are read, those that are merged count, too */
        int64_t settled_ns;
};

static void survey_freep(struct survey **survey) {
        if (!*survey)
                return;
        listed_fini(&(*survey)->listed);
        shard_list_fini(&(*survey)->list);
        for (uint32_t i = 0; (*survey)->walks && i < (*survey)->n_walks; i++)
                walk_fini(&(*survey)->walks[i]);
        free((*survey)->shards);
        free((*survey)->walks);
        free((*survey)->idx_fields);
        free(*survey);
}

/* ---- the folder ------------------------------------------------------------------------------------------------ */

/* Includes compressed archives, which are refused when they are opened: without them it would be a different
 * dataset. */
static bool is_archive(const char *name) {
        static const char *const ENDINGS[] = { ".tar",    ".tar.gz", ".tgz",     ".tar.bz2", ".tbz",     ".tbz2",
                                               ".tar.xz", ".txz",    ".tar.zst", ".tzst",    ".tar.lz4", ".tar.Z" };

        for (size_t i = 0; i < ARRAY_SIZE(ENDINGS) && name[0] != '.'; i++)
                if (text_ends_with(name, ENDINGS[i]))
                        return true;
        return false;
}

static const struct shards_kind SHARDS = {
        .what = "tar archive",
        .pattern = "*.tar",
        .path = "a folder of .tar files, one of them, a pattern such as DIR/{a,b}/x-{000..127}.tar, or a list of them as "
                "wids-index writes it",
        .is_taken = is_archive,
};

/* What the list says of an archive must be so: it may be of another version of the dataset. */
static int check_listed(const struct survey *survey, const struct shard *shard, struct why *why) {
        const struct listed_shard *listed = shard->listed;
        uint64_t n_bytes = (uint64_t)shard->found.status.st_size;
        const char *list = survey->listed.names[0];

        if (listed->n_bytes != SHARD_LIST_UNKNOWN && listed->n_bytes != n_bytes)
                return why_set(why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " bytes, and %s says %" PRIu64
                               ": one of them is of another version; make the list anew with wids-index",
                               survey->root, shard->name, n_bytes, list, listed->n_bytes);
        if (listed->n_samples != SHARD_LIST_UNKNOWN && listed->n_samples != shard->found.n_keys)
                return why_set(why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " samples, and %s says %" PRIu64
                               ": one of them is of another version; make the list anew with wids-index",
                               survey->root, shard->name, shard->found.n_keys, list, listed->n_samples);
        return 0;
}

static bool webdataset_is_list(const struct files *files) {
        size_t n = files->n_names == 1 ? strlen(files->names[0]) : 0;

        return n > 5 && strcmp(files->names[0] + n - 5, ".json") == 0;
}

static int webdataset_make_shards(struct survey *survey, size_t n) {
        survey->n_of_a_list = n;
        survey->n_shards = n * (1 + survey->files->n_merged);
        survey->shards = calloc(survey->n_shards, sizeof(*survey->shards));
        return survey->shards ? 0 : index_builder_refused(-ENOMEM, survey->root, survey->why);
}

/* The archives that a list names. The list itself is the first archive, without samples: when it changes, the index is
 * made anew. */
static int take_list(struct survey *survey) {
        const struct listed_shard *listed;
        size_t n;
        int r = shard_list_read(&survey->list, survey->root_fd, survey->root, survey->listed.names[0],
                                &survey->settled_ns, survey->why);

        if (r < 0)
                return r;
        listed = (const void *)survey->list.shards.bytes;
        n = survey->list.shards.n_bytes / sizeof(*listed);
        r = webdataset_make_shards(survey, n + 1);
        if (r < 0)
                return r;
        survey->shards[0].name = survey->listed.names[0];
        survey->shards[0].found.status = survey->list.status;
        for (size_t i = 0; i < n; i++)
                survey->shards[i + 1] = (struct shard){ .name = (const char *)survey->list.names.bytes + listed[i].name,
                                                        .listed = &listed[i] };
        return 0;
}

/* The archives in the order of their names, or in the order in which the path or a list names them. */
static int find_shards(struct survey *survey, const char *split) {
        int r = shards_find(&survey->listed, survey->root_fd, survey->files, &SHARDS, split, &survey->settled_ns,
                            survey->why);

        if (r < 0)
                return r;
        if (webdataset_is_list(survey->files) && survey->files->n_merged > 0)
                return why_set(survey->why, -EINVAL,
                               "%s/%s: nothing can be merged with a list of archives; name them by a pattern",
                               survey->root, survey->files->names[0]);
        if (webdataset_is_list(survey->files))
                return take_list(survey);
        r = webdataset_make_shards(survey, survey->listed.n);
        for (size_t i = 0; r == 0 && i < survey->n_shards; i++)
                survey->shards[i].name = i < survey->listed.n ? survey->listed.names[i] : survey->files->names[i];
        return r;
}

static int webdataset_look_at(void *userdata, uint32_t idx_thread, size_t file, struct why *why) {
        struct survey *survey = userdata;
        struct shard *shard = &survey->shards[file];
        struct walk *walk = &survey->walks[idx_thread];
        int r;

        if (file == 0 && webdataset_is_list(survey->files))
                return 0;
        walk->why = why;
        r = walk_shard(walk, shard->name, &shard->found);
        return r == 0 && shard->listed ? check_listed(survey, shard, why) : r;
}

static uint64_t count(void *userdata) {
        const struct survey *survey = userdata;
        uint64_t n = 0;

        for (uint32_t i = 0; i < survey->n_walks; i++)
                n += atomic_load_explicit(&survey->walks[i].n_samples, memory_order_relaxed);
        return n;
}

static int webdataset_walk_all(struct survey *survey) {
        const struct together together = { .n_files = survey->n_shards,
                                           .look = webdataset_look_at,
                                           .count = count,
                                           .userdata = survey,
                                           .seen = &survey->seen,
                                           .watch = survey->watch };
        uint32_t n_walks = together_threads(survey->n_shards);
        struct why detail;
        int r;

        survey->walks = calloc(n_walks, sizeof(*survey->walks));
        survey->idx_fields = calloc(n_walks, sizeof(*survey->idx_fields));
        if (!survey->walks || !survey->idx_fields)
                return index_builder_refused(-ENOMEM, survey->root, survey->why);
        survey->n_walks = n_walks;
        for (uint32_t i = 0; i < n_walks; i++) {
                survey->walks[i].root_fd = survey->root_fd;
                survey->walks[i].root = survey->root;
                survey->walks[i].watch = survey->watch;
                survey->walks[i].seen = &survey->seen;
        }
        seen_begin(&survey->seen, survey->n_shards - (webdataset_is_list(survey->files) ? 1 : 0));
        r = together_run(&together, &detail);
        for (size_t i = 0; i < survey->n_of_a_list; i++)
                survey->n_samples += survey->shards[i].found.n_keys;
        if (r == -ECANCELED)
                return why_set(survey->why, r, "%s: indexing was cancelled", survey->root);
        if (r < 0)
                return why_set(survey->why, r, "%s", detail.text);
        if (survey->n_samples == 0)
                return why_set(survey->why, -ENOENT,
                               "%s: there is no sample in its archives: no file whose name has a dot", survey->root);
        return 0;
}

/* ---- fields of all --------------------------------------------------------------------------------------------- */

/* The number of the list of which an archive is: 0 of the path, then those that are merged. */
static size_t list_of(const struct survey *survey, size_t shard) {
        return shard / survey->n_of_a_list;
}

/* A field belongs to one list: else it would depend on the sample where it comes from. */
static int check_list(const struct survey *survey, uint32_t idx, size_t shard) {
        size_t first = idx == LEFT_OUT ? shard : survey->shard_of_field[idx];

        if (list_of(survey, first) == list_of(survey, shard))
                return 0;
        return why_set(survey->why, -EBADMSG,
                       "%s: the field %s is both in %s and in %s; archives that are merged have different fields",
                       survey->root, survey->fields[idx].name, survey->shards[first].name, survey->shards[shard].name);
}

/* The first ones have room; what comes after them is listed. */
static int webdataset_find_field(struct survey *survey, const char *name, size_t shard, uint32_t *ret_idx) {
        struct why detail;
        int r;

        for (*ret_idx = 0; *ret_idx < survey->n_fields; ++*ret_idx)
                if (strcmp(survey->fields[*ret_idx].name, name) == 0)
                        return check_list(survey, *ret_idx, shard);
        if (survey->n_fields == INDEX_FIELDS_MAX) {
                *ret_idx = LEFT_OUT;
                r = table_column_is_too_many(survey->refusals, name, false, &detail);
                return r < 0 ? why_set(survey->why, r, "%s: field %s: %s", survey->root, name, detail.text) : 0;
        }
        survey->shard_of_field[survey->n_fields++] = shard;
        return 0;
}

static int webdataset_take_field(struct survey *survey, const struct found_field *found, size_t shard,
                                 uint32_t *ret_idx) {
        struct found_field *field;
        int r = webdataset_find_field(survey, found->name, shard, ret_idx);

        if (r < 0 || *ret_idx == LEFT_OUT)
                return r;
        field = &survey->fields[*ret_idx];
        memcpy(field->name, found->name, sizeof(field->name));
        field->is_npy = found->is_npy;
        field->n_samples += found->n_samples;
        npy_survey_add(&field->npy, &found->npy);
        return 0;
}

/* Numbers the fields as one thread would have met them, whichever thread was faster. */
static int merge_fields(struct survey *survey) {
        bool(*is_met)[WALK_FIELDS_MAX] = calloc(survey->n_walks, sizeof(*is_met));
        int r = is_met ? 0 : index_builder_refused(-ENOMEM, survey->root, survey->why);

        for (size_t i = 0; r == 0 && i < survey->n_shards; i++) {
                const struct found_shard *shard = &survey->shards[i].found;
                const struct found_member *members;

                if (!shard->walk)
                        continue;
                members = (const void *)shard->walk->members.bytes;
                for (uint64_t k = shard->first_member; r == 0 && k < shard->first_member + shard->n_members; k++) {
                        size_t idx_walk = (size_t)(shard->walk - survey->walks);
                        uint32_t idx = members[k].idx_field;

                        if (!is_met[idx_walk][idx])
                                r = webdataset_take_field(survey, &shard->walk->fields[idx], i,
                                                          &survey->idx_fields[idx_walk][idx]);
                        else if (survey->files->n_merged > 0)
                                r = check_list(survey, survey->idx_fields[idx_walk][idx], i);
                        is_met[idx_walk][idx] = true;
                }
        }
        free(is_met);
        return r;
}

/* A list without a field would be one that was meant otherwise. */
static int webdataset_check_lists(const struct survey *survey) {
        for (size_t list = 1; list <= survey->files->n_merged; list++) {
                bool has_field = false;

                for (size_t i = 0; i < survey->n_of_a_list; i++)
                        has_field |= survey->shards[list * survey->n_of_a_list + i].found.n_members > 0;
                if (!has_field)
                        return why_set(survey->why, -EBADMSG,
                                       "%s: nothing can be merged from %s and the archives after it: they have no "
                                       "sample",
                                       survey->root, survey->shards[list * survey->n_of_a_list].name);
        }
        return 0;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

/* Arrays of one dtype and shape are known as arrays; others are bytes. */
static void webdataset_describe_field(const struct survey *survey, const struct found_field *found,
                                      struct index_builder *builder, uint32_t idx) {
        struct schema_field field = { .kind = member_kind(found->name),
                                      .may_be_absent = found->n_samples < survey->n_samples };

        strcpy(field.name, found->name);
        if (found->is_npy && !npy_survey_describe(&found->npy, &field))
                field.coding = CODING_NPY;
        index_builder_describe(builder, idx, &field);
        index_builder_set_shards_after(builder, idx,
                                       (uint32_t)(list_of(survey, survey->shard_of_field[idx]) * survey->n_of_a_list));
}

/* What an archive and those that are merged with it have of its samples. */
struct giving {
        const struct survey *survey;
        struct index_builder *builder;
        struct index_row rows[INDEX_FIELDS_MAX];            /* of the sample that is given */
        struct growing first_members[1 + FILES_MERGED_MAX]; /* uint64_t of its samples; of the archive itself not
                                                             * needed */
};

static void giving_freep(struct giving **giving) {
        for (size_t i = 0; *giving && i < ARRAY_SIZE((*giving)->first_members); i++)
                growing_fini(&(*giving)->first_members[i]);
        free(*giving);
}

/* Finds the members of the archives that are merged with number `idx`. */
static int webdataset_match(struct giving *giving, size_t idx) {
        const struct survey *survey = giving->survey;
        const struct shard *base = &survey->shards[idx];
        int r = 0;

        for (size_t list = 1; list <= survey->files->n_merged && r == 0; list++) {
                const struct shard *other = &survey->shards[list * survey->n_of_a_list + idx];
                const struct merge_pair pair = { .root = survey->root,
                                                 .base_name = base->name,
                                                 .other_name = other->name,
                                                 .base = &base->found,
                                                 .other = &other->found };

                r = growing_reserve(&giving->first_members[list], (base->found.n_keys + 1) * sizeof(uint64_t));
                if (r < 0)
                        return index_builder_refused(r, survey->root, survey->why);
                r = merge_match(&pair, (void *)giving->first_members[list].bytes, survey->why);
        }
        return r;
}

/* The rows of the members from number `at` on that are of one sample. Returns the number after them. */
static uint64_t webdataset_take_rows(const struct survey *survey, const struct found_shard *shard, uint64_t at,
                                     uint64_t file, struct index_row *rows) {
        const struct found_member *members = (const struct found_member *)(const void *)shard->walk->members.bytes +
                                             shard->first_member;
        const uint32_t *idx_fields = survey->idx_fields[shard->walk - survey->walks];
        uint32_t idx_sample = members[at].idx_sample;

        for (; at < shard->n_members && members[at].idx_sample == idx_sample; at++) {
                uint32_t idx = idx_fields[members[at].idx_field];

                if (idx != LEFT_OUT)
                        rows[idx] = (struct index_row){ .file = file,
                                                        .offset = members[at].offset,
                                                        .length = members[at].n_bytes };
        }
        return at;
}

static int give_samples(struct giving *giving, size_t idx) {
        const struct survey *survey = giving->survey;
        const struct found_shard *shard = &survey->shards[idx].found;
        const uint64_t *keys = (const uint64_t *)(const void *)shard->walk->keys.bytes + shard->first_key;
        const char *names = (const char *)shard->walk->names.bytes;
        uint64_t at = 0;
        int r = webdataset_match(giving, idx);

        for (uint64_t i = 0; i < shard->n_keys && r >= 0; i++) {
                struct index_row *rows = giving->rows;
                uint64_t file = 0;

                r = index_builder_add_path(giving->builder, names + keys[i], 0, &file);
                if (r < 0)
                        break;
                for (uint32_t k = 0; k < survey->n_fields; k++)
                        rows[k] = (struct index_row){ .file = file, .offset = INDEX_ROW_ABSENT };
                at = webdataset_take_rows(survey, shard, at, file, rows);
                for (size_t list = 1; list <= survey->files->n_merged; list++) {
                        const uint64_t *first_members = (const void *)giving->first_members[list].bytes;

                        if (first_members[i] != MERGE_NOTHING)
                                webdataset_take_rows(survey, &survey->shards[list * survey->n_of_a_list + idx].found,
                                                     first_members[i], file, rows);
                }
                r = index_builder_add_sample(giving->builder, rows, 0);
        }
        return r;
}

static int webdataset_make_index(const struct survey *survey, struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(giving_freep) struct giving *giving = calloc(1, sizeof(*giving));
        int r = giving ? index_builder_new(format_webdataset.name, survey->n_fields, &builder) : -ENOMEM;

        if (r < 0)
                return index_builder_refused(r, survey->root, survey->why);
        giving->survey = survey;
        giving->builder = builder;
        for (uint32_t i = 0; i < survey->n_fields; i++)
                webdataset_describe_field(survey, &survey->fields[i], builder, i);
        r = listed_give_root(&survey->listed, survey->files, builder);
        if (r >= 0 && webdataset_is_list(survey->files))
                index_builder_set_listed(builder, true);
        for (size_t i = 0; i < survey->n_shards; i++)
                if (survey->shards[i].found.has_links)
                        index_builder_set_scattered(builder);
        for (size_t i = 0; i < survey->n_shards && r >= 0; i++) {
                const struct shard *shard = &survey->shards[i];

                r = index_builder_add_shard(builder, shard->name, &shard->found.status);
                if (r < 0)
                        break;
                if (shard->found.walk && list_of(survey, i) == 0) {
                        r = give_samples(giving, i);
                        if (r == -EBADMSG)
                                return r; /* of merging, with its reason */
                }
        }
        if (r < 0)
                return index_builder_refused(r, survey->root, survey->why);
        *ret_builder = TAKE_PTR(builder);
        return 0;
}

static int webdataset_build(int root_fd, const struct files *files, const struct format_options *options,
                            const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(survey_freep) struct survey *survey = calloc(1, sizeof(*survey));
        int r;

        if (!survey)
                return why_errno(why, -ENOMEM, "%s", files->root);
        survey->root_fd = root_fd;
        survey->files = files;
        survey->root = files->root;
        survey->watch = watch;
        survey->why = why;
        survey->refusals = format_refusals(options);
        r = find_shards(survey, format_option(options, "split"));
        if (r == 0)
                r = webdataset_walk_all(survey);
        if (r == 0)
                r = merge_fields(survey);
        if (r == 0)
                r = webdataset_check_lists(survey);
        if (r < 0)
                return r;
        r = webdataset_make_index(survey, ret_builder);
        if (r < 0)
                return r;
        if (watch && watch->progress)
                watch->progress(watch->userdata, survey->n_samples);
        return 0;
}

static int webdataset_is_it(int root_fd, const struct files *files) {
        char path[PATH_MAX];
        int r = shard_list_is_it(root_fd, files);

        if (r == 0 && files->n_names > 0)
                return format_names_files(root_fd, files, is_archive);
        return r != 0 ? r : shards_first(root_fd, files, &SHARDS, path);
}

static const struct setting OPTIONS[] = {
        { .name = FORMAT_MERGE,
          .kind = SETTING_OPTIONAL,
          .max = 65535,
          .prose = "Archives with further fields of the same samples, one for each archive of the path, in the same "
                   "sequence, as in \"/e/captions-{000..127}.tar\"." },
        { .name = FORMAT_STREAM,
          .kind = SETTING_OPTIONAL,
          .max = 15,
          .check = format_option_check_yes_no,
          .prose = "Whether the archives are served while they are still being written; empty: no." },
        { .name = "field_limit",
          .kind = SETTING_SIZE,
          .min = 1,
          .max = 1ull << 60,
          .unit = "bytes",
          .prose = "Of a stream: the most bytes of a field; empty: 8 times the longest of the first shard, at least "
                   "16384." },
        { .name = "spool",
          .kind = SETTING_OPTIONAL,
          .max = PATH_MAX - 1,
          .check = setting_check_path,
          .prose =
                  "Of a stream: the folder in which compressed shards are unpacked, an absolute path; empty: beside the "
                  "indices." },
        { .name = "spool_limit",
          .kind = SETTING_SIZE,
          .min = 1,
          .max = 1ull << 60,
          .unit = "bytes",
          .prose = "Of a stream: the most bytes that are unpacked at a time, such as 64GiB; empty: 4GiB." },
        OPTION_SPLIT,
        { 0 },
};

static bool webdataset_begins(const uint8_t *head, size_t n) {
        (void)n;
        return memcmp(head + 257, "ustar", 5) == 0;
}

static const struct format_naming ARCHIVES[] = { { ".tar", .is_end = true },
                                                 { ".tgz", .is_end = true },
                                                 { ".tzst", .is_end = true },
                                                 { ".txz", .is_end = true },
                                                 { ".tbz", .is_end = true },
                                                 { ".tbz2", .is_end = true },
                                                 { 0 } };

static const struct format_written WRITTEN = {
        .suffix = ".tar", .n_head = FORMAT_HEAD_BYTES, .begins_so = webdataset_begins, .names = ARCHIVES
};

const struct format format_webdataset = {
        .name = "webdataset",
        .doc = "A folder of tar archives (`*.tar`, in the order of their names), a single archive, or a pattern of "
               "archives, as the webdataset library writes them, or a list of archives as wids-index writes it "
               "(`.json`). Consecutive files whose names differ only after the first dot are the fields of one "
               "sample.",
        .example = "path = \"/data/x-{000..127}.tar\" fields = \"image=jpg|png, label=cls\"",
        .takes_files = true,
        .is_read_through = true,
        .cut = tar_cut,
        .n_cut_zeros = TAR_CUT_ZEROS,
        .options = OPTIONS,
        .written = &WRITTEN,
        .is_it = webdataset_is_it,
        .build = webdataset_build,
};
