#include "daemon/store/record/record_progress.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/bytes.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

/* Numbers and texts of the line, each defined once, for writing and for reading. */
struct member {
        const char *name;
        size_t offset;
        size_t n_bytes; /* of a text; 0: a uint64_t */
};

#define NUMBER(type, field)                                                                                            \
        { #field, offsetof(struct type, field), 0 }
#define TEXT(type, field)                                                                                              \
        { #field, offsetof(struct type, field), sizeof(((struct type *)0)->field) }

static const struct member MEMBERS[] = {
        TEXT(progress, dataset),          TEXT(progress, phase),
        TEXT(progress, result),           TEXT(progress, text),
        NUMBER(progress, n_bytes_total),  NUMBER(progress, n_bytes_done),
        NUMBER(progress, n_bytes_origin), NUMBER(progress, n_files_total),
        NUMBER(progress, n_files_done),   NUMBER(progress, bytes_per_second),
        NUMBER(progress, seconds_left),   NUMBER(progress, seconds),
        NUMBER(progress, n_retries),      NUMBER(progress, n_errors),
};

static const struct member NODE_MEMBERS[] = {
        TEXT(node_progress, node),
        TEXT(node_progress, doing),
        NUMBER(node_progress, n_bytes_total),
        NUMBER(node_progress, n_bytes_done),
        NUMBER(node_progress, n_bytes_origin),
        NUMBER(node_progress, n_files_total),
        NUMBER(node_progress, n_files_done),
        NUMBER(node_progress, n_retries),
        NUMBER(node_progress, n_errors),
        TEXT(node_progress, last_error),
};

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* What nobody knows, and what is empty, is left out. */
static bool add_member(cJSON *object, const struct member *member, const void *from) {
        const char *at = (const char *)from + member->offset;
        char digits[24];
        uint64_t number;

        if (member->n_bytes > 0) {
                char text[DLP_TEXT_MAX];

                if (!*at)
                        return true;
                snprintf(text, sizeof(text), "%.*s", (int)member->n_bytes - 1, at);
                text_make_printable(text);
                return cJSON_AddStringToObject(object, member->name, text);
        }
        memcpy(&number, at, sizeof(number));
        if (number == UINT64_MAX)
                return true;
        snprintf(digits, sizeof(digits), "%" PRIu64, number);
        return cJSON_AddRawToObject(object, member->name, digits); /* cJSON's own numbers are doubles */
}

static bool add_members(cJSON *object, const struct member *members, size_t n, const void *from) {
        for (size_t i = 0; i < n; i++)
                if (!add_member(object, &members[i], from))
                        return false;
        return true;
}

static bool record_progress_add_nodes(cJSON *object, const struct progress *progress) {
        cJSON *list = cJSON_AddArrayToObject(object, "nodes");

        for (uint32_t i = 0; list && i < progress->n_listed; i++) {
                cJSON *node = cJSON_CreateObject();

                if (!node || !cJSON_AddItemToArray(list, node) ||
                    !add_members(node, NODE_MEMBERS, ARRAY_SIZE(NODE_MEMBERS), &progress->nodes[i]))
                        return false;
        }
        return list;
}

char *progress_line(const struct progress *progress) {
        cJSON *object = cJSON_CreateObject();
        char *line = NULL;

        if (object && add_members(object, MEMBERS, ARRAY_SIZE(MEMBERS), progress) &&
            cJSON_AddNumberToObject(object, "n_nodes", progress->n_nodes) &&
            record_progress_add_nodes(object, progress))
                line = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        return line;
}

char *progress_message(const char *dataset, const char *level, const char *text) {
        cJSON *object = cJSON_CreateObject();
        struct why printable; /* any text from anywhere: JSON is UTF-8 */
        char *line = NULL;

        why_set(&printable, 0, "%s", text);
        if (object && cJSON_AddStringToObject(object, "dataset", dataset) &&
            cJSON_AddStringToObject(object, "level", level) &&
            cJSON_AddStringToObject(object, "message", printable.text))
                line = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        return line;
}

int progress_write(const struct place *place, const struct progress *progress, struct why *why) {
        _cleanup_(freep) char *line = progress_line(progress);
        char path[PATH_MAX], temporary[PATH_MAX];
        _cleanup_(closep) int fd = -1;
        size_t n;
        int r;

        if (!line)
                return why_errno(why, -ENOMEM, "progress");
        n = strlen(line);
        line[n++] = '\n'; /* in the NUL's place: from here on it is bytes */
        r = place_file(place, "progress", "", path);
        if (r == 0)
                r = place_file(place, "progress", ".new", temporary);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return why_errno(why, -errno, "%s", temporary);
        errno = ENOSPC; /* a short write says no more */
        if (write(fd, line, n) != (ssize_t)n || rename(temporary, path) < 0) {
                r = -errno;
                unlink(temporary);
                return why_errno(why, r, "%s", path);
        }
        return 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static void record_progress_take_member(const cJSON *object, const struct member *member, void *into) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, member->name);
        char *at = (char *)into + member->offset;
        uint64_t number = 0;

        if (member->n_bytes > 0) {
                snprintf(at, member->n_bytes, "%s", cJSON_IsString(item) ? item->valuestring : "");
                text_make_printable(at); /* cut within a character, too */
                return;
        }
        if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p62) /* false for a NaN */
                number = (uint64_t)item->valuedouble;
        memcpy(at, &number, sizeof(number));
}

static int take_nodes(const cJSON *object, struct progress *progress) {
        const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "nodes"), *item;
        int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;

        progress->nodes = calloc(PROGRESS_NODES_MAX, sizeof(*progress->nodes));
        if (!progress->nodes)
                return -ENOMEM;
        if (n == 0)
                return 0;
        cJSON_ArrayForEach(item, list) {
                if (progress->n_listed == PROGRESS_NODES_MAX)
                        break;
                for (size_t i = 0; i < ARRAY_SIZE(NODE_MEMBERS); i++)
                        record_progress_take_member(item, &NODE_MEMBERS[i], &progress->nodes[progress->n_listed]);
                progress->n_listed++;
        }
        return 0;
}

static int record_progress_take(const cJSON *object, struct progress *ret_progress) {
        const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(object, "n_nodes");
        struct progress progress = { 0 };
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(MEMBERS); i++)
                record_progress_take_member(object, &MEMBERS[i], &progress);
        if (!cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(object, "seconds_left")))
                progress.seconds_left = UINT64_MAX;
        if (progress.n_bytes_done > progress.n_bytes_total)
                progress.n_bytes_done = progress.n_bytes_total;
        if (cJSON_IsNumber(nodes) && nodes->valuedouble >= 0 && nodes->valuedouble < UINT32_MAX)
                progress.n_nodes = (uint32_t)nodes->valuedouble;
        r = take_nodes(object, &progress);
        if (r == 0)
                *ret_progress = progress;
        return r;
}

int progress_read(const struct place *place, struct progress *ret_progress, uint64_t *ret_mark, struct why *why) {
        _cleanup_(freep) char *text = malloc(PROGRESS_FILE_MAX + 1);
        char path[PATH_MAX];
        struct stat status;
        cJSON *object;
        int r;

        r = place_file(place, "progress", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        if (!text)
                return why_errno(why, -ENOMEM, "%s", path);
        r = disk_read_text(path, text, PROGRESS_FILE_MAX + 1, &status);
        if (r == -ENOENT || r == -ENOTDIR)
                return PROGRESS_ABSENT;
        if (r == 0) {
                object = cJSON_Parse(text);
                r = cJSON_IsObject(object) ? record_progress_take(object, ret_progress) : -EBADMSG;
                cJSON_Delete(object);
        }
        if (r == -EBADMSG)
                return why_set(why, r, "%s is not the progress file of a staging", path);
        if (r < 0)
                return why_errno(why, r, "%s", path);
        if (ret_mark)
                *ret_mark = (uint64_t)status.st_ino ^ (uint64_t)status.st_mtim.tv_sec << 32 ^
                            (uint64_t)status.st_mtim.tv_nsec;
        return 0;
}

void progress_fini(struct progress *progress) {
        free(progress->nodes);
        *progress = (struct progress){ 0 };
}

/* ---- for people ---------------------------------------------------------------------------------------------- */

const char *progress_sentence(const struct progress *progress, char buffer[DLP_TEXT_MAX]) {
        char done[BYTES_TEXT_MAX], total[BYTES_TEXT_MAX], rate[BYTES_TEXT_MAX], left[DURATION_TEXT_MAX];
        size_t n = (size_t)snprintf(buffer, DLP_TEXT_MAX, "%s", progress->phase);

        if (progress->n_bytes_total > 0)
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, ", %s of %s (%u %%)",
                                      format_bytes(done, progress->n_bytes_done),
                                      format_bytes(total, progress->n_bytes_total),
                                      percent_of(progress->n_bytes_done, progress->n_bytes_total));
        else if (progress->n_files_total > 0)
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, ", %" PRIu64 " files so far",
                                      progress->n_files_total);
        if (progress->bytes_per_second > 0)
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, ", %s/s",
                                      format_bytes(rate, progress->bytes_per_second));
        if (progress->seconds_left != UINT64_MAX && progress->n_bytes_done < progress->n_bytes_total)
                n += (size_t)snprintf(buffer + n, DLP_TEXT_MAX - n, ", %s left",
                                      format_duration(left, progress->seconds_left));
        if (progress->n_nodes > 1)
                snprintf(buffer + n, DLP_TEXT_MAX - n, ", %u nodes", progress->n_nodes);
        return buffer;
}
