#include "client/dlctl/trace/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 65536u
#define NAMES_MAX      65536u

static int add_event(struct recorded *recorded, const struct dlp_trace_event *event, struct why *why) {
        struct dlp_trace_event *grown;
        size_t capacity;

        if (recorded->n_events == RECORDED_MAX)
                return why_set(why, -ENOSPC, "trace: it ends early, after %u events", RECORDED_MAX);
        if (recorded->n_events == recorded->capacity) {
                capacity = recorded->capacity ? 2 * recorded->capacity : CAPACITY_FIRST;
                grown = realloc(recorded->events, capacity * sizeof(*grown));
                if (!grown)
                        return why_errno(why, -ENOMEM, "trace");
                recorded->events = grown;
                recorded->capacity = capacity;
        }
        recorded->events[recorded->n_events++] = *event;
        return 0;
}

static int begin_name(struct recorded *recorded, const struct dlp_trace_event *cell, struct why *why) {
        struct recorded_name *grown, *name;

        if (cell->value > DLP_TRACE_TEXT_MAX || recorded->n_names == NAMES_MAX)
                return why_set(why, -EPROTO, "trace: the daemon sent a name that is too long, or too many");
        grown = realloc(recorded->names, (recorded->n_names + 1) * sizeof(*grown));
        if (!grown)
                return why_errno(why, -ENOMEM, "trace");
        recorded->names = grown;
        name = &grown[recorded->n_names];
        *name = (struct recorded_name){ .what = (enum dlp_trace_named)cell->detail,
                                        .job = cell->job,
                                        .rank = cell->rank,
                                        .thread = cell->thread,
                                        .number = cell->lane,
                                        .pid = (uint32_t)cell->begin_ns,
                                        .text = calloc(1, cell->value + 1) };
        if (!name->text)
                return why_errno(why, -ENOMEM, "trace");
        recorded->n_names++;
        recorded->open = cell->value > 0 ? name : NULL;
        recorded->n_text = 0;
        recorded->n_left = cell->value;
        return 0;
}

static void go_on_with_name(struct recorded *recorded) {
        size_t n = recorded->n_left < sizeof(recorded->cell) ? recorded->n_left : sizeof(recorded->cell);

        memcpy(recorded->open->text + recorded->n_text, &recorded->cell, n);
        recorded->n_text += n;
        recorded->n_left -= n;
        if (recorded->n_left == 0)
                recorded->open = NULL;
}

static int check_times(const struct dlp_trace_event *cell, struct why *why) {
        if (cell->end_ns >= cell->begin_ns && cell->end_ns <= (uint64_t)RECORDED_TIME)
                return 0;
        return why_set(why, -EPROTO,
                       "trace: the daemon sent something that ends before it begins, or too late (kind %u)",
                       cell->kind);
}

static int recorded_take_cell(struct recorded *recorded, struct why *why) {
        const struct dlp_trace_event *cell = &recorded->cell;
        int r;

        if (recorded->open) {
                go_on_with_name(recorded);
                return 0;
        }
        if (cell->kind == DLP_TRACE_NAME)
                return begin_name(recorded, cell, why);
        r = check_times(cell, why);
        if (r < 0)
                return r;
        if (cell->kind == DLP_TRACE_END) {
                recorded->begin_ns = cell->begin_ns;
                recorded->end_ns = cell->end_ns;
                recorded->n_dropped = cell->value;
                recorded->is_whole = true;
                return 0;
        }
        if (cell->kind >= DLP_TRACE_KINDS || recorded->is_whole)
                return why_set(why, -EPROTO, "trace: the daemon sent an event of an unknown kind");
        return add_event(recorded, cell, why);
}

int recorded_take(struct recorded *recorded, const uint8_t *bytes, size_t n_bytes, struct why *why) {
        while (n_bytes > 0) {
                size_t n = sizeof(recorded->cell) - recorded->n_bytes;
                int r;

                if (n > n_bytes)
                        n = n_bytes;
                memcpy((uint8_t *)&recorded->cell + recorded->n_bytes, bytes, n);
                bytes += n;
                n_bytes -= n;
                recorded->n_bytes += n;
                if (recorded->n_bytes < sizeof(recorded->cell))
                        return 0;
                recorded->n_bytes = 0;
                r = recorded_take_cell(recorded, why);
                if (r < 0)
                        return r;
        }
        return 0;
}

static const struct recorded_name *recorded_find(const struct recorded *recorded, enum dlp_trace_named what,
                                                 uint32_t job, uint32_t rank, uint32_t number) {
        for (size_t i = 0; i < recorded->n_names; i++) {
                const struct recorded_name *name = &recorded->names[i];

                if (name->what == what && name->job == job && name->rank == rank && name->number == number)
                        return name;
        }
        return NULL;
}

const struct recorded_name *recorded_job(const struct recorded *recorded, uint32_t job) {
        return recorded_find(recorded, DLP_TRACE_NAMED_JOB, job, 0, 0);
}

const struct recorded_name *recorded_rank(const struct recorded *recorded, uint32_t job, uint32_t rank) {
        return recorded_find(recorded, DLP_TRACE_NAMED_RANK, job, rank, 0);
}

const char *recorded_stage(const struct recorded *recorded, uint32_t number) {
        const struct recorded_name *name = recorded_find(recorded, DLP_TRACE_NAMED_STAGE, 0, 0, number);

        return name ? name->text : "stage";
}

void recorded_fini(struct recorded *recorded) {
        for (size_t i = 0; i < recorded->n_names; i++)
                free(recorded->names[i].text);
        free(recorded->names);
        free(recorded->events);
}
