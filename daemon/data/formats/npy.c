#include "daemon/data/format.h"

/* npy: arrays as numpy.save() writes them. Each .npy file of a folder is a field with the file's name, and row i of all
 * files is sample i. A single file is a field "data".
 *
 * There is no index: the place of a row is computed, so memory does not grow with the number of rows. The files are
 * also mapped: rows that are in the page cache are copied to their place without a read (source_row()). */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/base/machine/mapped.h"
#include "daemon/data/formats/name_order.h"
#include "daemon/data/formats/npy_header.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/source_type.h"
#include "proto/base/cleanup.h"

#define ENDING       ".npy"
#define SINGLE_FIELD "data"
#define DIGEST_SIZE  65u
#define TAIL_ROW_MAX 4096u /* bytes; of larger rows only one or two reach into a page */

/* One array, which is one field. */
struct array {
        char *name; /* of its file, relative to the root */
        struct npy_header header;
        struct stat status; /* from when its header was read */
        uint8_t *map;       /* of the whole file; NULL: it cannot be mapped */

        /* Rows that reach into the file's last page are never read from the mapping: see npy_rows_were_there(). If they
         * are small, a copy of them is kept here. */
        uint64_t first_tail; /* the first such row */
        uint8_t *tail;       /* NULL: these rows must be read */
};

struct npy {
        struct source source; /* the first member: callers have a pointer to it */
        struct array arrays[SCHEMA_FIELDS_MAX];
        bool is_folder;     /* all .npy files of the root are meant, */
        struct stat folder; /* which looked like this when they were listed */
        char digest[DIGEST_SIZE];
};

static const struct source_type NPY_TYPE;

static const struct npy *npy_of(const struct source *source) {
        return (const struct npy *)source;
}

static void npy_close(struct source *source) {
        struct npy *npy = (struct npy *)source;

        for (uint32_t i = 0; i < SCHEMA_FIELDS_MAX; i++) {
                if (npy->arrays[i].map)
                        munmap(npy->arrays[i].map, npy->arrays[i].header.end);
                free(npy->arrays[i].tail);
                free(npy->arrays[i].name);
        }
        free(npy);
}

/* ---- which files ----------------------------------------------------------------------------------------------- */

/* "x.npy" -> "x". A field's name may only have characters that a pipeline can contain. */
static int name_field(const char *file, struct schema_field *field, struct why *why) {
        size_t n = strlen(file) - strlen(ENDING);
        bool is_fine = n > 0 && n < sizeof(field->name);

        for (size_t i = 0; i < n && is_fine; i++)
                is_fine = isalnum((unsigned char)file[i]) || strchr("_.-", file[i]);
        if (!is_fine)
                return why_set(
                        why, -EINVAL,
                        "%.100s: its name becomes the name of a field: it must have 1 to %zu letters, digits, \"_\", "
                        "\".\" or \"-\" before \"" ENDING "\"",
                        file, sizeof(field->name) - 1);
        memcpy(field->name, file, n);
        return 0;
}

static bool is_array_name(const char *name) {
        size_t n = strlen(name);

        return name[0] != '.' && n >= strlen(ENDING) && strcmp(name + n - strlen(ENDING), ENDING) == 0;
}

static int compare_arrays(const void *a, const void *b) {
        return name_compare(((const struct array *)a)->name, ((const struct array *)b)->name);
}

static int add_array(struct npy *npy, const char *name, struct why *why) {
        uint32_t n = npy->source.schema.n_fields;

        if (n == SCHEMA_FIELDS_MAX)
                return why_set(why, -E2BIG, "more than %u arrays, which is the limit of a dataset", SCHEMA_FIELDS_MAX);
        npy->arrays[n].name = strdup(name);
        if (!npy->arrays[n].name)
                return why_set(why, -ENOMEM, "no memory");
        npy->source.schema.n_fields++;
        return 0;
}

static int read_folder(struct npy *npy, DIR *dir, struct why *why) {
        for (;;) {
                struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return errno ? why_errno(why, -errno, "the folder cannot be read to its end") : 0;
                if (!is_array_name(entry->d_name))
                        continue;
                r = add_array(npy, entry->d_name, why);
                if (r < 0)
                        return r;
        }
}

static int list_folder(struct npy *npy, int root_fd, struct why *why) {
        int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int64_t settled_ns = 0;
        int r = fd < 0 ? -errno : index_settle(fd, &settled_ns, &npy->folder);
        DIR *dir = r < 0 ? NULL : fdopendir(fd);

        if (!dir) {
                r = r < 0 ? r : -ENOMEM;
                closep(&fd);
                return why_errno(why, r, "the folder cannot be read");
        }
        r = read_folder(npy, dir, why);
        closedir(dir);
        if (r < 0)
                return r;
        if (npy->source.schema.n_fields == 0)
                return why_set(why, -ENOENT, "there is no file NAME" ENDING " in it");
        qsort(npy->arrays, npy->source.schema.n_fields, sizeof(npy->arrays[0]), compare_arrays);
        npy->is_folder = true;
        return 0;
}

static int list_arrays(struct npy *npy, int root_fd, const struct files *files, struct why *why) {
        int r = 0;

        if (files->n_names == 0)
                return list_folder(npy, root_fd, why);
        if (files->n_names > 1)
                return why_set(why, -EINVAL,
                               "several files: a dataset of arrays is one file, or a folder of arrays with "
                               "the same number of rows");
        if (!is_array_name(files->names[0]))
                return why_set(why, -EINVAL, "%.200s: not a file NAME" ENDING, files->names[0]);
        r = add_array(npy, files->names[0], why);
        return r;
}

/* ---- one array ------------------------------------------------------------------------------------------------- */

static int read_header(struct array *array, int fd, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = malloc(NPY_HEADER_MAX);
        uint64_t size = (uint64_t)array->status.st_size;
        size_t n = size < NPY_HEADER_MAX ? (size_t)size : NPY_HEADER_MAX;
        int r = bytes ? disk_read_at(fd, bytes, n, 0) : -ENOMEM;

        if (r < 0)
                return why_errno(why, r, "cannot be read");
        r = npy_header_read(bytes, n, &array->header, why);
        if (r < 0)
                return r;
        if (array->header.end > size)
                return why_set(why, -EBADMSG,
                               "is cut: its header says %" PRIu64 " rows of %" PRIu64
                               " bytes, which end at byte %" PRIu64 ", and it has %" PRIu64 " bytes",
                               array->header.shape[0], array->header.row_bytes, array->header.end, size);
        if (array->header.end < size)
                return why_set(why, -EBADMSG,
                               "goes on after the array that its header describes, from byte %" PRIu64 " to %" PRIu64
                               ": save one array a file",
                               array->header.end, size);
        return 0;
}

static uint64_t last_page(const struct array *array) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

        return (array->header.end - 1) / page * page;
}

static int map_array(struct array *array, int fd, struct why *why) {
        const struct npy_header *header = &array->header;
        uint64_t page = last_page(array), tail;
        void *map;
        int r;

        if (disk_may_hang(fd))
                return 0;
        array->first_tail = page > header->data ? (page - header->data) / header->row_bytes : 0;
        tail = header->data + array->first_tail * header->row_bytes;
        if (header->row_bytes <= TAIL_ROW_MAX) {
                array->tail = malloc(header->end - tail);
                r = array->tail ? disk_read_at(fd, array->tail, header->end - tail, tail) : -ENOMEM;
                if (r < 0)
                        return why_errno(why, r, "cannot be read");
        }
        map = mmap(NULL, header->end, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return 0; /* its rows are read from the file */
        madvise(map, header->end, MADV_RANDOM);
        array->map = map;
        return 0;
}

/* Descriptors are not kept open: a daemon may have thousands of datasets that no job uses. */
static int open_array(struct array *array, int root_fd, int64_t *settled_ns, struct why *why) {
        _cleanup_(closep) int fd = openat(root_fd, array->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int r = fd < 0 ? -errno : index_settle(fd, settled_ns, &array->status);

        if (r < 0)
                return why_errno(why, r, "cannot be opened");
        if (!S_ISREG(array->status.st_mode))
                return why_set(why, -EINVAL, "is not a regular file");
        r = read_header(array, fd, why);
        return r < 0 ? r : map_array(array, fd, why);
}

/* ---- what others see ------------------------------------------------------------------------------------------- */

static int describe_field(const struct array *array, struct schema_field *field, struct why *why) {
        const struct npy_header *header = &array->header;

        field->kind = FIELD_VALUE;
        field->is_stored = true;
        field->is_big_endian = header->is_big_endian;
        field->dtype = header->dtype;
        field->n_dims = header->n_dims - 1;
        for (uint32_t i = 0; i < field->n_dims; i++)
                field->shape[i] = (int64_t)header->shape[i + 1];
        return field->name[0] ? 0 : name_field(array->name, field, why);
}

static int describe(struct npy *npy, struct why *why) {
        struct source *source = &npy->source;

        source->n_samples = npy->arrays[0].header.shape[0];
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                const struct npy_header *header = &npy->arrays[i].header;
                int r = describe_field(&npy->arrays[i], &source->schema.fields[i], why);

                if (r < 0)
                        return r;
                if (header->shape[0] != source->n_samples)
                        return why_set(why, -EINVAL,
                                       "%.100s has %" PRIu64 " rows, %.100s has %" PRIu64
                                       ": row i of all arrays is sample i, so they need as many",
                                       npy->arrays[i].name, header->shape[0], npy->arrays[0].name, source->n_samples);
                source->total_bytes += header->end - header->data;
                if (header->row_bytes > source->max_length)
                        source->max_length = header->row_bytes;
        }
        source->max_span = source->max_length;
        source->n_shards = source->schema.n_fields;
        source->has_file_a_field = true;
        return 0;
}

/* Covers the names, types and shapes of the arrays, as the digest of an index covers names and sizes. */
static int make_digest(struct npy *npy, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        char text[256] = "npy";
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                      EVP_DigestUpdate(context, text, strlen(text) + 1);

        for (uint32_t i = 0; i < npy->source.schema.n_fields && is_fine; i++) {
                const struct npy_header *header = &npy->arrays[i].header;
                int n = snprintf(text, sizeof(text), "%s %s%s", npy->source.schema.fields[i].name,
                                 dlp_dtype_name(header->dtype), header->is_big_endian ? " big" : "");

                for (uint32_t k = 0; k < header->n_dims; k++)
                        n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIu64, header->shape[k]);
                is_fine = EVP_DigestUpdate(context, text, (size_t)n + 1);
        }
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "its digest could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(npy->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int fill(struct npy *npy, int root_fd, const struct files *files, struct why *why) {
        int64_t settled_ns = 0;
        struct why detail;
        int r = list_arrays(npy, root_fd, files, why);

        if (r == 0 && !npy->is_folder)
                strcpy(npy->source.schema.fields[0].name, SINGLE_FIELD);
        for (uint32_t i = 0; i < npy->source.schema.n_fields && r == 0; i++) {
                r = open_array(&npy->arrays[i], root_fd, &settled_ns, &detail);
                if (r < 0)
                        return why_set(why, r, "%.100s %.350s", npy->arrays[i].name, detail.text);
        }
        if (r == 0)
                r = describe(npy, why);
        return r < 0 ? r : make_digest(npy, why);
}

static int npy_open(int root_fd, const struct files *files, struct source **ret_source, struct why *why) {
        _cleanup_(source_closep) struct source *source = NULL;
        struct npy *npy = calloc(1, sizeof(*npy));
        struct why detail;
        int r;

        if (!npy)
                return why_set(why, -ENOMEM, "%s: no memory to open it", files->root);
        source = &npy->source;
        source->type = &NPY_TYPE;
        source->format = FORMAT_NPY.name;
        source->digest = npy->digest;
        r = fill(npy, root_fd, files, &detail);
        if (r < 0)
                return why_set(why, r, "%.150s: %.350s", files->root, detail.text);
        *ret_source = TAKE_PTR(source);
        return 0;
}

/* ---- asked for each sample ------------------------------------------------------------------------------------- */

static void npy_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct array *array = &npy_of(source)->arrays[field];

        *ret_extent = (struct extent){
                .dir = "",
                .name = array->name,
                .file = field,
                .offset = array->header.data + sample * array->header.row_bytes,
                .length = array->header.row_bytes,
                .shard = array->name,
                .idx_shard = field,
        };
}

static const uint8_t *npy_row(const struct source *source, uint64_t sample, uint32_t field) {
        const struct array *array = &npy_of(source)->arrays[field];

        if (!array->map)
                return NULL;
        if (sample < array->first_tail)
                return array->map + array->header.data + sample * array->header.row_bytes;
        return array->tail ? array->tail + (sample - array->first_tail) * array->header.row_bytes : NULL;
}

/* If a file is cut, its last page is gone, so touching that page tells. Only a cut within that page is not noticed, and
 * the rows in that page are never taken from the mapping. */
static bool npy_rows_were_there(const struct source *source, uint32_t field) {
        const struct array *array = &npy_of(source)->arrays[field];

        return mapped_is_there(array->map + last_page(array));
}

static size_t npy_name(const struct source *source, uint64_t sample, char *ret_name) {
        (void)source;
        return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "row %" PRIu64, sample);
}

/* ---- is it current? -------------------------------------------------------------------------------------------- */

static int compare_one(int root_fd, const char *name, const struct stat *was, enum source_compare compare,
                       struct why *why) {
        const char *shown = name[0] == '.' ? "the folder itself" : name;
        struct stat is;

        if (fstatat(root_fd, name, &is, 0) < 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE)
                        return why_set(why, SOURCE_STALE, "%s is gone", shown);
                return why_errno(why, -errno, "%s cannot be looked at", shown);
        }
        if (compare == SOURCE_COMPARE_ALL && (is.st_dev != was->st_dev || is.st_ino != was->st_ino))
                return why_set(why, SOURCE_STALE, "%s is another one now", shown);
        if ((S_ISREG(was->st_mode) && is.st_size != was->st_size) ||
            (compare != SOURCE_COMPARE_NAMES && index_mtime_ns(&is) != index_mtime_ns(was)))
                return why_set(why, SOURCE_STALE, "%s has changed", shown);
        return 0;
}

static int npy_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct npy *npy = npy_of(source);
        int r = npy->is_folder ? compare_one(root_fd, ".", &npy->folder, compare, why) : 0;

        for (uint32_t i = 0; i < source->schema.n_fields && r == 0; i++)
                r = compare_one(root_fd, npy->arrays[i].name, &npy->arrays[i].status, compare, why);
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

const struct format FORMAT_NPY = {
        .name = "npy",
        .takes_files = true,
        .open = npy_open,
};
