/* data/field_name.h: what a column is called, as the name of a field.
 *
 * Formats allow names of any length; the name of a field goes to every client and has at most SCHEMA_NAME_MAX - 1
 * bytes. A longer name is cut, and a hash of all of it takes the place of its end, so that columns which begin alike
 * still differ. Whoever looks for a field by the name that the file gives it, cuts that name in the same way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"

/* Of a table of columns by their names, where each is at field_name_place() of its name or at one of those that follow.
 * More than there are columns in any dataset. */
#define FIELD_NAME_PLACES 8192u

/* A name of n bytes; one that fits stays as it is. The rest of ret_name is zeroes. */
void field_name_from(const char *name, size_t n, char ret_name[SCHEMA_NAME_MAX]);

/* Is this the field that has such a name in the file? */
bool field_name_is(const struct schema_field *field, const char *name, size_t n);

/* Where to look for such a name, which ends at a NUL, if it has one: below FIELD_NAME_PLACES. */
uint32_t field_name_place(const char *name, size_t n);
