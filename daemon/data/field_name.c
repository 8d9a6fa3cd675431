#include "daemon/data/field_name.h"

#include <stdio.h>
#include <string.h>

#define HASH_LENGTH 9u /* "-" and eight digits */

/* FNV-1a of 64 bits, folded. */
static uint32_t field_name_hash_of(const char *name, size_t n) {
        uint64_t hash = 0xcbf29ce484222325u;

        for (size_t i = 0; i < n; i++)
                hash = (hash ^ (uint8_t)name[i]) * 0x100000001b3u;
        return (uint32_t)(hash ^ hash >> 32);
}

void field_name_from(const char *name, size_t n, char ret_name[SCHEMA_NAME_MAX]) {
        size_t n_kept = n;

        memset(ret_name, 0, SCHEMA_NAME_MAX);
        if (n >= SCHEMA_NAME_MAX) {
                n_kept = SCHEMA_NAME_MAX - 1 - HASH_LENGTH;
                while (n_kept > 0 && ((uint8_t)name[n_kept] & 0xc0) == 0x80) /* no character of UTF-8 is cut */
                        n_kept--;
                snprintf(ret_name + n_kept, SCHEMA_NAME_MAX - n_kept, "-%08x", field_name_hash_of(name, n));
        }
        memcpy(ret_name, name, n_kept);
}

bool field_name_is(const struct schema_field *field, const char *name, size_t n) {
        char wanted[SCHEMA_NAME_MAX];

        field_name_from(name, n, wanted);
        return strcmp(field->name, wanted) == 0;
}

uint32_t field_name_place(const char *name, size_t n) {
        return field_name_hash_of(name, strnlen(name, n)) % FIELD_NAME_PLACES;
}
