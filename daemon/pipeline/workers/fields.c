#include "daemon/pipeline/workers/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/packing.h"
#include "daemon/collate/padding.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/planner/locate.h"
#include "proto/base/clock.h"

/* ---- memory for a field ---------------------------------------------------------------------------------------- */

/* More memory is worth having, and nobody waits for it: a picture that is decoded alone has the same pixels. */
static bool may_share(struct worker *worker, struct task *task, const struct codec_opened *opened) {
        return worker_has_scratch(worker, task, opened->need_bytes) ||
               (task->n_scratch_bytes == 0 && scratch_try(worker->scratch, task, opened->need_bytes, clock_now_ns()));
}

static int fields_refuse_memory(struct worker *worker, const struct task *task, uint32_t idx_field,
                                const struct codec_opened *opened, struct why *why) {
        uint64_t allowed = worker->scratch->n_bytes;

        if (rendering_is_for(task, idx_field) && !codec_is_plugged(program_codec(task->program, idx_field)))
                return rendering_refuse_memory(&worker->rendering, idx_field, allowed, why);
        return codec_refuse_memory(program_codec(task->program, idx_field), worker->tools, opened, allowed, why);
}

/* How much scratch this field needs in total is known once it is open. The memory kept from earlier fields is counted
 * in addition: it may have the wrong shape for this one. */
static int fields_charge(struct worker *worker, struct task *task, uint32_t idx_field, struct codec_opened *opened,
                         struct why *why) {
        uint64_t need = opened->need_bytes;
        int r;

        if (need == 0 || codec_tools_bytes(worker->tools) + need <= worker->own_bytes)
                return 0;
        codec_tools_trim(worker->tools);
        if (opened->alone_bytes > 0) {
                if (may_share(worker, task, opened))
                        return 0;
                codec_decode_alone(worker->tools);
                opened->need_bytes = opened->alone_bytes;
        }
        r = worker_reserve(worker, task, opened->need_bytes);
        return r == -EFBIG ? fields_refuse_memory(worker, task, idx_field, opened, why) : r;
}

/* ---- a field, here or in a cell -------------------------------------------------------------------------------- */

/* Ragged fields are getting their places, which they do once, so none may wait any more: what they take was reserved
 * when they were checked. */
static bool is_placing(const struct task *task) {
        return task->idx_field == task->batch->feed->layout.n_fields;
}

/* May also return SCRATCH_WAITS: some fields take memory when they are opened. */
static int open_field(struct worker *worker, struct task *task, uint32_t idx_field, struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        int r;

        if (rendering_is_for(task, idx_field))
                return rendering_open(&worker->rendering, idx_field, ret_opened, why);
        do {
                bool is_lent = task->n_scratch_bytes > worker->own_bytes;

                input->allowed_bytes = is_placing(task) ? 0 : is_lent ? task->n_scratch_bytes : worker->own_bytes;
                input->most_bytes = worker->scratch->n_bytes;
                r = codec_open(program_codec(task->program, idx_field), worker->tools, input, ret_opened, why);
        } while (r == CODEC_NEEDS_MORE && (r = worker_reserve(worker, task, ret_opened->need_bytes)) == 0);
        return r;
}

/* Where an open field goes: all of it, or a piece if n_kept_bytes is not 0. */
struct destination {
        uint8_t *out;
        uint64_t n_skipped_bytes, n_kept_bytes;
};

/* A cell makes what the plug-ins get. */
static int write_plugged(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                         uint64_t allowed_bytes, const struct destination *to, struct why *why) {
        const uint8_t *before;
        int r = rendering_write_before(&worker->rendering, idx_field, allowed_bytes, &before, why);

        if (r != 0)
                return r;
        return codec_render_plugins(program_codec(task->program, idx_field), worker->tools, input, before,
                                    to->n_skipped_bytes, to->n_kept_bytes, to->out, why);
}

static int fields_write_field(struct worker *worker, struct task *task, uint32_t idx_field,
                              const struct codec_input *input, const struct codec_opened *opened,
                              const struct destination *to, struct why *why) {
        const struct codec *codec = program_codec(task->program, idx_field);
        uint64_t allowed = opened->need_bytes <= worker->own_bytes ? worker->own_bytes : task->n_scratch_bytes;

        if (rendering_is_for(task, idx_field) && codec_is_plugged(codec))
                return write_plugged(worker, task, idx_field, input, allowed, to, why);
        if (rendering_is_for(task, idx_field))
                return rendering_write(&worker->rendering, idx_field, to->out,
                                       to->n_kept_bytes > 0 ? to->n_kept_bytes : opened->n_bytes, to->n_skipped_bytes,
                                       to->n_kept_bytes, allowed, why);
        if (to->n_kept_bytes > 0)
                return codec_render_piece(codec, worker->tools, input, opened->n_bytes, to->n_skipped_bytes,
                                          to->n_kept_bytes, to->out, why);
        return codec_render(codec, worker->tools, input, to->out, why);
}

/* The fields that are served after it, and show parts of the same stored picture. */
static uint32_t fields_find_sharers(const struct task *task, uint32_t idx_field, struct codec_sharer *sharers) {
        uint32_t n = 0;

        while ((idx_field = program_sharer(task->program, idx_field)) != CODEC_NONE) {
                const struct codec *codec = program_codec(task->program, idx_field);

                sharers[n++] = (struct codec_sharer){ codec, task_seed(task, codec_draws(codec)) };
        }
        return n;
}

/* Must it lose its end to fit? Only a padded field may. */
static bool fields_is_too_long(const struct field_layout *field, const struct codec_opened *opened) {
        return field->form.how == COLLATE_PADDED && field->form.pad.truncates && field->form.input.n_bytes == 0 &&
               (uint64_t)opened->shape[0] > field->padded.limits[0];
}

/* Is only a part of it wanted, so that the whole needs memory beside that? */
static bool fields_is_cut(const struct task *task, const struct field_layout *field,
                          const struct codec_opened *opened) {
        if (field->form.how == COLLATE_PACKED)
                return task->batch->packs[task->idx_sample].n_elements < (uint64_t)opened->shape[0];
        return fields_is_too_long(field, opened);
}

/* A packed field may be only a piece of the sample. */
static int render_packed(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                         const struct codec_opened *opened, uint8_t *out, struct why *why) {
        const struct field_layout *field = &task->batch->feed->layout.fields[idx_field];
        const struct pack_place *place = &task->batch->packs[task->idx_sample];
        struct destination to = { .out = out };
        uint64_t size = dlp_dtype_bytes(field->form.dtype);
        int r = packing_check(place, (uint64_t)opened->shape[0], why);

        if (r < 0)
                return r;
        if (place->n_elements < place->length)
                to = (struct destination){ out, place->skip * size, place->n_elements * size };
        return fields_write_field(worker, task, idx_field, input, opened, &to, why);
}

/* What a sample has room for, for messages: before a function, if one is applied to it. */
static uint64_t fields_room_of(const struct field_layout *field) {
        uint64_t most = field->form.max_bytes, room = field->sample_bytes; /* which is aligned, or not known */

        if (field->form.input.n_bytes > 0)
                return field->form.input.n_bytes;
        return most > 0 && (room == 0 || most < room) ? most : room;
}

/* A function of the trainer's makes the field of this, or steps after it do: it lies in a place of its own. */
static int render_input(struct worker *worker, struct task *task, uint32_t idx_field, const struct codec_input *input,
                        const struct codec_opened *opened, struct why *why) {
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];
        struct destination to = { collating->slot + field->input_offset + field->input_bytes * task->idx_sample, 0, 0 };

        if (field->form.input.n_bytes == 0) {
                to.out = collating->slot + field->result_offset + field->result_bytes * task->idx_sample;
                return fields_write_field(worker, task, idx_field, input, opened, &to, why);
        }
        if (opened->n_bytes > field->form.input.n_bytes)
                return codec_refuse_room(program_codec(task->program, idx_field), opened, fields_room_of(field), why);
        memcpy(task->inputs[idx_field], opened->shape, sizeof(task->inputs[idx_field]));
        if (field->input_shape_at > 0)
                memcpy(to.out + field->input_shape_at, opened->shape, field->form.input.n_dims * sizeof(int64_t));
        return fields_write_field(worker, task, idx_field, input, opened, &to, why);
}

/* Asks collation for the field's place, and writes the field there. */
static int place_and_render(struct worker *worker, struct task *task, uint32_t idx_field,
                            const struct codec_input *input, const struct codec_opened *opened, struct why *why) {
        struct feed *feed = task->batch->feed;
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct field_layout *field = &feed->layout.fields[idx_field];
        int64_t shape[FIELD_DIMS_MAX], other[FIELD_DIMS_MAX];
        struct destination to = { 0 };
        uint8_t *out = NULL;
        int r;

        if (field->form.input.n_bytes > 0 || field->form.result.n_bytes > 0)
                return render_input(worker, task, idx_field, input, opened, why);
        memcpy(shape, opened->shape, sizeof(shape));
        if (field->form.how == COLLATE_PADDED && padding_fit(field, shape) < 0)
                return padding_refuse(field, shape, why);
        r = collating_place(&task->batch->collating, idx_field, task->idx_sample, shape, opened->n_bytes, &out, other);
        if (r == -EFBIG)
                return codec_refuse_room(codec, opened, fields_room_of(field), why);
        if (r == COLLATE_DIFFERS)
                return codec_refuse_shape(codec, opened, other, why);
        to.out = out;
        if (fields_is_too_long(field, opened))
                to.n_kept_bytes = (uint64_t)shape[0] * field->padded.element_bytes;
        r = field->form.how == COLLATE_PACKED ? render_packed(worker, task, idx_field, input, opened, out, why)
                                              : fields_write_field(worker, task, idx_field, input, opened, &to, why);
        if (r == 0)
                collating_hide(&task->batch->collating, idx_field, task->idx_sample, out, codec_seed(codec, input),
                               input->epoch, input->sample);
        return r;
}

static bool fields_is_ragged(const struct feed *feed, uint32_t idx_field) {
        return feed->layout.fields[idx_field].form.how == COLLATE_RAGGED;
}

/* Only what is not stacked may be absent, and that for which no function waits. */
static int fields_leave_out(struct task *task, uint32_t idx_field, struct why *why) {
        const struct field_form *form = &task->batch->feed->layout.fields[idx_field].form;

        if (form->how == COLLATE_STACK || form->how == COLLATE_PACKED || form->input.n_bytes > 0)
                return why_set(why, -EBADMSG, "the sample does not have it");
        collating_leave_out(&task->batch->collating, idx_field, task->idx_sample);
        return 0;
}

/* Fields that are served later in this sample may need the picture's size. */
static void note_size(struct task *task, uint32_t idx_field, const struct codec_opened *opened) {
        if (codec_is_picture(program_codec(task->program, idx_field)))
                task->sizes[idx_field] = (struct picture_size){ opened->width, opened->height };
}

/* Returns 0, SCRATCH_WAITS, or a negative errno for what is wrong. */
static int fields_serve_field(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct codec *codec = program_codec(task->program, idx_field);
        struct codec_input input = task_input(task, idx_field);
        struct codec_sharer sharers[DLP_TENSORS_MAX];
        struct codec_opened opened;
        int r;

        input.sharers = sharers;
        input.n_sharers = fields_find_sharers(task, idx_field, sharers);
        if (codec_is_boxes(codec) && codec_drops_boxes(codec))
                task->kept.is_known = false;
        if (task->fields[idx_field].is_absent)
                return fields_leave_out(task, idx_field, why);
        r = open_field(worker, task, idx_field, &input, &opened, why);
        if (r == 0 && opened.is_absent) {
                codec_close(worker->tools);
                return fields_leave_out(task, idx_field, why);
        }
        if (r == 0)
                note_size(task, idx_field, &opened);
        if (r == 0 && fields_is_cut(task, &task->batch->feed->layout.fields[idx_field], &opened))
                opened.need_bytes += opened.n_bytes + opened.made_bytes;
        if (r == 0)
                r = fields_charge(worker, task, idx_field, &opened, why);
        if (r == 0)
                r = place_and_render(worker, task, idx_field, &input, &opened, why);
        codec_close(worker->tools); /* the task may be another worker's by now */
        return r;
}

/* Would this field fail? A ragged field that is not spread gets its place once, so nothing may fail after the first
 * ragged field of a sample has got its place. */
static int check_ragged(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct feed *feed = task->batch->feed;
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct field_layout *field = &feed->layout.fields[idx_field];
        struct codec_input input = task_input(task, idx_field);
        struct codec_opened opened;
        int r = open_field(worker, task, idx_field, &input, &opened, why);

        codec_close(worker->tools);
        if (r != 0 || opened.is_absent)
                return r;
        return opened.n_bytes > field->sample_bytes ? codec_refuse_room(codec, &opened, fields_room_of(field), why) : 0;
}

/* Remembers which field failed, whichever view of it. The message names it, unless it is the only stored one, and
 * begins with its file, if it has one of its own, as that of the reader does. */
static void fields_name_field(struct task *task, uint32_t idx_field, struct why *why) {
        const struct schema *schema = &dataset_source(task->batch->feed->dataset->dataset)->schema;
        bool is_stored = codec_is_stored(program_codec(task->program, idx_field));
        const char *file = is_stored && !task->request.is_part ? task->request.path : NULL;
        struct why bare = *why;
        uint32_t n_stored = 0;

        task->bad_field = schema->fields[codec_field(program_codec(task->program, idx_field))].name;
        for (uint32_t i = 0; i < schema->n_fields; i++)
                n_stored += schema->fields[i].is_stored;
        if (n_stored > 1 || !is_stored)
                why_set(&bare, 0, "field %s: %s", task->bad_field, why->text);
        why_set(why, 0, "%s%s%s", file ? file : "", file ? ": " : "", bare.text);
}

/* A failed read is named after its field if it was to bring one field alone. */
const char *fields_only_read(const struct task *task) {
        const struct feed *feed = task->batch->feed;
        const char *name = NULL;

        for (uint32_t i = 0; i < feed->layout.n_fields; i++) {
                const struct codec *codec = program_codec(task->program, i);

                if (!codec_is_stored(codec) || codec_is_again(codec) || task->fields[i].is_absent ||
                    task->fields[i].idx_read != task->idx_read)
                        continue;
                if (name)
                        return NULL;
                name = feed->layout.fields[i].form.name;
        }
        return name;
}

/* Is it placed once, after all that may fail? */
static bool is_last(const struct feed *feed, uint32_t idx_field) {
        return fields_is_ragged(feed, idx_field) && !feed->layout.fields[idx_field].is_spread;
}

/* A gathered field has its place already, like all rows. */
static int put_piece(const struct task *task, uint32_t idx_field, struct why *why) {
        return codec_put_piece(program_codec(task->program, idx_field), &task->piece, task->request.buffer,
                               collating_row(&task->batch->collating, idx_field, task->idx_sample), why);
}

/* All fields that this read brought: first those that may fail halfway, then those that are only copied. A field that
 * had to wait for memory continues where it was. */
int fields_serve(struct worker *worker, struct task *task, struct why *why) {
        const struct feed *feed = task->batch->feed;
        uint32_t i;
        int r;

        if (task->is_head) {
                locate_take_head(task);
                return 0;
        }
        r = rendering_begin(&worker->rendering, task, why);
        if (r != 0)
                return r;
        for (; task->idx_field < feed->layout.n_fields; task->idx_field++) {
                i = program_serving(task->program, task->idx_field);
                if (task->fields[i].idx_read != task->idx_read)
                        continue;
                if (codec_is_gathered(program_codec(task->program, i)))
                        r = put_piece(task, i, why);
                else if (!is_last(feed, i))
                        r = fields_serve_field(worker, task, i, why);
                else
                        r = task->fields[i].is_absent ? 0 : check_ragged(worker, task, i, why);
                if (r > 0) /* the task is no longer this worker's, or nobody wants the sample */
                        return r;
                if (r < 0) {
                        fields_name_field(task, i, why);
                        return r;
                }
        }
        if (feed->layout.n_ragged > 0 && worker->yields)
                return why_set(why, -ECANCELED, "another user waits");
        worker->may_yield = worker->may_yield && feed->layout.n_ragged == 0;
        for (i = 0; i < feed->layout.n_fields && feed->layout.n_ragged > 0 && r == 0; i++)
                if (is_last(feed, i))
                        r = fields_serve_field(worker, task, i, why);
        return r;
}
