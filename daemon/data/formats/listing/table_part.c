#include "daemon/data/formats/listing/table_part.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/data/formats/listing/parts.h"

struct table_note {
        uint64_t row; /* of the part */
        uint32_t idx_column;
        enum table_note_kind kind;
        uint64_t n_bytes; /* of its text */
};

struct table_notes {
        struct growing notes; /* struct table_note, in the order in which they are to be noted */
        struct growing texts; /* of all of them, one after the other */
};

void table_notes_free(struct table_notes *notes) {
        if (!notes)
                return;
        growing_fini(&notes->notes);
        growing_fini(&notes->texts);
        free(notes);
}

int table_notes_add(struct record_table *part, const struct table_column *column, enum table_note_kind kind,
                    const void *text, size_t n, struct why *why) {
        const struct table_note note = {
                .row = part->columns.n_rows - 1, .idx_column = column->idx, .kind = kind, .n_bytes = n
        };

        if (growing_append(&part->notes->texts, text, n) < 0 ||
            growing_append(&part->notes->notes, &note, sizeof(note)) < 0)
                return why_set(why, -ENOMEM, "no memory for a text");
        return 0;
}

int table_part_init(struct record_table *part, const struct record_table *table) {
        struct why why;

        part->syntax = table->syntax;
        part->listing.why = &why;
        part->notes = calloc(1, sizeof(*part->notes));
        return part->notes ? table_init(part, table->files_option, table->raw, table->label) : -ENOMEM;
}

void table_part_clear(struct record_table *part) {
        columns_clear(&part->columns);
        growing_clear(&part->notes->notes);
        growing_clear(&part->notes->texts);
}

/* ---- a part is added ------------------------------------------------------------------------------------------- */

struct noting {
        const struct table_note *at, *end;
        const char *text;
};

/* What was written down about a record, which is the table's last one. */
static int note_record(struct record_table *table, struct table_column *const matches[TABLE_COLUMNS_MAX],
                       struct noting *noting, uint64_t row, struct why *why) {
        for (; noting->at < noting->end && noting->at->row == row; noting->at++) {
                struct table_column *column = matches[noting->at->idx_column];
                size_t n = (size_t)noting->at->n_bytes;
                int r;

                if (noting->at->kind == TABLE_NOTE_TEXT)
                        r = table_note_text(table, column, noting->text, n, why);
                else if (noting->at->kind == TABLE_NOTE_NUMBER)
                        r = table_note_number(table, column, noting->text, n, why);
                else
                        r = table_forget_text(table, column, why);
                if (r < 0)
                        return r;
                if (n > 0)
                        noting->text += n;
        }
        return table_end_record(table, why);
}

static int note_records(struct record_table *table, const struct record_table *part,
                        struct table_column *const matches[TABLE_COLUMNS_MAX]) {
        struct noting noting = { .at = (const void *)part->notes->notes.bytes,
                                 .text = (const char *)part->notes->texts.bytes };
        uint64_t n_before = table->columns.n_rows;
        struct why why;
        int r = 0;

        noting.end = noting.at;
        if (noting.at) /* of the first note on */
                noting.end += part->notes->notes.n_bytes / sizeof(*noting.at);
        for (uint64_t row = 0; row < part->columns.n_rows && r == 0; row++) {
                table->columns.n_rows = n_before + row + 1;
                r = note_record(table, matches, &noting, row, &why);
        }
        table->columns.n_rows = n_before;
        return r;
}

int table_part_take(struct record_table *table, const struct record_table *part, uint64_t line_base) {
        struct table_column *matches[TABLE_COLUMNS_MAX];
        int r;

        /* Reading a record again notes the same once more, which changes nothing. */
        if (!columns_match(&table->columns, &part->columns, matches) || note_records(table, part, matches) < 0)
                return PARTS_AGAIN;
        r = columns_take(&table->columns, &part->columns, matches, line_base, listing_n_files(&table->listing) - 1);
        return r < 0 ? index_builder_refused(r, table->listing.files->root, table->listing.why) : 0;
}
