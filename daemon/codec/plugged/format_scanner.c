#include "daemon/codec/plugged/format_scanner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/plugged/plugged_forms.h"
#include "daemon/codec/plugged/plugin_step.h"
#include "daemon/plugin/plugin_scan.h"
#include "proto/base/cleanup.h"

struct format_scanner {
        struct scanner scanner; /* the first member */
        struct plugin_step_text step;
        char *text;
        struct plugin_scan *scan;
        struct plugin_added added;
        struct scanner_cell cells[DLPLUGIN_FIELDS_MAX];
};

static struct format_scanner *of(struct scanner *scanner) {
        return (struct format_scanner *)(void *)scanner;
}

/* What was added is impossible: whose fault it is. */
static int format_scanner_blame(const struct format_scanner *our, int error, const struct why *what, struct why *why) {
        return why_set(why, error, "plug-in format %s.%s: %s", plugin_name(our->step.plugin),
                       plugin_table(our->step.plugin)->steps[our->step.idx_step].name, what->text);
}

/* ---- what it adds ------------------------------------------------------------------------------------------------ */

static int format_scanner_describe(const struct plugin_added *added, struct schema_field *ret_field, struct why *why) {
        static const enum field_kind KINDS[] = {
                [DLPLUGIN_FIELD_PICTURE] = FIELD_PICTURE, [DLPLUGIN_FIELD_SOUND] = FIELD_SOUND,
                [DLPLUGIN_FIELD_TEXT] = FIELD_TEXT,       [DLPLUGIN_FIELD_BYTES] = FIELD_BYTES,
                [DLPLUGIN_FIELD_ARRAY] = FIELD_VALUE,
        };
        struct schema_field field = { .is_stored = !(added->flags & DLPLUGIN_FIELD_IS_VALUE),
                                      .may_be_absent = added->flags & DLPLUGIN_FIELD_MAY_BE_ABSENT,
                                      .is_big_endian = added->flags & DLPLUGIN_FIELD_BIG_ENDIAN,
                                      .coding = CODING_PLAIN };

        memcpy(field.name, added->field, sizeof(added->field));
        if (added->kind < DLPLUGIN_FIELD_PICTURE || added->kind > DLPLUGIN_FIELD_ARRAY || added->flags > 7)
                return why_set(why, -EBADMSG, "adds the field \"%s\" of an unknown kind", added->field);
        field.kind = KINDS[added->kind];
        if (field.is_big_endian && (field.kind != FIELD_VALUE || !field.is_stored))
                return why_set(why, -EBADMSG, "adds the field \"%s\", which is big-endian and no array in a file",
                               added->field);
        if (field.kind != FIELD_VALUE) {
                *ret_field = field;
                return 0;
        }
        if (!forms_find_dtype(added->form.dtype, &field.dtype))
                return why_set(why, -EBADMSG, "adds the field \"%s\" of an unknown type", added->field);
        if (added->form.n_dims > SCHEMA_DIMS_MAX)
                return why_set(why, -EBADMSG, "adds the field \"%s\" of %u dimensions, up to %u are possible",
                               added->field, added->form.n_dims, SCHEMA_DIMS_MAX);
        field.n_dims = added->form.n_dims;
        for (uint32_t i = 0; i < field.n_dims; i++)
                field.shape[i] = added->form.shape[i];
        *ret_field = field;
        return 0;
}

static int format_scanner_take_field(const struct format_scanner *our, const struct scanner_sink *sink,
                                     struct why *why) {
        struct schema_field field;
        int r = format_scanner_describe(&our->added, &field, why);

        return r < 0 ? sink->refuse(sink->userdata, our->added.field, r, why)
                     : sink->field(sink->userdata, &field, why);
}

static int format_scanner_take_sample(struct format_scanner *our, const struct scanner_sink *sink, struct why *why) {
        const struct plugin_added *added = &our->added;

        for (uint32_t i = 0; i < added->n_cells; i++)
                our->cells[i] = (struct scanner_cell){ .offset = added->cells[i].offset,
                                                       .n_bytes = added->cells[i].n_bytes,
                                                       .value = added->cells[i].value,
                                                       .is_absent = added->cells[i].is_absent };
        return sink->sample(sink->userdata, added->name, our->cells, added->n_cells, why);
}

static int format_scanner_take_all(struct format_scanner *our, const struct scanner_sink *sink, struct why *why) {
        struct why what;
        int r;

        while ((r = plugin_scan_next(our->scan, &our->added, why)) > 0) {
                r = our->added.field[0] ? format_scanner_take_field(our, sink, &what)
                                        : format_scanner_take_sample(our, sink, &what);
                if (r < 0)
                        return format_scanner_blame(our, r, &what, why);
        }
        return r;
}

/* ---- as a scanner ------------------------------------------------------------------------------------------------ */

static int format_scanner_on_begin(struct scanner *scanner, struct why *why) {
        struct format_scanner *our = of(scanner);

        return plugin_scan_new(our->step.plugin, our->step.idx_step, &our->step.values, &our->scan, why);
}

static uint8_t *on_room(struct scanner *scanner, const char *file, uint64_t n_bytes, struct why *why) {
        return plugin_scan_room(of(scanner)->scan, file, n_bytes, why);
}

static int on_scan(struct scanner *scanner, struct scanner_window *window, const struct scanner_sink *sink,
                   struct why *why) {
        struct format_scanner *our = of(scanner);
        const struct plugin_window asked = { .n_file_bytes = window->n_file_bytes,
                                             .offset = window->offset,
                                             .n_bytes = window->n_bytes,
                                             .idx_file = window->idx_file,
                                             .n_files = window->n_files };
        struct plugin_wish wish;
        int r = plugin_scan_ask(our->scan, &asked, &wish, why);

        if (r == 0)
                r = format_scanner_take_all(our, sink, why);
        if (r < 0)
                return r;
        window->next_offset = wish.next_offset;
        window->n_wanted = wish.n_wanted;
        return 0;
}

static void format_scanner_on_end(struct scanner *scanner) {
        struct format_scanner *our = of(scanner);

        plugin_scan_free(our->scan);
        our->scan = NULL;
}

static char *format_scanner_print(const struct plugin_step_text *step) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);

        if (!stream)
                return NULL;
        plugin_step_print(step, stream);
        if (fclose(stream) == 0)
                return text;
        free(text);
        return NULL;
}

int format_scanner_new(const char *text, struct plugins *plugins, struct scanner **ret_scanner, struct why *why) {
        struct format_scanner *our = calloc(1, sizeof(*our));
        int r = our ? plugin_format_parse(text, plugins, &our->step, why) : why_errno(why, -ENOMEM, "%s", text);

        if (r == 0) {
                our->text = format_scanner_print(&our->step);
                r = our->text ? 0 : why_errno(why, -ENOMEM, "%s", text);
        }
        if (r < 0) {
                free(our);
                return r;
        }
        our->scanner = (struct scanner){ .text = our->text,
                                         .version = plugin_digest(our->step.plugin),
                                         .endings = plugin_format_endings(our->step.plugin, our->step.idx_step),
                                         .begin = format_scanner_on_begin,
                                         .room = on_room,
                                         .scan = on_scan,
                                         .end = format_scanner_on_end };
        *ret_scanner = &our->scanner;
        return 0;
}

void format_scanner_free(struct scanner *scanner) {
        if (!scanner)
                return;
        format_scanner_on_end(scanner);
        free(of(scanner)->text);
        free(of(scanner));
}
