/* What a decoder's process that somebody has taken over answers: any bytes, or a right answer with some changed. What
 * check_answers() lets pass must lie in the packet and have the shapes and sizes that were promised; what check_kept()
 * lets pass must count its own bits rightly. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/cell/described_source.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/isolation/check_answer.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

#define TEXT  "image: random_resized_crop(8); small=image: resize(20); boxes; label"
#define EDITS 12u
#define HEAD  2048u /* bytes where much is decided: half of the edits are there */

static struct described_source described;
static struct program *program;
static struct feed *feed;
static struct task *task;
static struct rendering *rendering;

static void *zeroed(size_t n_bytes) {
        void *bytes = aligned_alloc(64, (n_bytes + 63) / 64 * 64);

        if (!bytes)
                abort();
        return memset(bytes, 0, n_bytes);
}

/* What stands before a packet is sent. */
static void make_stream(void) {
        struct schema schema = { .n_fields = 3 };
        struct codec_terms terms = { .batch_size = 4, .max_pixels = 1000000 };
        struct why why;

        schema.fields[0] = (struct schema_field){ .name = "image", .kind = FIELD_PICTURE, .is_stored = true };
        schema.fields[1] = (struct schema_field){ .name = "boxes",
                                                  .kind = FIELD_VALUE,
                                                  .is_stored = true,
                                                  .coding = CODING_NPY,
                                                  .dtype = DLP_DTYPE_FLOAT32,
                                                  .n_dims = 2,
                                                  .shape = { 3, 4 } };
        schema.fields[2] = (struct schema_field){ .name = "label", .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 };
        described_source_init(&described, &schema, 2);
        terms.source = &described.source;
        if (program_parse(TEXT, &described.source, NULL, &program, &why) < 0)
                abort();
        feed = zeroed(sizeof(*feed));
        task = zeroed(sizeof(*task));
        rendering = zeroed(sizeof(*rendering));
        feed->layout.n_fields = program_n_fields(program);
        for (uint32_t i = 0; i < program_n_fields(program); i++)
                if (program_form(program, i, &terms, &feed->layout.fields[i].form, &why) < 0)
                        abort();
        feed->batches[0].feed = feed;
        task->batch = &feed->batches[0];
        task->program = program;
        rendering->user_cells.setup.limits.max_pixels = terms.max_pixels;
}

static void edit(struct input *input, void *thing, size_t n_bytes) {
        for (uint32_t n = input_below(input, EDITS); n > 0; n--) {
                size_t head = n_bytes < HEAD ? n_bytes : HEAD, most = input_below(input, 2) == 0 ? n_bytes : head;
                size_t at = (size_t)(input_word(input) % most), run = 1 + input_byte(input);

                memset((uint8_t *)thing + at, input_byte(input), run < n_bytes - at ? run : n_bytes - at);
        }
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void order(struct input *input, struct render_order *ret_order) {
        *ret_order = (struct render_order){ .n_fields = 1 + input_below(input, 4) };
        for (uint32_t i = 0; i < ret_order->n_fields; i++)
                ret_order->fields[i] = (struct render_field){ .idx = input_below(input, feed->layout.n_fields),
                                                              .what = input_below(input, RENDER_REFUSE + 1),
                                                              .out = { .n_bytes = input_number(input) } };
}

/* A right answer for the order, except that it may say to have rendered what has no room. */
static size_t answer(struct input *input, const struct render_order *asked, uint8_t *into) {
        struct render_answer *reply = zeroed(sizeof(*reply));
        size_t n = RENDER_ANSWER_BYTES(asked->n_fields);

        reply->n_opened = asked->n_fields;
        for (uint32_t i = 0; i < asked->n_fields; i++) {
                const struct field_form *form = &feed->layout.fields[asked->fields[i].idx].form;
                struct codec_opened *opened = &reply->opened[i].opened;

                for (uint32_t d = 0; d < form->n_dims; d++)
                        opened->shape[d] = form->shape[d] < 0 ? 7 : form->shape[d];
                opened->n_bytes = field_form_bytes(form, opened->shape) + form->tail_bytes;
                opened->width = opened->height = 9;
                reply->opened[i].is_rendered = input_below(input, 2) == 0 && asked->fields[i].what == RENDER_WHOLE;
        }
        memcpy(into, reply, n);
        free(reply);
        return n;
}

static void check(uint32_t k, size_t n_bytes) {
        const struct render_order *asked = &rendering->orders[k];
        const struct render_answer *reply = rendering->answers[k];
        const uint8_t *begin = rendering->packet, *at = (const uint8_t *)reply;

        if (at < begin || reply->n_opened > asked->n_fields ||
            at + RENDER_ANSWER_BYTES(reply->n_opened) > begin + n_bytes || reply->n_stages > N_STAGES)
                abort();
        for (uint32_t i = 0; i < reply->n_opened; i++) {
                const struct field_form *form = &feed->layout.fields[asked->fields[i].idx].form;
                const struct render_opened *opened = &reply->opened[i];

                if (opened->opened.is_absent)
                        continue;
                for (uint32_t d = 0; d < form->n_dims; d++)
                        if (opened->opened.shape[d] < 0)
                                abort();
                if (opened->opened.n_bytes > field_form_bytes(form, opened->opened.shape) + form->tail_bytes)
                        abort();
                if (opened->is_rendered && asked->fields[i].what == RENDER_WHOLE &&
                    opened->opened.n_bytes > asked->fields[i].out.n_bytes)
                        abort();
        }
}

static void check_packet(struct input *input) {
        size_t n_bytes = sizeof(struct render_answers), n_any;
        const uint8_t *any;

        memset(rendering->packet, 0, sizeof(rendering->packet));
        rendering->n_orders = 1 + input_below(input, RENDER_SAMPLES_MAX);
        for (uint32_t k = 0; k < rendering->n_orders; k++) {
                order(input, &rendering->orders[k]);
                rendering->tasks[k] = task;
                n_bytes += answer(input, &rendering->orders[k], rendering->packet + n_bytes);
        }
        rendering->head.n_answers = rendering->n_orders;
        if (input_below(input, 4) == 3) {
                any = input_bytes(input, CELL_MESSAGE_MAX, &n_any);
                memcpy(rendering->packet, any, n_any);
                n_bytes = n_any;
        }
        edit(input, rendering->packet, n_bytes > 0 ? n_bytes : 1);
        if (input_below(input, 8) == 7)
                n_bytes = (size_t)(input_word(input) % CELL_MESSAGE_MAX);
        if (check_answers(rendering, n_bytes))
                for (uint32_t k = 0; k < rendering->n_orders; k++)
                        check(k, n_bytes);
}

static void check_boxes(struct input *input) {
        struct codec_kept *kept = zeroed(sizeof(*kept));
        uint32_t n = 0;

        kept->n_boxes = (uint32_t)input_number(input);
        kept->n_kept = (uint32_t)input_number(input);
        kept->is_known = true;
        for (uint32_t i = 0; i < sizeof(kept->bits) && input->n > 0; i++)
                kept->bits[i] = input_byte(input);
        edit(input, kept, sizeof(*kept));
        if (check_kept(kept)) {
                for (uint32_t i = 0; i < kept->n_boxes; i++)
                        n += kept->bits[i / 8] >> i % 8 & 1;
                if (kept->n_boxes > BOXES_MAX || kept->n_kept > kept->n_boxes || (kept->is_known && n != kept->n_kept))
                        abort();
        }
        free(kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct input input = { data, n_bytes };

        if (!program)
                make_stream();
        if (input_below(&input, 4) < 3)
                check_packet(&input);
        else
                check_boxes(&input);
        return 0;
}
