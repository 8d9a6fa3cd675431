/* data/schema.h: the fields of a dataset's samples.
 *
 * A sample is a record of fields; all samples of a dataset have the same fields. A field is either stored, as bytes
 * that a codec turns into a tensor, or a value that the dataset knows without reading anything (a column). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/layout.h"

#define SCHEMA_FIELDS_MAX 1026u /* of a dataset; a batch has at most DLP_TENSORS_MAX */
#define SCHEMA_NAME_MAX   DLP_TENSOR_NAME_MAX
#define SCHEMA_DIMS_MAX   (DLP_DIMS_MAX - 1u) /* of one sample */

enum field_kind {
        FIELD_PICTURE, /* stored: an encoded picture */
        FIELD_BYTES,   /* stored: bytes of unknown meaning */
        FIELD_VALUE,   /* an array of numbers; its first dimension may vary from sample to sample */
        FIELD_NUMBER,  /* stored: a whole number as decimal text */
        FIELD_NAME,    /* the name of the sample: source_name(). Never stored */
        FIELD_TEXT,    /* UTF-8 */
        FIELD_SOUND,   /* stored: an encoded sound */
        FIELD_MASKS,   /* masks of instances, known as a JSON array of COCO's segmentations; never stored */
        FIELD_TEXTS,   /* a list of UTF-8 texts: stored as JSON or protobuf, or a value as in proto/base/texts.h */
        N_FIELD_KINDS,
};

/* How the bytes of a stored field hold its values, and which kinds may have it:
 *
 *      FIELD_VALUE, FIELD_TEXT   any
 *      FIELD_BYTES               CODING_PLAIN, CODING_NPY, CODING_LIST, CODING_STEPS
 *      FIELD_TEXTS               CODING_JSON, CODING_LIST, CODING_STEPS */
enum field_coding {
        CODING_PLAIN,   /* the text itself; the elements one after the other in C order */
        CODING_JSON,    /* JSON: a string with its quotes; a number, true or false; an array of these */
        CODING_CSV,     /* a cell of a CSV file, in quotes if it has them there */
        CODING_VARINTS, /* protobuf's packed varints -> int64 */
        CODING_NPY,     /* a whole .npy file; of FIELD_BYTES: their dtypes or shapes differ, or are unknown */
        CODING_LIST,    /* a protobuf message that holds texts, or, of FIELD_BYTES, any bytes: a list of them, */
        CODING_STEPS,   /* or steps with one of them each (base/protobuf/message_texts.h) */
        N_FIELD_CODINGS,
};

struct schema_field {
        char name[SCHEMA_NAME_MAX];
        enum field_kind kind;
        bool is_stored;                 /* read from a file; otherwise source_value() or source_name() gives it */
        bool may_be_absent;             /* some samples do not have it */
        bool is_big_endian;             /* of a stored FIELD_VALUE: its elements are big-endian */
        enum field_coding coding;       /* if it is stored */
        bool is_gathered;               /* a stored FIELD_VALUE of fixed shape that lies in several pieces of a file */
        uint32_t dtype;                 /* FIELD_VALUE */
        uint32_t n_dims;                /* FIELD_VALUE; 0: a scalar */
        int64_t shape[SCHEMA_DIMS_MAX]; /* the first one is -1 if it varies */
        uint32_t max_rows;              /* FIELD_MASKS: the most masks of a sample */
        uint32_t same_as;               /* 1 + the field whose value it has, as another kind; 0: a value of its own */
        bool is_json;                   /* FIELD_TEXT, FIELD_BYTES: they are JSON, and no text for people */
        bool is_class;                  /* its values are the numbers of the source's classes */
        bool is_on_demand;              /* delivered only where a pipeline names it */
};

struct schema {
        uint32_t n_fields;
        struct schema_field fields[SCHEMA_FIELDS_MAX];
};
