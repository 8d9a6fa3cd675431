#include "daemon/staging/record/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/disk.h"
#include "daemon/base/text.h"

#define STAMP_BYTES_MAX 16384u /* far above what the fields can take, every byte of them escaped */

/* ---- the fields, once ---------------------------------------------------------------------------------------- */

enum field_kind {
        FIELD_TEXT,
        FIELD_DIGEST, /* 64 hexadecimal digits; or nothing, where that is allowed */
        FIELD_VERSION,
        FIELD_NUMBER, /* uint64_t */
        FIELD_COUNT,  /* uint32_t */
        FIELD_TIME,   /* int64_t */
};

struct field {
        const char *name;
        enum field_kind kind;
        size_t offset;
        size_t size; /* with NUL, of a text */
        bool may_be_empty;
};

#define FIELD(member, kind, may_be_empty)                                                                              \
        { #member, kind, offsetof(struct stamp, member), sizeof(((struct stamp *)NULL)->member), may_be_empty }

static const struct field FIELDS[] = {
        FIELD(dataset, FIELD_TEXT, false),          FIELD(manifest, FIELD_DIGEST, false),
        FIELD(version, FIELD_VERSION, false),       FIELD(source, FIELD_DIGEST, false),
        FIELD(source_version, FIELD_VERSION, true), FIELD(prepare, FIELD_TEXT, true),
        FIELD(index, FIELD_DIGEST, true),           FIELD(format, FIELD_TEXT, true),
        FIELD(n_files, FIELD_NUMBER, false),        FIELD(n_bytes, FIELD_NUMBER, false),
        FIELD(n_nodes, FIELD_COUNT, false),         FIELD(when, FIELD_TIME, false),
};

static bool is_text(const struct field *field) {
        return field->kind <= FIELD_VERSION;
}

static bool are_hexadecimal(const char *text, size_t n) {
        return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* Versions become parts of paths: nothing else may pass. */
static bool text_is_allowed(const struct field *field, const char *text) {
        if (text[0] == '\0')
                return field->may_be_empty;
        switch (field->kind) {
        case FIELD_DIGEST:
                return are_hexadecimal(text, PLACE_DIGEST_SIZE - 1);
        case FIELD_VERSION:
                return text[0] == 'v' && text[1] == '-' && are_hexadecimal(text + 2, 12);
        default:
                return text_is_printable(text);
        }
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static void print_text(FILE *out, const char *text) {
        fputc('"', out);
        for (; *text; text++)
                if (*text == '"' || *text == '\\')
                        fprintf(out, "\\%c", *text);
                else
                        fputc(*text, out);
        fputc('"', out);
}

static int print_fields(FILE *out, const struct stamp *stamp, struct why *why) {
        for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
                const struct field *field = &FIELDS[i];
                const void *at = (const char *)stamp + field->offset;

                if (is_text(field) && !text_is_allowed(field, at))
                        return why_set(why, -EINVAL, "a stamp's %s cannot be \"%s\"", field->name, (const char *)at);
                fprintf(out, "%s\"%s\":", i == 0 ? "{" : ",", field->name);
                if (is_text(field))
                        print_text(out, at);
                else if (field->kind == FIELD_NUMBER)
                        fprintf(out, "%" PRIu64, *(const uint64_t *)at);
                else if (field->kind == FIELD_COUNT)
                        fprintf(out, "%" PRIu32, *(const uint32_t *)at);
                else
                        fprintf(out, "%" PRId64, *(const int64_t *)at);
        }
        fputs("}\n", out);
        return 0;
}

int stamp_write(const struct place *place, const struct stamp *stamp, struct why *why) {
        _cleanup_(freep) char *text = NULL;
        char path[PATH_MAX];
        size_t n_bytes;
        FILE *out;
        int r;

        r = place_file(place, "stamp", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        out = open_memstream(&text, &n_bytes);
        if (!out)
                return -ENOMEM;
        r = print_fields(out, stamp, why);
        if (fclose(out) != 0 && r == 0)
                r = -ENOMEM;
        return r < 0 ? r : disk_replace(path, text, n_bytes, why);
}

/* ---- reading: one flat object of texts and numbers, nothing else --------------------------------------------- */

static void skip_blanks(const char **at) {
        *at += strspn(*at, " \t\r\n");
}

/* The text between quotes, with the escapes of JSON that stand for one character of ASCII. */
static int read_text(const char **at, char *into, size_t size) {
        static const char ESCAPES[] = "\"\\/", CONTROL[] = "bfnrt";
        size_t n = 0;

        if (*(*at)++ != '"')
                return -EBADMSG;
        while (**at != '"') {
                char character = *(*at)++;

                if (character == '\0' || n + 1 >= size)
                        return -EBADMSG;
                if (character == '\\') {
                        character = *(*at)++;
                        if (character != '\0' && strchr(CONTROL, character))
                                character = '?';
                        else if (character == '\0' || !strchr(ESCAPES, character))
                                return -EBADMSG;
                }
                into[n++] = character;
        }
        (*at)++;
        into[n] = '\0';
        return 0;
}

static int read_number(const char **at, const struct field *field, void *into) {
        bool is_negative = **at == '-';
        const char *digits = *at + is_negative;
        uint64_t number;
        char *end;

        if (*digits < '0' || *digits > '9')
                return -EBADMSG;
        errno = 0;
        number = strtoull(digits, &end, 10);
        if (errno != 0)
                return -EBADMSG;
        *at = end;
        if (!field)
                return 0;
        if (field->kind == FIELD_TIME) {
                if (number > INT64_MAX)
                        return -EBADMSG;
                *(int64_t *)into = is_negative ? -(int64_t)number : (int64_t)number;
        } else if (is_negative || (field->kind == FIELD_COUNT && number > UINT32_MAX))
                return -EBADMSG;
        else if (field->kind == FIELD_COUNT)
                *(uint32_t *)into = (uint32_t)number;
        else
                *(uint64_t *)into = number;
        return 0;
}

/* The value of a field that this program does not know: a later one may say more. */
static int pass_over(const char **at) {
        char ignored[4096];

        return **at == '"' ? read_text(at, ignored, sizeof(ignored)) : read_number(at, NULL, NULL);
}

static int read_field(const char **at, struct stamp *stamp, uint32_t *seen) {
        char name[64];
        int r;

        r = read_text(at, name, sizeof(name));
        if (r < 0)
                return r;
        skip_blanks(at);
        if (*(*at)++ != ':')
                return -EBADMSG;
        skip_blanks(at);
        for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
                const struct field *field = &FIELDS[i];
                char *into = (char *)stamp + field->offset;

                if (strcmp(name, field->name) != 0)
                        continue;
                if (*seen & (1u << i))
                        return -EBADMSG;
                *seen |= 1u << i;
                if (!is_text(field))
                        return read_number(at, field, into);
                r = read_text(at, into, field->size);
                return r == 0 && !text_is_allowed(field, into) ? -EBADMSG : r;
        }
        return pass_over(at);
}

static int read_object(const char *text, struct stamp *stamp) {
        uint32_t seen = 0;
        const char *at = text;
        int r;

        skip_blanks(&at);
        if (*at++ != '{')
                return -EBADMSG;
        do {
                skip_blanks(&at);
                r = read_field(&at, stamp, &seen);
                if (r < 0)
                        return r;
                skip_blanks(&at);
        } while (*at++ == ',');
        if (at[-1] != '}')
                return -EBADMSG;
        skip_blanks(&at);
        return *at == '\0' && seen == (1u << ARRAY_SIZE(FIELDS)) - 1 ? 0 : -EBADMSG;
}

/* What it speaks of has to be there. */
static int look(const struct place *place, const struct stamp *stamp, const char *path, struct why *why) {
        char of_digest[PLACE_VERSION_SIZE], part[PATH_MAX];
        struct stat status;

        place_version(stamp->manifest, of_digest);
        if (strcmp(of_digest, stamp->version) != 0)
                return why_set(why, -EBADMSG, "%s: version %s is not that of its manifest; stage the dataset again",
                               path, stamp->version);
        if (place_file(place, stamp->version, "", part) < 0 || lstat(part, &status) < 0 || !S_ISDIR(status.st_mode))
                return why_set(why, -EBADMSG, "%s: there is no folder %s; stage the dataset again", path,
                               stamp->version);
        if (stamp->index[0] == '\0')
                return 0;
        if (place_file(place, stamp->version, ".index", part) < 0 || lstat(part, &status) < 0 ||
            !S_ISREG(status.st_mode))
                return why_set(why, -EBADMSG, "%s: there is no index %s.index; stage the dataset again", path,
                               stamp->version);
        return 0;
}

/* A folder or a FIFO in its place does not hang us. */
static int read_file(const char *path, char *text) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        int r;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || status.st_size >= STAMP_BYTES_MAX)
                return -EBADMSG;
        r = disk_read_at(fd, text, (size_t)status.st_size, 0);
        if (r < 0)
                return r;
        text[status.st_size] = '\0';
        return strlen(text) == (size_t)status.st_size ? 0 : -EBADMSG;
}

int stamp_read(const struct place *place, struct stamp *ret_stamp, struct why *why) {
        struct stamp stamp = { 0 };
        char text[STAMP_BYTES_MAX], path[PATH_MAX];
        int r;

        r = place_file(place, "stamp", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        r = read_file(path, text);
        if (r == -ENOENT || r == -ENOTDIR)
                return STAMP_ABSENT;
        if (r == 0)
                r = read_object(text, &stamp);
        if (r == -EBADMSG)
                return why_set(why, r, "%s is no stamp of a staged dataset; stage it again", path);
        if (r < 0)
                return why_errno(why, r, "%s", path);
        r = look(place, &stamp, path, why);
        if (r == 0)
                *ret_stamp = stamp;
        return r;
}

/* Each stamp is a new file; its inode may be used again, but not within the same nanosecond. */
uint64_t stamp_mark(const struct place *place) {
        char path[PATH_MAX];
        struct stat status;
        uint64_t mark;

        if (place_file(place, "stamp", "", path) < 0 || lstat(path, &status) < 0)
                return 0;
        mark = (uint64_t)status.st_ino * 0x9e3779b97f4a7c15u + (uint64_t)status.st_ctim.tv_sec * 1000000000u +
               (uint64_t)status.st_ctim.tv_nsec;
        return mark ? mark : 1;
}
