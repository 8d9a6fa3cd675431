#include "daemon/plugin/plugin_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/plugin.h"
#include "daemon/plugin/scan_inside.h"
#include "proto/base/cleanup.h"

#define PIECE_BYTES (1u << 20) /* of records, that one answer brings */

struct plugin_scan {
        struct plugin_use use;
        struct plugin_seats *seats;

        /* A copy of the records of the window, made where the plug-in cannot write. */
        uint8_t *records;
        size_t n_records, at;
};

const char *plugin_format_endings(const struct plugin *plugin, uint32_t idx_format) {
        return plugin->table->steps[idx_format].endings;
}

const char *plugin_digest(const struct plugin *plugin) {
        return plugin->digest;
}

static int says_nonsense(const struct plugin_scan *scan, struct why *why) {
        return why_set(why, -EBADMSG, "plug-in format %s.%s says nonsense of what it has found", scan->use.plugin->name,
                       scan->use.plugin->table->steps[scan->use.request.idx_step].name);
}

/* ---- the beginning and the end ----------------------------------------------------------------------------------- */

static void plugin_scan_freep(struct plugin_scan **scan) {
        plugin_scan_free(*scan);
}

int plugin_scan_new(struct plugin *plugin, uint32_t idx_format, const struct plugin_values *values,
                    struct plugin_scan **ret_scan, struct why *why) {
        _cleanup_(plugin_scan_freep) struct plugin_scan *scan = calloc(1, sizeof(*scan));
        struct plugin_reply reply;
        int r = scan ? plugin_seats_new(&scan->seats) : -ENOMEM;

        if (r < 0)
                return why_errno(why, r, "the plug-in %s", plugin->name);
        use_begin(&scan->use, plugin, idx_format, values);
        scan->use.request.n_output_bytes = PIECE_BYTES;
        plugin_seats_be_alone(scan->seats);
        r = plugin_use_reserve(&scan->use, scan->seats, why);
        if (r == 0)
                r = plugin_seats_ask(scan->seats, &scan->use, &scan->use.request, &reply, why);
        if (r == 0)
                *ret_scan = TAKE_PTR(scan);
        return r == -EBADMSG ? -EINVAL : r;
}

void plugin_scan_free(struct plugin_scan *scan) {
        if (!scan)
                return;
        plugin_seats_free(scan->seats);
        free(scan->records);
        free(scan);
}

/* ---- a window ---------------------------------------------------------------------------------------------------- */

uint8_t *plugin_scan_room(struct plugin_scan *scan, const char *file, uint64_t n_bytes, struct why *why) {
        size_t n_name = strlen(file) + 1;
        uint8_t *room;

        scan->use.request.n_input_bytes = n_bytes + n_name;
        if (plugin_use_reserve(&scan->use, scan->seats, why) < 0)
                return NULL;
        room = plugin_use_input(&scan->use, scan->seats);
        memcpy(room + n_bytes, file, n_name);
        return room;
}

/* Takes a piece that lies in the output; the process may write there meanwhile, so it is looked at later. */
static int plugin_scan_take_piece(struct plugin_scan *scan, const struct plugin_reply *reply, uint64_t n_before_left,
                                  struct why *why) {
        uint64_t n = reply->scanned.n_bytes, n_left = reply->scanned.n_left;

        if (n > PIECE_BYTES || n_left > SCANNED_BYTES_MAX || n > n_before_left || n_left > n_before_left - n ||
            (n == 0 && n_left > 0))
                return says_nonsense(scan, why);
        if (n == 0)
                return 0;
        memcpy(scan->records + scan->n_records, plugin_seats_output(scan->seats, &scan->use), n);
        scan->n_records += n;
        return 0;
}

static int plugin_scan_take_all(struct plugin_scan *scan, struct plugin_reply *reply, struct why *why) {
        struct plugin_request request = scan->use.request;
        uint64_t n_all = SCANNED_BYTES_MAX;
        int r;

        if (reply->scanned.n_left <= SCANNED_BYTES_MAX && reply->scanned.n_bytes <= PIECE_BYTES)
                n_all = reply->scanned.n_bytes + reply->scanned.n_left;
        free(scan->records);
        scan->n_records = scan->at = 0;
        scan->records = malloc(n_all > 0 ? n_all : 1);
        if (!scan->records)
                return why_errno(why, -ENOMEM, "what the plug-in %s has found", scan->use.plugin->name);
        request.question = PLUGIN_SCAN_MORE;
        for (r = plugin_scan_take_piece(scan, reply, n_all, why); r == 0 && reply->scanned.n_left > 0;) {
                uint64_t n_left = reply->scanned.n_left;

                r = plugin_seats_ask(scan->seats, &scan->use, &request, reply, why);
                if (r == 0)
                        r = plugin_scan_take_piece(scan, reply, n_left, why);
        }
        return r;
}

int plugin_scan_ask(struct plugin_scan *scan, const struct plugin_window *window, struct plugin_wish *ret_wish,
                    struct why *why) {
        struct plugin_request request = scan->use.request;
        struct plugin_reply reply;
        struct plugin_wish wish;
        int r;

        request.question = PLUGIN_SCAN;
        request.window.n_file_bytes = window->n_file_bytes;
        request.window.offset = window->offset;
        request.window.n_bytes = window->n_bytes;
        request.window.idx_file = window->idx_file;
        request.window.n_files = window->n_files;
        r = plugin_seats_ask(scan->seats, &scan->use, &request, &reply, why);
        if (r < 0)
                return r;
        wish = (struct plugin_wish){ reply.scanned.next_offset, reply.scanned.n_wanted };
        r = plugin_scan_take_all(scan, &reply, why);
        if (r == 0)
                *ret_wish = wish;
        return r;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int plugin_scan_take_field(const struct plugin_scan *scan, const struct scanned_field *record,
                                  struct plugin_added *ret_added, struct why *why) {
        if (record->head.n_bytes != sizeof(*record) || record->name[0] == '\0' ||
            !memchr(record->name, '\0', sizeof(record->name)))
                return says_nonsense(scan, why);
        memcpy(ret_added->field, record->name, sizeof(record->name));
        ret_added->kind = record->kind;
        ret_added->flags = record->flags;
        ret_added->form = record->form;
        return 1;
}

static int plugin_scan_take_sample(const struct plugin_scan *scan, const struct scanned_sample *record,
                                   struct plugin_added *ret_added, struct why *why) {
        const struct scanned_cell *cells = (const void *)(record + 1);
        const uint8_t *end = (const uint8_t *)record + record->head.n_bytes, *at;
        uint64_t n_name;

        if (record->head.n_bytes < sizeof(*record) || record->n_cells > DLPLUGIN_FIELDS_MAX ||
            (size_t)(end - (const uint8_t *)cells) < record->n_cells * sizeof(*cells))
                return says_nonsense(scan, why);
        at = (const void *)(cells + record->n_cells);
        n_name = scanned_padded(record->n_name_bytes);
        if (n_name > (size_t)(end - at) || (n_name > 0 && at[record->n_name_bytes - 1] != '\0'))
                return says_nonsense(scan, why);
        ret_added->name = n_name > 0 ? (const char *)at : NULL;
        ret_added->n_cells = record->n_cells;
        at += n_name;
        for (uint32_t i = 0; i < record->n_cells; i++) {
                struct plugin_cell cell = { .offset = cells[i].offset,
                                            .n_bytes = cells[i].n_bytes,
                                            .is_absent = cells[i].offset == DLPLUGIN_ABSENT };

                if (cells[i].offset == SCANNED_VALUE) {
                        if (cell.n_bytes > (size_t)(end - at) || scanned_padded(cell.n_bytes) > (size_t)(end - at))
                                return says_nonsense(scan, why);
                        cell.value = at;
                        at += scanned_padded(cell.n_bytes);
                }
                ret_added->cells[i] = cell;
        }
        return at == end ? 1 : says_nonsense(scan, why);
}

int plugin_scan_next(struct plugin_scan *scan, struct plugin_added *ret_added, struct why *why) {
        const struct scanned_head *head = (const void *)(scan->records + scan->at);
        size_t n_left = scan->n_records - scan->at;

        if (n_left == 0)
                return 0;
        if (n_left < sizeof(*head) || head->n_bytes > n_left || head->n_bytes < sizeof(*head) || head->n_bytes % 8 != 0)
                return says_nonsense(scan, why);
        scan->at += head->n_bytes;
        ret_added->field[0] = '\0';
        switch (head->kind) {
        case SCANNED_FIELD:
                return plugin_scan_take_field(scan, (const void *)head, ret_added, why);
        case SCANNED_SAMPLE:
                return plugin_scan_take_sample(scan, (const void *)head, ret_added, why);
        default:
                return says_nonsense(scan, why);
        }
}
