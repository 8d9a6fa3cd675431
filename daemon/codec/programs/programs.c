#include "daemon/codec/programs/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/joined/joined.h"
#include "proto/base/cleanup.h"

struct programs {
        const struct source *source;
        uint32_t n_parts;
        struct program *parts[]; /* n_parts */
};

static void programs_freep(struct programs **programs) {
        programs_free(*programs);
}

void programs_free(struct programs *programs) {
        if (!programs)
                return;
        for (uint32_t k = 0; k < programs->n_parts; k++)
                program_free(programs->parts[k]);
        free(programs);
}

const struct program *programs_first(const struct programs *programs) {
        return programs->parts[0];
}

const struct program *programs_with(const struct programs *programs, uint64_t sample) {
        return programs->parts[programs->n_parts > 1 ? source_part_of(programs->source, sample) : 0];
}

uint32_t programs_n_parts(const struct programs *programs) {
        return programs->n_parts;
}

const struct program *programs_part(const struct programs *programs, uint32_t idx) {
        return programs->parts[idx];
}

const struct source *programs_source(const struct programs *programs, uint32_t idx) {
        return programs->source->n_parts > 0 ? programs->source->parts[idx].source : programs->source;
}

static const char *part_name(const struct programs *programs, uint32_t idx) {
        return programs->source->parts[idx].name;
}

/* ---- do the parts deliver the same fields? --------------------------------------------------------------------- */

static const struct schema_field *programs_field_of(const struct programs *programs, uint32_t part, uint32_t idx) {
        const struct source *source = programs_source(programs, part);

        return &source->schema.fields[codec_field(program_codec(programs->parts[part], idx))];
}

static void list_delivered(const struct programs *programs, uint32_t part, char *text, size_t size) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t i = 0; i < program_n_fields(programs->parts[part]) && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "",
                                      codec_name(program_codec(programs->parts[part], i)));
}

/* Fields have the same numbers in all parts. */
static int compare_fields(const struct programs *programs, uint32_t part, struct why *why) {
        uint32_t n = program_n_fields(programs->parts[0]);
        bool is_same = program_n_fields(programs->parts[part]) == n;
        char first[160], other[160];

        for (uint32_t i = 0; i < n && is_same; i++)
                is_same = codec_field(program_codec(programs->parts[0], i)) ==
                          codec_field(program_codec(programs->parts[part], i));
        if (is_same)
                return 0;
        list_delivered(programs, 0, first, sizeof(first));
        list_delivered(programs, part, other, sizeof(other));
        return why_set(why, -EINVAL,
                       "pipeline: it would deliver %s of %s and %s of %s; name the fields, as in \"%s: ...\"", first,
                       part_name(programs, 0), other, part_name(programs, part),
                       programs_field_of(programs, 0, 0)->name);
}

/* Numbers of classes mean the same only if the classes are the same. */
static int programs_check_classes(const struct programs *programs, struct why *why) {
        struct why difference;

        if (joined_check_classes(programs->source, &difference) == 0)
                return 0;
        for (uint32_t k = 0; k < programs->n_parts; k++)
                for (uint32_t i = 0; i < program_n_fields(programs->parts[k]); i++)
                        if (programs_field_of(programs, k, i)->is_class)
                                return why_set(why, -EINVAL,
                                               "pipeline: field %s cannot be delivered, as its numbers are those of "
                                               "other classes in each dataset: %s; give all of them the same "
                                               "class folders (they may be empty), or name the fields without it",
                                               programs_field_of(programs, k, i)->name, difference.text);
        return 0;
}

static int programs_parse_part(struct programs *programs, uint32_t part, const char *text,
                               const struct codec_named *named, struct why *why) {
        struct why bare;
        int r = program_parse(text, programs_source(programs, part), named, &programs->parts[part], why);

        if (r == 0 || programs->source->n_parts == 0)
                return r;
        bare = *why;
        return why_set(why, r, "dataset %s: %s", part_name(programs, part), bare.text);
}

int programs_parse(const char *text, const struct source *source, const struct codec_named *named,
                   struct programs **ret_programs, struct why *why) {
        uint32_t n_parts = source->n_parts > 0 ? source->n_parts : 1;
        _cleanup_(programs_freep) struct programs *programs = calloc(1, sizeof(*programs) +
                                                                                n_parts * sizeof(struct program *));
        int r = 0;

        if (!programs)
                return why_errno(why, -ENOMEM, "pipeline");
        programs->source = source;
        while (programs->n_parts < n_parts && r == 0) {
                r = programs_parse_part(programs, programs->n_parts++, text, named, why);
                if (r == 0 && programs->n_parts > 1)
                        r = compare_fields(programs, programs->n_parts - 1, why);
        }
        if (r == 0)
                r = programs_check_classes(programs, why);
        if (r < 0)
                return r;
        *ret_programs = TAKE_PTR(programs);
        return 0;
}

/* What is left must be the same in all parts. Returns whether anything is. */
static bool leave_field(struct programs *programs, uint32_t idx, bool with_operations) {
        bool can_form = true, can_operations = with_operations;

        for (uint32_t k = 0; k < programs->n_parts; k++) {
                can_form = can_form && program_can_leave_form(programs->parts[k], idx);
                can_operations = can_operations && program_can_leave_operations(programs->parts[k], idx);
        }
        for (uint32_t k = 0; k < programs->n_parts; k++)
                if (can_operations)
                        program_leave_operations(programs->parts[k], idx);
                else if (can_form)
                        program_leave_form(programs->parts[k], idx);
        return can_form || can_operations;
}

void programs_leave_forms(struct programs *programs, bool with_operations) {
        uint32_t n_left = 0;

        for (uint32_t i = 0; i < program_n_fields(programs->parts[0]) && n_left < DLP_LEFT_FORMS_MAX; i++)
                n_left += leave_field(programs, i, with_operations);
}

/* ---- one form for all parts ------------------------------------------------------------------------------------ */

/* "float32 [-1, 4]" */
static void programs_print_shape(enum dlp_dtype dtype, uint32_t n_dims, const int64_t *shape, char text[160]) {
        size_t n = (size_t)snprintf(text, 160, "%s [", dlp_dtype_name(dtype));

        for (uint32_t i = 0; i < n_dims && n < 140; i++)
                n += (size_t)snprintf(text + n, 160 - n, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
        snprintf(text + n, 160 - n, "]");
}

static int programs_refuse_form(const struct programs *programs, uint32_t part, const struct field_form *all,
                                const struct field_form *form, struct why *why) {
        char first[160], other[160];

        programs_print_shape(all->dtype, all->n_dims, all->shape, first);
        programs_print_shape(form->dtype, form->n_dims, form->shape, other);
        return why_set(why, -EINVAL,
                       "pipeline: field %s is %s in %s and %s in %s, which cannot stand in one batch; let steps make "
                       "them alike, such as to(int64), or name the fields without it",
                       form->name, first, part_name(programs, 0), other, part_name(programs, part));
}

static int refuse_input(const struct programs *programs, uint32_t part, const struct field_form *all,
                        const struct field_form *form, struct why *why) {
        char first[160], other[160];

        programs_print_shape(all->input.dtype, all->input.n_dims, all->input.shape, first);
        programs_print_shape(form->input.dtype, form->input.n_dims, form->input.shape, other);
        return why_set(
                why, -EINVAL,
                "pipeline: a plug-in or a function gets field %s as %s in %s and as %s in %s, and it is told one form; let "
                "steps before it make them alike, such as to(float32)",
                form->name, first, part_name(programs, 0), other, part_name(programs, part));
}

/* A process is told one form of what its function or plug-in gets; only what varies in all parts may differ. */
static bool has_like_input(const struct field_form *all, const struct field_form *form) {
        const struct field_input *one = &all->input, *other = &form->input;

        return (one->n_bytes > 0) == (other->n_bytes > 0) && one->dtype == other->dtype &&
               one->n_dims == other->n_dims && memcmp(one->shape, other->shape, one->n_dims * sizeof(*one->shape)) == 0;
}

/* The dimensions in which samples may differ must be so in all parts: for a stack because its room is planned
 * otherwise, for a ragged field because only the first one is each sample's own. */
static bool programs_is_alike(const struct field_form *all, const struct field_form *form) {
        return all->dtype == form->dtype && all->how == form->how && all->n_dims == form->n_dims &&
               memcmp(all->shape, form->shape, form->n_dims * sizeof(form->shape[0])) == 0;
}

static uint64_t programs_larger(uint64_t one, uint64_t other) {
        return one > other ? one : other;
}

static uint64_t common_unit(uint64_t one, uint64_t other) {
        while (other != 0) {
                uint64_t rest = one % other;

                one = other;
                other = rest;
        }
        return one;
}

/* A batch may hold the longest samples of all parts. A part in which the field is always absent adds nothing. */
static uint64_t together(const struct field_form *all, const struct field_form *form) {
        uint64_t sum;

        if (form->max_bytes == 0)
                return all->together_bytes;
        if (all->max_bytes == 0)
                return form->together_bytes;
        if (all->together_bytes == 0 || form->together_bytes == 0 ||
            __builtin_add_overflow(all->together_bytes, form->together_bytes, &sum))
                return 0; /* the longest one times the batch size */
        return sum;
}

static void add_form(struct field_form *all, const struct field_form *form) {
        all->together_bytes = together(all, form);
        all->unit_bytes = common_unit(all->unit_bytes, form->unit_bytes);
        all->max_bytes = programs_larger(all->max_bytes, form->max_bytes);
        all->asked_bytes = programs_larger(all->asked_bytes, form->asked_bytes);
        all->more_bytes = programs_larger(all->more_bytes, form->more_bytes);
        all->input.n_bytes = programs_larger(all->input.n_bytes, form->input.n_bytes);
        all->result.n_bytes = programs_larger(all->result.n_bytes, form->result.n_bytes);
        all->fails_late |= form->fails_late;
        all->takes_share |= form->takes_share;
        all->is_gathered |= form->is_gathered;
        for (uint32_t i = 0; i < PADDED_DIMS_MAX; i++)
                all->bounds[i] = all->bounds[i] && form->bounds[i] ? programs_larger(all->bounds[i], form->bounds[i])
                                                                   : 0;
}

int programs_form(const struct programs *programs, uint32_t idx, const struct codec_terms *terms,
                  struct field_form *ret_form, struct why *why) {
        struct codec_terms part_terms = *terms;
        struct field_form all, form;

        for (uint32_t k = 0; k < programs->n_parts; k++) {
                int r;

                part_terms.source = programs_source(programs, k);
                r = program_form(programs->parts[k], idx, &part_terms, &form, why);
                if (r < 0)
                        return r;
                if (k > 0 && !programs_is_alike(&all, &form))
                        return programs_refuse_form(programs, k, &all, &form, why);
                if (k > 0 && !has_like_input(&all, &form))
                        return refuse_input(programs, k, &all, &form, why);
                if (k == 0)
                        all = form;
                else
                        add_form(&all, &form);
        }
        *ret_form = all;
        return 0;
}
