#include "daemon/tokenize/tokenizers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/file_stamp.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/threads/thread.h"
#include "daemon/base/work/errand.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

#define KEPT_MAX    8u
#define PIECE_BYTES (4u << 20)  /* read between two looks */
#define LOOK_NS     50000000ull /* between two looks of a thread that waits for another */
#define COMMA_BYTES 96u         /* of tables, for a token that stands in two vocabularies, or for a merge */
#define TEXT_TIMES  4u          /* a copy of the text, and the tokens' bytes, with room to grow, in two vocabularies */

/* A tokenizer, and the file that it was read from. */
struct kept {
        char *path;
        struct stat stat;
        struct tokenizer *tokenizer;
        uint64_t used; /* when it was asked for: the lower, the longer ago */
};

/* Somebody for whom a file is read. On the reading thread's stack. */
struct tokenizer_waiter {
        LIST_ENTRY(tokenizer_waiter) entry;
        const void *whom;
};

struct tokenizers {
        struct budget *budget;
        pthread_mutex_t lock; /* guards what follows; not held while a file is opened or read */
        pthread_cond_t left;  /* a reader has */
        LIST_HEAD(, tokenizer_waiter) readers;
        char *folder;
        struct kept kept[KEPT_MAX];
        uint64_t n_asked;
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
        pthread_mutex_init(&tokenizers->lock, NULL);
        pthread_cond_init(&tokenizers->left, NULL);
        *ret_tokenizers = tokenizers;
        return 0;
}

void tokenizers_free(struct tokenizers *tokenizers) {
        if (!tokenizers)
                return;
        for (unsigned i = 0; i < KEPT_MAX; i++)
                kept_fini(&tokenizers->kept[i]);
        pthread_cond_destroy(&tokenizers->left);
        pthread_mutex_destroy(&tokenizers->lock);
        free(tokenizers->folder);
        free(tokenizers);
}

int tokenizers_set_folder(struct tokenizers *tokenizers, const char *folder) {
        char *copy = strdup(folder), *before;

        if (!copy)
                return -ENOMEM;
        pthread_mutex_lock(&tokenizers->lock);
        before = tokenizers->folder;
        tokenizers->folder = copy;
        pthread_mutex_unlock(&tokenizers->lock);
        free(before);
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
static int tokenizers_open_file(const char *folder, const char *name, char **ret_path, int *ret_fd, struct why *why) {
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(freep) char *path = NULL;
                int fd;

                if (asprintf(&path, "%s/%s%s", folder, name, i == 0 ? ".json" : "/tokenizer.json") < 0) {
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
                       name, name, name, folder);
}

static int tokenizers_read_file(int fd, const char *path, uint64_t n_bytes, uint8_t *into, size_t *ret_n,
                                struct why *why) {
        size_t n = 0, n_room = (size_t)n_bytes + 1;

        for (;;) {
                size_t n_piece = n_room - n < PIECE_BYTES ? n_room - n : PIECE_BYTES;
                ssize_t got;

                if (n == n_room)
                        return why_set(why, -EBADMSG, "%s: grows while it is read; try again", path);
                if (errand_look() < 0)
                        return why_errno(why, -ECANCELED, "%s", path);
                got = read(fd, into + n, n_piece);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return why_errno(why, -errno, "%s", path);
                if (got == 0)
                        break;
                n += (size_t)got;
        }
        *ret_n = n;
        return 0;
}

/* The memory that making a tokenizer of this text takes at most, beside the text: each token and each merge has a
 * comma after it, or is the last one. */
static uint64_t most_memory(const uint8_t *bytes, size_t n) {
        uint64_t n_commas = 1;

        for (size_t i = 0; i < n; i++)
                n_commas += bytes[i] == ',';
        return n_commas * COMMA_BYTES + n * TEXT_TIMES;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* A file that is read, and what is reserved for that. */
struct reading {
        struct tokenizers *tokenizers;
        char *path;
        int fd;
        struct stat stat;
        struct budget *budget;
        uint64_t n_reserved;
        uint8_t *bytes;
};

/* What was needed while it was read. */
static void give_back(struct reading *reading) {
        free(reading->bytes);
        reading->bytes = NULL;
        if (reading->budget)
                budget_release(reading->budget, reading->n_reserved);
        reading->n_reserved = 0;
}

static void reading_fini(struct reading *reading) {
        give_back(reading);
        free(reading->path);
        if (reading->fd >= 0)
                close(reading->fd);
}

static int tokenizers_reserve(struct reading *reading, uint64_t n_bytes, struct why *why) {
        struct why what;
        int r = reading->budget ? budget_reserve(reading->budget, n_bytes, "reading a tokenizer", &what) : 0;

        if (r < 0)
                return why_set(why, r, "%s: %s", reading->path, what.text);
        reading->n_reserved += n_bytes;
        return 0;
}

static int tokenizers_load(struct reading *reading, struct tokenizer **ret_tokenizer, struct why *why) {
        uint64_t n_file = (uint64_t)reading->stat.st_size;
        struct why what;
        size_t n = 0;
        int r;

        if (!S_ISREG(reading->stat.st_mode) || n_file > TOKENIZER_FILE_MAX)
                return why_set(why, -EFBIG, "%s: is not a file of at most %llu bytes", reading->path,
                               (unsigned long long)TOKENIZER_FILE_MAX);
        r = tokenizers_reserve(reading, n_file, why);
        if (r < 0)
                return r;
        reading->bytes = malloc((size_t)n_file + 1);
        if (!reading->bytes)
                return why_errno(why, -ENOMEM, "%s", reading->path);
        r = tokenizers_read_file(reading->fd, reading->path, n_file, reading->bytes, &n, why);
        if (r == 0)
                r = tokenizers_reserve(reading, most_memory(reading->bytes, n), why);
        if (r < 0)
                return r;
        r = tokenizer_new(reading->bytes, n, ret_tokenizer, &what);
        return r < 0 ? why_set(why, r, "%s: %s", reading->path, what.text) : 0;
}

/* ---- what is kept ---------------------------------------------------------------------------------------------- */

/* With the lock: the one of this path, or an empty place, or that which was not asked for longest. */
static struct kept *tokenizers_place_of(struct tokenizers *tokenizers, const char *path) {
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

/* A reference to the tokenizer that was read from this file, or NULL. */
static struct tokenizer *tokenizers_find_kept(const struct reading *reading) {
        struct tokenizers *tokenizers = reading->tokenizers;
        struct tokenizer *tokenizer = NULL;
        struct kept *kept;

        pthread_mutex_lock(&tokenizers->lock);
        kept = tokenizers_place_of(tokenizers, reading->path);
        if (kept->path && strcmp(kept->path, reading->path) == 0 && file_is_same(&kept->stat, &reading->stat)) {
                kept->used = ++tokenizers->n_asked;
                tokenizer = tokenizer_ref(kept->tokenizer);
        }
        pthread_mutex_unlock(&tokenizers->lock);
        return tokenizer;
}

/* Keeps it, or the same one that is kept under another name. Takes the tokenizer over, and returns a reference. */
static int tokenizers_keep(struct reading *reading, struct tokenizer *tokenizer, struct tokenizer **ret_tokenizer,
                           struct why *why) {
        struct tokenizers *tokenizers = reading->tokenizers;
        struct tokenizer *other = NULL, *unwanted = NULL;
        struct kept before, *kept;
        int r = 0;

        pthread_mutex_lock(&tokenizers->lock);
        for (unsigned i = 0; i < KEPT_MAX && !other; i++)
                if (tokenizers->kept[i].tokenizer &&
                    strcmp(tokenizer_digest(tokenizers->kept[i].tokenizer), tokenizer_digest(tokenizer)) == 0)
                        other = tokenizer_ref(tokenizers->kept[i].tokenizer);
        if (!other && tokenizers->budget)
                r = tokenizer_charge(tokenizer, tokenizers->budget, why);
        if (r < 0 || other) {
                unwanted = tokenizer; /* to be freed without the lock, which the main thread also takes */
                tokenizer = other;
        }
        if (r == 0) {
                kept = tokenizers_place_of(tokenizers, reading->path);
                before = *kept;
                *kept = (struct kept){ .path = TAKE_PTR(reading->path), .stat = reading->stat, .tokenizer = tokenizer };
                kept->used = ++tokenizers->n_asked;
                *ret_tokenizer = tokenizer_ref(tokenizer);
        }
        pthread_mutex_unlock(&tokenizers->lock);
        tokenizer_unref(unwanted);
        if (r == 0)
                kept_fini(&before);
        return r;
}

/* ---- one at a time --------------------------------------------------------------------------------------------- */

static bool is_reading(const struct tokenizers *tokenizers, const void *whom) {
        const struct tokenizer_waiter *reader;

        LIST_FOREACH(reader, &tokenizers->readers, entry)
                if (reader->whom == whom)
                        return true;
        return false;
}

/* Waits for this reader's turn, and copies the folder's name. */
static int tokenizers_enter(struct tokenizers *tokenizers, struct tokenizer_waiter *reader, char **ret_folder,
                            struct why *why) {
        int r = 0;

        pthread_mutex_lock(&tokenizers->lock);
        while (r == 0 && is_reading(tokenizers, reader->whom)) {
                thread_wait_until(&tokenizers->left, &tokenizers->lock, clock_now_ns() + LOOK_NS);
                r = errand_look();
        }
        *ret_folder = r == 0 ? strdup(tokenizers->folder) : NULL;
        if (*ret_folder)
                LIST_INSERT_HEAD(&tokenizers->readers, reader, entry);
        pthread_mutex_unlock(&tokenizers->lock);
        if (!*ret_folder)
                return why_errno(why, r < 0 ? r : -ENOMEM, "tokenizer");
        return 0;
}

static void tokenizers_leave(struct tokenizers *tokenizers, struct tokenizer_waiter *reader) {
        pthread_mutex_lock(&tokenizers->lock);
        LIST_REMOVE(reader, entry);
        pthread_cond_broadcast(&tokenizers->left);
        pthread_mutex_unlock(&tokenizers->lock);
}

static int tokenizers_read_one(struct reading *reading, const char *folder, const char *name,
                               struct tokenizer **ret_tokenizer, struct why *why) {
        struct tokenizer *tokenizer;
        int r = tokenizers_open_file(folder, name, &reading->path, &reading->fd, why);

        if (r < 0)
                return r;
        if (fstat(reading->fd, &reading->stat) < 0)
                return why_errno(why, -errno, "%s", reading->path);
        *ret_tokenizer = tokenizers_find_kept(reading);
        if (*ret_tokenizer)
                return 0;
        r = tokenizers_load(reading, &tokenizer, why);
        give_back(reading);
        return r < 0 ? r : tokenizers_keep(reading, tokenizer, ret_tokenizer, why);
}

int tokenizers_read(struct tokenizers *tokenizers, const char *name, const void *whom, struct budget *budget,
                    struct tokenizer **ret_tokenizer, struct why *why) {
        struct reading reading = { .tokenizers = tokenizers, .fd = -1, .budget = budget };
        struct tokenizer *tokenizer = NULL;
        struct tokenizer_waiter reader = { .whom = whom };
        _cleanup_(freep) char *folder = NULL;
        int r = tokenizers_enter(tokenizers, &reader, &folder, why);

        if (r < 0)
                return r;
        r = tokenizers_read_one(&reading, folder, name, &tokenizer, why);
        reading_fini(&reading);
        tokenizers_leave(tokenizers, &reader);
        if (r == 0)
                *ret_tokenizer = tokenizer;
        return r;
}
