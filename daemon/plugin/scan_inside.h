/* plugin/scan_inside.h: a format of a plug-in looks at a window, where the plug-in is loaded: what it adds becomes records,
 * which go to the daemon in pieces. Private to this floor; plugin_scan.h is the daemon's side.
 *
 * A record has no pointers, begins at a multiple of 8 and is as long as its head says. Of a field: a struct
 * scanned_field. Of a sample: a struct scanned_sample, its cells, its name with a NUL, and its values, each with zeroes
 * up to the next multiple of 8. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/plugin/calling.h"

#define SCANNED_BYTES_MAX (64u << 20) /* of the records of one window */

enum scanned_kind {
        SCANNED_FIELD = 1,
        SCANNED_SAMPLE
};

struct scanned_head {
        uint32_t kind, n_bytes; /* of the whole record */
};

struct scanned_field {
        struct scanned_head head;
        char name[DLPLUGIN_NAME_MAX];
        uint32_t kind, flags;
        struct dlplugin_form form;
};

struct scanned_sample {
        struct scanned_head head;
        uint32_t n_cells, n_name_bytes; /* with NUL; 0: it has no name */
};

#define SCANNED_VALUE (UINT64_MAX - 1u) /* offset of a cell: its bytes are a value; UINT64_MAX: it is absent */

struct scanned_cell {
        uint64_t offset, n_bytes;
};

static inline uint64_t scanned_padded(uint64_t n_bytes) {
        return (n_bytes + 7) / 8 * 8;
}

struct scanning;

/* Makes it, if it is not there. -ENOMEM, which the reply then says. */
int scanning_prepare(struct scanning **scanning, struct plugin_reply *reply);

/* Takes NULL. */
void scanning_free(struct scanning *scanning);

/* Calls scan(), and writes as much of the records as there is room for. */
void scanning_scan(const struct dlplugin_format *format, struct calling *calling, const struct plugin_request *request,
                   const void *input, void *output, struct plugin_reply *reply);

/* Writes more of them. */
void scanning_more(struct scanning *scanning, const struct plugin_request *request, void *output,
                   struct plugin_reply *reply);
