#include "daemon/data/format.h"

/* arrow: Arrow files, as save_to_disk() of "datasets" writes them, or any others. A row is a sample, a column is a
 * field. */

#include <errno.h>

#include <string.h>

#include "daemon/data/formats/arrow/arrow_reading.h"
#include "daemon/data/formats/arrow/indices.h"
#include "proto/base/cleanup.h"

static void arrow_dataset_fini(struct arrow_dataset *dataset) {
        arrow_schema_fini(&dataset->schema);
        arrow_folder_fini(&dataset->folder);
}

/* The same rows in the sequence of the indices files. Files that rows name are refused: a finished index cannot give
 * them to another one, and datasets had no Image when it wrote indices. */
static int arrow_put_in_order(struct columnar_pass *pass, const struct listed *indices, struct index_builder *all,
                              struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *ordered = NULL;
        int r;

        for (uint32_t i = 0; i < pass->columns.n; i++)
                if (pass->columns.all[i].role == COLUMNAR_MEDIA)
                        return why_set(pass->why, -ENOTSUP,
                                       "%s: column \"%s\" is of the type Image or Audio, beside an indices file; load "
                                       "it, call flatten_indices() and save it again",
                                       pass->files->root, pass->columns.all[i].field.name);
        r = columnar_describe(pass, &ordered);
        if (r == 0)
                r = columnar_give_root(pass, ordered);
        if (r < 0)
                return index_builder_refused(r, pass->files->root, pass->why);
        r = arrow_indices_apply(pass, indices, all, ordered);
        if (r == 0)
                *ret_builder = TAKE_PTR(ordered);
        return r;
}

static int arrow_build_files(struct columnar_pass *pass, const struct arrow_dataset *dataset, const char *fields,
                             struct index_builder **ret_builder) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        int r = columnar_build(pass, fields, &builder);

        if (r == 0 && dataset->folder.indices.n > 0)
                r = arrow_put_in_order(pass, &dataset->folder.indices, builder, ret_builder);
        else if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        columnar_fini(pass);
        return r;
}

static int arrow_build(int root_fd, const struct files *files, const struct format_options *options,
                       const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(arrow_dataset_fini) struct arrow_dataset dataset = { 0 };
        struct columnar_pass pass = { .format = &ARROW_READING,
                                      .name = format_arrow.name,
                                      .root_fd = root_fd,
                                      .files = files,
                                      .watch = watch,
                                      .refusals = format_refusals(options),
                                      .why = why,
                                      .listed = &dataset.folder.listed,
                                      .schema = &dataset.schema,
                                      .own = &dataset };
        int r = arrow_folder_find(&dataset.folder, root_fd, files, format_option(options, "split"), &pass.settled_ns,
                                  why);

        return r < 0 ? r : arrow_build_files(&pass, &dataset, format_option(options, "fields"), ret_builder);
}

int arrow_host_build(const struct arrow_host *host, int root_fd, const struct files *files,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(arrow_dataset_fini) struct arrow_dataset dataset = { .host = host };
        struct listed *listed = &dataset.folder.listed;
        struct columnar_pass pass = { .format = &ARROW_READING,
                                      .name = host->format,
                                      .root_fd = root_fd,
                                      .files = files,
                                      .watch = watch,
                                      .refusals = host->refusals,
                                      .why = why,
                                      .listed = listed,
                                      .schema = &dataset.schema,
                                      .own = &dataset,
                                      .settled_ns = host->settled_ns };

        listed->n = host->n_files;
        if (growing_append(&listed->memory, host->names, host->n_name_bytes) < 0 || listed_end(listed) < 0)
                return why_set(why, -ENOMEM, "%s: no memory for the names of its files", files->root);
        return arrow_build_files(&pass, &dataset, host->fields, ret_builder);
}

static const struct setting OPTIONS[] = {
        OPTION_FIELDS,
        OPTION_SPLIT,
        { 0 },
};

static const struct format_naming NAMES[] = { { ".arrow", .is_end = true },
                                              { ".feather", .is_end = true },
                                              { "dataset_dict.json", .is_end = true },
                                              { "state.json", .is_end = true },
                                              { 0 } };

static const struct format_naming TABLES[] = { { ".arrow", .is_end = true }, { ".feather", .is_end = true }, { 0 } };

static bool arrow_begins(const uint8_t *head, size_t n) {
        (void)n;
        return memcmp(head, "ARROW1", 6) == 0 || memcmp(head, "\xff\xff\xff\xff", 4) == 0;
}

static const struct format_written WRITTEN = {
        .suffix = ".arrow", .n_head = 8, .begins_so = arrow_begins, .names = TABLES
};

const struct format format_arrow = {
        .name = "arrow",
        .doc = "What `save_to_disk()` of the library datasets wrote, a folder of `.arrow` or `.feather` files (in "
               "the order of their names), or such files themselves, in either of Arrow's containers (stream and "
               "file). A row is a sample and a column is a field.",
        .example = "path = \"/data/saved\" split = \"train\"",
        .takes_files = true,
        .options = OPTIONS,
        .names = NAMES,
        .written = &WRITTEN,
        .is_it = arrow_folder_is_it,
        .build = arrow_build,
};
