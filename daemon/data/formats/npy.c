#include "daemon/data/format.h"

/* npy: arrays as numpy.save() and numpy.savez() write them. Each .npy file of a folder, or of an .npz archive, is a
 * field with the file's name, and row i of all arrays is sample i. A single .npy file is a field "data", and so is a
 * raw memory map, which has no header and is described by the configuration.
 *
 * There is no index: the place of a row is computed, so memory does not grow with the number of rows. The files are
 * also mapped: rows that are in the page cache are copied to their place without a read (source_next_piece()). */

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/field_name.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/npy_list.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/source_compare.h"
#include "proto/base/cleanup.h"
#include "proto/base/utf8.h"

#define SINGLE_FIELD "data"
#define DIGEST_SIZE  65u

struct npy {
        struct source source; /* the first member: callers have a pointer to it */
        struct npy_list list;
        char digest[DIGEST_SIZE];
        struct refusal *refused; /* of the source */
};

static const struct source_type NPY_TYPE;

static const struct npy *npy_of(const struct source *source) {
        return (const struct npy *)source;
}

static void npy_close(struct source *source) {
        struct npy *npy = (struct npy *)source;

        npy_list_fini(&npy->list);
        free(npy->refused);
        free(npy);
}

/* ---- what others see ------------------------------------------------------------------------------------------- */

/* "x.npy" becomes the field "x". */
static int npy_check_name(const char *file, struct why *why) {
        size_t n = strlen(file) - strlen(NPY_ENDING);
        bool is_fine = n > 0 && utf8_valid(file, n) == n;

        for (size_t i = 0; i < n && is_fine; i++)
                is_fine = (unsigned char)file[i] >= 0x20 && file[i] != 0x7f;
        return is_fine ? 0
                       : why_set(why, -EINVAL,
                                 "cannot be the name of a field: that has characters of UTF-8 before \"" NPY_ENDING
                                 "\", and no control characters");
}

static void npy_describe_field(const struct npy_array *array, struct schema_field *field) {
        const struct npy_header *header = &array->header;

        field->kind = FIELD_VALUE;
        field->is_stored = true;
        field->is_big_endian = header->is_big_endian;
        field->dtype = header->dtype;
        field->n_dims = header->n_dims - 1;
        for (uint32_t i = 0; i < field->n_dims; i++)
                field->shape[i] = (int64_t)header->shape[i + 1];
        if (!field->name[0])
                npy_list_name(npy_array_name(array), field->name);
}

static void npy_describe(struct npy *npy) {
        struct source *source = &npy->source;

        source->n_samples = npy->list.arrays[0].header.shape[0];
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                const struct npy_header *header = &npy->list.arrays[i].header;

                npy_describe_field(&npy->list.arrays[i], &source->schema.fields[i]);
                source->total_bytes += header->end - header->data;
                if (header->row_bytes > source->max_length)
                        source->max_length = header->row_bytes;
        }
        source->max_span = source->max_length;
        source->n_shards = source->schema.n_fields;
        source->has_several_files = true;
        source->has_fixed_lengths = true;
}

/* Covers the names, types and shapes of the arrays and the marks of their bytes, as the digest of an index does. */
static int npy_make_digest(struct npy *npy, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        char text[256] = "npy";
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, text, strlen(text) + 1);

        for (uint32_t i = 0; i < npy->source.schema.n_fields && is_fine; i++) {
                const struct npy_header *header = &npy->list.arrays[i].header;
                int n = snprintf(text, sizeof(text), "%s %s%s", npy->source.schema.fields[i].name,
                                 dlp_dtype_name(header->dtype), header->is_big_endian ? " big" : "");

                for (uint32_t k = 0; k < header->n_dims; k++)
                        n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIu64, header->shape[k]);
                is_fine = EVP_DigestUpdate(context, text, (size_t)n + 1) &&
                          EVP_DigestUpdate(context, &npy->list.arrays[i].mark, sizeof(npy->list.arrays[i].mark));
        }
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "its digest could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(npy->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

/* What cannot be served is left out. */
static int open_arrays(struct npy *npy, int root_fd, const struct npy_raw *raw, struct why *why) {
        struct npy_list *list = &npy->list;
        int64_t settled_ns = 0;
        struct why detail;

        for (uint32_t i = 0; i < list->n_arrays;) {
                struct npy_array *array = &list->arrays[i];
                int r;

                array->raw = raw;
                r = list->is_single ? 0 : npy_check_name(npy_array_name(array), &detail);
                if (r == 0)
                        r = npy_array_open(array, root_fd, &settled_ns, &detail);
                array->raw = NULL;
                if (r < 0) {
                        why_set(why, r, "%s%s%s", list->is_single ? "" : npy_array_name(array),
                                list->is_single ? "" : " ", detail.text);
                        r = npy_list_refuse(list, array, r, why);
                        if (r < 0)
                                return r;
                } else {
                        i++;
                }
        }
        return list->n_arrays > 0 ? 0 : table_no_column(NULL, &list->refused, why);
}

/* The arrays that `fields` names say how many rows there are; or all of them, if it names none. Returns whether it
 * names some. */
static bool find_counted(const struct npy_list *list, const char *fields, bool *is_counted) {
        bool is_named = false;

        for (uint32_t i = 0; i < list->n_arrays; i++) {
                char name[SCHEMA_NAME_MAX];

                npy_list_name(npy_array_name(&list->arrays[i]), name);
                is_counted[i] = fields && table_column_is_wanted(fields, name);
                is_named |= is_counted[i];
        }
        for (uint32_t i = 0; i < list->n_arrays && !is_named; i++)
                is_counted[i] = true;
        return is_named;
}

static uint32_t count_with(const struct npy_list *list, const bool *is_counted, uint64_t n_rows) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < list->n_arrays; i++)
                n += is_counted[i] && list->arrays[i].header.shape[0] == n_rows;
        return n;
}

/* The names of all arrays with n_rows rows, as far as there is room. */
static void npy_print_names(const struct npy_list *list, uint64_t n_rows, char *text, size_t size) {
        size_t at = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < list->n_arrays; i++) {
                char name[SCHEMA_NAME_MAX];

                if (list->arrays[i].header.shape[0] != n_rows)
                        continue;
                npy_list_name(npy_array_name(&list->arrays[i]), name);
                if (at + strlen(name) + sizeof(", , ...") > size) {
                        snprintf(text + at, size - at, ", ...");
                        return;
                }
                at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "", name);
        }
}

/* Nobody knows which ones are meant. */
static int npy_refuse_rows(const struct npy_list *list, uint64_t n_rows, struct why *why) {
        char groups[320] = "", names[96];
        size_t at = 0;

        for (uint32_t i = 0; i < list->n_arrays && at < sizeof(groups); i++) {
                uint64_t n = list->arrays[i].header.shape[0];
                bool is_first = true;

                for (uint32_t k = 0; k < i; k++)
                        is_first &= list->arrays[k].header.shape[0] != n;
                if (!is_first)
                        continue;
                npy_print_names(list, n, names, sizeof(names));
                at += (size_t)snprintf(groups + at, sizeof(groups) - at, "%s%" PRIu64 " (%s)", at > 0 ? ", " : "", n,
                                       names);
        }
        npy_print_names(list, n_rows, names, sizeof(names));
        return why_set(
                why, -EINVAL,
                "its arrays have different numbers of rows: %s; row i of all arrays is sample i, so choose those "
                "that belong together, as with fields = \"%s\"",
                groups, names);
}

/* Arrays with fewer rows than most of those that count have are left out: a mean, say. Where most do not have the
 * greatest number of rows, as where training and test set lie side by side, or means and deviations of each pixel
 * beside the samples, all are refused. */
static int settle_rows(struct npy_list *list, const char *fields, struct why *why) {
        bool is_counted[SCHEMA_FIELDS_MAX], is_named = find_counted(list, fields, is_counted);
        uint64_t n_rows = 0;
        int r = 0;

        for (uint32_t i = 0; i < list->n_arrays; i++)
                if (is_counted[i] && list->arrays[i].header.shape[0] > n_rows)
                        n_rows = list->arrays[i].header.shape[0];
        for (uint32_t i = 0; i < list->n_arrays; i++) {
                uint64_t n = list->arrays[i].header.shape[0];

                if (is_counted[i] && n != n_rows &&
                    count_with(list, is_counted, n) >= count_with(list, is_counted, n_rows))
                        return npy_refuse_rows(list, n_rows, why);
        }
        for (uint32_t i = 0; i < list->n_arrays && r == 0;) {
                struct npy_array *array = &list->arrays[i];

                if (array->header.shape[0] == n_rows) {
                        i++;
                        continue;
                }
                why_set(why, -EINVAL, "%s has %" PRIu64 " rows, and %s %" PRIu64 ": row i of all arrays is sample i",
                        npy_array_name(array), array->header.shape[0],
                        is_named ? "those that fields names have" : "most others have", n_rows);
                r = npy_list_refuse(list, array, -EINVAL, why);
        }
        return r;
}

static int npy_fill(struct npy *npy, int root_fd, const struct files *files, const struct npy_raw *raw,
                    const char *fields, struct why *why) {
        int r;

        npy->list.is_raw = raw;
        r = npy_list_find(&npy->list, root_fd, files, why);
        if (r == 0)
                r = open_arrays(npy, root_fd, raw, why);
        if (r == 0 && !npy->list.is_single)
                r = settle_rows(&npy->list, fields, why);
        npy->source.schema.n_fields = npy->list.n_arrays;
        if (r == 0 && npy->list.is_single)
                strcpy(npy->source.schema.fields[0].name, SINGLE_FIELD);
        if (r == 0)
                npy_describe(npy);
        if (r == 0 && refusals_list(&npy->list.refused, &npy->refused) < 0)
                r = why_set(why, -ENOMEM, "no memory to list what cannot be served");
        npy->source.refused = npy->refused;
        npy->source.n_refused = npy->list.refused.n;
        return r < 0 ? r : npy_make_digest(npy, why);
}

static int read_raw(const struct format_options *options, struct npy_raw *ret_raw, struct why *why) {
        ret_raw->dtype = format_option(options, "dtype");
        ret_raw->shape = format_option(options, "shape");
        if (!ret_raw->dtype && (ret_raw->shape || format_option(options, "offset")))
                return why_set(why, -EINVAL,
                               "shape and offset describe a file without a header, and dtype is missing; set it, or "
                               "leave them out");
        ret_raw->offset = format_option_number(options, "offset", 0);
        return 0;
}

static int npy_open(int root_fd, const struct files *files, const struct format_options *options,
                    const struct index_watch *watch, struct budget *budget, struct source **ret_source,
                    struct why *why) {
        _cleanup_(source_closep) struct source *source = NULL;
        struct npy *npy = calloc(1, sizeof(*npy));
        struct npy_raw raw = { 0 };
        struct why detail;
        int r;

        (void)watch;
        (void)budget;
        if (!npy)
                return why_set(why, -ENOMEM, "%s: no memory to open it", files->root);
        source = &npy->source;
        source->type = &NPY_TYPE;
        source->format = format_npy.name;
        source->digest = npy->digest;
        r = read_raw(options, &raw, &detail);
        if (r == 0)
                r = npy_fill(npy, root_fd, files, raw.dtype ? &raw : NULL, options ? options->fields : NULL, &detail);
        if (r < 0)
                return why_set(why, r, "%s%s%s: %s", files->root, files->n_names == 1 ? "/" : "",
                               files->n_names == 1 ? files->names[0] : "", detail.text);
        *ret_source = TAKE_PTR(source);
        return 0;
}

/* ---- asked for each sample ------------------------------------------------------------------------------------- */

static void npy_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct npy_array *array = &npy_of(source)->list.arrays[field];

        *ret_extent = (struct extent){
                .dir = "",
                .name = array->file,
                .file = field,
                .offset = array->header.data + sample * array->header.row_bytes,
                .length = array->header.row_bytes,
                .shard = array->file,
                .idx_shard = field,
        };
}

static const uint8_t *npy_row(const struct source *source, uint64_t sample, uint32_t field) {
        return npy_array_row(&npy_of(source)->list.arrays[field], sample);
}

static bool npy_rows_were_there(const struct source *source, uint32_t field) {
        return npy_array_rows_were_there(&npy_of(source)->list.arrays[field]);
}

static size_t npy_name(const struct source *source, uint64_t sample, char *ret_name) {
        (void)source;
        return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "row %" PRIu64, sample);
}

/* ---- is it current? -------------------------------------------------------------------------------------------- */

static int npy_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct npy *npy = npy_of(source);
        int r = npy->list.is_folder ? source_compare_file(root_fd, ".", &npy->list.folder, compare, why) : 0;

        for (uint32_t i = 0; i < source->schema.n_fields && r == 0; i++)
                r = source_compare_file(root_fd, npy->list.arrays[i].file, &npy->list.arrays[i].status, compare, why);
        return r;
}

static const struct source_type NPY_TYPE = {
        .close = npy_close,
        .compare = npy_compare,
        .locate = npy_locate,
        .row = npy_row,
        .rows_were_there = npy_rows_were_there,
        .name = npy_name,
};

static const struct setting OPTIONS[] = {
        { .name = "dtype",
          .kind = SETTING_OPTIONAL,
          .max = 15,
          .prose = "The type of the elements of a file without a header, as numpy.memmap() and tofile() write it: "
                   "uint16, or as numpy writes it, >f4." },
        { .name = "shape",
          .kind = SETTING_OPTIONAL,
          .max = 63,
          .prose = "With dtype: the number of rows (-1: all) and the shape of a row, as in -1,2049; empty: -1, each "
                   "element is a row." },
        { .name = "offset",
          .kind = SETTING_NUMBER,
          .max = INT64_MAX,
          .unit = "bytes",
          .prose = "With dtype: how many bytes come before the first row; empty: none." },
        { 0 },
};

static bool npy_is_array(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (strcmp(dot, NPY_ENDING) == 0 || strcmp(dot, ".npz") == 0);
}

static int npy_is_it(int root_fd, const struct files *files) {
        return format_names_files(root_fd, files, npy_is_array);
}

/* Without packages; takes a megabyte of memory whatever the archive's size, and compares checksums. Writes as
 * numpy.savez() does. The time in the archive is always the same, so that equal arrays become equal files. */
static const char NPZ_TO_STORED[] =
        "import shutil, sys, zipfile, zlib\n"
        "try:\n"
        "    with zipfile.ZipFile(sys.stdin.buffer) as packed, zipfile.ZipFile(sys.stdout.buffer, 'w') as stored:\n"
        "        for name in packed.namelist():\n"
        "            with packed.open(name) as array, stored.open(zipfile.ZipInfo(name), 'w', force_zip64=True) as copy:\n"
        "                shutil.copyfileobj(array, copy, 1 << 20)\n"
        "except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:\n"
        "    sys.exit(f'not converted: {error}')\n";

/* With numpy; takes some 16 MB, or one row. Row after row, so that an array larger than the memory can be turned as
 * well. Objects stay as they are: they are not served, and the arrays beside them are. */
static const char NPY_TO_ROWS[] =
        "import os, shutil, sys\n"
        "BLOCK_BYTES = 16 << 20\n"
        "try:\n"
        "    import numpy\n"
        "except ImportError as error:\n"
        "    sys.exit(f'putting an array into C order needs numpy ({error}); install it with \"{sys.executable} -m pip '\n"
        "             'install numpy\", or set DATALOADERD_PYTHON to a Python that has it')\n"
        "try:\n"
        "    with open(os.environ['DATALOADERD_FILE'], 'rb') as file:\n"
        "        version = numpy.lib.format.read_magic(file)\n"
        "        read = getattr(numpy.lib.format, 'read_array_header_%d_0' % min(version[0], 2))\n"
        "        if read(file)[2].hasobject:\n"
        "            file.seek(0)\n"
        "            shutil.copyfileobj(file, sys.stdout.buffer, BLOCK_BYTES)\n"
        "            sys.exit(0)\n"
        "    array = numpy.load(os.environ['DATALOADERD_FILE'], mmap_mode='r')\n"
        "    header = numpy.lib.format.header_data_from_array_1_0(array)\n"
        "    header['fortran_order'] = False\n"
        "    numpy.lib.format.write_array_header_2_0(sys.stdout.buffer, header)\n"
        "    n_rows = max(1, BLOCK_BYTES * len(array) // max(1, array.nbytes)) if array.ndim else 1\n"
        "    for begin in range(0, len(array) if array.ndim else 1, n_rows):\n"
        "        rows = array[begin:begin + n_rows] if array.ndim else array\n"
        "        sys.stdout.buffer.write(numpy.ascontiguousarray(rows).tobytes())\n"
        "except (ValueError, EOFError, OSError) as error:\n"
        "    sys.exit(f'not converted: {error}')\n";

static const struct format_conversion CONVERSIONS[] = {
        { ".npz", { NULL, "-c", NPZ_TO_STORED } },
        { NPY_ENDING, { NULL, "-c", NPY_TO_ROWS }, NPY_ENDING, .is_kept_alone = true },
        { 0 },
};

static bool npy_begins(const uint8_t *head, size_t n) {
        (void)n;
        return memcmp(head, "PK\3\4", 4) == 0;
}

static const struct format_written WRITTEN = {
        .suffix = ".npz", .n_head = 4, .begins_so = npy_begins, .is_alone = true
};

const struct format format_npy = {
        .name = "npy",
        .doc = "A folder of arrays as `numpy.save()` writes them, a single one, or an archive (`.npz`) as "
               "`numpy.savez()` writes it, or a folder with one such archive and no other array. Row i along the "
               "first axis of all of them is sample i, and each array is a field.",
        .example = "path = \"/data/mnist.npz\" fields = \"x_train, y_train\"",
        .takes_files = true,
        .options = OPTIONS,
        .conversions = CONVERSIONS,
        .converts = "arrays (.npy, .npz)",
        .written = &WRITTEN,
        .is_it = npy_is_it,
        .open = npy_open,
};
