#include "daemon/data/format_tell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

struct candidates {
        const struct format *first, *last;
        unsigned n;
        char names[256];
};

static void format_tell_add(struct candidates *candidates, const struct format *format) {
        size_t n = strlen(candidates->names);

        snprintf(candidates->names + n, sizeof(candidates->names) - n, "%s%s", n ? ", " : "", format->name);
        if (candidates->n++ == 0)
                candidates->first = format;
        candidates->last = format;
}

int format_cannot_tell(int r) {
        static const int ERRORS[] = { ENOMEM, EMFILE, ENFILE, EIO, EACCES, EPERM, ENOSYS, ESTALE, ETIMEDOUT, EXDEV };

        for (size_t i = 0; i < ARRAY_SIZE(ERRORS); i++)
                if (r == -ERRORS[i])
                        return r;
        if (r < 0 && indexing_origin()) /* what a server or a network says, except what the files hold */
                return r == -ENODATA || r == -ENOENT || r == -EINVAL || r == -EISDIR || r == -ENOTDIR ? 0 : r;
        return 0;
}

/* Does the format take these files and all options that are set? 1, 0 or an errno. */
static int format_tell_may_be(const struct format *format, const struct files *files, const char *options,
                              bool *ret_has_options) {
        struct format_options parsed;

        int r;

        if (files->n_names > 0 && !format->takes_files)
                return 0;
        r = format_options_parse(options, format, &parsed, NULL);
        if (r < 0)
                return format_cannot_tell(r);
        *ret_has_options = parsed.n > 0;
        format_options_fini(&parsed);
        return 1;
}

static int format_tell_ask_all(int root_fd, const struct files *files, const char *options,
                               struct candidates *by_options, struct candidates *by_files) {
        const struct format *format;

        for (size_t i = 0; (format = format_at(i)); i++) {
                bool has_options = false;
                int r = format_tell_may_be(format, files, options, &has_options);

                if (r > 0 && has_options)
                        format_tell_add(by_options, format);
                if (r > 0)
                        r = format->is_it ? format->is_it(root_fd, files) : 0;
                if (r < 0)
                        return r;
                if (r > 0)
                        format_tell_add(by_files, format);
        }
        return 0;
}

/* ---- by name ----------------------------------------------------------------------------------------------------- */

/* With its dot, as it is written. */
static const char *format_tell_ending_of(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot ? dot : "";
}

static bool has_one_of(const char *name, const char *const *endings) {
        for (; *endings; endings++)
                if (text_ends_with(name, *endings))
                        return true;
        return false;
}

/* What prepare = "convert" decompresses. */
static bool is_convertible(const char *name) {
        static const char *const ENDINGS[] = { ".gz", ".zst", ".xz", ".bz2", ".lz4", NULL };

        return has_one_of(name, ENDINGS);
}

static bool is_packed(const char *name) {
        static const char *const OTHERS[] = { ".zstd", ".br", ".zip", NULL };

        return is_convertible(name) || has_one_of(name, OTHERS);
}

struct names_seen {
        uint64_t formats; /* a bit for each one that names speak of */
        bool are_files;
        char packed[256];              /* one that is compressed; "": none */
        char picture[256];             /* the first that is a picture's */
        char folder[256];              /* the first of a folder, in the order of names */
        bool has_snapshots, has_blobs; /* as a dataset in the hub's cache */
        bool endings_differ;
};

static void see_name(struct names_seen *seen, const char *name) {
        const struct format *format;

        for (size_t i = 0; (format = format_at(i)) && !is_packed(name); i++)
                for (const struct format_naming *naming = format->names; naming && naming->part; naming++)
                        if ((seen->are_files || !naming->is_file) &&
                            (naming->is_end ? text_ends_with(name, naming->part) : strstr(name, naming->part) != NULL))
                                seen->formats |= 1ull << i;
        if (is_packed(name))
                snprintf(seen->packed, sizeof(seen->packed), "%.255s", name);
        if (kind_of_file(name) != FIELD_PICTURE)
                return;
        if (!seen->picture[0])
                snprintf(seen->picture, sizeof(seen->picture), "%.255s", name);
        else if (!text_ends_with(name, format_tell_ending_of(seen->picture)))
                seen->endings_differ = true;
}

static int see_entry(void *userdata, const struct dirent *entry) {
        struct names_seen *seen = userdata;

        if (entry->d_name[0] == '.')
                return 0;
        seen->has_snapshots |= strcmp(entry->d_name, "snapshots") == 0;
        seen->has_blobs |= strcmp(entry->d_name, "blobs") == 0;
        if (entry->d_type != DT_DIR)
                see_name(seen, entry->d_name);
        else if (!seen->folder[0] || strcmp(entry->d_name, seen->folder) < 0)
                snprintf(seen->folder, sizeof(seen->folder), "%s", entry->d_name);
        return 0;
}

static int ask_names(int root_fd, const struct files *files, struct names_seen *seen, struct candidates *by_names) {
        int r = 0;

        seen->are_files = files->n_names > 0;
        for (size_t i = 0; i < files->n_names; i++)
                see_name(seen, files->names[i]);
        if (!seen->are_files)
                r = format_look_into(root_fd, see_entry, seen);
        for (size_t i = 0; format_at(i) && r == 0; i++)
                if (seen->formats >> i & 1)
                        format_tell_add(by_names, format_at(i));
        return r;
}

/* Is there one format that would recognise the files without the options? Then it says which of them it does not take.
 */
static int say_options(int root_fd, const struct files *files, const char *options, struct why *why) {
        struct candidates by_options = { 0 }, by_files = { 0 };
        struct format_options parsed;
        struct why refused;
        int r;

        if (!options || !*options)
                return 0;
        r = format_tell_ask_all(root_fd, files, NULL, &by_options, &by_files);
        if (r < 0)
                return why_errno(why, r, "%s: its format cannot be found out", files->root);
        if (by_files.n != 1)
                return 0;
        r = format_options_parse(options, by_files.first, &parsed, &refused);
        if (r == 0)
                format_options_fini(&parsed);
        return r < 0 ? why_set(why, r, "%s: by its files, %s", files->root, refused.text) : 0;
}

/* No format recognises the files: says what is there, and what to write if it is what beginners have. */
static int say_unknown(const struct files *files, const struct names_seen *seen, struct why *why) {
        const char *root = files->root;

        if (files->n_names > 0 && kind_of_file(files->names[0]) == FIELD_PICTURE)
                return why_set(
                        why, -EINVAL,
                        "%s/%s: no format recognises it: a picture alone is not a dataset; name a folder that has "
                        "a folder of pictures for each class",
                        root, files->names[0]);
        if (files->n_names > 0)
                return why_set(why, -EINVAL, "%s/%s: no format recognises it; set format if you know it", root,
                               files->names[0]);
        if (seen->picture[0]) {
                const char *ending = seen->endings_differ ? ".*" : format_tell_ending_of(seen->picture);

                return why_set(why, -EINVAL,
                               "%s: no format recognises it: pictures such as %s lie in the folder itself, and not in "
                               "a folder for each class. To have them without labels, set format = \"folder\" and "
                               "pattern = \"{name}%s\"; in Python {\"path\": \"%s\", \"format\": \"folder\", "
                               "\"pattern\": \"{name}%s\"}",
                               root, seen->picture, ending, root, ending);
        }
        if (seen->has_snapshots && seen->has_blobs)
                return why_set(why, -EINVAL,
                               "%s: is a dataset in the Hugging Face hub's cache: name one of its snapshots, which are "
                               "the folders in %s/snapshots",
                               root, root);
        if (seen->folder[0])
                return why_set(why, -EINVAL,
                               "%s: no format recognises it: no folder in it, such as %s, has pictures of its own, and "
                               "there are no archives, tables or arrays; if these folders are parts of the dataset "
                               "(train, val), name one of them, such as %s/%s, else set format if you know it",
                               root, seen->folder, root, seen->folder);
        return why_set(why, -EINVAL,
                       "%s: no format recognises it: there are no class folders with pictures, archives, tables or "
                       "arrays; set format if you know it",
                       root);
}

int format_tell(const char *name, int root_fd, const struct files *files, const char *options,
                const struct format **ret_format, struct why *why) {
        struct candidates by_options = { 0 }, by_files = { 0 };
        struct names_seen seen = { 0 };
        const char *file = files->n_names > 0 ? files->names[0] : "", *slash = files->n_names > 0 ? "/" : "";
        int r;

        if (strcmp(name, FORMAT_AUTO) != 0)
                return format_find(name, ret_format, why);
        r = format_tell_ask_all(root_fd, files, options, &by_options, &by_files);
        if (r < 0)
                return why_errno(why, r, "%s%s%s: its format cannot be found out", files->root, slash, file);
        if (by_files.n != 1 && by_options.n == 1)
                by_files = by_options;
        if (by_files.n == 0)
                r = ask_names(root_fd, files, &seen, &by_files);
        if (r < 0)
                return why_errno(why, r, "%s%s%s: its format cannot be found out", files->root, slash, file);
        if (by_files.n > 1)
                return why_set(why, -EINVAL, "%s%s%s: several formats recognise it: %s; set format to one of them",
                               files->root, slash, file, by_files.names);
        if (by_files.n == 0 && seen.packed[0])
                return why_set(why, -ENOTSUP, "%s/%s: is compressed, so that no sample can be read by itself; %s",
                               files->root, seen.packed,
                               is_convertible(seen.packed)
                                       ? "stage the dataset with prepare = \"convert\", or decompress it"
                                       : "decompress it");
        if (by_files.n == 0) {
                r = say_options(root_fd, files, options, why);
                return r < 0 ? r : say_unknown(files, &seen, why);
        }
        *ret_format = by_files.first;
        return 0;
}

int format_look_into(int root_fd, int (*look)(void *userdata, const struct dirent *entry), void *userdata) {
        int fd = beneath_open(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!dir) {
                r = format_cannot_tell(-errno);
                closep(&fd);
                return r;
        }
        while (r == 0) {
                errno = 0;
                entry = readdir(dir);
                if (!entry) {
                        r = format_cannot_tell(-errno);
                        break;
                }
                r = look(userdata, entry);
        }
        closedir(dir);
        return r;
}

static int look_at_name(void *userdata, const struct dirent *entry) {
        bool (*const *is_taken)(const char *name) = userdata;

        return entry->d_name[0] != '.' && (*is_taken)(entry->d_name);
}

int format_names_files(int root_fd, const struct files *files, bool (*is_taken)(const char *name)) {
        bool is_found = files->n_names > 0;

        for (size_t i = 0; i < files->n_names && is_found; i++)
                is_found = is_taken(text_after_slash(files->names[i]));
        return files->n_names > 0 ? is_found : format_look_into(root_fd, look_at_name, &is_taken);
}
