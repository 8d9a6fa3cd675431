/* augment/recipe/sizes.c: how large pictures are at the end of a recipe, as far as it is known before they come. */
#include "daemon/augment/recipe/body.h"

#include <string.h>

/* A size as steps see it: 0 x 0 if it depends on the picture, or, of a bound, if there is none. */
struct size {
        uint32_t height, width;
};

/* The same walk gives sizes and bounds. */
struct sizes_walk {
        const struct recipe *recipe;
        bool is_bound;
        struct recipe_work *work; /* NULL: nobody asks */
};

static void add_work(struct recipe_work *work, const struct step *step, const struct size *size) {
        work->n_pixels += (uint64_t)size->height * size->width;
        if (work->n_pixels > work->most && !work->passing)
                work->passing = step->type->kind.name;
}

static struct size through_steps(const struct sizes_walk *walk, uint32_t begin, uint32_t end, struct size size);

static struct size through_step(const struct sizes_walk *walk, const struct step *step, struct size size) {
        const struct step_type *type = step->type;

        if (walk->is_bound && type->bound) {
                type->bound(step->values, &size.height, &size.width);
        } else if (type->output) {
                if (walk->is_bound) /* a bound before it is not the size that it asks for */
                        size = (struct size){ 0, 0 };
                type->output(step->values, &size.height, &size.width);
        }
        if (walk->work && step_touches_pixels(type))
                add_work(walk->work, step, &size);
        return size;
}

/* What is known if it may be either. */
static struct size either(const struct sizes_walk *walk, struct size a, struct size b) {
        if (a.height == b.height && a.width == b.width)
                return a;
        if (!walk->is_bound || a.height == 0 || b.height == 0)
                return (struct size){ 0, 0 };
        return (struct size){ a.height > b.height ? a.height : b.height, a.width > b.width ? a.width : b.width };
}

static bool changes_size(const struct recipe *recipe, uint32_t begin, uint32_t end) {
        for (uint32_t i = begin; i < end; i++)
                if (recipe->steps[i].type->output)
                        return true;
        return false;
}

/* All branches, in any sequence: known if one alone changes the size. */
static struct size through_all(const struct sizes_walk *walk, const uint32_t *begins, const uint32_t *ends, uint32_t n,
                               struct size size) {
        uint32_t n_changing = 0;

        for (uint32_t i = 0; i < n; i++)
                n_changing += changes_size(walk->recipe, begins[i], ends[i]);
        if (n_changing > 1)
                return (struct size){ 0, 0 };
        for (uint32_t i = 0; i < n; i++)
                size = through_steps(walk, begins[i], ends[i], size);
        return size;
}

static struct size through_group(const struct sizes_walk *walk, uint32_t idx, struct size before) {
        const struct step *step = &walk->recipe->steps[idx];
        const struct group *group = step->type->group;
        const struct value *weights = &step->values[group->idx_weights];
        uint32_t begins[LIST_MAX], ends[LIST_MAX], n = group_branches(walk->recipe, idx, begins, ends);
        double chance = group->chance ? group->chance(step->values) : 1;
        bool is_known = chance < 1; /* that it may be as before */
        struct size result = before;
        struct recipe_work begun, dearest;

        if (chance <= 0)
                return before;
        if (group->runs_all) {
                result = through_all(walk, begins, ends, n, before);
                return is_known ? either(walk, before, result) : result;
        }
        if (walk->work)
                dearest = begun = *walk->work;
        for (uint32_t i = 0; i < n; i++) {
                struct size size;

                if (group->idx_weights > 0 && weights->n_list > 0 && weights->list[i] <= 0)
                        continue;
                if (walk->work)
                        *walk->work = begun;
                size = through_steps(walk, begins[i], ends[i], before);
                if (walk->work && walk->work->n_pixels > dearest.n_pixels)
                        dearest = *walk->work;
                result = is_known ? either(walk, result, size) : size;
                is_known = true;
        }
        if (walk->work)
                *walk->work = dearest;
        return result;
}

static struct size through_steps(const struct sizes_walk *walk, uint32_t begin, uint32_t end, struct size size) {
        for (uint32_t i = begin; i < end; i += 1 + walk->recipe->steps[i].n_inside)
                size = walk->recipe->steps[i].type->group ? through_group(walk, i, size)
                                                          : through_step(walk, &walk->recipe->steps[i], size);
        return size;
}

static bool sizes_walk_all(const struct recipe *recipe, bool is_bound, struct size size, uint32_t *ret_height,
                           uint32_t *ret_width) {
        const struct sizes_walk walk = { .recipe = recipe, .is_bound = is_bound };

        size = through_steps(&walk, 0, recipe->n_steps, size);

        if (size.height == 0)
                return false;
        *ret_height = size.height;
        *ret_width = size.width;
        return true;
}

int recipe_output(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        return recipe_output_from(recipe, 0, 0, ret_height, ret_width);
}

int recipe_output_from(const struct recipe *recipe, uint32_t height, uint32_t width, uint32_t *ret_height,
                       uint32_t *ret_width) {
        return sizes_walk_all(recipe, false, (struct size){ height, width }, ret_height, ret_width) ? 0 : RECIPE_VARIES;
}

bool recipe_bound(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        return sizes_walk_all(recipe, true, (struct size){ 0, 0 }, ret_height, ret_width);
}

void recipe_add_work(const struct recipe *recipe, struct recipe_work *work) {
        const struct sizes_walk walk = { .recipe = recipe, .is_bound = true, .work = work };

        through_steps(&walk, 0, recipe->n_steps, (struct size){ 0, 0 });
}

uint64_t recipe_work_of(const struct geometry *geometry) {
        uint64_t n_pixels = 0;

        for (uint32_t i = 0; i < geometry->n_stages; i++) {
                const struct stage *stage = &geometry->stages[i];

                n_pixels += (uint64_t)stage->canvas_width * stage->canvas_height * (1 + stage->n_operations);
        }
        return n_pixels;
}
