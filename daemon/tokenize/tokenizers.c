#include "daemon/tokenize/tokenizers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/file_stamp.h"
#include "proto/base/cleanup.h"

#define KEPT_MAX 8u

/* A tokenizer, and the file that it was read from. */
struct kept {
        char *path;
        struct stat stat;
        struct tokenizer *tokenizer;
        uint64_t used; /* when it was asked for: the lower, the longer ago */
};

struct tokenizers {
        char *folder;
        struct budget *budget;
        struct kept kept[KEPT_MAX];
        uint64_t n_asked;
        bool are_elsewhere; /* tokenizers_elsewhere() */
};

static void kept_fini(struct kept *kept) {
        free(kept->path);
        tokenizer_unref(kept->tokenizer);
        *kept = (struct kept){ 0 };
}

int tokenizers_new(const char *folder, struct budget *budget, struct tokenizers **ret_tokenizers) {
        struct tokenizers *tokenizers = calloc(1, sizeof(*tokenizers));

        if (!tokenizers)
                return -ENOMEM;
        tokenizers->budget = budget;
        tokenizers->folder = strdup(folder);
        if (!tokenizers->folder) {
                free(tokenizers);
                return -ENOMEM;
        }
        *ret_tokenizers = tokenizers;
        return 0;
}

int tokenizers_elsewhere(struct tokenizers **ret_tokenizers) {
        struct tokenizers *tokenizers;
        int r = tokenizers_new("", NULL, &tokenizers);

        if (r < 0)
                return r;
        tokenizers->are_elsewhere = true;
        *ret_tokenizers = tokenizers;
        return 0;
}

bool tokenizers_are_elsewhere(const struct tokenizers *tokenizers) {
        return tokenizers->are_elsewhere;
}

void tokenizers_free(struct tokenizers *tokenizers) {
        if (!tokenizers)
                return;
        for (unsigned i = 0; i < KEPT_MAX; i++)
                kept_fini(&tokenizers->kept[i]);
        free(tokenizers->folder);
        free(tokenizers);
}

int tokenizers_set_folder(struct tokenizers *tokenizers, const char *folder) {
        char *copy = strdup(folder);

        if (!copy)
                return -ENOMEM;
        free(tokenizers->folder);
        tokenizers->folder = copy;
        return 0;
}

bool tokenizers_is_name(const char *name, size_t n) {
        bool begins = true;

        if (n == 0 || n >= TOKENIZER_NAME_MAX)
                return false;
        for (size_t i = 0; i < n; i++) {
                if (name[i] == '/' ? begins : !isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
                        return false;
                if (begins && name[i] == '.')
                        return false;
                begins = name[i] == '/';
        }
        return !begins;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* Opens NAME.json or NAME/tokenizer.json. */
static int open_file(const struct tokenizers *tokenizers, const char *name, char **ret_path, int *ret_fd,
                     struct why *why) {
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(freep) char *path = NULL;
                int fd;

                if (asprintf(&path, "%s/%s%s", tokenizers->folder, name, i == 0 ? ".json" : "/tokenizer.json") < 0) {
                        path = NULL;
                        return why_errno(why, -ENOMEM, "tokenizer %s", name);
                }
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                if (fd >= 0) {
                        *ret_path = TAKE_PTR(path);
                        *ret_fd = fd;
                        return 0;
                }
                if (errno != ENOENT && errno != ENOTDIR)
                        return why_errno(why, -errno, "tokenizer %s: %s", name, path);
        }
        return why_set(why, -ENOENT,
                       "there is no tokenizer %s: neither %s.json nor %s/tokenizer.json is in %s, the folder that the "
                       "setting tokenizers names: put it there",
                       name, name, name, tokenizers->folder);
}

static int read_file(int fd, const char *path, const struct stat *stat, uint8_t **ret_bytes, size_t *ret_n,
                     struct why *why) {
        _cleanup_(freep) uint8_t *bytes = NULL;
        size_t n = 0, n_room = (size_t)stat->st_size + 1;

        if (!S_ISREG(stat->st_mode) || (uint64_t)stat->st_size > TOKENIZER_FILE_MAX)
                return why_set(why, -EFBIG, "%s: is not a file of at most %llu bytes", path,
                               (unsigned long long)TOKENIZER_FILE_MAX);
        bytes = malloc(n_room);
        if (!bytes)
                return why_errno(why, -ENOMEM, "%s", path);
        for (;;) {
                ssize_t got = n < n_room ? read(fd, bytes + n, n_room - n) : -1;

                if (n == n_room)
                        return why_set(why, -EBADMSG, "%s: grows while it is read; try again", path);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return why_errno(why, -errno, "%s", path);
                if (got == 0)
                        break;
                n += (size_t)got;
        }
        *ret_bytes = TAKE_PTR(bytes);
        *ret_n = n;
        return 0;
}

static int load(struct tokenizers *tokenizers, int fd, const char *path, const struct stat *stat,
                struct tokenizer **ret_tokenizer, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct tokenizer *tokenizer = NULL;
        struct why what;
        size_t n = 0;
        int r = read_file(fd, path, stat, &bytes, &n, why);

        if (r < 0)
                return r;
        r = tokenizer_new(bytes, n, &tokenizer, &what);
        if (r < 0)
                return why_set(why, r, "%s: %s", path, what.text);
        for (unsigned i = 0; i < KEPT_MAX; i++) /* the same under another name */
                if (tokenizers->kept[i].tokenizer &&
                    strcmp(tokenizer_digest(tokenizers->kept[i].tokenizer), tokenizer_digest(tokenizer)) == 0) {
                        tokenizer_unref(tokenizer);
                        *ret_tokenizer = tokenizer_ref(tokenizers->kept[i].tokenizer);
                        return 0;
                }
        r = tokenizers->budget ? tokenizer_charge(tokenizer, tokenizers->budget, why) : 0;
        if (r < 0) {
                tokenizer_unref(tokenizer);
                return r;
        }
        *ret_tokenizer = tokenizer;
        return 0;
}

/* ---- what is kept ---------------------------------------------------------------------------------------------- */

/* The one of this path, or an empty place, or that which was not asked for longest. */
static struct kept *place_of(struct tokenizers *tokenizers, const char *path) {
        struct kept *place = &tokenizers->kept[0];

        for (unsigned i = 0; i < KEPT_MAX; i++) {
                struct kept *kept = &tokenizers->kept[i];

                if (kept->path && strcmp(kept->path, path) == 0)
                        return kept;
                if (kept->used < place->used)
                        place = kept;
        }
        return place;
}

int tokenizers_get(struct tokenizers *tokenizers, const char *name, struct tokenizer **ret_tokenizer, struct why *why) {
        _cleanup_(freep) char *path = NULL;
        _cleanup_(closep) int fd = -1;
        struct tokenizer *tokenizer = NULL;
        struct kept *kept;
        struct stat stat;
        int r = open_file(tokenizers, name, &path, &fd, why);

        if (r < 0)
                return r;
        if (fstat(fd, &stat) < 0)
                return why_errno(why, -errno, "%s", path);
        kept = place_of(tokenizers, path);
        if (!kept->path || strcmp(kept->path, path) != 0 || !file_is_same(&kept->stat, &stat)) {
                r = load(tokenizers, fd, path, &stat, &tokenizer, why);
                if (r < 0)
                        return r;
                kept_fini(kept);
                *kept = (struct kept){ .path = TAKE_PTR(path), .stat = stat, .tokenizer = tokenizer };
        }
        kept->used = ++tokenizers->n_asked;
        *ret_tokenizer = tokenizer_ref(kept->tokenizer);
        return 0;
}
