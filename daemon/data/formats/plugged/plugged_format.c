#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* plugin: files that a plug-in of the administrator's says the samples of. Their bytes are read here, window by window,
 * and the plug-in sees nothing else of them. It is not believed: a sample lies within its file, the number and the
 * names of fields are possible, and a plug-in that adds without end, or reads without end, is stopped. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/disk.h"
#include "daemon/data/files/listed.h"
#include "daemon/data/files/seen.h"
#include "daemon/data/formats/copied.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/growing.h"
#include "daemon/data/looks_like.h"
#include "daemon/data/scanner.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define WINDOW_BYTES    (1u << 20) /* without a wish */
#define CIRCLES_MAX     10000u     /* windows in a row without a sample and without a byte that is new */
#define SAMPLE_BYTES    (4u << 20) /* of all values of a sample */
#define SAMPLE_NAME_MAX 1023u      /* bytes */

struct pass {
        int root_fd;
        const struct files *files;
        const struct index_watch *watch;
        struct scanner *scanner;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        struct refusals *refusals;
        struct why *why;

        struct listed listed;
        int64_t settled_ns;
        struct seen seen;
        struct copied copied;
        struct growing early;          /* struct stat of each file before the first sample */
        struct index_builder *builder; /* from the first sample on */

        uint32_t n_fields, n_stored, n_served; /* n_stored of those that are served */
        bool has_stored;                       /* one of all is */
        struct schema_field fields[INDEX_FIELDS_MAX];
        bool is_left_out[INDEX_FIELDS_MAX];
        uint32_t places[INDEX_FIELDS_MAX]; /* of each field: its row, or its column */
        bool has_names;

        /* The file that is read. */
        struct stat status;
        uint64_t n_file_bytes, n_file_samples, n_samples;
        struct scanner_window window;
        uint64_t furthest, n_given; /* the end of all windows, and their bytes together */
        uint32_t n_circles;
};

static void pass_fini(struct pass *pass) {
        listed_fini(&pass->listed);
        copied_fini(&pass->copied);
        growing_fini(&pass->early);
        index_builder_free(pass->builder);
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static int plugged_format_refuse_field(const struct schema_field *field, const char *what, struct why *why) {
        char name[sizeof(field->name)];

        memcpy(name, field->name, sizeof(name));
        text_make_printable(name);
        return why_set(why, -EBADMSG, "the field \"%s\" %s", name, what);
}

static int check_field(const struct schema_field *field, struct why *why) {
        uint64_t n_elements = 1;

        if (!text_is_name(field->name) || strcmp(field->name, INDEX_KEY_NAME) == 0)
                return plugged_format_refuse_field(field, "cannot be called so", why);
        if (!field->is_stored && field->kind != FIELD_VALUE && field->kind != FIELD_TEXT && field->kind != FIELD_BYTES)
                return plugged_format_refuse_field(field, "cannot be a value: numbers, text and bytes can", why);
        if (field->kind != FIELD_VALUE)
                return 0;
        if (field->n_dims > SCHEMA_DIMS_MAX)
                return plugged_format_refuse_field(field, "has too many dimensions", why);
        for (uint32_t i = 0; i < field->n_dims; i++) {
                if (i == 0 && field->shape[i] == -1)
                        continue;
                if (field->shape[i] < 1 || field->shape[i] > UINT32_MAX ||
                    (n_elements *= (uint64_t)field->shape[i]) > UINT32_MAX)
                        return plugged_format_refuse_field(field, "has an impossible shape", why);
        }
        return 0;
}

static int begin_field(const struct pass *pass, const struct schema_field *field, struct why *why) {
        if (pass->builder)
                return plugged_format_refuse_field(field, "comes after a sample", why);
        if (pass->n_fields == ARRAY_SIZE(pass->fields))
                return plugged_format_refuse_field(field, "is one too many", why);
        return 0;
}

/* Of two fields with one name nobody knows which one is meant. */
static int plugged_format_check_twice(struct pass *pass, const struct schema_field *field, struct why *why) {
        int r = 0;

        for (uint32_t i = 0; i < pass->n_fields; i++) {
                if (strcmp(pass->fields[i].name, field->name) != 0)
                        continue;
                r = plugged_format_refuse_field(field, "comes twice", why);
                if (!pass->is_left_out[i]) {
                        pass->is_left_out[i] = true;
                        pass->n_stored -= pass->fields[i].is_stored;
                        pass->n_served--;
                }
        }
        return r;
}

/* Its cells come with each sample all the same. */
static int plugged_format_leave_out(struct pass *pass, const struct schema_field *field, int error,
                                    const struct why *why) {
        char name[sizeof(field->name)];
        struct why reason;
        int r = 0;

        plugged_format_check_twice(pass, field, &reason); /* an earlier one of its name is not served either */
        memcpy(name, field->name, sizeof(name));
        text_make_printable(name);
        if (!refusals_have(pass->refusals, name)) {
                why_set(&reason, error, "%s: %s", pass->scanner->text, why->text);
                r = refusals_add(pass->refusals, name, error, &reason);
        }
        if (r < 0)
                return r;
        pass->fields[pass->n_fields] = *field;
        pass->is_left_out[pass->n_fields++] = true;
        return 0;
}

static int on_refuse(void *userdata, const char *name, int error, struct why *why) {
        struct schema_field field = { .kind = FIELD_BYTES };
        struct pass *pass = userdata;
        int r;

        snprintf(field.name, sizeof(field.name), "%s", name);
        r = begin_field(pass, &field, why);
        return r < 0 ? r : plugged_format_leave_out(pass, &field, error, why);
}

static int plugged_format_on_field(void *userdata, const struct schema_field *field, struct why *why) {
        struct pass *pass = userdata;
        int r = begin_field(pass, field, why);

        if (r < 0)
                return r;
        pass->has_stored |= field->is_stored;
        r = check_field(field, why);
        if (r == 0)
                r = plugged_format_check_twice(pass, field, why);
        if (r == 0 && refusals_have(pass->refusals, field->name)) /* some sample has shown it */
                r = -EBADMSG;
        if (r < 0)
                return plugged_format_leave_out(pass, field, r, why);
        pass->n_stored += field->is_stored;
        pass->n_served++;
        pass->fields[pass->n_fields++] = *field;
        return 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Files without a sample belong to the dataset as well: when they change, they may have some. */
static int add_early_shards(struct pass *pass) {
        const struct stat *status = (const void *)pass->early.bytes;
        int r = 0;

        for (size_t i = 0; i < pass->early.n_bytes / sizeof(*status) && r >= 0; i++)
                r = index_builder_add_shard(pass->builder, pass->listed.names[i], &status[i]);
        return r;
}

/* The first sample: all that the index must know before. */
static int plugged_format_begin_index(struct pass *pass, bool has_names) {
        uint32_t n_rows = 0;
        int r = index_builder_new(plugged_format.name, pass->n_stored, &pass->builder);

        pass->has_names = has_names;
        for (uint32_t i = 0; i < pass->n_fields && r >= 0; i++) {
                if (pass->is_left_out[i])
                        continue;
                if (!pass->fields[i].is_stored) {
                        r = index_builder_add_column(pass->builder, &pass->fields[i], &pass->places[i]);
                        continue;
                }
                pass->places[i] = n_rows;
                index_builder_describe(pass->builder, n_rows++, &pass->fields[i]);
        }
        if (r >= 0)
                r = listed_give_root(&pass->listed, pass->files, pass->builder);
        if (r >= 0 && (!has_names || pass->n_stored == 0))
                index_builder_name_rows(pass->builder);
        return r < 0 ? r : add_early_shards(pass);
}

static int begin_shard(struct pass *pass) {
        return index_builder_add_shard(pass->builder, pass->window.file, &pass->status);
}

static int plugged_format_check_name(const struct pass *pass, const char *name, struct why *why) {
        if (pass->builder && pass->has_names != (name != NULL))
                return why_set(why, -EBADMSG, "gives names to some samples: all have one, or none");
        if (!name)
                return 0;
        if (!pass->has_stored)
                return why_set(why, -EBADMSG, "gives names to samples of which nothing lies in a file");
        if (name[0] == '\0' || strnlen(name, SAMPLE_NAME_MAX + 1) > SAMPLE_NAME_MAX || !text_is_name(name) ||
            !index_is_inner_path(name))
                return why_set(why, -EBADMSG,
                               "gives a sample a name that cannot be: names are printable, up to %u bytes, and paths "
                               "in a folder",
                               SAMPLE_NAME_MAX);
        return 0;
}

static uint64_t plugged_format_unit_of(const struct schema_field *field) {
        uint64_t unit = dlp_dtype_bytes(field->dtype);

        for (uint32_t i = 0; i < field->n_dims; i++)
                if (field->shape[i] >= 0)
                        unit *= (uint64_t)field->shape[i];
        return unit;
}

/* Does a value of this length fit the form? */
static bool plugged_format_fits(const struct schema_field *field, uint64_t n_bytes) {
        bool varies = field->n_dims > 0 && field->shape[0] == -1;

        return field->kind != FIELD_VALUE ||
               (varies ? n_bytes % plugged_format_unit_of(field) == 0 : n_bytes == plugged_format_unit_of(field));
}

static int check_cell(const struct pass *pass, uint32_t idx, const struct scanner_cell *cell, struct why *why) {
        const struct schema_field *field = &pass->fields[idx];

        if (cell->is_absent)
                return field->may_be_absent ? 0
                                            : plugged_format_refuse_field(field, "is absent, which it may not be", why);
        if (!cell->value != field->is_stored)
                return plugged_format_refuse_field(field, "is a value in one sample and in the file in others", why);
        if (cell->value && field->kind == FIELD_TEXT && !looks_like_text(cell->value, cell->n_bytes))
                return plugged_format_refuse_field(field, "is text that is not UTF-8, or has a NUL", why);
        if (!plugged_format_fits(field, cell->n_bytes))
                return why_set(why, -EBADMSG, "the field \"%s\" has %" PRIu64 " bytes, which its shape and type cannot",
                               field->name, cell->n_bytes);
        return 0;
}

/* What leads out of a file says that the file was cut, or that nothing of all this is right. */
static int plugged_format_check_place(const struct pass *pass, uint32_t idx, const struct scanner_cell *cell,
                                      struct why *why) {
        if (cell->is_absent || cell->value ||
            (cell->offset <= pass->n_file_bytes && cell->n_bytes <= pass->n_file_bytes - cell->offset))
                return 0;
        return why_set(why, -EBADMSG,
                       "the field \"%s\" lies at byte %" PRIu64 ", %" PRIu64 " bytes long, and the file has %" PRIu64
                       " bytes",
                       pass->fields[idx].name, cell->offset, cell->n_bytes, pass->n_file_bytes);
}

/* All that are wrong in one sample cost one more pass together. */
static int check_cells(struct pass *pass, const struct scanner_cell *cells, uint32_t n_cells, uint64_t *ret_n_copied,
                       struct why *why) {
        uint64_t n_copied = 0;
        int error = 0;

        for (uint32_t i = 0; i < n_cells; i++) {
                int r;

                if (pass->is_left_out[i])
                        continue;
                r = plugged_format_check_place(pass, i, &cells[i], why);
                if (r < 0)
                        return r;
                r = check_cell(pass, i, &cells[i], why);
                if (r < 0 && !refusals_mark_of_several(pass->refusals, pass->fields[i].name, r, why))
                        return r;
                error = r < 0 ? r : error;
                if (cells[i].value && (n_copied += cells[i].n_bytes) > SAMPLE_BYTES)
                        return why_set(why, -EBADMSG,
                                       "gives a sample more than %u MiB of values: let them be read from the file",
                                       SAMPLE_BYTES >> 20);
        }
        *ret_n_copied = n_copied;
        return error;
}

static int plugged_format_check_sample(struct pass *pass, const char *name, const struct scanner_cell *cells,
                                       uint32_t n_cells, struct why *why) {
        uint64_t n_copied = 0;
        int r = plugged_format_check_name(pass, name, why);

        if (r == 0 && n_cells != pass->n_fields)
                return why_set(why, -EBADMSG, "adds a sample of %u cells, and %u fields", n_cells, pass->n_fields);
        if (r == 0 && n_cells == 0)
                return why_set(why, -EBADMSG, "adds a sample before any field");
        if (r == 0 && pass->n_file_samples >= pass->n_file_bytes)
                return why_set(why, -EBADMSG, "adds more samples than the file has bytes");
        if (r == 0 && pass->n_served == 0)
                return table_no_column(NULL, pass->refusals, why);
        if (r == 0)
                r = check_cells(pass, cells, n_cells, &n_copied, why);
        if (r == 0 && !copied_add(&pass->copied, n_copied))
                r = why_set(why, -E2BIG,
                            "its values need more than the %" PRIu64 " bytes that an index may copy: let "
                            "them be read from the file, or raise memory_limit",
                            pass->copied.max);
        return r;
}

static int plugged_format_give(struct pass *pass, const char *name, const struct scanner_cell *cells) {
        struct index_row *rows = pass->rows;
        uint64_t file = INDEX_NO_FILE;
        int r = name ? index_builder_add_path(pass->builder, name, 0, &file) : 0; /* "cats/7" */

        for (uint32_t i = 0; i < pass->n_fields && r >= 0; i++) {
                if (pass->is_left_out[i])
                        continue;
                if (pass->fields[i].is_stored)
                        rows[pass->places[i]] = cells[i].is_absent
                                                        ? (struct index_row){ .file = file, .offset = INDEX_ROW_ABSENT }
                                                        : (struct index_row){ .file = file,
                                                                              .offset = cells[i].offset,
                                                                              .length = cells[i].n_bytes };
                else if (!cells[i].is_absent)
                        r = index_builder_set_value(pass->builder, pass->places[i], cells[i].value, cells[i].n_bytes);
        }
        return r < 0 ? r : index_builder_add_sample(pass->builder, rows, 0);
}

static int plugged_format_on_sample(void *userdata, const char *name, const struct scanner_cell *cells,
                                    uint32_t n_cells, struct why *why) {
        struct pass *pass = userdata;
        int r = plugged_format_check_sample(pass, name, cells, n_cells, why);

        if (r < 0)
                return r;
        if (!pass->builder) {
                r = plugged_format_begin_index(pass, name != NULL);
                if (r >= 0)
                        r = begin_shard(pass);
        } else if (pass->n_file_samples == 0) {
                r = begin_shard(pass);
        }
        if (r >= 0)
                r = plugged_format_give(pass, pass->n_stored > 0 ? name : NULL,
                                        cells); /* a name is of what lies in a file */
        if (r < 0)
                return why_set(why, r, "%s", index_builder_text(r));
        pass->n_file_samples++;
        pass->n_samples++;
        return 0;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static int plugged_format_look_up(struct pass *pass) {
        if (!pass->watch)
                return 0;
        if (format_look_up(pass->watch, pass->n_samples, pass->files->root, pass->why) < 0)
                return -ECANCELED;
        seen_at(&pass->seen, pass->n_file_bytes, pass->furthest);
        seen_tell(&pass->seen, pass->watch);
        return 0;
}

/* Names file and byte in what somebody has said. */
static int fail_here(struct pass *pass, int error, const struct why *what) {
        return why_set(pass->why, error, "%s/%s: at byte %" PRIu64 ": %s", pass->files->root, pass->window.file,
                       pass->window.offset, what->text);
}

/* Whatever it wants, it comes to an end: all windows together are not much more than the file. */
static int count_window(struct pass *pass, uint64_t n_samples_before, struct why *why) {
        uint64_t end = pass->window.offset + pass->window.n_bytes;

        pass->n_given += pass->window.n_bytes;
        pass->n_circles = pass->n_samples > n_samples_before || end > pass->furthest ? 0 : pass->n_circles + 1;
        pass->furthest = end > pass->furthest ? end : pass->furthest;
        if (pass->n_circles > CIRCLES_MAX || pass->n_given / 4 > pass->n_file_bytes + SCANNER_WINDOW_MAX)
                return why_set(why, -EBADMSG, "%s reads the file again and again", pass->scanner->text);
        return 0;
}

static int check_wish(const struct pass *pass, uint64_t next, uint64_t n_wanted, struct why *why) {
        if (n_wanted > SCANNER_WINDOW_MAX)
                return why_set(why, -EBADMSG, "%s asks for %" PRIu64 " bytes at once, up to %llu are possible",
                               pass->scanner->text, n_wanted, SCANNER_WINDOW_MAX);
        if (next == pass->window.offset && n_wanted <= pass->window.n_bytes && next < pass->n_file_bytes)
                return why_set(why, -EBADMSG, "%s asks for the same bytes again", pass->scanner->text);
        if (next < pass->n_file_bytes && n_wanted > pass->n_file_bytes - next && next == pass->window.offset &&
            pass->window.n_bytes == pass->n_file_bytes - next)
                return why_set(why, -EBADMSG, "%s asks for %" PRIu64 " bytes, and the file ends after %" PRIu64,
                               pass->scanner->text, n_wanted, pass->window.n_bytes);
        return 0;
}

/* One window, and what comes of it. Sets the next one. */
static int scan_window(struct pass *pass, int fd, uint64_t n_wanted, struct why *why) {
        const struct scanner_sink sink = { .field = plugged_format_on_field,
                                           .refuse = on_refuse,
                                           .sample = plugged_format_on_sample,
                                           .userdata = pass };
        struct scanner_window *window = &pass->window;
        uint64_t n_rest = pass->n_file_bytes - window->offset, n_samples_before = pass->n_samples;
        uint8_t *room;
        int r = 0;

        window->n_bytes = n_wanted > 0 ? n_wanted : WINDOW_BYTES;
        window->n_bytes = window->n_bytes < n_rest ? window->n_bytes : n_rest;
        room = pass->scanner->room(pass->scanner, window->file, window->n_bytes, why);
        if (!room)
                return -ENOMEM;
        if (window->n_bytes > 0)
                r = listed_read(fd, room, window->n_bytes, window->offset, why);
        if (r == 0)
                r = pass->scanner->scan(pass->scanner, window, &sink, why);
        if (r == 0)
                r = count_window(pass, n_samples_before, why);
        return r == 0 ? check_wish(pass, window->next_offset, window->n_wanted, why) : r;
}

static int scan_windows(struct pass *pass, int fd) {
        uint64_t n_wanted = 0;

        do {
                struct why what = { .text = "" };
                int r = scan_window(pass, fd, n_wanted, &what);

                if (r < 0)
                        return fail_here(pass, r, &what);
                pass->window.offset = pass->window.next_offset;
                n_wanted = pass->window.n_wanted;
                r = plugged_format_look_up(pass);
                if (r < 0)
                        return r;
        } while (pass->window.offset < pass->n_file_bytes);
        return 0;
}

static int scan_file(struct pass *pass, size_t idx) {
        const char *name = pass->listed.names[idx];
        _cleanup_(closep) int fd = listed_open(pass->root_fd, pass->files->root, name, &pass->settled_ns, &pass->status,
                                               pass->why);
        int r;

        if (fd < 0)
                return fd;
        pass->n_file_bytes = (uint64_t)pass->status.st_size;
        pass->n_file_samples = pass->furthest = pass->n_given = 0;
        pass->n_circles = 0;
        pass->window = (struct scanner_window){ .file = name,
                                                .idx_file = (uint32_t)idx,
                                                .n_files = (uint32_t)pass->listed.n,
                                                .n_file_bytes = pass->n_file_bytes };
        seen_file(&pass->seen, pass->n_file_bytes);
        r = scan_windows(pass, fd);
        if (r < 0 || pass->n_file_samples > 0)
                return r;
        r = pass->builder ? begin_shard(pass) : growing_append(&pass->early, &pass->status, sizeof(pass->status));
        return r < 0 ? why_set(pass->why, r, "%s", index_builder_text(r)) : 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool plugged_format_has_ending(const char *name, const char *endings) {
        size_t n = strlen(name);

        endings += strspn(endings, " ");
        if (!*endings)
                return true;
        for (; *endings; endings += strspn(endings, " ")) {
                size_t n_ending = strcspn(endings, " ");

                if (n >= n_ending && memcmp(name + n - n_ending, endings, n_ending) == 0)
                        return true;
                endings += n_ending;
        }
        return false;
}

static bool is_visible(const char *name) {
        return name[0] != '.';
}

/* Of a folder: those with the right ending. Folders in it are left out, unless their names end so. */
static int choose_files(struct pass *pass) {
        size_t n = 0;

        for (size_t i = 0; i < pass->listed.n && pass->files->n_names == 0; i++) {
                const char *name = pass->listed.names[i];
                struct stat status;

                if (!plugged_format_has_ending(name, pass->scanner->endings))
                        continue;
                if (beneath_stat(pass->root_fd, name, &status) == 0 && S_ISDIR(status.st_mode))
                        continue;
                pass->listed.names[n++] = name;
        }
        if (pass->files->n_names == 0)
                pass->listed.n = n;
        if (pass->listed.n > 0)
                return pass->listed.n <= UINT32_MAX
                               ? 0
                               : why_set(pass->why, -E2BIG, "%s: too many files", pass->files->root);
        return why_set(pass->why, -ENOENT, "%s: there is no file in it that %s takes%s%s", pass->files->root,
                       pass->scanner->text, pass->scanner->endings[0] ? ": their names end with " : "",
                       pass->scanner->endings);
}

static int plugged_format_find_files(struct pass *pass) {
        int r = listed_find(&pass->listed, pass->root_fd, pass->files, is_visible, &pass->settled_ns, pass->why);

        return r < 0 ? r : choose_files(pass);
}

static int scan_files(struct pass *pass) {
        int r = 0;

        seen_begin(&pass->seen, pass->listed.n);
        for (size_t i = 0; i < pass->listed.n && r == 0; i++)
                r = scan_file(pass, i);
        if (r == 0 && !pass->builder)
                r = why_set(pass->why, -ENOENT, "%s: %s finds no sample in its %zu files", pass->files->root,
                            pass->scanner->text, pass->listed.n);
        return r;
}

static int plugin_build(int root_fd, const struct files *files, const struct format_options *options,
                        const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(freep) struct pass *pass = calloc(1, sizeof(*pass));
        int r;

        if (!pass)
                return why_errno(why, -ENOMEM, "%s", files->root);
        if (!options || !options->scanner)
                return why_set(why, -EINVAL, "%s: only a daemon can read it, which has the plug-in of its format",
                               files->root);
        pass->root_fd = root_fd;
        pass->files = files;
        pass->watch = watch;
        pass->scanner = options->scanner;
        pass->refusals = format_refusals(options);
        pass->why = why;
        copied_begin(&pass->copied, watch);
        r = plugged_format_find_files(pass);
        if (r == 0)
                r = pass->scanner->begin(pass->scanner, why);
        if (r == 0) {
                r = scan_files(pass);
                pass->scanner->end(pass->scanner);
        }
        if (r == 0)
                *ret_builder = TAKE_PTR(pass->builder);
        pass_fini(pass);
        return r;
}

const struct format plugged_format = {
        .name = "plugin",
        .takes_files = true,
        .is_read_through = true,
        .build = plugin_build,
};
