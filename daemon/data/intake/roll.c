#include "daemon/data/intake/roll.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

#define HEADER    "dataloaderd stream 1 "
#define BYTES_MAX (256u << 20) /* of a roll: a million shards have a tenth */

void roll_fini(struct roll *roll) {
        closep(&roll->fd);
        free(roll->path);
        growing_fini(&roll->lines);
        growing_fini(&roll->names);
        *roll = (struct roll){ .fd = -1 };
}

uint64_t roll_n(const struct roll *roll) {
        return roll->lines.n_bytes / sizeof(struct roll_line);
}

const struct roll_line *roll_at(const struct roll *roll, uint64_t i, const char **ret_name) {
        const struct roll_line *line = (const struct roll_line *)(const void *)roll->lines.bytes + i;

        *ret_name = (const char *)roll->names.bytes + line->name;
        return line;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int keep_line(struct roll *roll, uint64_t n_samples, uint64_t digest, const char *name) {
        struct roll_line line = { .n_samples = n_samples, .digest = digest, .name = roll->names.n_bytes };
        int r = growing_append(&roll->names, name, strlen(name) + 1);

        return r < 0 ? r : growing_append(&roll->lines, &line, sizeof(line));
}

/* "SAMPLES DIGEST NAME". Returns 1 for a line that is none: what comes after it is not used. */
static int read_line(struct roll *roll, const char *text) {
        uint64_t n_samples, digest;
        const char *name;
        int n = 0;

        if (strcmp(text, "end") == 0) {
                roll->has_end = true;
                return 0;
        }
        if (roll->has_end || sscanf(text, "%" SCNu64 " %16" SCNx64 "%n", &n_samples, &digest, &n) < 2 || text[n] != ' ')
                return 1;
        name = text + n + 1; /* it may begin with a blank of its own */
        if (name[0] == '\0' || !index_is_inner_path(name))
                return 1;
        return keep_line(roll, n_samples, digest, name);
}

/* Returns the bytes of the file that are understood. */
static int roll_read_lines(struct roll *roll, char *text, uint64_t *ret_n_good) {
        char *line = text, *end;
        int r;

        *ret_n_good = 0;
        for (; (end = strchr(line, '\n')); line = end + 1) {
                *end = '\0';
                if (line != text)
                        r = read_line(roll, line);
                else if (strncmp(line, HEADER, strlen(HEADER)) == 0 && strlen(line) == strlen(HEADER) + 64)
                        r = (strcpy(roll->digest, line + strlen(HEADER)), 0);
                else
                        r = 1;
                if (r != 0)
                        return r < 0 ? r : 0;
                *ret_n_good = (uint64_t)(end + 1 - text);
        }
        return 0;
}

static int roll_read_file(int fd, char **ret_text) {
        off_t n = lseek(fd, 0, SEEK_END);
        char *text = n >= 0 && n <= (off_t)BYTES_MAX ? malloc((size_t)n + 1) : NULL;
        ssize_t n_read;

        if (!text)
                return n < 0 ? -errno : -ENOMEM;
        n_read = pread(fd, text, (size_t)n, 0);
        text[n_read > 0 ? n_read : 0] = '\0';
        *ret_text = text;
        return 0;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static int cannot_write(const char *path, struct why *why) {
        return why_errno(why, -errno,
                         "%s cannot be written: if the daemon restarts, shards that came too late may be taken, and "
                         "samples get other numbers",
                         path);
}

static int roll_append(struct roll *roll, const char *text, struct why *why) {
        size_t n = strlen(text);
        ssize_t n_written;

        if (roll->fd < 0)
                return 0;
        n_written = write(roll->fd, text, n);
        if (n_written == (ssize_t)n && fdatasync(roll->fd) == 0)
                return 0;
        if (n_written >= 0 && n_written < (ssize_t)n)
                errno = ENOSPC;
        cannot_write(roll->path, why);
        closep(&roll->fd);
        roll->fd = -1;
        return -EIO;
}

int roll_add(struct roll *roll, uint64_t n_samples, uint64_t digest, const char *name, struct why *why) {
        _cleanup_(freep) char *line = NULL;

        if (asprintf(&line, "%" PRIu64 " %016" PRIx64 " %s\n", n_samples, digest, name) < 0) {
                line = NULL;
                return why_errno(why, -ENOMEM, "%s", roll->path);
        }
        return roll_append(roll, line, why);
}

int roll_add_end(struct roll *roll, struct why *why) {
        if (roll->has_end)
                return 0;
        roll->has_end = true;
        return roll_append(roll, "end\n", why);
}

int roll_begin(struct roll *roll, const char *digest, struct why *why) {
        char header[128];

        growing_clear(&roll->lines);
        growing_clear(&roll->names);
        roll->has_end = false;
        snprintf(roll->digest, sizeof(roll->digest), "%s", digest);
        snprintf(header, sizeof(header), HEADER "%s\n", digest);
        if (roll->fd >= 0 && ftruncate(roll->fd, 0) < 0)
                return why_errno(why, -errno, "%s", roll->path);
        return roll_append(roll, header, why);
}

int roll_open(struct roll *roll, const char *path, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        uint64_t n_good = 0;
        int r;

        *roll = (struct roll){ .path = strdup(path), .fd = -1 };
        why->text[0] = '\0';
        if (!roll->path)
                return -ENOMEM;
        roll->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (roll->fd < 0) {
                cannot_write(path, why);
                return 0;
        }
        roll->is_busy = flock(roll->fd, LOCK_EX | LOCK_NB) < 0;
        r = roll_read_file(roll->fd, &text);
        if (r == 0)
                r = roll_read_lines(roll, text, &n_good);
        if (r == 0 && !roll->is_busy && ftruncate(roll->fd, (off_t)n_good) < 0) /* after a torn line */
                cannot_write(path, why);
        if (roll->is_busy) {
                closep(&roll->fd);
                roll->fd = -1;
        }
        return r;
}
