#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"
#include "daemon/data/format_tell.h"

/* imagefolder: a folder of class folders, as torchvision.datasets.ImageFolder reads it.
 *
 * Classes are the directories in the root, sorted; links to directories count. Within a class all directories below it
 * are visited, links are followed, and they are sorted by their whole path, so that "a-b" comes before "a/b"; the files
 * of a directory are sorted as well. "Sorted" means as Python sorts strings (data/formats/name_order.h). A file counts
 * if its name ends in one of EXTENSIONS in any case, whatever it is: a FIFO or a broken link called x.jpg is a sample,
 * and is marked as such here. Hidden files count, except "._x.jpg", without pixels, which macOS leaves beside x.jpg.
 *
 * Where torchvision loses data or does not end, this reports an error instead: a directory within a class that cannot
 * be read (os.walk skips it silently), a link that leads back to one of its own parents (torchvision would visit it
 * forty times), a path longer than the system can open. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "daemon/data/files/walked.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

static const char *const EXTENSIONS[] = {
        ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp",
};
#define EXTENSIONS_TEXT ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp"

struct walk {
        struct walked walked;
        struct index_builder *builder;
};

static void imagefolder_walk_fini(struct walk *walk) {
        walked_fini(&walk->walked);
        index_builder_free(walk->builder);
}

static bool has_image_extension(const char *name) {
        size_t length = strlen(name);

        for (size_t i = 0; i < ARRAY_SIZE(EXTENSIONS); i++) {
                size_t n = strlen(EXTENSIONS[i]);

                if (length >= n && strcasecmp(name + length - n, EXTENSIONS[i]) == 0)
                        return true;
        }
        return false;
}

/* "._x", which macOS leaves beside each x. */
static bool is_apple_double(const char *name) {
        return strncmp(name, "._", 2) == 0;
}

/* ---- the root: classes --------------------------------------------------------------------------------------- */

/* As Python's entry.is_dir(): false for a broken link. Any other failure in the root is an error. */
static int is_class(const struct walk *walk, int dir_fd, const struct dirent *entry) {
        struct stat status;

        if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
                return entry->d_type == DT_DIR;
        if (beneath_stat_entry(walk->walked.root_fd, entry->d_name, dir_fd, entry->d_name, &status) < 0) {
                if (errno == ENOENT)
                        return false;
                return why_errno(walk->walked.why, -errno, "%s/%s: cannot tell whether it is a class folder",
                                 walk->walked.root, entry->d_name);
        }
        return S_ISDIR(status.st_mode);
}

/* What macOS packs beside the classes: AppleDouble files alone. It is passed over. */
#define MAC_FOLDER "__MACOSX"

/* Classes are files of the root until the caller takes them. */
static int take_class(struct walk *walk, int dir_fd, const struct dirent *entry) {
        int r = is_class(walk, dir_fd, entry);

        if (r <= 0)
                return r;
        if (strcmp(entry->d_name, MAC_FOLDER) != 0)
                return walked_add_file(&walk->walked, 0, entry->d_name, NULL);
        indexing_count_hidden();
        return 0;
}

static int imagefolder_list_classes(struct walk *walk) {
        struct walked *walked = &walk->walked;
        uint32_t idx_dir;
        int r = walked_read_root(walked);

        if (r < 0)
                return r;
        if (walked_n_files(walked) == 0)
                return why_set(walked->why, -ENOENT,
                               "%s: there is no class folder in it; an imagefolder has a folder for each class",
                               walked->root);
        r = walked_sort_files(walked, 0, walked_n_files(walked));
        if (r == 0)
                r = index_builder_add_dir(walk->builder, "", &walked_dir(walked, 0)->status, &idx_dir);
        return r < 0 ? index_builder_refused(r, walked->root, walked->why) : 0;
}

/* ---- a class: find ------------------------------------------------------------------------------------------- */

static int imagefolder_add_file(struct walk *walk, uint32_t idx_dir, const char *name, const struct stat *status) {
        const struct walked *walked = &walk->walked;
        const char *above = walked_text(walked, walked_dir(walked, idx_dir)->path);

        if (strlen(above) + 1 + strlen(name) + 1 > INDEX_PATH_SIZE)
                return why_set(walked->why, -ENAMETOOLONG, "%s/%s/%s: the path has more than %d bytes", walked->root,
                               above, name, PATH_MAX - 1);
        return walked_add_file(&walk->walked, idx_dir, name, status);
}

/* 0 or an errno. Links are followed as the root says. */
static int stat_entry(const struct walk *walk, uint32_t idx_dir, int dir_fd, const struct dirent *entry,
                      struct stat *ret_status) {
        char path[PATH_MAX];
        int r;

        if (entry->d_type == DT_REG)
                return fstatat(dir_fd, entry->d_name, ret_status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
        r = walked_path(&walk->walked, idx_dir, entry->d_name, path);
        if (r < 0)
                return r;
        r = beneath_stat_entry(walk->walked.root_fd, path, dir_fd, entry->d_name, ret_status) < 0 ? -errno : 0;
        if (r == -EXDEV && !has_image_extension(entry->d_name)) /* a folder of samples, which would be left out? */
                return why_errno(walk->walked.why, r, "%s/%s", walk->walked.root, path);
        return r;
}

static int imagefolder_add_dir(struct walk *walk, uint32_t idx_dir, const char *name) {
        char path[PATH_MAX];
        int r = walked_path(&walk->walked, idx_dir, name, path);

        return r < 0 ? r : walked_add_dir(&walk->walked, idx_dir, path);
}

static int imagefolder_take(void *userdata, uint32_t idx_dir, int dir_fd, const struct dirent *entry) {
        bool maybe_dir = entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK;
        bool is_image = has_image_extension(entry->d_name);
        struct walk *walk = userdata;
        struct stat status;
        int r;

        if (idx_dir == 0)
                return take_class(walk, dir_fd, entry);
        if (entry->d_type == DT_DIR)
                return imagefolder_add_dir(walk, idx_dir, entry->d_name);
        if (!maybe_dir && !is_image)
                return 0;

        r = stat_entry(walk, idx_dir, dir_fd, entry, &status);
        if (r == -EXDEV && !is_image)
                return r;
        if (r == 0 && S_ISDIR(status.st_mode))
                return imagefolder_add_dir(walk, idx_dir, entry->d_name);
        if (is_image && is_apple_double(entry->d_name)) {
                indexing_count_hidden();
                return 0;
        }
        return is_image ? imagefolder_add_file(walk, idx_dir, entry->d_name, r == 0 ? &status : NULL) : 0;
}

/* ---- a class: sort and hand over ----------------------------------------------------------------------------- */

static int imagefolder_give_dir(struct walk *walk, const struct walked_dir *dir, int32_t label) {
        struct walked *walked = &walk->walked;
        uint32_t idx_dir;
        int r;

        r = index_builder_add_dir(walk->builder, walked_text(walked, dir->path), &dir->status, &idx_dir);
        if (r >= 0)
                r = walked_sort_files(walked, dir->idx_file, dir->n_files);
        for (uint64_t i = 0; i < dir->n_files && r >= 0; i++) {
                const struct walked_file *file = walked_file(walked, dir->idx_file + i);
                struct index_row row = { .length = file->length };

                r = index_builder_add_file(walk->builder, idx_dir, walked_text(walked, file->name), file->flags,
                                           &row.file);
                if (r >= 0)
                        r = index_builder_add_sample(walk->builder, &row, label);
        }
        walked->n_before += dir->n_files;
        return r;
}

/* Returns the number of samples, or an errno. */
static int64_t walk_class(struct walk *walk, const char *name, int32_t label) {
        struct walked *walked = &walk->walked;
        uint64_t n_before = walked->n_before;
        int r;

        r = walked_forget(walked);
        if (r == 0)
                r = walked_add_dir(walked, 0, name);
        if (r == 0)
                r = walked_read(walked, 1);
        if (r < 0)
                return r;
        r = walked_sort_dirs(walked, 1);
        for (size_t i = 1; i < walked_n_dirs(walked) && r >= 0; i++)
                r = imagefolder_give_dir(walk, walked_dir(walked, i), label);
        growing_clear(&walked->files);
        return r < 0 ? index_builder_refused(r, walked->root, walked->why) : (int64_t)(walked->n_before - n_before);
}

/* ---- the whole folder ---------------------------------------------------------------------------------------- */

/* Collects the names of classes without a file: "a, b", cut where the text becomes too long. */
static void imagefolder_note_empty(char *empty, size_t size, const char *name) {
        size_t n = strlen(empty);

        if (n + strlen(name) + 8 < size)
                snprintf(empty + n, size - n, "%s%s", n ? ", " : "", name);
        else if (n < 3 || strcmp(empty + n - 3, "...") != 0)
                snprintf(empty + n, size - n, "%s...", n ? ", " : "");
}

static int walk_classes(struct walk *walk, const struct growing *texts, const struct growing *classes) {
        size_t n_classes = classes->n_bytes / sizeof(struct walked_file);
        char empty[300] = "";

        for (size_t i = 0; i < n_classes; i++) {
                const struct walked_file *class = &((const struct walked_file *)(const void *)classes->bytes)[i];
                const char *name = (const char *)texts->bytes + class->name;
                int64_t n_samples;
                int r;

                r = index_builder_add_class(walk->builder, name);
                if (r < 0)
                        return index_builder_refused(r, walk->walked.root, walk->walked.why);
                n_samples = walk_class(walk, name, (int32_t)i);
                if (n_samples < 0)
                        return (int)n_samples;
                if (n_samples == 0)
                        imagefolder_note_empty(empty, sizeof(empty), name);
        }
        if (empty[0])
                return why_set(walk->walked.why, -ENOENT,
                               "%s: no valid file for the classes %s; a file is valid if its name "
                               "ends in " EXTENSIONS_TEXT,
                               walk->walked.root, empty);
        return 0;
}

static int imagefolder_build(int root_fd, const struct files *files, const struct format_options *options,
                             const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(imagefolder_walk_fini) struct walk walk = { .walked = { .root_fd = root_fd,
                                                                          .root = files->root,
                                                                          .watch = watch,
                                                                          .why = why,
                                                                          .take = imagefolder_take } };
        struct growing texts, classes;
        int r;

        (void)options;
        walk.walked.userdata = &walk;
        r = index_builder_new(format_imagefolder.name, 1, &walk.builder);
        if (r < 0)
                return index_builder_refused(r, files->root, why);
        r = imagefolder_list_classes(&walk);
        if (r < 0)
                return r;

        texts = walk.walked.texts; /* the list of classes must outlive the arena, which each class clears */
        classes = walk.walked.files;
        walk.walked.texts = walk.walked.files = (struct growing){ 0 };
        r = walk_classes(&walk, &texts, &classes);
        growing_fini(&texts);
        growing_fini(&classes);
        if (r < 0)
                return r;

        if (watch && watch->progress)
                watch->progress(watch->userdata, walk.walked.n_before);
        *ret_builder = TAKE_PTR(walk.builder);
        return 0;
}

#define CLASSES_LOOKED_AT 16 /* to tell whether it is one; others may be empty */

struct looking {
        int root_fd;
        unsigned n_left; /* classes to be looked at */
};

/* Is the entry a subfolder with a picture? One that may not be read, as lost+found, has none for us. Positive outcome
 * beside 1: enough was looked at. */
#define LOOKED_ENOUGH 2

static int look_into_class(void *userdata, const struct dirent *entry) {
        struct looking *looking = userdata;
        _cleanup_(closep) int fd = -1;
        int r;

        if (entry->d_name[0] == '.' ||
            (entry->d_type != DT_DIR && entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN))
                return 0;
        fd = beneath_open(looking->root_fd, entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? format_cannot_tell(-errno)
                   : format_names_files(fd, &(struct files){ .root = entry->d_name }, has_image_extension);
        if (r != 0 && r != -EACCES)
                return r;
        return --looking->n_left == 0 ? LOOKED_ENOUGH : 0;
}

/* Subfolders with pictures. */
static int imagefolder_is_it(int root_fd, const struct files *files) {
        struct looking looking = { .root_fd = root_fd, .n_left = CLASSES_LOOKED_AT };
        int r = format_look_into(root_fd, look_into_class, &looking);

        (void)files;
        return r == LOOKED_ENOUGH ? 0 : r;
}

const struct format format_imagefolder = {
        .name = "imagefolder",
        .doc = "A folder for each class with pictures below it, as torchvision's ImageFolder reads it, but without "
               "the files `._x.jpg` that macOS leaves beside each `x.jpg`.",
        .example = "path = \"/data/photos/train\"",
        .is_it = imagefolder_is_it,
        .build = imagefolder_build,
};
