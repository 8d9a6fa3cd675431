#include "daemon/store/record/record_steps.h"

#include <errno.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/text/step_values.h"

#define BLANKS     " \t\r\n"
#define STEP_NAMES "resize, jpeg, gpu_jpeg"

/* In the sequence in which they are written; convert stands alone. */
enum {
        RESIZE,
        JPEG,
        GPU_JPEG,
        CONVERT,
        N_STEPS
};

static const struct kind STEPS[N_STEPS] = {
        [RESIZE] = { .name = "resize",
                     .doc = "The short side of each picture gets `short` pixels, where it has more.",
                     .example = "resize(short=256)",
                     .needs = "pictures",
                     .arguments = ARGUMENTS({ ARGUMENT_WHOLE, "short", NULL, 1, STEPS_SHORT_MAX }) },
        [JPEG] = { .name = "jpeg",
                   .doc = "Each picture is encoded with this `quality` of libjpeg, also one that keeps its size.",
                   .example = "jpeg(90)",
                   .needs = "pictures",
                   .arguments = ARGUMENTS({ ARGUMENT_WHOLE, "quality", NULL, 1, 100 }) },
        [GPU_JPEG] = { .name = "gpu_jpeg",
                       .doc = "Transcodes each JPEG without loss, so that the rows of its blocks can be decoded side by "
                              "side on a GPU: baseline, with a restart marker after each row, and with the rows' "
                              "offsets in a segment that other programs skip. The last or only step.",
                       .example = "gpu_jpeg",
                       .needs = "pictures" },
        [CONVERT] = { .name = "convert",
                      .doc = "Makes Arrow files of Parquet files, with the same rows in the same order, unpacks the "
                             "arrays of one archive of numpy.savez_compressed() (.npz), and decompresses files that "
                             "are archives of webdataset, TFRecord, JSON Lines or Arrow. Stands alone.",
                      .example = "convert",
                      .needs = "files" },
};

static const struct kind *const PREPARE_KINDS[] = { &STEPS[RESIZE], &STEPS[JPEG], &STEPS[GPU_JPEG], &STEPS[CONVERT],
                                                    NULL };

const struct kind_family prepare_kinds = { .noun = "step",
                                           .kinds = PREPARE_KINDS,
                                           .some = STEP_NAMES "; or write convert, or command: and a shell command" };

/* A picture is resized, then encoded, then transcoded, and each once. */
static int record_steps_check_place(const struct grammar *grammar, const char *at, unsigned idx,
                                    const bool given[N_STEPS], struct why *why) {
        if (given[idx])
                return grammar_refuse(grammar, at, why, "%s is given twice", STEPS[idx].name);
        for (unsigned later = idx == CONVERT ? 0 : idx + 1; later < N_STEPS; later++)
                if (given[later] && (idx == CONVERT || later == CONVERT))
                        return grammar_refuse(grammar, at, why, "convert stands alone");
                else if (given[later])
                        return grammar_refuse(grammar, at, why, "\"%s\" after \"%s\"; the sequence is " STEP_NAMES,
                                              STEPS[idx].name, STEPS[later].name);
        return 0;
}

/* A shell command is not cut into steps. Returns 1: it is one. */
static int read_command(const struct grammar *grammar, const char *text, struct steps *ret_steps, struct why *why) {
        const char *at = text + strspn(text, BLANKS), *end;

        if (strncmp(at, "command", 7) != 0 || at[7 + strspn(at + 7, BLANKS)] != ':')
                return 0;
        at = strchr(at, ':') + 1;
        at += strspn(at, BLANKS);
        for (end = at; (unsigned char)*end >= 32 && *end != 127;)
                end++;
        if (*end || end == at)
                return grammar_expect(grammar, grammar_all(grammar).at + (end - text), "a shell command in one line",
                                      why);
        *ret_steps = (struct steps){ .command = at };
        return 1;
}

int steps_parse(const char *text, struct steps *ret_steps, struct why *why) {
        _cleanup_(grammar_freep) struct grammar *grammar = NULL;
        struct value_store store = { 0 }; /* numbers need none */
        struct values_reader reader = { .family = &prepare_kinds, .store = &store, .why = why };
        struct value values[N_STEPS] = {};
        bool given[N_STEPS] = {};
        struct grammar_steps steps;
        int r = grammar_new("prepare", text, &grammar, why);

        *ret_steps = (struct steps){ 0 };
        if (r == 0)
                r = read_command(grammar, text, ret_steps, why);
        if (r != 0)
                return r < 0 ? r : 0;
        if (grammar_steps(grammar, grammar_all(grammar), &steps) < 0)
                return why_errno(why, -ENOMEM, "prepare");
        reader.grammar = grammar;
        for (uint32_t i = 0; i < steps.n && r == 0; i++) {
                const struct grammar_step *written = &steps.at[i];
                const struct kind *kind = kind_find(&prepare_kinds, written->name);
                unsigned idx = kind ? (unsigned)(kind - STEPS) : 0;

                if (!kind)
                        return kind_refuse(&prepare_kinds, grammar, written->name, why);
                r = record_steps_check_place(grammar, written->name.at, idx, given, why);
                if (r == 0)
                        r = values_read(&reader, kind, written, &values[idx]);
                given[idx] = true;
        }
        if (r < 0)
                return r;
        if (given[CONVERT])
                ret_steps->converts = true;
        else
                *ret_steps = (struct steps){
                        .packs_only = steps.n == 0,
                        .short_side = (uint32_t)values[RESIZE].whole,
                        .quality = given[JPEG] ? (uint32_t)values[JPEG].whole : STEPS_QUALITY_DEFAULT,
                        .encodes_all = given[JPEG],
                        .transcodes = given[GPU_JPEG],
                };
        return 0;
}

int steps_check(const char *steps, struct why *why) {
        struct steps parsed;

        return steps_parse(steps, &parsed, why);
}
