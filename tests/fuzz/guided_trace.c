/* Any bytes as what a daemon sends to dlctl trace: cells of events, names and the end, in pieces of any length; and the
 * file that is made of them. It must be JSON, and the events of a row must lie side by side or within each other, else
 * viewers leave some out.
 *
 * The first byte: the length of the pieces. The second: how far the clocks are apart. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/trace/chrome.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/input.h"

#define EVENTS_MAX 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct drawn {
        uint64_t pid, tid, begin_ns, end_ns;
};

/* The number after `name` in a line, in thousandths. No text of a trace has a quotation mark in it. */
static uint64_t number(const char *line, const char *name) {
        const char *at = strstr(line, name);
        uint64_t whole = 0, rest = 0;

        if (!at || sscanf(at + strlen(name), "%" SCNu64 ".%3" SCNu64, &whole, &rest) < 1)
                abort();
        return whole * 1000 + rest;
}

static void check_side_by_side(const struct drawn *a, const struct drawn *b) {
        bool apart = a->end_ns <= b->begin_ns || b->end_ns <= a->begin_ns;
        bool within = (a->begin_ns <= b->begin_ns && b->end_ns <= a->end_ns) ||
                      (b->begin_ns <= a->begin_ns && a->end_ns <= b->end_ns);

        if (a->pid == b->pid && a->tid == b->tid && !apart && !within)
                abort();
}

static void check_rows(char *text) {
        static struct drawn drawn[EVENTS_MAX];
        size_t n = 0;

        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                if (strncmp(line, "{\"ph\":\"X\"", 9) != 0 || n == EVENTS_MAX)
                        continue;
                drawn[n] = (struct drawn){ .pid = number(line, "\"pid\":"),
                                           .tid = number(line, "\"tid\":"),
                                           .begin_ns = number(line, "\"ts\":") };
                drawn[n].end_ns = drawn[n].begin_ns + number(line, "\"dur\":");
                for (size_t i = 0; i < n; i++)
                        check_side_by_side(&drawn[i], &drawn[n]);
                n++;
        }
}

/* Those that are drawn: queued samples are only counted. */
static void check_file(const char *path, const struct recorded *recorded) {
        size_t n, n_drawn = 0, n_expected = 0;
        char *text = tree_bytes(path, &n);
        cJSON *json = cJSON_ParseWithLength(text, n), *event;

        if (!json)
                abort();
        cJSON_ArrayForEach(event, cJSON_GetObjectItem(json, "traceEvents"))
                n_drawn += strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, "X") == 0;
        for (size_t i = 0; i < recorded->n_events; i++)
                n_expected += recorded->events[i].kind != DLP_TRACE_QUEUED;
        if (n_drawn != n_expected)
                abort();
        cJSON_Delete(json);
        check_rows(text);
        free(text);
}

static void write_file(const struct recorded *recorded) {
        char path[PATH_MAX];
        struct traced_file *file;
        struct why why;

        if (traced_file_begin(folder_path("t.json", path), true, &file, &why) < 0)
                abort();
        if (chrome_write(file, recorded, &why) < 0 || traced_file_end(file, &why) < 0)
                abort();
        check_file(path, recorded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const int64_t AHEAD_NS[] = { 0, 1790000000000000000, -5000000000, RECORDED_AHEAD, -RECORDED_AHEAD };
        struct input input = { data, n_bytes };
        size_t n_piece = input_byte(&input), n;
        struct recorded recorded = { .pid = 1000 };
        struct why why = { 0 };
        int r = 0;

        recorded.ahead_ns = AHEAD_NS[input_below(&input, sizeof(AHEAD_NS) / sizeof(AHEAD_NS[0]))];
        while (r == 0 && input.n > 0) {
                const uint8_t *bytes = input_bytes(&input, n_piece ? n_piece : SIZE_MAX, &n);

                r = recorded_take(&recorded, bytes, n, &why);
        }
        if (r < 0 && (r != -EPROTO || !why.text[0]))
                abort();
        write_file(&recorded); /* also what there is of a daemon that has ended */
        recorded_fini(&recorded);
        return 0;
}
