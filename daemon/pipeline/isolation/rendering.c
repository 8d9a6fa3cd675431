#include "daemon/pipeline/isolation/rendering.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/isolation/check_answer.h"
#include "proto/base/clock.h"

#define ENDS_MAX        3u         /* cells that end over a field before it is damage */
#define ENDS_TOLD_MAX   100u       /* in the log; further ones are only counted */
#define TRAY            UINT64_MAX /* stands for the tray's number until a packet is written: a wider one has another */
#define TRAY_ALIGN      64u
#define RENDERING_ALONE 9 /* a cell ended over several fields: order them one by one */

bool rendering_is_for(const struct task *task, uint32_t idx_field) {
        return task->batch->feed->isolated && codec_interprets(program_codec(task->program, idx_field));
}

/* ---- the tray ---------------------------------------------------------------------------------------------------- */

static int take_tray(struct rendering *rendering, uint64_t n_bytes, struct cell_place *ret_place, struct why *why) {
        uint64_t offset = (rendering->n_tray + TRAY_ALIGN - 1) / TRAY_ALIGN * TRAY_ALIGN;
        int r = user_cell_widen(&rendering->user_cells, rendering->user_cell, offset + n_bytes, why);

        if (r < 0)
                return r;
        rendering->n_tray = offset + n_bytes;
        *ret_place = (struct cell_place){ TRAY, offset, n_bytes };
        return 0;
}

/* Views of a field have the same bytes, one after the other. */
static int lay_bytes(struct rendering *rendering, const uint8_t *bytes, uint64_t n_bytes, struct laid *last,
                     struct cell_place *ret_place, struct why *why) {
        const struct task *task = rendering->task;
        const struct large_buffer *large = task->large;
        int r;

        if (large && large->shared.bytes && task->request.buffer - task->excerpt.n_head_bytes == large->bytes) {
                *ret_place = (struct cell_place){ large->shared.memory.number, (uint64_t)(bytes - large->bytes),
                                                  n_bytes };
                return 0;
        }
        if (bytes == last->bytes && n_bytes == last->place.n_bytes) {
                *ret_place = last->place;
                return 0;
        }
        r = take_tray(rendering, n_bytes, ret_place, why);
        if (r < 0)
                return r;
        if (n_bytes > 0)
                memcpy(rendering->user_cell->tray.bytes + ret_place->offset, bytes, n_bytes);
        *last = (struct laid){ bytes, *ret_place };
        return 0;
}

static int lay_value(struct rendering *rendering, const struct codec *codec, const struct codec_input *input,
                     struct cell_place *ret_place, struct why *why) {
        uint32_t field = codec_field(codec);
        int r;

        *ret_place = (struct cell_place){ 0 };
        if (!source_has(input->source, input->sample, field))
                return 0;
        r = take_tray(rendering, source_length(input->source, input->sample, field), ret_place, why);
        if (r == 0 && ret_place->n_bytes > 0)
                source_value(input->source, input->sample, field, rendering->user_cell->tray.bytes + ret_place->offset);
        return r;
}

/* The boxes on which the field's plan depends go with it, whoever else in the order has them. */
static int lay_plan_boxes(struct rendering *rendering, const struct codec_input *input, struct render_field *field,
                          struct why *why) {
        const struct codec_plan_boxes *boxes = &input->plan_boxes;

        if (!boxes->codec)
                return 0;
        field->has_plan_boxes = true;
        field->plan_boxes_are_elsewhere = boxes->is_elsewhere;
        if (boxes->is_elsewhere)
                return 0;
        return codec_is_stored(boxes->codec) ? lay_bytes(rendering, boxes->bytes, boxes->n_bytes,
                                                         &rendering->last_boxes, &field->plan_boxes, why)
                                             : lay_value(rendering, boxes->codec, input, &field->plan_boxes, why);
}

/* ---- an order ---------------------------------------------------------------------------------------------------- */

/* Only where boxes leave: a kilobyte there and back. */
static bool needs_kept(const struct codec *codec) {
        return codec_boxes(codec) != CODEC_NONE || (codec_is_boxes(codec) && codec_drops_boxes(codec));
}

static int lay_kept(struct rendering *rendering, const struct codec *codec, struct why *why) {
        struct cell_place *place = &rendering->order->kept;
        int r;

        if (place->memory > 0 || !needs_kept(codec))
                return 0;
        r = take_tray(rendering, sizeof(rendering->task->kept), place, why);
        if (r == 0)
                memcpy(rendering->user_cell->tray.bytes + place->offset, &rendering->task->kept,
                       sizeof(rendering->task->kept));
        return r;
}

static void begin_packet(struct rendering *rendering) {
        rendering->n_orders = 0;
        rendering->n_tray = 0;
}

/* The next order of the packet. */
static void begin_order(struct rendering *rendering, struct task *task, uint64_t allowed_bytes) {
        const struct isolated_feed *isolated = task->batch->feed->isolated;
        const struct source *source = dataset_source(task->batch->feed->dataset->dataset);
        uint32_t part = source->n_parts > 0 ? source_part_of(source, task->sample.candidate) : 0;
        struct render_order *order = &rendering->orders[rendering->n_orders];

        rendering->task = rendering->tasks[rendering->n_orders] = task;
        rendering->order = order;
        rendering->n_orders++;
        order->program = isolated->programs[part].number;
        order->sample = task->sample.candidate;
        order->epoch = (uint32_t)task->batch->epoch;
        order->n_fields = 0;
        order->allowed_bytes = allowed_bytes;
        order->kept = (struct cell_place){ 0 };
        rendering->last = rendering->last_boxes = (struct laid){ 0 };
}

static int rendering_add_field(struct rendering *rendering, uint32_t idx_field, struct render_field **ret_field,
                               struct why *why) {
        struct render_field *field = &rendering->order->fields[rendering->order->n_fields];
        const struct codec *codec = program_codec(rendering->task->program, idx_field);
        struct codec_input input = task_input(rendering->task, idx_field);
        bool is_plugged = codec_is_plugged(codec);
        int r;

        *field = (struct render_field){ .idx = idx_field,
                                        .what = RENDER_OPEN,
                                        .seed = input.seed,
                                        .part = input.part,
                                        .row_stride = is_plugged ? 0 : input.row_stride,
                                        .plane_stride = is_plugged ? 0 : input.plane_stride,
                                        .lead_width = input.lead_width,
                                        .lead_height = input.lead_height };
        r = codec_is_stored(codec) ? lay_bytes(rendering, input.bytes, input.n_bytes, &rendering->last, &field->in, why)
                                   : lay_value(rendering, codec, &input, &field->in, why);
        if (r == 0)
                r = lay_plan_boxes(rendering, &input, field, why);
        if (r == 0)
                r = lay_kept(rendering, codec, why);
        if (r < 0)
                return r;
        rendering->order->n_fields++;
        *ret_field = field;
        return 0;
}

static struct cell_place place_in_slots(const struct rendering *rendering, const uint8_t *out, uint64_t n_bytes) {
        const struct isolated_feed *isolated = rendering->task->batch->feed->isolated;

        return (struct cell_place){ isolated->slots.number, (uint64_t)(out - isolated->slots_base), n_bytes };
}

/* Does every sample have the same place for the field, whatever is in it? */
static bool rendering_has_place(const struct field_layout *field) {
        return field->form.input.n_bytes > 0 || field->form.result.n_bytes > 0 ||
               (field->form.how == COLLATE_STACK && !field->varies);
}

static struct cell_place known_place(const struct rendering *rendering, uint32_t idx_field) {
        const struct task *task = rendering->task;
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];

        if (field->form.input.n_bytes > 0)
                return place_in_slots(rendering,
                                      collating->slot + field->input_offset + field->input_bytes * task->idx_sample,
                                      field->form.input.n_bytes);
        if (field->form.result.n_bytes > 0) /* what a function changes in place, before the steps after it */
                return place_in_slots(rendering,
                                      collating->slot + field->result_offset + field->result_bytes * task->idx_sample,
                                      field->form.result.n_bytes);
        return place_in_slots(rendering, collating_row(collating, idx_field, task->idx_sample), field->sample_bytes);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Of all of them. */
static bool is_dropped(void *userdata) {
        const struct rendering *rendering = userdata;

        for (uint32_t k = 0; k < rendering->n_orders; k++)
                if (batch_is_wanted(rendering->tasks[k]->batch))
                        return false;
        return true;
}

/* The memories of an order, of which the cell has most already. */
static void lend_all(const struct rendering *rendering, struct cell *cell) {
        cell_lend(cell, &rendering->user_cell->tray.memory);
        for (uint32_t k = 0; k < rendering->n_orders; k++) {
                const struct task *task = rendering->tasks[k];
                const struct isolated_feed *isolated = task->batch->feed->isolated;

                cell_lend(cell, &isolated->slots);
                for (uint32_t i = 0; i < isolated->n_programs; i++)
                        if (isolated->programs[i].number == rendering->orders[k].program)
                                cell_lend(cell, &isolated->programs[i]);
                if (task->large && task->large->shared.bytes)
                        cell_lend(cell, &task->large->shared.memory);
        }
}

static size_t packet_bytes(const struct rendering *rendering) {
        size_t n = sizeof(struct render_orders);

        for (uint32_t k = 0; k < rendering->n_orders; k++)
                n += RENDER_ORDER_BYTES(rendering->orders[k].n_fields);
        return n;
}

static void name_tray(const struct rendering *rendering, struct cell_place *place) {
        if (place->memory == TRAY)
                place->memory = rendering->user_cell->tray.memory.number;
}

static void write_packet(struct rendering *rendering) {
        struct render_orders head = { .n_orders = rendering->n_orders };
        size_t at = sizeof(head);

        memcpy(rendering->sent, &head, sizeof(head));
        for (uint32_t k = 0; k < rendering->n_orders; k++) {
                struct render_order *order = &rendering->orders[k];
                size_t n = RENDER_ORDER_BYTES(order->n_fields);

                name_tray(rendering, &order->kept);
                for (uint32_t i = 0; i < order->n_fields; i++) {
                        name_tray(rendering, &order->fields[i].in);
                        name_tray(rendering, &order->fields[i].plan_boxes);
                        name_tray(rendering, &order->fields[i].out);
                }
                memcpy(rendering->sent + at, order, n);
                at += n;
        }
}

/* The times that the cell says it took, as far as they fit into the time that the worker waited. */
static void take_stages(const struct render_answer *answer, uint64_t waited_ns, struct ordered *ordered) {
        uint64_t left_ns = waited_ns;

        ordered->n_stages = 0;
        for (uint32_t i = 0; i < answer->n_stages; i++) {
                struct render_stage stage = answer->stages[i];

                if (stage.id >= N_STAGES || stage.id == STAGE_OTHER)
                        continue;
                stage.ns = stage.ns < left_ns ? stage.ns : left_ns;
                left_ns -= stage.ns;
                ordered->stages[ordered->n_stages++] = stage;
        }
        ordered->stages[ordered->n_stages++] = (struct render_stage){ STAGE_OTHER, 0, left_ns };
}

#define CUT_TOKENS_MAX (1ull << 44) /* of a sample: no cell makes the sums of a job nonsense */

static void take_counts(struct rendering *rendering, const struct codec_counts *counts) {
        for (uint32_t i = 0; i < N_DECODED_BY; i++)
                if (counts->n_decoded[i] <= DLP_TENSORS_MAX)
                        rendering->counts.n_decoded[i] += counts->n_decoded[i];
        if (counts->n_shared <= DLP_TENSORS_MAX)
                rendering->counts.n_shared += counts->n_shared;
        if (counts->n_handed_over <= DLP_TENSORS_MAX)
                rendering->counts.n_handed_over += counts->n_handed_over;
        if (counts->n_texts_cut <= DLP_TENSORS_MAX && counts->n_tokens_cut <= CUT_TOKENS_MAX) {
                rendering->counts.n_texts_cut += counts->n_texts_cut;
                rendering->counts.n_tokens_cut += counts->n_tokens_cut;
        }
}

static bool take_kept(struct rendering *rendering, uint32_t k) {
        const struct cell_place *place = &rendering->orders[k].kept;
        struct codec_kept kept;

        if (place->memory == 0)
                return true;
        memcpy(&kept, rendering->user_cell->tray.bytes + place->offset,
               sizeof(kept)); /* once: the cell may still write */
        if (!check_kept(&kept))
                return false;
        rendering->tasks[k]->kept = kept;
        return true;
}

static void rendering_tell_end(struct rendering *rendering, pid_t pid, const struct why *how) {
        struct isolation *isolation = rendering->user_cells.isolation;
        const struct task *task = rendering->task;
        uint64_t n_before = atomic_fetch_add_explicit(&isolation->n_told, 1, memory_order_relaxed);

        if (n_before < ENDS_TOLD_MAX)
                log_warning("isolation",
                            "the decoder process %ld of user %u %s over sample %llu of %s; another one takes its place",
                            (long)pid, (unsigned)rendering->user_cell->uid, how->text,
                            (unsigned long long)task->sample.candidate, task->batch->feed->dataset->name);
        else if (n_before == ENDS_TOLD_MAX)
                log_warning("isolation", "more than %u decoder processes have ended; further ones are counted only",
                            ENDS_TOLD_MAX);
}

/* A cell has ended over the order: 0 to try again, RENDERING_ALONE, RENDERING_DROPPED, or -EBADMSG. */
static int after_end(struct rendering *rendering, pid_t pid, int error, const struct why *how, struct why *why) {
        if (error == -ECANCELED)
                return RENDERING_DROPPED;
        rendering->n_ended++;
        rendering_tell_end(rendering, pid, how);
        if (rendering->n_orders > 1 || rendering->orders[0].n_fields > 1)
                return RENDERING_ALONE;
        if (++rendering->n_ends < ENDS_MAX)
                return 0;
        return why_set(why, -EBADMSG, "its decoder %s, and so did %u others before it", how->text, ENDS_MAX - 1);
}

/* Sends the packet and checks the answers: 0, or the errors of cell_ask(). */
static int ask_cell(struct rendering *rendering, struct cell *cell, struct why *how) {
        const struct cell_patience patience = { .limit_ns = rendering->user_cells.isolation->timeout_ns *
                                                            rendering->n_orders,
                                                .is_over = is_dropped,
                                                .userdata = rendering };
        bool is_fine;
        ssize_t n;

        lend_all(rendering, cell);
        n = cell_ask(cell, rendering->sent, packet_bytes(rendering), rendering->packet, &patience, how);
        if (n < 0)
                return (int)n;
        is_fine = check_answers(rendering, (size_t)n);
        for (uint32_t k = 0; k < rendering->n_orders && is_fine; k++)
                is_fine = take_kept(rendering, k);
        return is_fine ? 0 : cell_reject(cell, how);
}

/* Returns 0 when it is answered, whatever the answers are. */
static int rendering_ask(struct rendering *rendering, struct why *why) {
        struct cell *cell = &rendering->user_cell->cell;

        write_packet(rendering);
        for (;;) {
                struct why how;
                pid_t pid;
                int r;

                if (isolation_start(rendering->user_cells.isolation, &rendering->user_cells.setup, cell, why) < 0)
                        return -ENOMEM; /* the machine is short of processes or memory: as for every shortage */
                pid = cell_pid(cell);
                r = ask_cell(rendering, cell, &how);
                if (r == 0)
                        break;
                r = after_end(rendering, pid, r, &how, why);
                if (r != 0)
                        return r;
        }
        for (uint32_t k = 0; k < rendering->n_orders; k++)
                take_counts(rendering, &rendering->answers[k]->counts);
        return 0;
}

/* The same for a field of the sample that the worker is with, whose time it is. */
static int ask_now(struct rendering *rendering, struct why *why) {
        uint64_t begin_ns = clock_now_ns();
        struct ordered took;
        int r = rendering_ask(rendering, why);

        if (r != 0)
                return r;
        take_stages(rendering->answers[0], clock_now_ns() - begin_ns, &took);
        stage_clock_charge(rendering->clock, clock_now_ns());
        for (uint32_t i = 0; i < took.n_stages; i++)
                if (took.stages[i].id != STAGE_OTHER)
                        stage_clock_move(rendering->clock, (enum stage_id)took.stages[i].id, took.stages[i].ns);
        return 0;
}

/* The error that the answer tells, if it tells one. */
static int told_error(const struct render_answer *answer, struct why *why) {
        int r = check_error(answer->result);

        return r < 0 ? why_set(why, r, "%.*s", (int)sizeof(answer->why.text) - 1, answer->why.text) : 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Fields of this read that are for cells. */
static bool is_in_read(const struct task *task, uint32_t idx_field) {
        const struct field_bytes *field = &task->fields[idx_field];

        return field->idx_read == task->idx_read && !field->is_absent && rendering_is_for(task, idx_field);
}

/* The next order of the packet has all of them. An order without fields is taken back. */
static int order_ahead(struct rendering *rendering, struct task *task, struct why *why) {
        const struct layout *layout = &task->batch->feed->layout;
        struct render_field *field;
        int r = 0;

        begin_order(rendering, task, rendering->user_cells.setup.own_bytes);
        for (uint32_t k = task->idx_field; k < layout->n_fields && r == 0; k++) {
                uint32_t i = program_serving(task->program, k);

                if (!is_in_read(task, i))
                        continue;
                r = rendering_add_field(rendering, i, &field, why);
                if (r == 0 && rendering_has_place(&layout->fields[i]) &&
                    !codec_is_plugged(program_codec(task->program, i))) {
                        field->what = RENDER_WHOLE;
                        field->out = known_place(rendering, i);
                }
        }
        if (rendering->order->n_fields == 0)
                rendering->n_orders--;
        return r;
}

static void take_ahead(struct ordered *ordered, const struct render_order *order, const struct render_answer *answer) {
        for (uint32_t k = 0; k < answer->n_opened; k++) {
                struct ordered_field *ahead = &ordered->ahead[order->fields[k].idx];

                ahead->opened = answer->opened[k].opened;
                ahead->state = answer->opened[k].is_rendered ? ORDERED_RENDERED : ORDERED_OPENED;
        }
        ordered->error = told_error(answer, &ordered->why);
        if (ordered->error < 0)
                ordered->ahead[order->fields[answer->n_opened].idx].state = ORDERED_FAILED;
}

static struct ordered *begin_ordered(struct ordered *ordered, struct task *task) {
        ordered->task = task;
        ordered->took_ns = 0;
        ordered->n_stages = 0;
        memset(ordered->ahead, 0, sizeof(ordered->ahead[0]) * task->batch->feed->layout.n_fields);
        return ordered;
}

bool rendering_may_gather(const struct task *task) {
        return (task->state == SAMPLE_OPEN || task->state == SAMPLE_RENDER) && task->request.result >= 0 &&
               task->batch->feed->isolated && batch_is_wanted(task->batch);
}

void rendering_gather(struct rendering *rendering, struct task *const *tasks, uint32_t n) {
        uint64_t begin_ns = clock_now_ns(), each_ns;
        struct why why;
        int r = user_cells_get(&rendering->user_cells, tasks[0]->batch->feed->job->uid, &rendering->user_cell, &why);

        begin_packet(rendering);
        for (uint32_t k = 0; k < n && r == 0; k++)
                if (rendering_may_gather(tasks[k]))
                        r = order_ahead(rendering, tasks[k], &why);
        if (r == 0 && rendering->n_orders > 1 && packet_bytes(rendering) <= CELL_MESSAGE_MAX)
                r = rendering_ask(rendering, &why);
        else
                r = RENDERING_ALONE;
        each_ns = (clock_now_ns() - begin_ns) / (rendering->n_orders > 0 ? rendering->n_orders : 1);
        for (uint32_t k = 0; k < rendering->n_orders && r == 0; k++) {
                struct ordered *ordered = begin_ordered(&rendering->ordered[k], rendering->tasks[k]);

                take_ahead(ordered, &rendering->orders[k], rendering->answers[k]);
                take_stages(rendering->answers[k], each_ns, ordered);
                ordered->took_ns = each_ns;
        }
}

void rendering_forget(struct rendering *rendering) {
        for (uint32_t k = 0; k < RENDER_SAMPLES_MAX; k++)
                rendering->ordered[k].task = NULL;
}

/* What was ordered together with others. */
static struct ordered *find_ordered(struct rendering *rendering, const struct task *task) {
        for (uint32_t k = 0; k < RENDER_SAMPLES_MAX; k++)
                if (rendering->ordered[k].task == task)
                        return &rendering->ordered[k];
        return NULL;
}

/* It was ordered before: its time is the sample's. */
static void take_up(struct rendering *rendering, struct ordered *ordered) {
        ordered->task = NULL; /* once: another read of the task brings other fields */
        rendering->now = ordered;
        for (uint32_t i = 0; i < ordered->n_stages; i++)
                stage_clock_add(rendering->clock, (enum stage_id)ordered->stages[i].id, ordered->stages[i].ns,
                                ordered->stages[i].n);
}

/* An error of a cell that was asked for one field only is that field's. */
static int rendering_note_error(struct rendering *rendering, int error, const struct why *why) {
        rendering->now->ahead[rendering->orders[0].fields[0].idx].state = ORDERED_FAILED;
        rendering->now->error = error;
        rendering->now->why = *why;
        return 0;
}

int rendering_begin(struct rendering *rendering, struct task *task, struct why *why) {
        struct ordered *ordered;
        int r;

        if (!task->batch->feed->isolated)
                return 0;
        rendering->n_ends = 0;
        rendering->now_task = task;
        ordered = find_ordered(rendering, task);
        if (ordered) {
                take_up(rendering, ordered);
                return 0;
        }
        rendering->now = begin_ordered(&rendering->ordered[0], task);
        rendering->now->task = NULL;
        r = user_cells_get(&rendering->user_cells, task->batch->feed->job->uid, &rendering->user_cell, why);
        begin_packet(rendering);
        if (r == 0)
                r = order_ahead(rendering, task, why);
        if (r < 0)
                return -ENOMEM;
        if (rendering->n_orders == 0)
                return 0;
        r = ask_now(rendering, why);
        if (r == RENDERING_ALONE)
                return 0;
        if (r == -EBADMSG)
                return rendering_note_error(rendering, r, why);
        if (r == 0)
                take_ahead(rendering->now, &rendering->orders[0], rendering->answers[0]);
        return r;
}

uint64_t rendering_took_ns(const struct rendering *rendering) {
        return rendering->now ? rendering->now->took_ns : 0;
}

/* One field, in an order of its own. */
static int order_alone(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes,
                       struct render_field **ret_field, struct why *why) {
        struct task *task = rendering->now_task;

        begin_packet(rendering);
        begin_order(rendering, task, allowed_bytes);
        return rendering_add_field(rendering, idx_field, ret_field, why) < 0 ? -ENOMEM : 0;
}

int rendering_open(struct rendering *rendering, uint32_t idx_field, struct codec_opened *ret_opened, struct why *why) {
        struct ordered_field *ahead = &rendering->now->ahead[idx_field];
        struct render_field *field;
        int r = 0;

        if (ahead->state == ORDERED_FAILED) {
                *why = rendering->now->why;
                return rendering->now->error;
        }
        if (ahead->state == ORDERED_NONE) {
                r = order_alone(rendering, idx_field, 0, &field, why);
                if (r == 0)
                        r = ask_now(rendering, why);
                if (r == 0)
                        r = told_error(rendering->answers[0], why);
                if (r != 0)
                        return r;
                ahead->opened = rendering->answers[0]->opened[0].opened;
                ahead->state = ORDERED_OPENED;
        }
        *ret_opened = ahead->opened;
        if (codec_is_plugged(program_codec(rendering->now_task->program, idx_field)))
                codec_open_plugins(program_codec(rendering->now_task->program, idx_field), ret_opened);
        return r;
}

/* The field of an order of its own is to be rendered. */
static int render_now(struct rendering *rendering, struct why *why) {
        int r = ask_now(rendering, why);

        if (r == 0)
                r = told_error(rendering->answers[0], why);
        if (r == 0 && !rendering->answers[0]->opened[0].is_rendered)
                r = why_set(why, -EBADMSG, "its decoder did not render it");
        return r;
}

int rendering_write(struct rendering *rendering, uint32_t idx_field, uint8_t *out, uint64_t room_bytes,
                    uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint64_t allowed_bytes, struct why *why) {
        struct ordered_field *ahead = &rendering->now->ahead[idx_field];
        struct render_field *field;
        int r;

        if (ahead->state == ORDERED_RENDERED)
                return 0;
        r = order_alone(rendering, idx_field, allowed_bytes, &field, why);
        if (r < 0)
                return r;
        field->what = n_kept_bytes > 0 ? RENDER_PIECE : RENDER_WHOLE;
        field->out = place_in_slots(rendering, out, room_bytes);
        field->n_skipped_bytes = n_skipped_bytes;
        field->n_kept_bytes = n_kept_bytes;
        return render_now(rendering, why);
}

int rendering_write_before(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes,
                           const uint8_t **ret_bytes, struct why *why) {
        uint64_t n_bytes = rendering->now->ahead[idx_field].opened.n_bytes;
        struct render_field *field;
        int r = order_alone(rendering, idx_field, allowed_bytes, &field, why);

        if (r == 0 && take_tray(rendering, n_bytes, &field->out, why) < 0)
                r = -ENOMEM;
        if (r < 0)
                return r;
        field->what = RENDER_WHOLE;
        r = render_now(rendering, why);
        if (r == 0)
                *ret_bytes = rendering->user_cell->tray.bytes + field->out.offset;
        return r;
}

int rendering_refuse_memory(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes, struct why *why) {
        struct render_field *field;
        int r = order_alone(rendering, idx_field, allowed_bytes, &field, why);

        if (r < 0)
                return r;
        field->what = RENDER_REFUSE;
        r = ask_now(rendering, why);
        if (r == 0)
                r = told_error(rendering->answers[0], why);
        return r != 0 ? r : why_set(why, -EFBIG, "needs more memory than is allowed");
}

uint64_t rendering_cpu_ns(struct rendering *rendering) {
        return rendering->user_cell ? cell_cpu_ns(&rendering->user_cell->cell) : 0;
}
