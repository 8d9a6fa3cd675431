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

#include "daemon/data/formats/name_order.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

static const char *const EXTENSIONS[] = {
        ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp",
};
#define EXTENSIONS_TEXT ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp"

#define NO_PARENT       UINT32_MAX
#define LOOK_UP_ENTRIES 4096u /* directory entries between two words about progress */

/* A directory of the class that is being read. */
struct walked_dir {
        uint64_t path;     /* offset into walk.texts: relative to the root */
        uint64_t idx_file; /* index in walk.files of its first file */
        uint64_t n_files;
        uint32_t parent;    /* index into walk.dirs; NO_PARENT: the root */
        struct stat status; /* from before it was read */
};

/* A file of the class that is being read, or a class of the root. */
struct walked_file {
        uint64_t name; /* offset into walk.texts */
        uint64_t length;
        uint32_t flags;
};

struct walk {
        int root_fd;
        const char *root;
        const struct index_watch *watch;
        struct index_builder *builder;
        struct why *why;
        struct stat root_status;
        uint64_t n_entries;   /* seen so far, of any kind */
        uint64_t n_files;     /* that became samples */
        int64_t settled_ns;   /* time waited so far */
        struct growing texts; /* names and paths of one class; then cleared */
        struct growing dirs;  /* struct walked_dir */
        struct growing files; /* struct walked_file */
};

static void imagefolder_walk_fini(struct walk *walk) {
        growing_fini(&walk->texts);
        growing_fini(&walk->dirs);
        growing_fini(&walk->files);
        index_builder_free(walk->builder);
}

static void dir_closep(DIR **dir) {
        if (*dir)
                closedir(*dir);
}

static const char *imagefolder_text_at(const struct walk *walk, uint64_t offset) {
        return (const char *)walk->texts.bytes + offset;
}

/* Valid until the next directory is added. */
static struct walked_dir *imagefolder_dir_at(const struct walk *walk, size_t idx) {
        return &((struct walked_dir *)(void *)walk->dirs.bytes)[idx];
}

static struct walked_file *imagefolder_file_at(const struct walk *walk, size_t idx) {
        return &((struct walked_file *)(void *)walk->files.bytes)[idx];
}

static size_t n_dirs(const struct walk *walk) {
        return walk->dirs.n_bytes / sizeof(struct walked_dir);
}

static size_t imagefolder_n_files(const struct walk *walk) {
        return walk->files.n_bytes / sizeof(struct walked_file);
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

static int imagefolder_look_up(struct walk *walk) {
        if (indexing_is_over())
                return why_set(walk->why, -ECANCELED, "%s: indexing was cancelled", walk->root);
        if (walk->n_entries++ % LOOK_UP_ENTRIES != 0 || !walk->watch)
                return 0;
        if (walk->watch->progress)
                walk->watch->progress(walk->watch->userdata, walk->n_files + imagefolder_n_files(walk));
        if (walk->watch->part) /* how many there are in all is known at the end */
                walk->watch->part(walk->watch->userdata, walk->n_files + imagefolder_n_files(walk), 0, "files");
        return 0;
}

/* ---- one directory ------------------------------------------------------------------------------------------- */

static int open_dir(struct walk *walk, const char *path, struct stat *ret_status, DIR **ret_dir) {
        _cleanup_(closep) int fd = -1;
        int r;

        fd = beneath_open(walk->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : index_settle(fd, &walk->settled_ns, ret_status);
        if (r < 0)
                return why_errno(walk->why, r, "%s%s%s: the folder cannot be read", walk->root, path[0] ? "/" : "",
                                 path);
        *ret_dir = fdopendir(fd);
        if (!*ret_dir)
                return why_errno(walk->why, -errno, "%s/%s", walk->root, path);
        take_fd(&fd);
        return 0;
}

/* The next entry that is not "." or "..". Returns 0 with NULL at the end. */
static int imagefolder_next_entry(struct walk *walk, DIR *dir, const char *path, const struct dirent **ret_entry) {
        for (;;) {
                const struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(dir);
                if (!entry && errno != 0)
                        return why_errno(walk->why, -errno, "%s/%s: the folder cannot be read to its end", walk->root,
                                         path);
                if (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0))
                        continue;
                r = imagefolder_look_up(walk);
                if (r < 0)
                        return r;
                *ret_entry = entry;
                return 0;
        }
}

static int imagefolder_add_text(struct walk *walk, const char *text, uint64_t *ret_offset) {
        *ret_offset = walk->texts.n_bytes;
        return growing_append(&walk->texts, text, strlen(text) + 1);
}

/* ---- the root: classes --------------------------------------------------------------------------------------- */

/* As Python's entry.is_dir(): false for a broken link. Any other failure in the root is an error. */
static int is_class(struct walk *walk, DIR *dir, const struct dirent *entry) {
        struct stat status;

        if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
                return entry->d_type == DT_DIR;
        if (beneath_stat_entry(walk->root_fd, entry->d_name, dirfd(dir), entry->d_name, &status) < 0) {
                if (errno == ENOENT)
                        return false;
                return why_errno(walk->why, -errno, "%s/%s: cannot tell whether it is a class folder", walk->root,
                                 entry->d_name);
        }
        return S_ISDIR(status.st_mode);
}

static int imagefolder_compare_files(const void *a, const void *b, void *texts) {
        return name_compare((const char *)texts + ((const struct walked_file *)a)->name,
                            (const char *)texts + ((const struct walked_file *)b)->name);
}

static int sort_files(struct walk *walk, size_t first, size_t n) {
        return n > 1 ? indexing_sort(imagefolder_file_at(walk, first), n, sizeof(struct walked_file),
                                     imagefolder_compare_files, walk->texts.bytes)
                     : 0;
}

/* What macOS packs beside the classes: AppleDouble files alone. It is passed over. */
#define MAC_FOLDER "__MACOSX"

/* Finds the classes. They are in walk->files until the caller takes them. */
static int imagefolder_list_classes(struct walk *walk) {
        _cleanup_(dir_closep) DIR *dir = NULL;
        uint32_t idx_dir;
        int r;

        r = open_dir(walk, "", &walk->root_status, &dir);
        if (r < 0)
                return r;
        for (;;) {
                struct walked_file class = { 0 };
                const struct dirent *entry;

                r = imagefolder_next_entry(walk, dir, "", &entry);
                if (r < 0)
                        return r;
                if (!entry)
                        break;
                r = is_class(walk, dir, entry);
                if (r < 0)
                        return r;
                if (r == false)
                        continue;
                if (strcmp(entry->d_name, MAC_FOLDER) == 0) {
                        indexing_count_hidden();
                        continue;
                }
                r = imagefolder_add_text(walk, entry->d_name, &class.name);
                if (r >= 0)
                        r = growing_append(&walk->files, &class, sizeof(class));
                if (r < 0)
                        return index_builder_refused(r, walk->root, walk->why);
        }
        if (imagefolder_n_files(walk) == 0)
                return why_set(walk->why, -ENOENT,
                               "%s: there is no class folder in it; an imagefolder has a folder for each class",
                               walk->root);
        r = sort_files(walk, 0, imagefolder_n_files(walk));
        if (r == 0)
                r = index_builder_add_dir(walk->builder, "", &walk->root_status, &idx_dir);
        return r < 0 ? index_builder_refused(r, walk->root, walk->why) : 0;
}

/* ---- a class: find ------------------------------------------------------------------------------------------- */

/* Is this directory also one of its own parents? Then a link leads back to it, and following it would never end. */
static int imagefolder_check_loop(struct walk *walk, size_t idx) {
        const struct stat *status = &imagefolder_dir_at(walk, idx)->status;

        for (uint32_t above = imagefolder_dir_at(walk, idx)->parent;; above = imagefolder_dir_at(walk, above)->parent) {
                const struct stat *other = above == NO_PARENT ? &walk->root_status
                                                              : &imagefolder_dir_at(walk, above)->status;

                if (status->st_dev == other->st_dev && status->st_ino == other->st_ino)
                        return why_set(walk->why, -ELOOP,
                                       "%s/%s: this link leads back to %s%s%s, which contains it; remove the link",
                                       walk->root, imagefolder_text_at(walk, imagefolder_dir_at(walk, idx)->path),
                                       walk->root, above == NO_PARENT ? "" : "/",
                                       above == NO_PARENT
                                               ? ""
                                               : imagefolder_text_at(walk, imagefolder_dir_at(walk, above)->path));
                if (above == NO_PARENT)
                        return 0;
        }
}

/* Adds a directory to be read: `name` in directory `parent`. */
static int imagefolder_add_dir(struct walk *walk, uint32_t parent, const char *name) {
        struct walked_dir dir = { .parent = parent };
        char path[PATH_MAX];
        int n, r;

        if (parent == NO_PARENT)
                n = snprintf(path, sizeof(path), "%s", name);
        else
                n = snprintf(path, sizeof(path), "%s/%s",
                             imagefolder_text_at(walk, imagefolder_dir_at(walk, parent)->path), name);
        if (n < 0 || (size_t)n >= sizeof(path))
                return why_set(walk->why, -ENAMETOOLONG,
                               "%s/%s...: the path of a folder below it has more than %d bytes", walk->root, path,
                               PATH_MAX - 1);
        if (n_dirs(walk) >= INDEX_DIRS_MAX)
                return index_builder_refused(-E2BIG, walk->root, walk->why);

        r = imagefolder_add_text(walk, path, &dir.path);
        if (r >= 0)
                r = growing_append(&walk->dirs, &dir, sizeof(dir));
        return r < 0 ? index_builder_refused(r, walk->root, walk->why) : 0;
}

static int imagefolder_add_file(struct walk *walk, size_t idx_dir, const char *name, const struct stat *status) {
        struct walked_file file = { 0 };
        int r;

        if (strlen(imagefolder_text_at(walk, imagefolder_dir_at(walk, idx_dir)->path)) + 1 + strlen(name) + 1 >
            INDEX_PATH_SIZE)
                return why_set(walk->why, -ENAMETOOLONG, "%s/%s/%s: the path has more than %d bytes", walk->root,
                               imagefolder_text_at(walk, imagefolder_dir_at(walk, idx_dir)->path), name, PATH_MAX - 1);
        if (!status)
                file.flags = INDEX_FILE_UNREACHABLE;
        else if (!S_ISREG(status->st_mode))
                file.flags = INDEX_FILE_NOT_REGULAR;
        else
                file.length = (uint64_t)status->st_size;

        r = imagefolder_add_text(walk, name, &file.name);
        if (r >= 0)
                r = growing_append(&walk->files, &file, sizeof(file));
        if (r < 0)
                return index_builder_refused(r, walk->root, walk->why);
        imagefolder_dir_at(walk, idx_dir)->n_files++;
        return 0;
}

/* 0 or an errno. Links are followed as the root says. */
static int stat_entry(struct walk *walk, size_t idx_dir, DIR *dir, const struct dirent *entry,
                      struct stat *ret_status) {
        char path[PATH_MAX];
        int n, r;

        if (entry->d_type == DT_REG)
                return fstatat(dirfd(dir), entry->d_name, ret_status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
        n = snprintf(path, sizeof(path), "%s/%s", imagefolder_text_at(walk, imagefolder_dir_at(walk, idx_dir)->path),
                     entry->d_name);
        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        r = beneath_stat_entry(walk->root_fd, path, dirfd(dir), entry->d_name, ret_status) < 0 ? -errno : 0;
        if (r == -EXDEV && !has_image_extension(entry->d_name)) /* a folder of samples, which would be left out? */
                return why_errno(walk->why, r, "%s/%s", walk->root, path);
        return r;
}

static int imagefolder_add_entry(struct walk *walk, size_t idx_dir, DIR *dir, const struct dirent *entry) {
        bool maybe_dir = entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK;
        bool is_image = has_image_extension(entry->d_name);
        struct stat status;
        int r;

        if (entry->d_type == DT_DIR)
                return imagefolder_add_dir(walk, (uint32_t)idx_dir, entry->d_name);
        if (!maybe_dir && !is_image)
                return 0;

        r = stat_entry(walk, idx_dir, dir, entry, &status);
        if (r == -EXDEV && !is_image)
                return r;
        if (r == 0 && S_ISDIR(status.st_mode))
                return imagefolder_add_dir(walk, (uint32_t)idx_dir, entry->d_name);
        if (is_image && is_apple_double(entry->d_name)) {
                indexing_count_hidden();
                return 0;
        }
        return is_image ? imagefolder_add_file(walk, idx_dir, entry->d_name, r == 0 ? &status : NULL) : 0;
}

static int imagefolder_read_dir(struct walk *walk, size_t idx) {
        _cleanup_(dir_closep) DIR *dir = NULL;
        char path[PATH_MAX];
        struct stat status;
        int r;

        strcpy(path,
               imagefolder_text_at(
                       walk, imagefolder_dir_at(walk, idx)->path)); /* a copy: the text moves when others are added */
        r = open_dir(walk, path, &status, &dir);
        if (r < 0)
                return r;
        imagefolder_dir_at(walk, idx)->status = status;
        imagefolder_dir_at(walk, idx)->idx_file = imagefolder_n_files(walk);
        r = imagefolder_check_loop(walk, idx);
        if (r < 0)
                return r;

        for (;;) {
                const struct dirent *entry;

                r = imagefolder_next_entry(walk, dir, path, &entry);
                if (r < 0 || !entry)
                        return r;
                r = imagefolder_add_entry(walk, idx, dir, entry);
                if (r < 0)
                        return r;
        }
}

/* ---- a class: sort and hand over ----------------------------------------------------------------------------- */

static int compare_dirs(const void *a, const void *b, void *texts) {
        return name_compare((const char *)texts + ((const struct walked_dir *)a)->path,
                            (const char *)texts + ((const struct walked_dir *)b)->path);
}

static int imagefolder_give_dir(struct walk *walk, const struct walked_dir *dir, int32_t label) {
        uint32_t idx_dir;
        int r;

        r = index_builder_add_dir(walk->builder, imagefolder_text_at(walk, dir->path), &dir->status, &idx_dir);
        if (r < 0)
                return r;
        r = sort_files(walk, dir->idx_file, dir->n_files);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < dir->n_files; i++) {
                const struct walked_file *file = imagefolder_file_at(walk, dir->idx_file + i);
                struct index_row row = { .length = file->length };

                r = index_builder_add_file(walk->builder, idx_dir, imagefolder_text_at(walk, file->name), file->flags,
                                           &row.file);
                if (r >= 0)
                        r = index_builder_add_sample(walk->builder, &row, label);
                if (r < 0)
                        return r;
        }
        walk->n_files += dir->n_files;
        return 0;
}

/* Reads one class, breadth first: the list of directories is its own queue. Returns the number of samples, or an
 * errno. */
static int64_t walk_class(struct walk *walk, const char *name, int32_t label) {
        uint64_t n_before = walk->n_files;
        int r;

        growing_clear(&walk->texts);
        growing_clear(&walk->dirs);
        growing_clear(&walk->files);
        r = imagefolder_add_dir(walk, NO_PARENT, name);
        for (size_t i = 0; r >= 0 && i < n_dirs(walk); i++)
                r = imagefolder_read_dir(walk, i);
        if (r < 0)
                return r;

        r = indexing_sort(imagefolder_dir_at(walk, 0), n_dirs(walk), sizeof(struct walked_dir), compare_dirs,
                          walk->texts.bytes);
        if (r < 0)
                return index_builder_refused(r, walk->root, walk->why);
        for (size_t i = 0; i < n_dirs(walk); i++) {
                r = imagefolder_give_dir(walk, imagefolder_dir_at(walk, i), label);
                if (r < 0)
                        return index_builder_refused(r, walk->root, walk->why);
        }
        growing_clear(&walk->files);
        return (int64_t)(walk->n_files - n_before);
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
                        return index_builder_refused(r, walk->root, walk->why);
                n_samples = walk_class(walk, name, (int32_t)i);
                if (n_samples < 0)
                        return (int)n_samples;
                if (n_samples == 0)
                        imagefolder_note_empty(empty, sizeof(empty), name);
        }
        if (empty[0])
                return why_set(walk->why, -ENOENT,
                               "%s: no valid file for the classes %s; a file is valid if its name "
                               "ends in " EXTENSIONS_TEXT,
                               walk->root, empty);
        return 0;
}

static int imagefolder_build(int root_fd, const struct files *files, const struct format_options *options,
                             const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(imagefolder_walk_fini) struct walk walk = {
                .root_fd = root_fd, .root = files->root, .watch = watch, .why = why
        };
        struct growing texts, classes;
        int r;

        (void)options;
        r = index_builder_new(format_imagefolder.name, 1, &walk.builder);
        if (r < 0)
                return index_builder_refused(r, walk.root, walk.why);
        r = imagefolder_list_classes(&walk);
        if (r < 0)
                return r;

        texts = walk.texts; /* the list of classes must outlive the arena, which each class clears */
        classes = walk.files;
        walk.texts = walk.files = (struct growing){ 0 };
        r = walk_classes(&walk, &texts, &classes);
        growing_fini(&texts);
        growing_fini(&classes);
        if (r < 0)
                return r;

        if (watch && watch->progress)
                watch->progress(watch->userdata, walk.n_files);
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
