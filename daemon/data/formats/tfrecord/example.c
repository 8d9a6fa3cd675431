#include "daemon/data/formats/tfrecord/example.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/little_endian.h"

static int example_damaged(struct why *why) {
        return why_set(why, -EBADMSG, "it is neither a tf.train.Example nor a SequenceExample, or it is damaged");
}

/* The lists within a Feature are a oneof: each writer writes exactly one, or none. */
static bool read_feature(struct wire wire, struct feature *feature) {
        struct wire_field field;

        feature->type = FEATURE_NONE;
        while (wire_left(&wire) > 0) {
                if (!wire_next(&wire, &field))
                        return false;
                if (field.number > FEATURE_INTS)
                        continue;
                if (field.type != WIRE_BYTES || feature->type != FEATURE_NONE)
                        return false;
                feature->type = (enum feature_type)field.number;
                feature->message = field.bytes;
        }
        return true;
}

/* An entry of a map: the name and the message. */
static bool example_read_entry(struct wire wire, struct feature *feature) {
        bool has_name = false, has_message = false;
        struct wire_field field;

        while (wire_left(&wire) > 0) {
                if (!wire_next(&wire, &field))
                        return false;
                if (field.number > 2)
                        continue;
                if (field.type != WIRE_BYTES || (field.number == 1 ? has_name : has_message))
                        return false;
                if (field.number == 1)
                        feature->name = field.bytes;
                else
                        feature->message = field.bytes;
                has_name |= field.number == 1;
                has_message |= field.number == 2;
        }
        return true; /* an empty name, or an empty message, is left out by protobuf */
}

struct scan {
        int (*found)(void *userdata, const struct feature *feature, struct why *why);
        void *userdata;
        struct why *why;
};

/* Features or FeatureLists: a map from names. */
static int scan_map(const struct scan *scan, struct wire wire, bool is_list) {
        struct wire_field field;

        while (wire_left(&wire) > 0) {
                struct feature feature = { .is_list = is_list };
                int r;

                if (!wire_next(&wire, &field))
                        return example_damaged(scan->why);
                if (field.number != 1)
                        continue;
                if (field.type != WIRE_BYTES || !example_read_entry(field.bytes, &feature) ||
                    (!is_list && !read_feature(feature.message, &feature)))
                        return example_damaged(scan->why);
                r = is_list || feature.type != FEATURE_NONE ? scan->found(scan->userdata, &feature, scan->why) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

int example_scan(const uint8_t *bytes, size_t n_bytes,
                 int (*found)(void *userdata, const struct feature *feature, struct why *why), void *userdata,
                 struct why *why) {
        struct scan scan = { .found = found, .userdata = userdata, .why = why };
        struct wire wire = { .at = bytes, .end = bytes + n_bytes };
        struct wire_field field;

        while (wire_left(&wire) > 0) {
                int r;

                if (!wire_next(&wire, &field) || field.number > 2 || field.type != WIRE_BYTES)
                        return example_damaged(why);
                r = scan_map(&scan, field.bytes, field.number == 2);
                if (r < 0)
                        return r;
        }
        return 0;
}

int feature_next_step(struct wire *steps, struct feature *ret_step) {
        struct wire_field field;

        while (wire_left(steps) > 0) {
                if (!wire_next(steps, &field))
                        return -EBADMSG;
                if (field.number != 1)
                        continue;
                *ret_step = (struct feature){ 0 };
                if (field.type != WIRE_BYTES || !read_feature(field.bytes, ret_step))
                        return -EBADMSG;
                return 1;
        }
        return 0;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Each varint ends with the one byte whose highest bit is not set. */
static bool count_varints(struct wire run, uint64_t *n) {
        uint64_t value;

        while (wire_left(&run) > 0) {
                if (!wire_varint(&run, &value))
                        return false;
                (*n)++;
        }
        return true;
}

static bool count_field(const struct feature *feature, const struct wire_field *field, struct feature_values *values) {
        if (feature->type == FEATURE_BYTES) {
                if (field->type != WIRE_BYTES)
                        return false;
                if (values->n_values++ == 0)
                        values->first = field->bytes;
                return true;
        }
        if (field->type == (feature->type == FEATURE_FLOATS ? WIRE_32 : WIRE_VARINT)) {
                values->n_values++;
                values->is_one_run = false;
                return true;
        }
        if (field->type != WIRE_BYTES)
                return false;
        values->is_one_run &= !values->first.at;
        values->first = field->bytes;
        if (feature->type == FEATURE_INTS)
                return count_varints(field->bytes, &values->n_values);
        values->n_values += wire_left(&field->bytes) / 4;
        return wire_left(&field->bytes) % 4 == 0;
}

int feature_count(const struct feature *feature, struct feature_values *ret_values) {
        struct feature_values values = { .is_one_run = true };
        struct wire wire = feature->message;
        struct wire_field field;

        while (wire_left(&wire) > 0) {
                if (!wire_next(&wire, &field))
                        return -EBADMSG;
                if (field.number == 1 && !count_field(feature, &field, &values))
                        return -EBADMSG;
        }
        *ret_values = values;
        return 0;
}

static uint8_t *example_write_number(uint8_t *out, const void *number, size_t n_bytes) {
        memcpy(out, number, n_bytes);
        return out + n_bytes;
}

void feature_numbers(const struct feature *feature, void *ret_numbers) {
        struct wire wire = feature->message;
        uint8_t *out = ret_numbers;
        struct wire_field field;
        uint64_t value;

        while (wire_left(&wire) > 0 && wire_next(&wire, &field)) {
                size_t n = wire_left(&field.bytes);

                if (field.number != 1)
                        continue;
                if (field.type == WIRE_VARINT)
                        out = example_write_number(out, &field.number_value, sizeof(field.number_value));
                else if (feature->type == FEATURE_FLOATS)
                        out = example_write_number(out, field.bytes.at, n);
                else
                        while (wire_left(&field.bytes) > 0 && wire_varint(&field.bytes, &value))
                                out = example_write_number(out, &value, sizeof(value));
        }
}
