#include "daemon/data/formats/parquet/thrift.h"

static void thrift_damage(struct thrift *thrift) {
        thrift->is_damaged = true;
        thrift->at = thrift->n_bytes;
}

static uint8_t thrift_take_byte(struct thrift *thrift) {
        if (thrift->at < thrift->n_bytes)
                return thrift->bytes[thrift->at++];
        thrift_damage(thrift);
        return 0;
}

static uint64_t thrift_take_varint(struct thrift *thrift) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                uint8_t byte = thrift_take_byte(thrift);

                if (shift == 63 && byte > 1)
                        break;
                value |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return thrift->is_damaged ? 0 : value;
        }
        thrift_damage(thrift);
        return 0;
}

static int64_t thrift_take_zigzag(struct thrift *thrift) {
        uint64_t value = thrift_take_varint(thrift);

        return (int64_t)(value >> 1 ^ -(value & 1));
}

static void skip_bytes(struct thrift *thrift, uint64_t n) {
        if (n > thrift->n_bytes - thrift->at)
                thrift_damage(thrift);
        else
                thrift->at += n;
}

bool thrift_next(struct thrift *thrift, struct thrift_field *field) {
        uint8_t head = thrift_take_byte(thrift);
        int64_t id;

        if (thrift->is_damaged || (head & 0x0f) == THRIFT_STOP)
                return false;
        id = head >> 4 ? field->id + (head >> 4) : thrift_take_zigzag(thrift);
        if (id <= 0 || id > INT16_MAX || (head & 0x0f) > THRIFT_UUID)
                thrift_damage(thrift);
        if (thrift->is_damaged)
                return false;
        *field = (struct thrift_field){ .id = (int32_t)id, .type = (enum thrift_type)(head & 0x0f) };
        return true;
}

int64_t thrift_integer(struct thrift *thrift, enum thrift_type type) {
        switch (type) {
        case THRIFT_BYTE:
                return (int8_t)thrift_take_byte(thrift);
        case THRIFT_I16:
        case THRIFT_I32:
        case THRIFT_I64:
                return thrift_take_zigzag(thrift);
        default:
                thrift_damage(thrift);
                return 0;
        }
}

bool thrift_bool(struct thrift *thrift, enum thrift_type type) {
        if (type != THRIFT_TRUE && type != THRIFT_FALSE)
                thrift_damage(thrift);
        return type == THRIFT_TRUE;
}

const char *thrift_binary(struct thrift *thrift, enum thrift_type type, size_t *ret_n) {
        const uint8_t *bytes;
        uint64_t n;

        *ret_n = 0;
        if (type != THRIFT_BINARY)
                thrift_damage(thrift);
        n = thrift_take_varint(thrift);
        bytes = thrift->bytes + thrift->at;
        skip_bytes(thrift, n);
        if (thrift->is_damaged)
                return "";
        *ret_n = (size_t)n;
        return (const char *)bytes;
}

size_t thrift_list(struct thrift *thrift, enum thrift_type type, enum thrift_type *ret_element) {
        uint8_t head;
        uint64_t n;

        *ret_element = THRIFT_STOP;
        if (type != THRIFT_LIST && type != THRIFT_SET)
                thrift_damage(thrift);
        head = thrift_take_byte(thrift);
        n = head >> 4 == 15 ? thrift_take_varint(thrift) : head >> 4;
        if (n > thrift->n_bytes - thrift->at || (head & 0x0f) > THRIFT_UUID ||
            (n > 0 && (head & 0x0f) == THRIFT_STOP)) /* some writers leave the type of an empty list at 0 */
                thrift_damage(thrift);
        if (thrift->is_damaged)
                return 0;
        *ret_element = (enum thrift_type)(head & 0x0f);
        return (size_t)n;
}

bool thrift_struct(struct thrift *thrift, enum thrift_type type) {
        if (type != THRIFT_STRUCT)
                thrift_damage(thrift);
        return !thrift->is_damaged;
}

/* ---- skipping -------------------------------------------------------------------------------------------------- */

static void skip(struct thrift *thrift, enum thrift_type type, unsigned depth);

/* In a list a bool is a byte; as a field, it is in the type. */
static void skip_element(struct thrift *thrift, enum thrift_type type, unsigned depth) {
        if (type == THRIFT_TRUE || type == THRIFT_FALSE)
                thrift_take_byte(thrift);
        else
                skip(thrift, type, depth);
}

static void skip_list(struct thrift *thrift, enum thrift_type type, unsigned depth) {
        enum thrift_type element;
        size_t n = thrift_list(thrift, type, &element);

        for (size_t i = 0; i < n && !thrift->is_damaged; i++)
                skip_element(thrift, element, depth);
}

static void skip_map(struct thrift *thrift, unsigned depth) {
        uint64_t n = thrift_take_varint(thrift);
        uint8_t types = n > 0 ? thrift_take_byte(thrift) : 0;

        for (uint64_t i = 0; i < n && !thrift->is_damaged; i++) {
                skip_element(thrift, (enum thrift_type)(types >> 4), depth);
                skip_element(thrift, (enum thrift_type)(types & 0x0f), depth);
        }
}

static void skip_struct(struct thrift *thrift, unsigned depth) {
        struct thrift_field field = { 0 };

        while (thrift_next(thrift, &field))
                skip(thrift, field.type, depth);
}

static void skip(struct thrift *thrift, enum thrift_type type, unsigned depth) {
        if (depth == THRIFT_DEPTH_MAX) {
                thrift_damage(thrift);
                return;
        }
        switch (type) {
        case THRIFT_TRUE:
        case THRIFT_FALSE:
                break;
        case THRIFT_BYTE:
                thrift_take_byte(thrift);
                break;
        case THRIFT_I16:
        case THRIFT_I32:
        case THRIFT_I64:
                thrift_take_varint(thrift);
                break;
        case THRIFT_DOUBLE:
                skip_bytes(thrift, 8);
                break;
        case THRIFT_UUID:
                skip_bytes(thrift, 16);
                break;
        case THRIFT_BINARY:
                skip_bytes(thrift, thrift_take_varint(thrift));
                break;
        case THRIFT_LIST:
        case THRIFT_SET:
                skip_list(thrift, type, depth + 1);
                break;
        case THRIFT_MAP:
                skip_map(thrift, depth + 1);
                break;
        case THRIFT_STRUCT:
                skip_struct(thrift, depth + 1);
                break;
        default:
                thrift_damage(thrift);
        }
}

void thrift_skip(struct thrift *thrift, enum thrift_type type) {
        skip(thrift, type, 0);
}
