#include "daemon/codec/cell/render_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/heap.h"
#include "daemon/codec/cell/described_source.h"
#include "daemon/codec/cell/render_messages.h"
#include "daemon/codec/codec_program.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/plugin/plugins.h"
#include "daemon/tokenize/at_hand.h"
#include "proto/base/cleanup.h"

#define OTHER_BYTES (64ull << 20) /* beside scratch: programs, tables of the libraries, the heap's gaps */

/* A pipeline, made of the memory that has its text. */
struct known_program {
        uint64_t memory; /* 0: none */
        struct described_source described;
        struct plugins *plugins;
        struct program *program;
};

static struct known_program programs[CELL_MEMORIES_MAX];
static struct render_setup the_setup;
static struct codec_tools *tools;
static struct at_hand no_tokenizers = { .are_elsewhere = true };

int render_prepare(const void *setup, size_t n_bytes, uint64_t *ret_data_bytes, struct why *why) {
        if (n_bytes != sizeof(the_setup))
                return why_set(why, -EINVAL, "the setup of another build");
        memcpy(&the_setup, setup, sizeof(the_setup));
        heap_keep(the_setup.own_bytes);
        *ret_data_bytes = the_setup.own_bytes + the_setup.most_bytes + OTHER_BYTES;
        return codec_tools_new(&the_setup.limits, the_setup.jpeg, &tools, why);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void render_inside_leave(struct program *program, const struct render_program *words) {
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (words->left_operations >> i & 1)
                        program_leave_operations(program, i);
                else if (words->left_forms >> i & 1)
                        program_leave_form(program, i);
}

static int make_program(struct known_program *known, uint64_t memory, const struct render_program *words,
                        struct why *why) {
        const struct plugin_table *tables = (const struct plugin_table *)(const void *)((const uint8_t *)words +
                                                                                        words->plugins_offset);
        struct codec_named named = { .tokenizers = &no_tokenizers };
        int r;

        described_source_init(&known->described, &words->schema, words->n_classes);
        r = plugins_describe(tables, words->n_plugins,
                             (const struct dlplugin_form *)(const void *)(tables + words->n_plugins), words->n_outputs,
                             &known->plugins);
        if (r < 0)
                return why_errno(why, r, "isolation: plug-ins");
        named.plugins = known->plugins;
        r = program_parse(words->text, &known->described.source, &named, &known->program, why);
        if (r < 0) {
                plugins_free(TAKE_PTR(known->plugins));
                return r;
        }
        render_inside_leave(known->program, words);
        known->memory = memory;
        return 0;
}

static struct known_program *render_inside_find(uint64_t memory) {
        for (uint32_t i = 0; i < CELL_MEMORIES_MAX; i++)
                if (programs[i].memory == memory)
                        return &programs[i];
        return NULL;
}

static int get_program(uint64_t memory, struct known_program **ret_known, struct why *why) {
        const struct cell_place place = { .memory = memory, .n_bytes = sizeof(struct render_program) };
        struct known_program *known = render_inside_find(memory);
        const uint8_t *words;
        int r;

        if (memory > 0 && known) {
                *ret_known = known;
                return 0;
        }
        known = render_inside_find(0);
        words = cell_inside_bytes(&place);
        if (!words || !known)
                return why_set(why, -EINVAL, "isolation: an order names a pipeline that is not there");
        r = make_program(known, memory, (const struct render_program *)(const void *)words, why);
        if (r == 0)
                *ret_known = known;
        return r;
}

void render_forget(uint64_t memory) {
        struct known_program *known = render_inside_find(memory);

        if (!known)
                return;
        program_free(TAKE_PTR(known->program));
        plugins_free(TAKE_PTR(known->plugins));
        known->memory = 0;
}

/* ---- a field ----------------------------------------------------------------------------------------------------- */

/* What the fields of an order share. */
struct sample {
        const struct render_order *order;
        struct known_program *known;
        struct codec_kept *kept;
        struct codec_kept no_kept;
        struct render_answer *answer;
};

/* The picture that a field moves with may have been opened by the same order. */
static void find_lead(const struct sample *sample, const struct codec *codec, const struct render_field *field,
                      struct codec_input *input) {
        input->lead_width = field->lead_width;
        input->lead_height = field->lead_height;
        for (uint32_t i = 0; i < sample->answer->n_opened; i++)
                if (sample->order->fields[i].idx == codec_lead(codec)) {
                        input->lead_width = sample->answer->opened[i].opened.width;
                        input->lead_height = sample->answer->opened[i].opened.height;
                }
}

/* Later fields of the order that show the same picture and are rendered, too. */
static uint32_t render_inside_find_sharers(const struct sample *sample, const struct render_field *field,
                                           struct codec_sharer *sharers) {
        const struct program *program = sample->known->program;
        const struct render_field *end = sample->order->fields + sample->order->n_fields;
        uint32_t n = 0, idx = field->what == RENDER_WHOLE ? program_sharer(program, field->idx) : CODEC_NONE;

        for (field++; field < end && field->idx == idx && field->what == RENDER_WHOLE; field++) {
                sharers[n++] = (struct codec_sharer){ program_codec(program, idx), field->seed };
                idx = program_sharer(program, idx);
        }
        return n;
}

static void set_plan_boxes(struct sample *sample, const struct codec *codec, const struct render_field *field,
                           struct codec_input *input) {
        const struct codec *boxes = program_codec(sample->known->program, codec_plan_boxes(codec));
        const uint8_t *bytes = cell_inside_bytes(&field->plan_boxes);

        input->plan_boxes = (struct codec_plan_boxes){ .codec = boxes,
                                                       .bytes = bytes,
                                                       .n_bytes = bytes ? field->plan_boxes.n_bytes : 0,
                                                       .is_elsewhere = field->plan_boxes_are_elsewhere };
        described_source_set_boxes(&sample->known->described, codec_field(boxes), bytes, field->plan_boxes.n_bytes);
}

static void make_input(struct sample *sample, const struct codec *codec, const struct render_field *field,
                       struct codec_input *ret_input) {
        const uint8_t *bytes = cell_inside_bytes(&field->in);

        *ret_input = (struct codec_input){
                .source = &sample->known->described.source,
                .sample = sample->order->sample,
                .kept = sample->kept,
                .seed = field->seed,
                .part = field->part,
                .epoch = sample->order->epoch,
                .row_stride = field->row_stride,
                .plane_stride = field->plane_stride,
        };
        if (codec_is_stored(codec)) {
                ret_input->bytes = bytes;
                ret_input->n_bytes = bytes ? field->in.n_bytes : 0;
        }
        described_source_set(&sample->known->described, bytes, field->in.n_bytes);
        if (field->has_plan_boxes && codec_plan_boxes(codec) != CODEC_NONE)
                set_plan_boxes(sample, codec, field, ret_input);
        find_lead(sample, codec, field, ret_input);
}

/* What is kept from earlier fields may have the wrong shape for this one. Nothing waits for the memory of a picture
 * that is shared. */
static bool has_memory(const struct render_order *order, struct codec_opened *opened) {
        if (opened->need_bytes == 0 || codec_tools_bytes(tools) + opened->need_bytes <= the_setup.own_bytes)
                return true;
        codec_tools_trim(tools);
        if (opened->alone_bytes > 0 && opened->need_bytes > order->allowed_bytes) {
                codec_decode_alone(tools);
                opened->need_bytes = opened->alone_bytes;
        }
        return opened->need_bytes <= order->allowed_bytes;
}

static int render_inside_write_field(const struct codec *codec, const struct render_field *field,
                                     const struct codec_input *input, const struct render_opened *opened,
                                     struct why *why) {
        uint8_t *out = cell_inside_room(&field->out);

        if (!out)
                return why_set(why, -EINVAL, "isolation: an order names a place that is not there");
        if (field->what == RENDER_PIECE)
                return codec_render_piece(codec, tools, input, opened->opened.n_bytes, field->n_skipped_bytes,
                                          field->n_kept_bytes, out, why);
        return codec_render(codec, tools, input, out, why);
}

static uint64_t delivered(const struct render_field *field, const struct codec_opened *opened) {
        return field->what == RENDER_PIECE ? field->n_kept_bytes : opened->n_bytes;
}

static int open_and_write(const struct sample *sample, const struct codec *codec, const struct render_field *field,
                          const struct codec_input *input, struct render_opened *opened, struct why *why) {
        int r = codec_open(codec, tools, input, &opened->opened, why);

        if (r < 0 || opened->opened.is_absent)
                return r;
        if (field->what == RENDER_REFUSE)
                return codec_refuse_memory(codec, tools, &opened->opened, sample->order->allowed_bytes, why);
        if (field->what == RENDER_OPEN || delivered(field, &opened->opened) > field->out.n_bytes ||
            !has_memory(sample->order, &opened->opened))
                return 0;
        r = render_inside_write_field(codec, field, input, opened, why);
        opened->is_rendered = r == 0;
        return r;
}

static int do_field(struct sample *sample, const struct render_field *field, struct why *why) {
        struct render_opened *opened = &sample->answer->opened[sample->answer->n_opened];
        struct codec_sharer sharers[DLP_TENSORS_MAX];
        const struct codec *codec;
        struct codec_input input;
        int r;

        if (field->idx >= program_n_fields(sample->known->program))
                return why_set(why, -EINVAL, "isolation: an order names a field that is not there");
        codec = codec_before_plugins(program_codec(sample->known->program, field->idx));
        if (!codec)
                return why_set(why, -EINVAL, "isolation: an order names a field that a plug-in decodes");
        *opened = (struct render_opened){ 0 };
        make_input(sample, codec, field, &input);
        input.sharers = sharers;
        input.n_sharers = render_inside_find_sharers(sample, field, sharers);
        if (codec_is_boxes(codec) && codec_drops_boxes(codec))
                sample->kept->is_known = false;
        r = open_and_write(sample, codec, field, &input, opened, why);
        codec_close(tools);
        if (opened->opened.alone_bytes > 0) /* in an order of its own it is not shared */
                opened->opened.need_bytes = opened->opened.alone_bytes;
        opened->opened.alone_bytes = 0;
        if (r == 0)
                sample->answer->n_opened++;
        return r;
}

/* ---- an order ---------------------------------------------------------------------------------------------------- */

static void tell_stages(struct render_answer *answer) {
        struct stage_clock *clock = codec_tools_clock(tools);

        answer->n_stages = 0;
        for (uint32_t i = 0; i < N_STAGES; i++)
                if (clock->used >> i & 1)
                        answer->stages[answer->n_stages++] = (struct render_stage){ i, clock->sums[i].n,
                                                                                    clock->sums[i].ns };
        stage_clock_drop(clock);
}

static int do_fields(struct sample *sample) {
        int r = get_program(sample->order->program, &sample->known, &sample->answer->why);

        for (uint32_t i = 0; i < sample->order->n_fields && r == 0; i++)
                r = do_field(sample, &sample->order->fields[i], &sample->answer->why);
        return r;
}

/* One sample. The answer's stages end where its fields begin, so that they are copied in one piece. */
static size_t do_order(const struct render_order *order, struct render_answer *reply) {
        struct sample sample = { .order = order, .answer = reply };

        sample.kept = order->kept.n_bytes == sizeof(*sample.kept)
                              ? (struct codec_kept *)(void *)cell_inside_room(&order->kept)
                              : NULL;
        if (!sample.kept)
                sample.kept = &sample.no_kept;
        reply->n_opened = 0;
        reply->why.text[0] = '\0';
        stage_clock_start(codec_tools_clock(tools), STAGE_OTHER);
        codec_tools_begin_sample(tools);
        reply->result = do_fields(&sample);
        codec_tools_begin_sample(tools); /* it needs no memory that is returned now */
        if (codec_tools_bytes(tools) > the_setup.own_bytes)
                codec_tools_trim(tools);
        stage_clock_stop(codec_tools_clock(tools));
        tell_stages(reply);
        reply->counts = codec_tools_take_counts(tools);
        return RENDER_ANSWER_BYTES(reply->n_opened);
}

/* The order at this place of a packet; NULL: there is none. */
static const struct render_order *order_at(const uint8_t *packet, size_t n_bytes, size_t at) {
        const struct render_order *order = (const struct render_order *)(const void *)(packet + at);

        if (n_bytes - at < RENDER_ORDER_BYTES(0) || order->n_fields > DLP_TENSORS_MAX ||
            n_bytes - at < RENDER_ORDER_BYTES(order->n_fields))
                return NULL;
        return order;
}

size_t render_order(const void *words, size_t n_bytes, void *answer, int *ret_result) {
        static struct render_answer reply;
        const struct render_orders *orders = words;
        const struct render_order *order;
        size_t at = sizeof(*orders), into = sizeof(struct render_answers) - sizeof(struct cell_head);
        uint64_t n_done = 0;

        *ret_result = 0;
        while (n_bytes > at && n_done < orders->n_orders && (order = order_at(words, n_bytes, at))) {
                size_t n = do_order(order, &reply);

                memcpy((uint8_t *)answer + into, &reply, n);
                into += n;
                at += RENDER_ORDER_BYTES(order->n_fields);
                n_done++;
        }
        memcpy(answer, &n_done, sizeof(n_done));
        return into;
}
