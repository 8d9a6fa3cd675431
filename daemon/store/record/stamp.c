#include "daemon/store/record/stamp.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define STAMP_BYTES_MAX  16384u             /* far above what the fields can take, every byte of them escaped */
#define STAMP_NUMBER_MAX 9007199254740991.0 /* 2^53 - 1 */

/* ---- the fields, once ---------------------------------------------------------------------------------------- */

enum stamp_field_kind {
        FIELD_TEXT,
        FIELD_DIGEST, /* 64 hexadecimal digits; or nothing, where that is allowed */
        FIELD_VERSION,
        FIELD_NUMBER, /* uint64_t or uint32_t */
};

struct stamp_field {
        const char *name;
        enum stamp_field_kind kind;
        size_t offset;
        size_t size; /* with NUL, of a text */
        bool may_be_empty;
};

#define FIELD(member, kind, may_be_empty)                                                                              \
        { #member, kind, offsetof(struct stamp, member), sizeof(((struct stamp *)NULL)->member), may_be_empty }

static const struct stamp_field FIELDS[] = {
        FIELD(dataset, FIELD_TEXT, false),          FIELD(manifest, FIELD_DIGEST, false),
        FIELD(version, FIELD_VERSION, false),       FIELD(source, FIELD_DIGEST, false),
        FIELD(source_version, FIELD_VERSION, true), FIELD(prepare, FIELD_TEXT, true),
        FIELD(index, FIELD_DIGEST, true),           FIELD(format, FIELD_TEXT, true),
        FIELD(n_files, FIELD_NUMBER, false),        FIELD(n_bytes, FIELD_NUMBER, false),
        FIELD(n_nodes, FIELD_NUMBER, false),        FIELD(when, FIELD_NUMBER, false),
};

static bool stamp_is_text(const struct stamp_field *field) {
        return field->kind <= FIELD_VERSION;
}

static bool are_hexadecimal(const char *text, size_t n) {
        return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

/* Versions become parts of paths: nothing else may pass. */
static bool text_is_allowed(const struct stamp_field *field, const char *text) {
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

/* JSON's numbers are doubles, which are exact in these bounds. */
static bool number_is_allowed(const struct stamp_field *field, double number) {
        double most = field->size == sizeof(uint32_t) ? UINT32_MAX : STAMP_NUMBER_MAX;

        return number >= 0 && number <= most && number == trunc(number); /* false for a NaN */
}

static double stamp_number_of(const struct stamp_field *field, const void *at) {
        return field->size == sizeof(uint32_t) ? *(const uint32_t *)at : (double)*(const uint64_t *)at;
}

static void stamp_set_number(const struct stamp_field *field, double number, void *into) {
        if (field->size == sizeof(uint32_t))
                *(uint32_t *)into = (uint32_t)number;
        else
                *(uint64_t *)into = (uint64_t)number;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

static int stamp_add_field(cJSON *object, const struct stamp_field *field, const void *at, struct why *why) {
        char digits[24];

        if (stamp_is_text(field)) {
                if (!text_is_allowed(field, at))
                        return why_set(why, -EINVAL, "a stamp's %s cannot be \"%s\"", field->name, (const char *)at);
                return cJSON_AddStringToObject(object, field->name, at) ? 0 : -ENOMEM;
        }
        if (!number_is_allowed(field, stamp_number_of(field, at)))
                return why_set(why, -EINVAL, "a stamp's %s cannot be %.0f: numbers are 2^53 - 1 at most", field->name,
                               stamp_number_of(field, at));
        snprintf(digits, sizeof(digits), "%.0f", stamp_number_of(field, at)); /* cJSON would print 15 digits of them */
        return cJSON_AddRawToObject(object, field->name, digits) ? 0 : -ENOMEM;
}

/* One line; the caller's (free). */
static int stamp_print(const struct stamp *stamp, char **ret_line, struct why *why) {
        cJSON *object = cJSON_CreateObject();
        char *text = NULL, *line = NULL;
        int r = object ? 0 : -ENOMEM;

        for (size_t i = 0; i < ARRAY_SIZE(FIELDS) && r == 0; i++)
                r = stamp_add_field(object, &FIELDS[i], (const char *)stamp + FIELDS[i].offset, why);
        if (r == 0)
                text = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        if (r == 0 && (!text || asprintf(&line, "%s\n", text) < 0))
                r = -ENOMEM;
        free(text);
        if (r == 0)
                *ret_line = line;
        return r == -ENOMEM ? why_errno(why, r, "a stamp") : r;
}

int stamp_write(const struct place *place, const struct stamp *stamp, struct why *why) {
        _cleanup_(freep) char *line = NULL;
        char path[PATH_MAX];
        int r;

        r = place_file(place, "stamp", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        r = stamp_print(stamp, &line, why);
        return r < 0 ? r : disk_replace(path, line, strlen(line), why);
}

/* ---- reading: one object with each of the fields once; what a later program says besides is passed over ------ */

static int stamp_take_field(const cJSON *item, const struct stamp_field *field, void *into) {
        const char *text = cJSON_GetStringValue(item);

        if (!stamp_is_text(field)) {
                if (!cJSON_IsNumber(item) || !number_is_allowed(field, item->valuedouble))
                        return -EBADMSG;
                stamp_set_number(field, item->valuedouble, into);
                return 0;
        }
        if (!text || strlen(text) >= field->size || !text_is_allowed(field, text))
                return -EBADMSG;
        strcpy(into, text);
        return 0;
}

static int take_fields(const cJSON *object, struct stamp *stamp) {
        uint32_t seen = 0;
        const cJSON *item;

        cJSON_ArrayForEach(item, object) for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
                if (strcmp(item->string, FIELDS[i].name) != 0)
                        continue;
                if (seen & (1u << i) || stamp_take_field(item, &FIELDS[i], (char *)stamp + FIELDS[i].offset) < 0)
                        return -EBADMSG;
                seen |= 1u << i;
        }
        return seen == (1u << ARRAY_SIZE(FIELDS)) - 1 ? 0 : -EBADMSG;
}

static int read_object(const char *text, struct stamp *stamp) {
        cJSON *object;
        int r;

        if (strstr(text, "\\u0000")) /* cJSON would end the text there */
                return -EBADMSG;
        object = cJSON_ParseWithOpts(text, NULL, true);
        r = cJSON_IsObject(object) ? take_fields(object, stamp) : -EBADMSG;
        cJSON_Delete(object);
        return r;
}

/* What it speaks of has to be there. */
static int stamp_look(const struct place *place, const struct stamp *stamp, const char *path, struct why *why) {
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

int stamp_read(const struct place *place, struct stamp *ret_stamp, struct why *why) {
        struct stamp stamp = { 0 };
        char text[STAMP_BYTES_MAX], path[PATH_MAX];
        int r;

        r = place_file(place, "stamp", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        r = disk_read_text(path, text, sizeof(text), NULL);
        if (r == -ENOENT || r == -ENOTDIR)
                return STAMP_ABSENT;
        if (r == 0)
                r = read_object(text, &stamp);
        if (r == -EBADMSG)
                return why_set(why, r, "%s is not the stamp of a staged dataset; stage it again", path);
        if (r < 0)
                return why_errno(why, r, "%s", path);
        r = stamp_look(place, &stamp, path, why);
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
