/* data/files/walked.h: the folders and files below a root, walked breadth first: the list of folders is its own queue.
 *
 * Links are followed as the root says (base/machine/beneath.h). A link that leads back to one of its own parents is an
 * error, because following it would not end. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "daemon/data/format.h"
#include "daemon/data/growing.h"

#define WALKED_NO_PARENT UINT32_MAX

struct walked_dir {
        uint64_t path; /* offset into the texts: relative to the root; "" for the root itself, which is folder 0 */
        uint64_t idx_file, n_files;
        uint32_t parent;
        uint32_t depth;     /* slashes that a file in it has in its path */
        uint32_t idx_dir;   /* in the index; the caller's */
        struct stat status; /* from before it was read */
};

struct walked_file {
        uint64_t name; /* offset into the texts: as the caller added it */
        uint64_t length;
        uint32_t dir;
        uint32_t flags; /* INDEX_FILE_... */
};

struct walked {
        int root_fd;
        const char *root;
        const struct index_watch *watch;
        struct why *why;
        /* Adds what counts of an entry that is neither "." nor "..". Returns 0 or an errno with `why`. */
        int (*take)(void *userdata, uint32_t idx_dir, int dir_fd, const struct dirent *entry);
        void *userdata;

        /* Zeroes at first. */
        uint64_t n_before;  /* files that were found before, for the progress; the caller's */
        uint64_t n_entries; /* seen so far, of any kind */
        int64_t settled_ns; /* time waited so far */
        struct growing texts, dirs, files;
};

void walked_fini(struct walked *walked);

/* Both are valid until the next one is added. */
static inline struct walked_dir *walked_dir(const struct walked *walked, size_t idx) {
        return (struct walked_dir *)(void *)walked->dirs.bytes + idx;
}

static inline struct walked_file *walked_file(const struct walked *walked, size_t idx) {
        return (struct walked_file *)(void *)walked->files.bytes + idx;
}

static inline size_t walked_n_dirs(const struct walked *walked) {
        return walked->dirs.n_bytes / sizeof(struct walked_dir);
}

static inline size_t walked_n_files(const struct walked *walked) {
        return walked->files.n_bytes / sizeof(struct walked_file);
}

static inline const char *walked_text(const struct walked *walked, uint64_t offset) {
        return (const char *)walked->texts.bytes + offset;
}

/* The path of an entry, relative to the root. -ENAMETOOLONG with `why`. */
int walked_path(const struct walked *walked, uint32_t idx_dir, const char *name, char ret_path[PATH_MAX]);

/* Adds a folder that is to be read, or a file, whose `status` is NULL if it could not be looked at. 0 or an errno with
 * `why`. */
int walked_add_dir(struct walked *walked, uint32_t parent, const char *path);
int walked_add_file(struct walked *walked, uint32_t idx_dir, const char *name, const struct stat *status);

/* Adds the root, and reads it alone. */
int walked_read_root(struct walked *walked);

/* Reads the folders from this one on, and those that are added meanwhile. Blocks for the file system. 0; -ECANCELED, or
 * another errno with `why`, which names the folder. */
int walked_read(struct walked *walked, size_t first);

/* Forgets everything but the root. 0, or -ENOMEM with `why`. */
int walked_forget(struct walked *walked);

/* Sorts n files from the first one on, or all folders, as Python sorts their names or paths. 0 or an errno. */
int walked_sort_files(struct walked *walked, size_t first, size_t n);
int walked_sort_dirs(struct walked *walked, size_t first);
