/* data/formats/tfrecord/example.h: the features of a tf.train.Example or a tf.train.SequenceExample, in place.
 *
 *      Example          { 1: Features }
 *      SequenceExample  { 1: Features, 2: FeatureLists }
 *      Features         { 1: entry { 1: name, 2: Feature } ... }
 *      FeatureLists     { 1: entry { 1: name, 2: FeatureList } ... }
 *      Feature          { 1: BytesList | 2: FloatList | 3: Int64List }, each { 1: value ... }
 *      FeatureList      { 1: Feature ... }
 *
 * Numbers are packed into one run, or each is a field of its own; both may be mixed. */
#pragma once

#include <stdint.h>

#include "daemon/base/protobuf/protobuf_wire.h"
#include "proto/base/why.h"

enum feature_type {
        FEATURE_NONE,
        FEATURE_BYTES,
        FEATURE_FLOATS,
        FEATURE_INTS,
};

struct feature {
        struct wire name;       /* valid UTF-8 is not promised */
        bool is_list;           /* a FeatureList: a sequence of steps, each a Feature */
        enum feature_type type; /* of a list: see feature_steps() */
        struct wire message;    /* of the BytesList, FloatList or Int64List; or of the FeatureList */
};

/* Calls found() for each feature of a record, until it returns an error, which is returned. A feature without a value
 * (FEATURE_NONE) is left out, but not an empty list. Returns 0; -EBADMSG if the bytes are neither kind of example.
 * `why` does not name the record. */
int example_scan(const uint8_t *bytes, size_t n_bytes,
                 int (*found)(void *userdata, const struct feature *feature, struct why *why), void *userdata,
                 struct why *why);

/* The steps of a FeatureList, one after the other; `steps` begins as feature->message. Returns 1 and the step, whose
 * name is empty; 0 at the end; -EBADMSG. */
int feature_next_step(struct wire *steps, struct feature *ret_step);

/* What a BytesList, FloatList or Int64List holds. */
struct feature_values {
        uint64_t n_values;
        struct wire first; /* bytes: the first value. Numbers: the packed run that holds all of them, if is_one_run */
        bool is_one_run;   /* also if there is no number */
};

/* Returns 0, or -EBADMSG if the message is damaged. */
int feature_count(const struct feature *feature, struct feature_values *ret_values);

/* Writes all numbers of a feature for which feature_count() returned n_values, as float (4 bytes) or int64 (8). */
void feature_numbers(const struct feature *feature, void *ret_numbers);
