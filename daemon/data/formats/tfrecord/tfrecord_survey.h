/* data/formats/tfrecord/tfrecord_survey.h: what all records of a dataset have in common, found in one pass over them.
 *
 * A TFRecord file has no schema: each record may have any features, of any type and length. The survey decides for each
 * feature how it is delivered, from all records and from nothing else, so the same records always give the same schema:
 *
 *      one bytes value in each record        stored: a picture, text or bytes
 *      several bytes values in some record   stored as the message that holds them (BytesList): texts, or bytes
 *      numbers, at most SURVEY_FEW a record  kept in memory: a scalar, an array [k], or ragged [-1]
 *      more numbers, packed in one run       stored: an array [k], or ragged [-1]
 *      a list of steps of k numbers each     kept in memory: [T, k], or ragged [-1, k]; without k if it is 1
 *      any other list of steps               stored as its message (FeatureList): a list of texts if each step is one
 *                                            text, else bytes
 *
 * If the first record is not an example, records are delivered whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/field_name.h"
#include "daemon/data/formats/tfrecord/example.h"
#include "daemon/data/formats/tfrecord/records.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/refusals.h"

/* Features that cannot be served are among them, so that they are known again. */
#define SURVEY_FEATURES_MAX (INDEX_FIELDS_MAX + REFUSALS_MAX)

#define SURVEY_FEW 32u /* numbers: more of them are read when they are needed, and do not make the index long */

enum found_form {
        FOUND_NUMBERS, /* kept: `numbers`, and `counts` if they differ */
        FOUND_RUN,     /* stored: the place of the packed numbers */
        FOUND_VALUE,   /* stored: the place of the one bytes value */
        FOUND_MESSAGE, /* stored: the place of the whole list */
};

struct found_place {
        uint64_t offset, n_bytes; /* INDEX_ROW_ABSENT, 0: the record does not have it */
};

struct found_feature {
        char name[SCHEMA_NAME_MAX];
        bool is_list;
        bool is_left_out; /* it cannot be served, and is among the refusals: only its name counts */
        enum found_form form;
        enum feature_type type; /* FEATURE_NONE until a value was seen, */
        size_t typed_shard;     /* first in this shard (offset into shard_names), */
        uint64_t typed_record;  /* and in this record of it */

        uint64_t n_records;  /* of the dataset up to the last one that has the feature */
        uint64_t n_with;     /* records that have the feature */
        uint64_t count;      /* of values, or of steps: in each record so far, if not is_varying */
        uint64_t step_count; /* of values in each step; 0 until one was seen */
        bool is_varying;
        bool is_not_text, is_not_picture, is_not_sound; /* some bytes value is not */
        bool is_not_single;                             /* some step is not one bytes value */

        struct growing places;  /* struct found_place, of records 0 .. n_records - 1 */
        struct growing numbers; /* floats or int64 of all records, one after the other */
        struct growing
                counts;  /* uint32_t, of records 0 .. n_records - 1; empty while none is absent and none differs */
        size_t n_before; /* bytes of numbers without those of the last record */
};

struct survey {
        struct refusals *refusals; /* NULL: what cannot be served is an error */
        struct found_feature features[SURVEY_FEATURES_MAX];
        uint32_t n_features, n_left_out;
        uint16_t places[FIELD_NAME_PLACES]; /* by name: 1 + the index of a feature; 0: none */
        uint32_t idx_next;                  /* features usually come in the same sequence */
        uint64_t n_records;
        enum survey_kind {
                SURVEY_UNDECIDED,
                SURVEY_EXAMPLES,
                SURVEY_RECORDS
        } kind;
        struct found_feature whole; /* the records, until it is decided that they are examples */
        const struct record *record;
        struct growing shard_names; /* each with a NUL, for messages */
        size_t shard_name;          /* where the name of the current shard is */
        bool needs_again;
};

#define SURVEY_ABSENT UINT32_MAX /* in counts */

/* Positive outcome of survey_add(): a feature needs another form than the one in which earlier records gave it. The
 * survey has forgotten all records, but not the form: add all of them again. */
#define SURVEY_AGAIN 1

/* Takes a struct of zeroes; also after `refusals` was set. */
void survey_fini(struct survey *survey);

/* The records that are added from now on are of this shard. Returns 0 or -ENOMEM. */
int survey_begin_shard(struct survey *survey, const char *name);

/* Adds the next record; a feature that cannot be served is left out from there on. Returns 0; SURVEY_AGAIN; -EBADMSG,
 * -ENOTSUP or -E2BIG for what cannot be served; -ENOMEM. `why` begins with a feature or with "it", and does not name
 * the record. */
int survey_add(struct survey *survey, const struct record *record, struct why *why);

/* After the last record: makes places and counts as long as the dataset, drops features without any value, and sorts
 * the others by name. Records that are not examples have one feature, "record". Returns 0 or -ENOMEM. */
int survey_finish(struct survey *survey);
