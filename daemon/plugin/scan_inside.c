#include "daemon/plugin/scan_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

struct scanning {
        uint32_t n_fields;
        uint32_t flags[DLPLUGIN_FIELDS_MAX]; /* of each */
        bool has_samples;
        bool is_first; /* file */

        /* The records of the window. */
        uint8_t *bytes;
        size_t n_bytes, capacity, n_sent;
};

int scanning_prepare(struct scanning **scanning, struct plugin_reply *reply) {
        if (!*scanning)
                *scanning = calloc(1, sizeof(**scanning));
        if (*scanning)
                return 0;
        snprintf(reply->text, sizeof(reply->text), "no memory");
        reply->result = -ENOMEM;
        return -ENOMEM;
}

void scanning_free(struct scanning *scanning) {
        if (!scanning)
                return;
        free(scanning->bytes);
        free(scanning);
}

/* ---- what scan() calls ------------------------------------------------------------------------------------------- */

/* A place for a record of this size, with zeroes in it. NULL: the plug-in has failed. */
static void *scanning_add(struct dlplugin_call *call, struct scanning *scanning, enum scanned_kind kind,
                          uint64_t n_bytes) {
        size_t capacity = scanning->capacity;
        uint8_t *bytes = scanning->bytes;
        struct scanned_head *head;

        if (n_bytes > SCANNED_BYTES_MAX - scanning->n_bytes) {
                call->fail(call,
                           "adds more than %u MiB of samples and values for one window: set n_wanted to ask for less "
                           "at once",
                           SCANNED_BYTES_MAX >> 20);
                return NULL;
        }
        while (capacity - scanning->n_bytes < n_bytes)
                capacity = capacity > 0 ? 2 * capacity : 65536;
        if (capacity > scanning->capacity)
                bytes = realloc(scanning->bytes, capacity);
        if (!bytes) {
                call->fail(call, "has no memory for what it adds");
                return NULL;
        }
        scanning->bytes = bytes;
        scanning->capacity = capacity;
        memset(bytes + scanning->n_bytes, 0, n_bytes);
        head = (void *)(bytes + scanning->n_bytes);
        head->kind = kind;
        head->n_bytes = (uint32_t)n_bytes;
        scanning->n_bytes += n_bytes;
        return head;
}

static int scanning_on_field(struct dlplugin_call *call, const struct dlplugin_field *field) {
        struct scanning *scanning = ((struct calling *)call->daemon)->scanning;
        size_t n_name = field->name ? strnlen(field->name, DLPLUGIN_NAME_MAX) : 0;
        struct scanned_field *record;

        if (!scanning->is_first || scanning->has_samples)
                return call->fail(call, "adds the field \"%.*s\" after a sample: fields come first, in the first file",
                                  (int)n_name, field->name ? field->name : "");
        if (n_name == 0 || n_name == DLPLUGIN_NAME_MAX)
                return call->fail(call, "adds the field \"%.*s\": the name of a field has 1 to %u bytes", (int)n_name,
                                  field->name ? field->name : "", DLPLUGIN_NAME_MAX - 1);
        if (scanning->n_fields == DLPLUGIN_FIELDS_MAX)
                return call->fail(call, "adds more than %u fields", DLPLUGIN_FIELDS_MAX);
        record = scanning_add(call, scanning, SCANNED_FIELD, sizeof(*record));
        if (!record)
                return -1;
        memcpy(record->name, field->name, n_name);
        record->kind = field->kind;
        record->flags = field->flags;
        record->form = field->form;
        scanning->flags[scanning->n_fields++] = field->flags;
        return 0;
}

/* What a cell takes after the cells. */
static uint64_t scanning_value_bytes(const struct scanning *scanning, const struct dlplugin_cell *cells, uint32_t idx) {
        return scanning->flags[idx] & DLPLUGIN_FIELD_IS_VALUE && cells[idx].offset != DLPLUGIN_ABSENT
                       ? cells[idx].n_bytes
                       : 0;
}

static void scanning_fill(const struct scanning *scanning, struct scanned_sample *sample, const char *name,
                          uint32_t n_name, const struct dlplugin_cell *cells, uint32_t n_cells) {
        struct scanned_cell *to = (void *)(sample + 1);
        uint8_t *at = (void *)(to + n_cells);

        sample->n_cells = n_cells;
        sample->n_name_bytes = n_name;
        if (n_name > 0)
                memcpy(at, name, n_name);
        at += scanned_padded(n_name);
        for (uint32_t i = 0; i < n_cells; i++) {
                uint64_t n_value = scanning_value_bytes(scanning, cells, i);

                to[i] = (struct scanned_cell){ cells[i].offset, cells[i].n_bytes };
                if (scanning->flags[i] & DLPLUGIN_FIELD_IS_VALUE && cells[i].offset != DLPLUGIN_ABSENT)
                        to[i].offset = SCANNED_VALUE;
                if (n_value > 0)
                        memcpy(at, cells[i].value, n_value);
                at += scanned_padded(n_value);
        }
}

static int scanning_on_sample(struct dlplugin_call *call, const char *name, const struct dlplugin_cell *cells,
                              uint32_t n_cells) {
        struct scanning *scanning = ((struct calling *)call->daemon)->scanning;
        uint64_t n_name = name ? strlen(name) + 1 : 0,
                 n_bytes = sizeof(struct scanned_sample) + n_cells * sizeof(struct scanned_cell);
        struct scanned_sample *record;

        if (n_cells != scanning->n_fields || (n_cells > 0 && !cells))
                return call->fail(call, "adds a sample of %u cells, and %u fields", n_cells, scanning->n_fields);
        if (n_name > SCANNED_BYTES_MAX)
                return call->fail(call, "gives a sample a name of %llu bytes", (unsigned long long)n_name);
        n_bytes += scanned_padded(n_name);
        for (uint32_t i = 0; i < n_cells; i++) {
                uint64_t n_value = scanning_value_bytes(scanning, cells, i);

                if (n_value > SCANNED_BYTES_MAX || (n_value > 0 && !cells[i].value))
                        return call->fail(call, "gives a value of %llu bytes, of which %s", (unsigned long long)n_value,
                                          cells[i].value ? "up to 64 MiB are possible" : "there is none");
                n_bytes += scanned_padded(n_value);
        }
        record = scanning_add(call, scanning, SCANNED_SAMPLE, n_bytes);
        if (!record)
                return -1;
        scanning_fill(scanning, record, name, (uint32_t)n_name, cells, n_cells);
        scanning->has_samples = true;
        return 0;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

void scanning_more(struct scanning *scanning, const struct plugin_request *request, void *output,
                   struct plugin_reply *reply) {
        size_t n = scanning->n_bytes - scanning->n_sent;

        n = n < request->n_output_bytes ? n : request->n_output_bytes;
        if (n > 0)
                memcpy(output, scanning->bytes + scanning->n_sent, n);
        scanning->n_sent += n;
        reply->scanned.n_bytes = n;
        reply->scanned.n_left = scanning->n_bytes - scanning->n_sent;
}

void scanning_scan(const struct dlplugin_format *format, struct calling *calling, const struct plugin_request *request,
                   const void *input, void *output, struct plugin_reply *reply) {
        struct scanning *scanning = calling->scanning;
        struct dlplugin_window window = {
                .file = (const char *)input + request->window.n_bytes,
                .idx_file = request->window.idx_file,
                .n_files = request->window.n_files,
                .n_file_bytes = request->window.n_file_bytes,
                .bytes = input,
                .offset = request->window.offset,
                .n_bytes = request->window.n_bytes,
                .next_offset = request->window.offset + request->window.n_bytes,
                .add_field = scanning_on_field,
                .add_sample = scanning_on_sample,
        };
        int r;

        scanning->n_bytes = scanning->n_sent = 0;
        scanning->is_first = request->window.idx_file == 0;
        r = format->scan(&calling->call, &window);
        if (calling_answer(calling, r == 0 && calling->text[0] ? -1 : r, reply) < 0)
                return;
        reply->scanned.next_offset = window.next_offset;
        reply->scanned.n_wanted = window.n_wanted;
        scanning_more(scanning, request, output, reply);
}
