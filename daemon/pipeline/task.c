#include "daemon/pipeline/task.h"

#include <stdlib.h>

#include "daemon/collate/padding.h"
#include "proto/order/philox.h"

void task_begin(struct task *task, struct batch *batch, uint32_t idx_sample, const struct batch_sample *sample) {
        if (task->batch != batch) /* the planner, which looks at all tasks, reads it: a worker never changes it */
                task->batch = batch;
        task->idx_sample = idx_sample;
        task->sample = *sample;
        task->function.state = FUNCTION_NONE;
        task->function.n_tries = 0;
        task->gave_way = false;
        task->idx_read = 0;
        task->is_head = false;
        task->excerpt.n_head_bytes = 0;
        task->n_shortages = 0;
        task->not_before_ns = 0;
        free(task->trouble);
        task->trouble = NULL;
}

struct trouble *task_trouble(struct task *task) {
        if (!task->trouble)
                task->trouble = calloc(1, sizeof(*task->trouble));
        return task->trouble;
}

void task_go_to_row(struct task *task, uint32_t idx_row) {
        const struct batch_sample sample = task_row_sample(&task->rows[idx_row]);

        task_begin(task, task->batch, task->idx_sample + idx_row - task->idx_row, &sample);
        task->program = programs_with(task->batch->feed->programs, sample.candidate);
        task->idx_row = idx_row;
        task->is_copied = false;
        task->function.n_tries = task->function.idx_blamed == idx_row;
}

bool task_next_row(struct task *task) {
        if (task->idx_row + 1 >= task->n_rows)
                return false;
        task_go_to_row(task, task->idx_row + 1);
        return true;
}

void task_read_nothing(struct task *task) {
        task->request.path = NULL;
        task->request.is_part = false;
        task->request.result = 0;
        task->request.n_bytes = 0;
}

uint64_t task_reading_ns(const struct task *task, uint64_t now_ns) {
        uint64_t since_ns = atomic_load_explicit(&task->reading_ns, memory_order_relaxed);

        return since_ns != 0 && now_ns > since_ns ? now_ns - since_ns : 0;
}

uint64_t task_seed_at(const struct task *task, uint64_t position, uint32_t view) {
        const struct job *job = task->batch->feed->job;
        uint64_t seed = dlp_philox_seed(job->terms.seed, job->terms.draws + view);

        return job->terms.repeats ? dlp_philox_seed(seed, 1 + position) : seed;
}

uint64_t task_seed(const struct task *task, uint32_t view) {
        return task_seed_at(task, task->sample.position, view);
}

void task_trim(struct task *task) {
        if (task->large)
                large_buffers_put(&task->batch->feed->large, task->large);
        task->large = NULL;
}

static size_t bytes_of_field(const struct task *task, uint32_t idx_field) {
        return task->request.is_part ? task->fields[idx_field].n_bytes : task->request.n_bytes;
}

/* Boxes on which a field's plan depends. They are in memory if the same read brings them, or none. */
static struct codec_plan_boxes plan_boxes_of(const struct task *task, uint32_t idx_field) {
        uint32_t idx_boxes = codec_plan_boxes(program_codec(task->program, idx_field));
        const struct field_bytes *boxes = &task->fields[idx_boxes == CODEC_NONE ? idx_field : idx_boxes];
        const struct codec *codec;

        if (idx_boxes == CODEC_NONE || boxes->is_absent)
                return (struct codec_plan_boxes){ 0 };
        codec = program_codec(task->program, idx_boxes);
        return (struct codec_plan_boxes){ .codec = codec,
                                          .bytes = task->request.buffer + boxes->offset,
                                          .n_bytes = bytes_of_field(task, idx_boxes),
                                          .is_elsewhere = codec_is_stored(codec) && boxes->idx_read != task->idx_read };
}

/* A whole file may have become longer than the index says: then the field is all of it. */
struct codec_input task_input(struct task *task, uint32_t idx_field) {
        const struct feed *feed = task->batch->feed;
        const struct field_bytes *field = &task->fields[idx_field];
        const struct field_layout *layout = &feed->layout.fields[idx_field];
        const struct codec *codec = program_codec(task->program, idx_field);
        uint32_t lead = codec_lead(codec);
        bool is_elsewhere = layout->form.input.n_bytes > 0; /* a function makes the field of it */

        uint32_t n_head = task->excerpt.n_head_bytes;

        return (struct codec_input){
                .bytes = task->request.buffer + field->offset - n_head,
                .n_bytes = n_head > 0 ? n_head + task->request.n_bytes : bytes_of_field(task, idx_field),
                .source = dataset_source(feed->dataset->dataset),
                .sample = task->sample.candidate,
                .lead_width = lead == CODEC_NONE ? 0 : task->sizes[lead].width,
                .lead_height = lead == CODEC_NONE ? 0 : task->sizes[lead].height,
                .kept = &task->kept,
                .seed = task_seed(task, codec_draws(codec)),
                .epoch = (uint32_t)task->batch->epoch,
                .row_stride = is_elsewhere ? 0 : padding_row_stride(layout),
                .plane_stride = is_elsewhere ? 0 : padding_plane_stride(layout),
                .plan_boxes = plan_boxes_of(task, idx_field),
                .part = n_head > 0 ? (struct codec_part){ 0 }
                                   : codec_part(codec, dataset_source(feed->dataset->dataset), task->sample.candidate),
        };
}
