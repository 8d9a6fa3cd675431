/* base/protobuf/protobuf_wire.h: the fields of a protobuf message, in place.
 *
 * A message is a row of fields: a key (number << 3 | type) as a varint, then a varint, 4 bytes, 8 bytes, or a length
 * and that many bytes. Nothing is built. Any input is safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type {
        WIRE_VARINT = 0,
        WIRE_64 = 1,
        WIRE_BYTES = 2,
        WIRE_32 = 5,
};

struct wire {
        const uint8_t *at, *end;
};

struct wire_field {
        uint32_t number;
        enum wire_type type;
        uint64_t number_value; /* WIRE_VARINT */
        struct wire bytes;     /* WIRE_BYTES: the bytes; WIRE_32 and WIRE_64: its 4 or 8 bytes */
};

/* Takes a varint of at most ten bytes. False if there is none. */
static inline bool wire_varint(struct wire *wire, uint64_t *ret_value) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 70 && wire->at < wire->end; shift += 7) {
                uint8_t byte = *wire->at++;

                value |= shift == 63 ? (uint64_t)byte << 63 : (uint64_t)(byte & 0x7f) << shift;
                if (byte & 0x80)
                        continue;
                *ret_value = value;
                return shift < 63 || byte <= 1;
        }
        return false;
}

static inline size_t wire_left(const struct wire *wire) {
        return (size_t)(wire->end - wire->at);
}

/* Takes the next field; wire_left() is greater than 0. False if the bytes are not a message. */
bool wire_next(struct wire *wire, struct wire_field *ret_field);
