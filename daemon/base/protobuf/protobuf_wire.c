#include "daemon/base/protobuf/protobuf_wire.h"

static bool protobuf_wire_take(struct wire *wire, uint64_t n, struct wire *ret_bytes) {
        if (n > wire_left(wire))
                return false;
        *ret_bytes = (struct wire){ .at = wire->at, .end = wire->at + n };
        wire->at += n;
        return true;
}

bool wire_next(struct wire *wire, struct wire_field *ret_field) {
        uint64_t key, n;

        if (!wire_varint(wire, &key) || key >> 32 || key >> 3 == 0)
                return false;
        *ret_field = (struct wire_field){ .number = (uint32_t)(key >> 3), .type = (enum wire_type)(key & 7) };
        switch (key & 7) {
        case WIRE_VARINT:
                return wire_varint(wire, &ret_field->number_value);
        case WIRE_64:
                return protobuf_wire_take(wire, 8, &ret_field->bytes);
        case WIRE_32:
                return protobuf_wire_take(wire, 4, &ret_field->bytes);
        case WIRE_BYTES:
                return wire_varint(wire, &n) && protobuf_wire_take(wire, n, &ret_field->bytes);
        default: /* groups, which no current writer makes */
                return false;
        }
}
