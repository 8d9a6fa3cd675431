#include "daemon/pipeline/workers/function_result.h"

#include <errno.h>
#include <string.h>

#include "daemon/codec/steps/python_step.h"
#include "daemon/codec/steps/steps_after.h"
#include "daemon/collate/delivered.h"
#include "daemon/collate/padding.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/pipeline/workers/sample_serve.h"
#include "proto/base/shown/amounts.h"
#include "proto/base/utf8.h"

static int function_result_refuse_memory(uint64_t need_bytes, uint64_t allowed_bytes, struct why *why) {
        char need[AMOUNT_TEXT_MAX], allowed[AMOUNT_TEXT_MAX];

        format_compared(need, need_bytes, allowed, allowed_bytes);
        return why_set(why, -EFBIG,
                       "the steps after the function may take %s, %s are allowed (a quarter of memory_limit, 1 GiB at "
                       "most)",
                       need, allowed);
}

static int function_result_serve_field(struct worker *worker, struct task *task, uint32_t idx_field, struct why *why) {
        const struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];
        const struct steps_after *after = program_after(task->program, idx_field);
        struct codec_input input = task_input(task, idx_field);
        uint64_t need = 0;
        int r = steps_after_open(after, program_codec(task->program, idx_field), worker->tools, &input, &field->form,
                                 &need, why);

        if (r == 0)
                r = worker_reserve(worker, task, need);
        if (r == -EFBIG && need > 0)
                return function_result_refuse_memory(need, worker->scratch->n_bytes, why);
        if (r != 0)
                return r;
        return steps_after_render(after, worker->tools, &field->form,
                                  collating->slot + field->result_offset + field->result_bytes * task->idx_sample,
                                  collating->slot + field->offset + field->sample_bytes * task->idx_sample, why);
}

/* ---- what varies in size --------------------------------------------------------------------------------------- */

static int function_result_refuse_shape(const struct field_form *form, const int64_t *shape, const int64_t *other,
                                        struct why *why) {
        uint32_t k = 0;

        while (k + 1 < form->n_dims && (form->shape[k] >= 0 || shape[k] == other[k] || other[k] < 0))
                k++;
        return why_set(why, -EBADMSG,
                       "dimension %u has %lld elements, and %lld in another sample of its batch: pad them, or let the "
                       "function give them one size",
                       k, (long long)shape[k], (long long)other[k]);
}

/* The text that a process wrote may be no text. It is looked at where it is now the batch's own. */
static int function_result_check_text(const struct field_form *form, const uint8_t *bytes, uint64_t n_bytes,
                                      struct why *why) {
        size_t n_valid = form->dtype == DLP_DTYPE_TEXT ? utf8_valid(bytes, n_bytes) : n_bytes;

        return n_valid == n_bytes ? 0 : why_set(why, -EBADMSG, "byte %zu is not UTF-8", n_valid);
}

static int function_result_deliver(struct task *task, uint32_t idx_field, struct why *why) {
        struct collating *collating = &task->batch->collating;
        const struct field_layout *field = &collating->layout->fields[idx_field];
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct codec_input input = task_input(task, idx_field);
        const uint8_t *from = collating->slot + field->result_offset + field->result_bytes * task->idx_sample;
        int64_t shape[FIELD_DIMS_MAX], other[FIELD_DIMS_MAX];
        uint8_t *to = NULL;
        int r;

        memcpy(shape, task->results[idx_field], sizeof(shape));
        r = delivered_check(&field->form, shape, why);
        if (r < 0)
                return r;
        if (field->form.how == COLLATE_PADDED && padding_fit(field, shape) < 0)
                return padding_refuse(field, shape, why);
        r = collating_place(collating, idx_field, task->idx_sample, shape, field_form_bytes(&field->form, shape), &to,
                            other);
        if (r == COLLATE_DIFFERS)
                return function_result_refuse_shape(&field->form, shape, other, why);
        if (r < 0)
                return why_set(why, r, "is larger than the room of a sample");
        delivered_copy(field, shape, from, to);
        r = function_result_check_text(&field->form, to, field_form_bytes(&field->form, shape), why);
        if (r == 0)
                collating_hide(collating, idx_field, task->idx_sample, to, codec_seed(codec, &input), input.epoch,
                               input.sample);
        return r;
}

/* The field whose sample cannot be taken is named with the function that delivered it. */
static int deliver_field(struct task *task, uint32_t idx_field, struct why *why) {
        struct why detail;
        int r = function_result_deliver(task, idx_field, &detail);

        if (r < 0)
                why_set(why, 0, "python(%s): field %s: %s", program_python(task->program, idx_field)->function,
                        task->batch->collating.layout->fields[idx_field].form.name, detail.text);
        return r;
}

static bool function_result_varies(const struct task *task, uint32_t idx_field) {
        return delivered_varies(&task->batch->collating.layout->fields[idx_field].form);
}

/* ---- a sample -------------------------------------------------------------------------------------------------- */

static bool has_work(const struct task *task) {
        for (uint32_t i = 0; i < program_n_fields(task->program); i++)
                if (program_after(task->program, i) || function_result_varies(task, i))
                        return true;
        return false;
}

/* Steps may wait for memory, and begin again then; what is placed comes last. */
static int serve_fields(struct worker *worker, struct task *task, struct why *why) {
        uint32_t n_fields = program_n_fields(task->program);
        int r = 0;

        for (uint32_t i = 0; i < n_fields && r == 0; i++)
                if (program_after(task->program, i))
                        r = function_result_serve_field(worker, task, i, why);
        for (uint32_t i = 0; i < n_fields && r == 0; i++)
                if (function_result_varies(task, i))
                        r = deliver_field(task, i, why);
        return r;
}

enum sample_state function_result_serve(struct worker *worker, struct task *task) {
        struct stage_clock *clock = codec_tools_clock(worker->tools);
        uint64_t begin_ns;
        int r;

        if (!has_work(task))
                return SAMPLE_SERVED;
        begin_ns = stage_clock_start(clock, STAGE_OTHER);
        r = serve_fields(worker, task, &worker->fault.why);
        if (r == SCRATCH_WAITS) {
                stage_clock_drop(clock);
                return SAMPLE_ELSEWHERE;
        }
        worker_settle(worker, task);
        worker->serving_ns = stage_clock_stop(clock) - begin_ns;
        stage_clock_harvest(clock, &worker_tally(worker, task->batch)->stages);
        batch_took(task->batch, 0, 0, worker->serving_ns);
        tally_add(worker_tally(worker, task->batch), &(struct tally_counts){ .serving_ns = worker->serving_ns });
        counter_add(&worker->counters->decode_ns, worker->serving_ns);
        task->bad_field = NULL;
        return r == 0 ? SAMPLE_SERVED : sample_failed(worker, task, r);
}

enum sample_state function_result_take(struct worker *worker, struct task *task) {
        enum function_state state = task->function.state;

        task->function.state = FUNCTION_NONE;
        task->bad_field = NULL;
        switch (state) {
        case FUNCTION_FAILED:
                worker->fault.error = -EBADMSG;
                desk_why(task, state, &worker->fault.why);
                return SAMPLE_FAULT;
        case FUNCTION_AGAIN:
                return SAMPLE_RETRY;
        case FUNCTION_ENDED:
                worker->fault.code = EINVAL;
                desk_why(task, state, &worker->fault.why);
                return SAMPLE_FAIL;
        default:
                return SAMPLE_FINISH;
        }
}
