/* data/formats/listing/table_part.h: a part of a table: records that a thread reads while others read others (parts.h).
 *
 * A part has columns of its own, with the same names. What a record says about files and classes is only written down
 * there, and noted by the table itself when the part is added, record by record: so the table looks as if it had read
 * them. */
#pragma once

#include "daemon/data/formats/listing/listing_table.h"

enum table_note_kind {
        TABLE_NOTE_TEXT,   /* table_note_text() */
        TABLE_NOTE_NUMBER, /* table_note_number() */
        TABLE_NOTE_NULL,   /* table_forget_text() */
};

/* Makes an empty part of a table, which outlives it. Of the table, only what table_init() set is read. Returns 0 or
 * an errno; the part is to be given back in either case. */
int table_part_init(struct record_table *part, const struct record_table *table);

void table_part_clear(struct record_table *part);

/* Adds the records of a part: struct listing_parts, take(). */
int table_part_take(struct record_table *table, const struct record_table *part, uint64_t line_base);

/* Writes down what the record that is read says about a column. Returns 0 or -ENOMEM with `why`. */
int table_notes_add(struct record_table *part, const struct table_column *column, enum table_note_kind kind,
                    const void *text, size_t n, struct why *why);

/* Takes NULL. */
void table_notes_free(struct table_notes *notes);
