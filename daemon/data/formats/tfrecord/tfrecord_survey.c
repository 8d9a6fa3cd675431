#include "daemon/data/formats/tfrecord/tfrecord_survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/table_columns.h"
#include "daemon/data/looks_like.h"

_Static_assert(SURVEY_FEATURES_MAX < FIELD_NAME_PLACES, "an empty place ends each search");

#define STEP_VALUES_MAX (1u << 20) /* of one step: beyond it the list is stored as its message */

static void tfrecord_survey_forget(struct found_feature *feature) {
        growing_fini(&feature->places);
        growing_fini(&feature->numbers);
        growing_fini(&feature->counts);
}

/* Keeps what the next pass has to know: which features there are, and their forms. */
static void forget_all(struct survey *survey) {
        for (uint32_t i = 0; i < survey->n_features; i++) {
                struct found_feature kept = { .is_list = survey->features[i].is_list,
                                              .is_left_out = survey->features[i].is_left_out,
                                              .form = survey->features[i].form };

                memcpy(kept.name, survey->features[i].name, sizeof(kept.name));
                tfrecord_survey_forget(&survey->features[i]);
                survey->features[i] = kept;
        }
        tfrecord_survey_forget(&survey->whole);
        survey->whole = (struct found_feature){ 0 };
        survey->n_records = 0;
        survey->kind = SURVEY_UNDECIDED;
        survey->needs_again = false;
        growing_clear(&survey->shard_names);
}

void survey_fini(struct survey *survey) {
        for (uint32_t i = 0; i < survey->n_features; i++)
                tfrecord_survey_forget(&survey->features[i]);
        tfrecord_survey_forget(&survey->whole);
        growing_fini(&survey->shard_names);
}

int survey_begin_shard(struct survey *survey, const char *name) {
        size_t at = survey->shard_names.n_bytes;
        int r = growing_append(&survey->shard_names, name, strlen(name) + 1);

        if (r >= 0)
                survey->shard_name = at;
        return r;
}

/* ---- features by name ------------------------------------------------------------------------------------------ */

static bool tfrecord_survey_has_name(const struct found_feature *found, const char *name, size_t n) {
        return memcmp(found->name, name, n) == 0 && found->name[n] == '\0';
}

/* The place of the feature with this name, or the empty one where it belongs. */
static uint16_t *tfrecord_survey_place_of(struct survey *survey, const char *name, size_t n) {
        uint32_t at = field_name_place(name, n);

        while (survey->places[at] != 0 && !tfrecord_survey_has_name(&survey->features[survey->places[at] - 1], name, n))
                at = (at + 1) % FIELD_NAME_PLACES;
        return &survey->places[at];
}

static enum found_form first_form(const struct feature *feature) {
        return feature->is_list || feature->type != FEATURE_BYTES ? FOUND_NUMBERS : FOUND_VALUE;
}

static int add_feature(struct survey *survey, const struct feature *feature, struct found_feature **ret_found,
                       struct why *why) {
        struct found_feature *found = &survey->features[survey->n_features];

        if (!looks_like_text(feature->name.at, wire_left(&feature->name)))
                return why_set(why, -EBADMSG, "the name of a feature is not valid UTF-8");
        if (survey->n_features == (survey->refusals ? SURVEY_FEATURES_MAX : INDEX_FIELDS_MAX))
                return why_set(why, -E2BIG,
                               "feature %.*s is one more than the %u that a dataset may have: write fewer features",
                               (int)wire_left(&feature->name), (const char *)feature->name.at, survey->n_features);
        *found = (struct found_feature){ .is_list = feature->is_list, .form = first_form(feature) };
        field_name_from((const char *)feature->name.at, wire_left(&feature->name), found->name);
        if (survey->n_features - survey->n_left_out == INDEX_FIELDS_MAX) {
                int r = table_column_is_too_many(survey->refusals, found->name, false, why);

                if (r < 0)
                        return r;
                found->is_left_out = true;
                survey->n_left_out++;
        }
        survey->n_features++;
        *tfrecord_survey_place_of(survey, found->name, strlen(found->name)) = (uint16_t)survey->n_features;
        *ret_found = found;
        return 0;
}

static int find_feature(struct survey *survey, const struct feature *feature, struct found_feature **ret_found,
                        struct why *why) {
        const char *name = (const char *)feature->name.at;
        size_t n = wire_left(&feature->name);
        uint32_t idx = survey->idx_next;
        char cut[SCHEMA_NAME_MAX];

        if (n == 0)
                return why_set(why, -EBADMSG, "it has a feature without a name");
        if (n >= SCHEMA_NAME_MAX) {
                field_name_from(name, n, cut);
                name = cut;
                n = strlen(cut);
        }
        if (idx >= survey->n_features || !tfrecord_survey_has_name(&survey->features[idx], name, n)) {
                idx = *tfrecord_survey_place_of(survey, name, n);
                if (idx-- == 0)
                        return add_feature(survey, feature, ret_found, why);
        }
        survey->idx_next = idx + 1;
        *ret_found = &survey->features[idx];
        return 0;
}

static int check_type(struct survey *survey, struct found_feature *found, enum feature_type type, struct why *why) {
        static const char *const NAMES[] = { "nothing", "bytes", "floats", "integers" };

        if (found->type == FEATURE_NONE && type != FEATURE_NONE) {
                found->type = type;
                found->typed_shard = survey->shard_name;
                found->typed_record = survey->record->number;
        }
        if (type == FEATURE_NONE || type == found->type)
                return 0;
        return why_set(why, -ENOTSUP,
                       "feature %s holds %s, but in record %" PRIu64 " of %s it holds %s: a field has one type",
                       found->name, NAMES[type], found->typed_record,
                       (const char *)survey->shard_names.bytes + found->typed_shard, NAMES[found->type]);
}

/* ---- one record of one feature --------------------------------------------------------------------------------- */

static int append_counts(struct found_feature *found, uint32_t count, uint64_t n) {
        int r = 0;

        for (uint64_t i = 0; i < n && r >= 0; i++)
                r = growing_append(&found->counts, &count, sizeof(count));
        return r;
}

/* Records up to n_records, of which the last ones do not have the feature. */
static int tfrecord_survey_pad(struct found_feature *found, uint64_t n_records) {
        static const struct found_place ABSENT = { .offset = INDEX_ROW_ABSENT };
        uint64_t n_absent = n_records - found->n_records;
        int r = 0;

        if (n_absent == 0)
                return 0;
        if (found->form != FOUND_NUMBERS) {
                for (uint64_t i = 0; i < n_absent && r >= 0; i++)
                        r = growing_append(&found->places, &ABSENT, sizeof(ABSENT));
        } else {
                if (found->counts.n_bytes == 0)
                        r = append_counts(found, (uint32_t)found->count, found->n_records);
                if (r >= 0)
                        r = append_counts(found, SURVEY_ABSENT, n_absent);
        }
        if (r >= 0)
                found->n_records = n_records;
        return r;
}

/* A record may have a feature twice; the last one counts. */
static void take_back(struct found_feature *found) {
        found->n_records--;
        found->n_with--;
        if (found->form != FOUND_NUMBERS)
                found->places.n_bytes -= sizeof(struct found_place);
        else
                found->numbers.n_bytes = found->n_before;
        if (found->counts.n_bytes > 0)
                found->counts.n_bytes -= sizeof(uint32_t);
}

static int begin_record(const struct survey *survey, struct found_feature *found) {
        if (found->n_records > survey->n_records)
                take_back(found);
        return tfrecord_survey_pad(found, survey->n_records);
}

static void end_record(struct found_feature *found, uint64_t count) {
        if (found->n_with == 0)
                found->count = count;
        found->is_varying |= count != found->count;
        found->n_with++;
        found->n_records++;
}

static int add_place(const struct survey *survey, struct found_feature *found, const struct wire *bytes,
                     uint64_t count) {
        const struct record *record = survey->record;
        struct found_place place = { .offset = record->offset, .n_bytes = wire_left(bytes) };
        int r = begin_record(survey, found);

        if (bytes->at) /* an empty message may be left out */
                place.offset += (uint64_t)(bytes->at - record->bytes);
        if (r >= 0)
                r = growing_append(&found->places, &place, sizeof(place));
        if (r >= 0)
                end_record(found, count);
        return r;
}

static int add_count(struct found_feature *found, uint64_t count) {
        bool is_first = found->n_with == 0;
        int r = 0;

        if (found->counts.n_bytes == 0 && (is_first || count == found->count))
                return 0; /* all are the same so far */
        if (found->counts.n_bytes == 0)
                r = append_counts(found, (uint32_t)found->count, found->n_records);
        return r < 0 ? r : append_counts(found, (uint32_t)count, 1);
}

static void change_form(struct survey *survey, struct found_feature *found, enum found_form form) {
        found->form = form;
        survey->needs_again = true;
}

/* ---- bytes ----------------------------------------------------------------------------------------------------- */

static void tfrecord_survey_look_at(struct found_feature *found, const struct wire *value) {
        size_t n = wire_left(value);

        found->is_not_picture = found->is_not_picture || !looks_like_picture(value->at, n);
        found->is_not_sound = found->is_not_sound || !looks_like_sound(value->at, n);
        found->is_not_text = found->is_not_text || !looks_like_text(value->at, n);
}

static void look_at_text(struct found_feature *found, const struct wire *value) {
        found->is_not_text = found->is_not_text || !looks_like_text(value->at, wire_left(value));
}

static int add_several(struct survey *survey, struct found_feature *found, const struct feature *feature,
                       const struct feature_values *values) {
        struct wire list = feature->message;
        struct wire_field field;

        while (!found->is_not_text && wire_left(&list) > 0 && wire_next(&list, &field))
                if (field.number == 1)
                        look_at_text(found, &field.bytes);
        return add_place(survey, found, &feature->message, values->n_values);
}

static int tfrecord_survey_add_bytes(struct survey *survey, struct found_feature *found, const struct feature *feature,
                                     const struct feature_values *values) {
        if (found->form == FOUND_MESSAGE)
                return add_several(survey, found, feature, values);
        if (values->n_values > 1)
                change_form(survey, found, FOUND_MESSAGE);
        if (values->n_values != 1) /* without one it is as if the feature were missing */
                return 0;
        tfrecord_survey_look_at(found, &values->first);
        return add_place(survey, found, &values->first, 1);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static size_t number_bytes(enum feature_type type) {
        return type == FEATURE_FLOATS ? sizeof(float) : sizeof(int64_t);
}

/* Appends the numbers of a feature, or of one step. */
static int append_numbers(struct found_feature *found, const struct feature *feature, uint64_t n_values) {
        size_t at = found->numbers.n_bytes;
        int r = growing_append(&found->numbers, NULL, (size_t)n_values * number_bytes(feature->type));

        if (r >= 0 && n_values > 0)
                feature_numbers(feature, found->numbers.bytes + at);
        return r;
}

static int add_numbers(struct survey *survey, struct found_feature *found, const struct feature *feature,
                       const struct feature_values *values, struct why *why) {
        int r;

        if (found->form == FOUND_NUMBERS && values->n_values > SURVEY_FEW)
                change_form(survey, found, FOUND_RUN);
        if (found->form == FOUND_RUN && !values->is_one_run)
                return why_set(why, -ENOTSUP,
                               "feature %s has up to %" PRIu64
                               " numbers or more, which are not packed; write the files "
                               "with a current TensorFlow, which packs them",
                               found->name, values->n_values);
        if (survey->needs_again)
                return 0;
        if (found->form == FOUND_RUN)
                return add_place(survey, found, &values->first, values->n_values);
        r = begin_record(survey, found);
        found->n_before = found->numbers.n_bytes;
        if (r >= 0)
                r = append_numbers(found, feature, values->n_values);
        if (r >= 0)
                r = add_count(found, values->n_values);
        if (r >= 0)
                end_record(found, values->n_values);
        return r;
}

static int add_plain(struct survey *survey, struct found_feature *found, const struct feature *feature,
                     struct why *why) {
        struct feature_values values;
        int r = feature_count(feature, &values);

        if (r < 0)
                return why_set(why, r, "feature %s is damaged", found->name);
        r = check_type(survey, found, feature->type, why);
        if (r < 0)
                return r;
        if (feature->type == FEATURE_BYTES)
                return tfrecord_survey_add_bytes(survey, found, feature, &values);
        return add_numbers(survey, found, feature, &values, why);
}

/* ---- lists of steps -------------------------------------------------------------------------------------------- */

/* Do all steps so far, of all records, have as many numbers as this one? */
static bool tfrecord_survey_fits(struct found_feature *found, const struct feature *step, uint64_t n_values) {
        if (step->type == FEATURE_NONE || step->type == FEATURE_BYTES || n_values == 0 || n_values > STEP_VALUES_MAX)
                return false;
        if (found->step_count == 0)
                found->step_count = n_values;
        return n_values == found->step_count;
}

static void look_at_step(struct found_feature *found, const struct feature *step, const struct feature_values *values) {
        if (step->type != FEATURE_BYTES || values->n_values != 1)
                found->is_not_single = true;
        else
                look_at_text(found, &values->first);
}

/* Counts the steps, and appends their numbers while the form is that of numbers. */
static int walk_steps(struct survey *survey, struct found_feature *found, const struct feature *feature,
                      uint64_t *ret_n, struct why *why) {
        struct wire steps = feature->message;
        struct feature_values values;
        struct feature step;
        uint64_t n = 0;
        int r, more;

        for (; (more = feature_next_step(&steps, &step)) > 0; n++) {
                r = feature_count(&step, &values);
                if (r < 0)
                        return why_set(why, r, "feature list %s is damaged", found->name);
                r = check_type(survey, found, step.type, why);
                if (r < 0)
                        return r;
                look_at_step(found, &step, &values);
                if (found->form == FOUND_NUMBERS && !tfrecord_survey_fits(found, &step, values.n_values))
                        change_form(survey, found, FOUND_MESSAGE);
                r = found->form == FOUND_NUMBERS ? append_numbers(found, &step, values.n_values) : 0;
                if (r < 0)
                        return r;
        }
        if (more < 0)
                return why_set(why, more, "feature list %s is damaged", found->name);
        *ret_n = n;
        return 0;
}

static int tfrecord_survey_add_list(struct survey *survey, struct found_feature *found, const struct feature *feature,
                                    struct why *why) {
        uint64_t n_steps = 0;
        int r;

        if (found->form == FOUND_NUMBERS) {
                r = begin_record(survey, found);
                if (r < 0)
                        return r;
                found->n_before = found->numbers.n_bytes;
        }
        r = walk_steps(survey, found, feature, &n_steps, why);
        if (r < 0 || survey->needs_again)
                return r;
        if (found->form == FOUND_MESSAGE)
                return add_place(survey, found, &feature->message, n_steps);
        r = add_count(found, n_steps);
        if (r >= 0)
                end_record(found, n_steps);
        return r;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Nobody may ask for the feature: the others are served. */
static int tfrecord_survey_leave_out(struct survey *survey, struct found_feature *found, int error,
                                     const struct why *why) {
        struct why reason;
        int r;

        if (!survey->refusals || !refusals_are_for(error))
                return error;
        why_set(&reason, error, "%s: record %" PRIu64 ": %s",
                (const char *)survey->shard_names.bytes + survey->shard_name, survey->record->number, why->text);
        r = refusals_add(survey->refusals, found->name, error, &reason);
        if (r < 0)
                return r;
        tfrecord_survey_forget(found);
        found->is_left_out = true;
        survey->n_left_out++;
        return 0;
}

static int add_feature_of(struct survey *survey, struct found_feature *found, const struct feature *feature,
                          struct why *why) {
        if (found->is_list != feature->is_list)
                return why_set(why, -ENOTSUP,
                               "%s is a feature of the context and also the name of a feature list: rename one",
                               found->name);
        return feature->is_list ? tfrecord_survey_add_list(survey, found, feature, why)
                                : add_plain(survey, found, feature, why);
}

static int take_feature(void *userdata, const struct feature *feature, struct why *why) {
        struct survey *survey = userdata;
        struct found_feature *found = NULL;
        int r = find_feature(survey, feature, &found, why);

        if (r < 0 || found->is_left_out)
                return r;
        r = add_feature_of(survey, found, feature, why);
        if (r == -ENOMEM)
                return why_errno(why, r, "feature %s", found->name);
        return r < 0 ? tfrecord_survey_leave_out(survey, found, r, why) : 0;
}

static int count_features(void *userdata, const struct feature *feature, struct why *why) {
        struct feature_values values;

        (void)why;
        ++*(uint64_t *)userdata;
        return feature->is_list ? 0 : feature_count(feature, &values);
}

/* The first record that has anything in it decides. */
static void decide(struct survey *survey) {
        uint64_t n_features = 0;
        int r = example_scan(survey->record->bytes, survey->record->n_bytes, count_features, &n_features, NULL);

        if (r < 0)
                survey->kind = SURVEY_RECORDS;
        else if (n_features > 0)
                survey->kind = SURVEY_EXAMPLES;
        if (survey->kind == SURVEY_EXAMPLES)
                tfrecord_survey_forget(&survey->whole);
}

static int add_whole(struct survey *survey, const struct record *record) {
        struct wire bytes = { .at = record->bytes, .end = record->bytes + record->n_bytes };

        survey->whole.form = FOUND_VALUE;
        tfrecord_survey_look_at(&survey->whole, &bytes);
        return add_place(survey, &survey->whole, &bytes, 1);
}

int survey_add(struct survey *survey, const struct record *record, struct why *why) {
        int r;

        survey->record = record;
        survey->idx_next = 0;
        if (survey->kind == SURVEY_UNDECIDED)
                decide(survey);
        if (survey->kind == SURVEY_EXAMPLES)
                r = example_scan(record->bytes, record->n_bytes, take_feature, survey, why);
        else if ((r = add_whole(survey, record)) < 0)
                why_errno(why, r, "the place of the record");
        if (r < 0)
                return r;
        survey->n_records++;
        if (!survey->needs_again)
                return 0;
        forget_all(survey);
        return SURVEY_AGAIN;
}

static int tfrecord_survey_by_name(const void *one, const void *other) {
        return strcmp(((const struct found_feature *)one)->name, ((const struct found_feature *)other)->name);
}

int survey_finish(struct survey *survey) {
        uint32_t n = 0;
        int r = 0;

        if (survey->kind != SURVEY_EXAMPLES && survey->n_records > 0) {
                survey->features[0] = survey->whole;
                strcpy(survey->features[0].name, "record");
                survey->features[0].type = FEATURE_BYTES;
                survey->whole = (struct found_feature){ 0 };
                survey->n_features = 1;
        }
        for (uint32_t i = 0; i < survey->n_features; i++) {
                struct found_feature found = survey->features[i];

                if (found.n_with == 0 || found.type == FEATURE_NONE || found.is_left_out)
                        tfrecord_survey_forget(&found);
                else
                        survey->features[n++] = found;
        }
        survey->n_features = n;
        qsort(survey->features, n, sizeof(survey->features[0]), tfrecord_survey_by_name);
        for (uint32_t i = 0; i < n && r >= 0; i++)
                r = tfrecord_survey_pad(&survey->features[i], survey->n_records);
        return r;
}
