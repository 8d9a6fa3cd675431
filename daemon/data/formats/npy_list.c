#include "daemon/data/formats/npy_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/field_name.h"
#include "daemon/data/formats/name_order.h"
#include "daemon/data/formats/zip.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define ARCHIVE ".npz"

void npy_list_fini(struct npy_list *list) {
        for (uint32_t i = 0; i < list->n_arrays; i++)
                npy_array_fini(&list->arrays[i]);
        refusals_fini(&list->refused);
}

static bool npy_list_ends_with(const char *name, const char *ending) {
        return name[0] != '.' && text_ends_with(name, ending);
}

static bool npy_list_is_array(const char *name) {
        return npy_list_ends_with(name, NPY_ENDING);
}

static int compare_arrays(const void *a, const void *b) {
        return name_compare(npy_array_name(a), npy_array_name(b));
}

static int add_array(struct npy_list *list, const char *file, const char *member, struct why *why) {
        uint32_t n = list->n_arrays;
        struct npy_array *array = &list->arrays[n];

        if (n == SCHEMA_FIELDS_MAX)
                return why_set(why, -E2BIG, "more than %u arrays, which is the limit of a dataset", SCHEMA_FIELDS_MAX);
        array->file = strdup(file);
        array->member = member ? strdup(member) : NULL;
        list->n_arrays++; /* npy_list_fini() frees them */
        return array->file && (array->member || !member) ? 0 : why_set(why, -ENOMEM, "no memory");
}

void npy_list_name(const char *file, char ret_name[SCHEMA_NAME_MAX]) {
        size_t n = strlen(file);

        field_name_from(file, n - (npy_list_ends_with(file, NPY_ENDING) ? strlen(NPY_ENDING) : 0), ret_name);
}

static int note_refused(struct npy_list *list, const char *file, int error, const struct why *why) {
        char name[SCHEMA_NAME_MAX];

        npy_list_name(file, name);
        return refusals_add(&list->refused, name, error, why);
}

int npy_list_refuse(struct npy_list *list, struct npy_array *array, int error, const struct why *why) {
        uint32_t idx = (uint32_t)(array - list->arrays);
        int r = refusals_are_for(error) && !list->is_single ? note_refused(list, npy_array_name(array), error, why)
                                                            : error;

        if (r < 0)
                return r;
        npy_array_fini(array);
        list->n_arrays--;
        memmove(array, array + 1, (list->n_arrays - idx) * sizeof(*array));
        list->arrays[list->n_arrays] = (struct npy_array){ 0 };
        return 0;
}

struct archive {
        struct npy_list *list;
        const char *file;
        struct stat status;
};

static int found_member(void *userdata, const struct zip_file *file, struct why *why) {
        const struct archive *archive = userdata;
        struct npy_array *array;
        const char *base = text_after_slash(file->name);
        int r = 0;

        if (base[0] == '.') { /* "__MACOSX/._x.npy" */
                indexing_count_hidden();
                return 0;
        }
        if (!npy_list_ends_with(file->name, NPY_ENDING))
                r = why_set(why, -EINVAL, "%s in it is not an array, NAME" NPY_ENDING ", as numpy.savez() writes it",
                            file->name);
        else if (!file->is_stored)
                r = why_set(why, -ENOTSUP,
                            "%s in it is compressed or encrypted, so its rows cannot be read one by one: write it "
                            "with numpy.savez(), not with savez_compressed(), or stage it with prepare = \"convert\"",
                            file->name);
        else if (archive->list->n_arrays == SCHEMA_FIELDS_MAX)
                r = why_set(why, -ENOTSUP, "%s in it comes after the %u arrays that a dataset can have", file->name,
                            SCHEMA_FIELDS_MAX);
        if (r < 0)
                return note_refused(archive->list, file->name, r, why);
        r = add_array(archive->list, archive->file, file->name, why);
        if (r < 0)
                return r;
        array = &archive->list->arrays[archive->list->n_arrays - 1];
        array->begin = file->offset;
        array->n_bytes = file->n_bytes;
        array->status = archive->status;
        return 0;
}

static int list_archive(struct npy_list *list, int root_fd, const char *file, struct why *why) {
        _cleanup_(closep) int fd = beneath_open(root_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct archive archive = { .list = list, .file = file };
        int64_t settled_ns = 0;
        int r = fd < 0 ? -errno : index_settle(fd, &settled_ns, &archive.status);

        if (r < 0)
                return why_errno(why, r, "cannot be opened");
        r = zip_walk(fd, (uint64_t)archive.status.st_size, found_member, &archive, why);
        if (r < 0)
                return r;
        return list->n_arrays > 0 || list->refused.n > 0 ? 0 : why_set(why, -ENOENT, "there is no array in it");
}

/* Of more arrays than there is room for, those that come first by name stay, in whatever sequence a folder lists them.
 */
static int add_of_folder(struct npy_list *list, const char *file, struct why *why) {
        struct npy_array *last = &list->arrays[0];
        bool is_after;
        int r;

        if (list->n_arrays < SCHEMA_FIELDS_MAX)
                return add_array(list, file, NULL, why);
        for (uint32_t i = 1; i < list->n_arrays; i++)
                if (compare_arrays(&list->arrays[i], last) > 0)
                        last = &list->arrays[i];
        is_after = name_compare(file, npy_array_name(last)) > 0;
        r = why_set(why, -ENOTSUP, "%s in it comes after the %u arrays that a dataset can have",
                    is_after ? file : npy_array_name(last), SCHEMA_FIELDS_MAX);
        if (is_after)
                return note_refused(list, file, r, why);
        r = npy_list_refuse(list, last, r, why);
        return r < 0 ? r : add_array(list, file, NULL, why);
}

/* The archives in a folder, of which one may be meant if there is no array beside it. */
struct archives {
        char name[NAME_MAX + 1];
        uint32_t n;
};

static int npy_list_read_folder(struct npy_list *list, DIR *dir, struct archives *archives, struct why *why) {
        for (;;) {
                struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return errno ? why_errno(why, -errno, "the folder cannot be read to its end") : 0;
                if (npy_list_ends_with(entry->d_name, ARCHIVE) && archives->n++ == 0)
                        snprintf(archives->name, sizeof(archives->name), "%s", entry->d_name);
                if (!npy_list_is_array(entry->d_name)) {
                        indexing_pass_over(entry->d_name, npy_list_is_array);
                        continue;
                }
                r = add_of_folder(list, entry->d_name, why);
                if (r < 0)
                        return r;
        }
}

static int list_folder(struct npy_list *list, int root_fd, struct why *why) {
        int fd = beneath_open(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct archives archives = { .n = 0 };
        struct why detail;
        int64_t settled_ns = 0;
        int r = fd < 0 ? -errno : index_settle(fd, &settled_ns, &list->folder);
        DIR *dir = r < 0 ? NULL : fdopendir(fd);

        if (!dir) {
                r = r < 0 ? r : -ENOMEM;
                closep(&fd);
                return why_errno(why, r, "the folder cannot be read");
        }
        r = npy_list_read_folder(list, dir, &archives, why);
        closedir(dir);
        if (r < 0)
                return r;
        list->is_folder = true;
        if (list->n_arrays > 0)
                return 0;
        if (archives.n > 1)
                return why_set(why, -EINVAL,
                               "there are %u archives NAME" ARCHIVE " in it, and a dataset is one of them: name it in "
                               "path",
                               archives.n);
        if (archives.n == 0)
                return why_set(why, -ENOENT, "there is no file NAME" NPY_ENDING " or NAME" ARCHIVE " in it");
        r = list_archive(list, root_fd, archives.name, &detail);
        return r < 0 ? why_set(why, r, "%s: %s", archives.name, detail.text) : 0;
}

/* What a conversion is making has another name until it is whole. */
static bool begins_as_archive(int root_fd, const char *file) {
        _cleanup_(closep) int fd = beneath_open(root_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        char begin[4];

        return fd >= 0 && indexing_read_at(fd, begin, sizeof(begin), 0) == 0 && memcmp(begin, "PK\3\4", 4) == 0;
}

static int npy_list_list_files(struct npy_list *list, int root_fd, const struct files *files, struct why *why) {
        if (files->n_names == 0 && list->is_raw)
                return why_set(
                        why, -EINVAL,
                        "is a folder, and dtype describes one file without a header; leave dtype out for a folder "
                        "of .npy files");
        if (files->n_names == 0)
                return list_folder(list, root_fd, why);
        if (files->n_names > 1)
                return why_set(why, -EINVAL,
                               "several files: a dataset of arrays is one file, or a folder of arrays with "
                               "the same number of rows");
        if (list->is_raw) {
                list->is_single = true;
                return add_array(list, files->names[0], NULL, why);
        }
        if (npy_list_ends_with(files->names[0], NPY_ENDING)) {
                list->is_single = true;
                return add_array(list, files->names[0], NULL, why);
        }
        if (npy_list_ends_with(files->names[0], ARCHIVE) || begins_as_archive(root_fd, files->names[0]))
                return list_archive(list, root_fd, files->names[0], why);
        return why_set(why, -EINVAL, "not a file NAME" NPY_ENDING " or NAME" ARCHIVE);
}

int npy_list_find(struct npy_list *list, int root_fd, const struct files *files, struct why *why) {
        uint32_t n;
        int r = npy_list_list_files(list, root_fd, files, why);

        if (r < 0)
                return r;
        n = list->n_arrays;
        qsort(list->arrays, n, sizeof(list->arrays[0]), compare_arrays);
        for (uint32_t i = 1; i < n; i++)
                if (strcmp(npy_array_name(&list->arrays[i - 1]), npy_array_name(&list->arrays[i])) == 0)
                        return why_set(why, -EBADMSG, "%s is in it twice", list->arrays[i].member);
        return 0;
}
