#include "daemon/data/formats/parquet/arrow_note.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/arrow/message.h"
#include "proto/base/cleanup.h"

int parquet_arrow_read(const char *note, struct arrow_schema *ret_schema) {
        size_t n = note ? strlen(note) : 0;
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct flat_table header;
        struct flat flat;
        int n_bytes, r;

        *ret_schema = (struct arrow_schema){ 0 };
        if (n == 0 || n > INT_MAX / 2)
                return 0;
        bytes = malloc(n / 4 * 3 + 3);
        if (!bytes)
                return -ENOMEM;
        n_bytes = EVP_DecodeBlock(bytes, (const unsigned char *)note, (int)n);
        if (n_bytes <= 0)
                return 0;
        header = arrow_message_alone(bytes, (size_t)n_bytes, ARROW_MESSAGE_SCHEMA, &flat);
        r = header.flat ? arrow_schema_read(&header, ret_schema, NULL) : 0;
        return r == -ENOMEM ? r : 0;
}

void parquet_arrow_shape(const struct arrow_schema *schema, const char *column, uint32_t n_dims, int64_t *shape) {
        uint32_t idx = 0;

        while (idx < schema->n_fields &&
               strcmp(arrow_schema_text(schema, arrow_schema_field(schema, idx)->name), column) != 0)
                idx += 1 + arrow_schema_field(schema, idx)->n_below;
        for (uint32_t i = 0; i < n_dims && idx + i < schema->n_fields; i++) {
                const struct arrow_field *list = arrow_schema_field(schema, idx + i);

                if (list->n_children != 1)
                        return;
                if (list->kind == ARROW_FIXED_LIST && list->width > 0)
                        shape[i] = list->width;
        }
}
