#include "daemon/data/formats/parquet/arrow_note.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/arrow/table/message.h"
#include "proto/base/cleanup.h"

int parquet_arrow_read(const struct parquet_note *note, struct arrow_schema *ret_schema) {
        size_t n = note->n;
        _cleanup_(growing_fini) struct growing decoded = { 0 };
        struct flat_table header;
        struct flat flat;
        int n_bytes, r;

        *ret_schema = (struct arrow_schema){ 0 };
        if (n == 0 || n > INT_MAX / 2)
                return 0;
        if (growing_reserve(&decoded, n / 4 * 3 + 3) < 0)
                return -ENOMEM;
        n_bytes = EVP_DecodeBlock(decoded.bytes, (const unsigned char *)note->text, (int)n);
        if (n_bytes <= 0)
                return 0;
        header = arrow_message_alone(decoded.bytes, (size_t)n_bytes, ARROW_MESSAGE_SCHEMA, &flat);
        r = header.flat ? arrow_schema_read(&header, ret_schema, NULL) : 0;
        return r == -ENOMEM ? r : 0;
}

uint32_t parquet_arrow_find(const struct arrow_schema *schema, uint32_t parent, const char *name) {
        uint32_t idx = parent == PARQUET_ARROW_NONE ? 0 : parent + 1, end = schema->n_fields;

        if (parent != PARQUET_ARROW_NONE)
                end = idx + arrow_schema_field(schema, parent)->n_below;
        while (idx < end) {
                const struct arrow_field *field = arrow_schema_field(schema, idx);

                if (strcmp(arrow_schema_text(schema, field->name), name) == 0)
                        return idx;
                idx += 1 + field->n_below;
        }
        return PARQUET_ARROW_NONE;
}

void parquet_arrow_shape(const struct arrow_schema *schema, uint32_t field, uint32_t n_dims, int64_t *shape) {
        for (uint32_t i = 0; i < n_dims && field < schema->n_fields - i; i++) {
                const struct arrow_field *list = arrow_schema_field(schema, field + i);

                if (list->n_children != 1)
                        return;
                if (list->kind == ARROW_FIXED_LIST && list->width > 0)
                        shape[i] = list->width;
        }
}
