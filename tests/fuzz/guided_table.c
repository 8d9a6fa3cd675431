/* Any bytes as a listing (JSON Lines, CSV, text), and as annotations of COCO: what is accepted lies within the file,
 * cell by cell, a listing leads to no file outside its folder, and several threads find what one finds.
 *
 * A NUL in a listing of rows or objects ends the first file and begins the second one of the same dataset. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/files/cuts.h"
#include "daemon/data/format.h"
#include "daemon/data/index/index.h"
#include "daemon/data/refusals.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a listing was accepted %s\n", what);
        abort();
}

static void check_field(const struct source *source, uint64_t sample, uint32_t field, size_t n_bytes) {
        struct extent extent;

        source_locate(source, sample, field, &extent);
        if (extent.flags & EXTENT_ABSENT)
                return;
        if (extent.shard && (extent.offset > n_bytes || extent.length > n_bytes - extent.offset))
                find("with a cell outside of its file");
        if (!extent.shard && (!index_is_inner_path(extent.name) || strchr(extent.name, '/') ||
                              (extent.dir[0] && !index_is_inner_path(extent.dir))))
                find("that leads out of its folder");
}

static void check(const struct source *source, size_t n_bytes) {
        for (uint64_t i = 0; i < source->n_samples; i++)
                for (uint32_t k = 0; k < source->schema.n_fields; k++) {
                        uint8_t value[8];

                        if (source->schema.fields[k].is_stored)
                                check_field(source, i, k, n_bytes);
                        else if (source->schema.fields[k].kind == FIELD_VALUE && source_has(source, i, k) &&
                                 source_length(source, i, k) <= sizeof(value))
                                source_value(source, i, k, value);
                }
}

struct found {
        int r;
        uint32_t n_refused;
        char digest[INDEX_DIGEST_SIZE];
        struct why why;
};

static void try_once(const struct format *format, const char *const *names, size_t n_names, const char *text,
                     size_t n_bytes, struct found *found) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *source = NULL;
        _cleanup_(closep) int root_fd = -1, index_fd = -1;
        _cleanup_(refusals_fini) struct refusals refusals = { 0 };
        struct format_options options = { 0 };
        char root[PATH_MAX];
        struct why why = { 0 };

        root_fd = open(folder_path("listing", root), O_PATH | O_DIRECTORY | O_CLOEXEC);
        index_fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (root_fd < 0 || index_fd < 0 || format_options_parse(text, format, &options, &why) < 0)
                _exit(2);
        options.refusals = &refusals;
        found->r = format->build(root_fd, &(struct files){ .root = root, .names = names, .n_names = n_names }, &options,
                                 NULL, &builder, &why);
        found->n_refused = refusals.n;
        if (found->r < 0) {
                if (!why.text[0])
                        find("neither, nor refused with a word");
                found->why = why;
        } else {
                if (index_builder_write(builder, index_fd, "index", &why) < 0 ||
                    index_open_fd(index_fd, "index", NULL, &source, &why) < 0)
                        find("whose index is not valid");
                check(source, n_bytes);
                strcpy(found->digest, source->digest);
        }
        format_options_fini(&options);
}

static void write_file(const char *name, const uint8_t *data, size_t n_bytes) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "listing/%s", name);
        folder_write(path, data, n_bytes);
        folder_age(path);
}

/* Twice: by one thread, and by two that read small pieces. */
static void try_format(const struct format *format, const char *name, const char *text, const uint8_t *data,
                       size_t n_bytes) {
        bool is_table = format == &format_jsonl || format == &format_csv;
        const uint8_t *end = name && is_table && n_bytes > 0 ? memchr(data, '\0', n_bytes) : NULL;
        const char *const names[] = { name, "second" };
        size_t n_first = end ? (size_t)(end - data) : n_bytes, n_names = (name != NULL) + (end != NULL);
        struct found alone = { 0 }, found = { 0 };

        if (name)
                write_file(name, data, n_first);
        if (end)
                write_file(names[1], end + 1, n_bytes - n_first - 1);
        CUTS_LIMITS = (struct cuts_limits){ .n_threads = 1, .cut_bytes = 1 << 20, .long_bytes = 1 << 20 };
        try_once(format, names, n_names, text, n_bytes, &alone);
        if (format == &format_coco)
                return;
        CUTS_LIMITS = (struct cuts_limits){ .n_threads = 2, .cut_bytes = 1 + n_bytes % 37, .long_bytes = 256 };
        try_once(format, names, n_names, text, n_bytes, &found);
        if (found.r != alone.r || found.n_refused != alone.n_refused || strcmp(found.why.text, alone.why.text) != 0 ||
            strcmp(found.digest, alone.digest) != 0)
                find("by two threads in another way than by one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const char *const OPTIONS[] = { NULL, "files=image=p\n", "raw=a, b\n", "files=f=x/{p}.{a}\n" };
        static const char *const BLANKS = "delimiter=blank\nskip_lines=1\ncolumns=p, a\nfiles=f=x/{p}\nlabel=a\n";
        static const char *const JOINED = "delimiter=blank\ncolumns=p, a\njoin=a.csv(p, q)\nlabel=q\n"; /* to itself */
        static bool has_folder;
        const char *options;

        if (!has_folder)
                folder_make("listing");
        has_folder = true;
        if (n_bytes == 0)
                return 0;
        options = OPTIONS[data[0] / 4 % ARRAY_SIZE(OPTIONS)];
        switch (data[0] % 4) {
        case 0:
                try_format(&format_jsonl, "a.jsonl", options, data + 1, n_bytes - 1);
                break;
        case 1: /* the annotations lie among the pictures */
                folder_write("listing/a.json", data + 1, n_bytes - 1);
                folder_age("listing/a.json");
                folder_age("listing");
                try_format(&format_coco, NULL, "annotations=a.json\n", data + 1, n_bytes - 1);
                break;
        case 2:
                if (data[0] & 128)
                        options = data[0] & 64 ? BLANKS : JOINED;
                try_format(&format_csv, data[0] & 64 ? "a.tsv" : "a.csv", options, data + 1, n_bytes - 1);
                break;
        default:
                try_format(&format_text, "a.txt", NULL, data + 1, n_bytes - 1);
        }
        return 0;
}
