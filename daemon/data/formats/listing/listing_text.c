#include "daemon/data/format.h"

/* text: files of plain text. A sample is a line, without the "\n" or "\r\n" that ends it; or a whole file. An empty
 * line is a sample too, so that sample i is line i. Whether it is UTF-8 is checked when a sample is read. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/listing/listing.h"
#include "daemon/data/formats/listing/parts.h"
#include "proto/base/cleanup.h"

#define FIELD_NAME_OF_TEXT "text"

/* What was found of one line; for a whole file there are the files themselves. */
struct text_line {
        uint64_t offset;
        uint64_t n_bytes;
};

struct text_dataset {
        struct text_listing listing;
        struct growing lines; /* struct text_line */
        bool is_by_file;
};

static void text_dataset_fini(struct text_dataset *dataset) {
        listing_fini(&dataset->listing);
        growing_fini(&dataset->lines);
}

static int add_line(struct text_dataset *dataset, uint64_t offset, uint64_t n_bytes) {
        struct text_line line = { .offset = offset, .n_bytes = n_bytes };

        if (growing_append(&dataset->lines, &line, sizeof(line)) < 0)
                return index_builder_refused(-ENOMEM, dataset->listing.files->root, dataset->listing.why);
        dataset->listing.n_samples++;
        return listing_look_up(&dataset->listing, 0);
}

static int listing_text_read_text(struct text_listing *listing, void *userdata) {
        struct text_dataset *dataset = userdata;
        struct text_window *window = &listing->window;
        int r = 0;

        if (dataset->is_by_file) /* without the byte order mark */
                return add_line(dataset, window->at, window->n_file - window->at);
        while (r == 0) {
                const uint8_t *line;
                uint64_t offset = 0;
                struct why detail;
                size_t n = 0;

                r = text_window_line(window, &line, &n, &offset, &detail);
                if (r < 0)
                        return listing_refuse(listing, window->n_lines + 1, r, &detail);
                if (r == TEXT_WINDOW_END)
                        return 0;
                r = add_line(dataset, offset, n);
        }
        return r;
}

/* ---- in parts -------------------------------------------------------------------------------------------------- */

static struct text_listing *listing_text_make_part(const void *userdata) {
        struct text_dataset *part = calloc(1, sizeof(*part));

        (void)userdata;
        return part ? &part->listing : NULL;
}

static void listing_text_free_part(struct text_listing *listing) {
        struct text_dataset *part = (struct text_dataset *)(void *)listing;

        text_dataset_fini(part);
        free(part);
}

static void listing_text_clear_part(struct text_listing *listing) {
        growing_clear(&((struct text_dataset *)(void *)listing)->lines);
}

static int listing_text_take_part(void *userdata, struct text_listing *listing, uint64_t line_base) {
        const struct text_dataset *part = (const void *)listing;
        struct text_dataset *dataset = userdata;
        int r = growing_append(&dataset->lines, part->lines.bytes, part->lines.n_bytes);

        (void)line_base; /* what is wrong is only found by those who ask for a sample */
        return r < 0 ? index_builder_refused(r, dataset->listing.files->root, dataset->listing.why) : 0;
}

static const struct listing_parts PARTS = {
        .make = listing_text_make_part,
        .free = listing_text_free_part,
        .clear = listing_text_clear_part,
        .read = listing_text_read_text,
        .take = listing_text_take_part,
};

/* ---- the index ------------------------------------------------------------------------------------------------- */

static int listing_text_give_file(const struct text_dataset *dataset, size_t idx, struct index_builder *builder) {
        const struct text_listing *listing = &dataset->listing;
        const struct text_line *lines = (const void *)dataset->lines.bytes;
        uint64_t end = idx + 1 < listing_n_files(listing) ? listing_file(listing, idx + 1)->first_sample
                                                          : listing->n_samples;
        int r = listing_give_file(listing, builder, idx);

        for (uint64_t i = listing_file(listing, idx)->first_sample; i < end && r == 0; i++) {
                struct index_row row = { .file = INDEX_NO_FILE, .offset = lines[i].offset, .length = lines[i].n_bytes };

                r = index_builder_add_sample(builder, &row, 0);
        }
        return r;
}

static int listing_text_make_index(const struct text_dataset *dataset, struct index_builder **ret_builder) {
        static const struct schema_field FIELD = { .name = FIELD_NAME_OF_TEXT, .kind = FIELD_TEXT, .is_stored = true };
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        int r = index_builder_new(dataset->listing.format, 1, &builder);

        if (r < 0)
                return r;
        index_builder_name_rows(builder);
        index_builder_describe(builder, 0, &FIELD);
        r = listing_give_root(&dataset->listing, builder);
        for (size_t i = 0; i < listing_n_files(&dataset->listing) && r == 0; i++)
                r = listing_text_give_file(dataset, i, builder);
        if (r == 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

static bool listing_text_is_text(const char *name) {
        return listing_has_ending(name, ".txt");
}

static const struct shards_kind SHARDS = {
        .what = "text file",
        .pattern = "*.txt",
        .path = "a file, a folder of .txt files, or a pattern such as DIR/x-{000..127}.txt",
        .is_taken = listing_text_is_text,
        .is_common = true,
};

static int text_is_it(int root_fd, const struct files *files) {
        return listing_is_it(root_fd, files, &SHARDS, listing_text_is_text, false, listing_begins_as_text);
}

static int text_build(int root_fd, const struct files *files, const struct format_options *options,
                      const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        const char *sample = format_option(options, "sample");
        struct shards_kind kind = SHARDS;
        _cleanup_(text_dataset_fini) struct text_dataset dataset = {
                .listing = { .root_fd = root_fd,
                             .files = files,
                             .watch = watch,
                             .why = why,
                             .format = "text",
                             .split = format_option(options, "split") },
        };
        int r;

        dataset.is_by_file = kind.is_of_several = sample && strcmp(sample, "file") == 0;
        r = listing_walk(&dataset.listing, &kind, listing_text_read_text, dataset.is_by_file ? NULL : &PARTS, &dataset);
        if (r < 0)
                return r;
        r = listing_text_make_index(&dataset, ret_builder);
        return r < 0 ? index_builder_refused(r, dataset.listing.files->root, dataset.listing.why) : 0;
}

static const struct setting OPTIONS[] = {
        { .name = "sample",
          .kind = SETTING_CHOICE,
          .choices = "line file",
          .prose = "What a sample is, \"line\" or \"file\"; empty: a line." },
        OPTION_SPLIT,
        { 0 },
};

static const struct format_naming NAMES[] = { { ".txt", .is_end = true, .is_file = true }, { 0 } };

static const struct format_conversion CONVERSIONS[] = { FORMAT_DECOMPRESSED(".txt"), { 0 } };

const struct format format_text = {
        .name = "text",
        .doc = "A file, a pattern of files, or a folder of `*.txt` files in the order of their names. Each line is "
               "a sample with the field `text`.",
        .example = "path = \"/data/books\" sample = \"file\"",
        .takes_files = true,
        .is_read_through = true,
        .options = OPTIONS,
        .names = NAMES,
        .conversions = CONVERSIONS,
        .is_it = text_is_it,
        .build = text_build,
};
