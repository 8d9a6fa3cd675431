/* augment/recipe/recipe_plan.c: all steps of a recipe, drawn and folded for one picture. */
#include "daemon/augment/recipe/body.h"

#include <assert.h>

/* For one picture. */
struct planning {
        const struct recipe *recipe;
        uint32_t idx_left; /* steps from this one on are left to the client */
        struct fold *fold;
        uint64_t seed, sample;
        uint32_t epoch;
};

/* Number 0 is `decode`, written or not. */
static struct dlp_philox stream_of(const struct planning *planning, uint32_t idx) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, planning->seed, planning->epoch, planning->sample, (uint16_t)(idx + 1));
        return philox;
}

static int plan_steps(const struct planning *planning, uint32_t begin, uint32_t end, struct why *why);

static int plan_group(const struct planning *planning, uint32_t idx, struct why *why) {
        const struct step *step = &planning->recipe->steps[idx];
        struct dlp_philox philox = stream_of(planning, idx);
        uint32_t begins[LIST_MAX], ends[LIST_MAX], sequence[LIST_MAX];
        uint32_t n = group_branches(planning->recipe, idx, begins, ends);
        int r = 0;

        n = step->type->group->draw(step->values, n, &philox, sequence);
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = plan_steps(planning, begins[sequence[i]], ends[sequence[i]], why);
        return r;
}

static int plan_step(const struct planning *planning, uint32_t idx, struct why *why) {
        const struct step *step = &planning->recipe->steps[idx];
        struct dlp_philox philox = stream_of(planning, idx);

        planning->fold->step = step->stage;
        planning->fold->is_left = idx >= planning->idx_left;
        planning->fold->is_formed = step->is_formed;
        return step->type->plan(step->values, &philox, planning->fold, why);
}

static int plan_steps(const struct planning *planning, uint32_t begin, uint32_t end, struct why *why) {
        int r = 0;

        for (uint32_t i = begin; i < end && r == 0; i += 1 + planning->recipe->steps[i].n_inside) {
                const struct step_type *type = planning->recipe->steps[i].type;

                if (type->group)
                        r = plan_group(planning, i, why);
                else if (type->plan)
                        r = plan_step(planning, i, why);
        }
        return r;
}

static int recipe_plan_plan_all(const struct recipe *recipe, uint32_t idx_left, struct fold *fold, uint64_t seed,
                                uint32_t epoch, uint64_t sample, struct why *why) {
        struct planning planning = {
                .recipe = recipe, .idx_left = idx_left, .fold = fold, .seed = seed, .epoch = epoch, .sample = sample
        };
        struct motions motions;
        int r;

        motions.n = 0;
        if (recipe_needs_boxes(recipe) && !fold->motions)
                fold->motions = &motions;
        fold->view = recipe->view;
        r = plan_steps(&planning, 0, recipe->n_steps, why);
        return r < 0 ? r : fold_finish(fold, why);
}

int recipe_plan(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                uint64_t sample, struct geometry *ret_geometry, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        return recipe_plan_plan_all(recipe, recipe->has_left_operations ? recipe->idx_left : recipe->n_steps, &fold,
                                    seed, epoch, sample, why);
}

int recipe_plan_motions(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                        uint64_t sample, struct geometry *ret_geometry, struct motions *ret_motions, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        ret_motions->n = 0;
        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        fold.motions = ret_motions;
        return recipe_plan_plan_all(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
}

int recipe_plan_mask(const struct recipe *recipe, uint32_t width, uint32_t height, bool is_wide, uint64_t seed,
                     uint32_t epoch, uint64_t sample, struct geometry *ret_geometry, struct why *why) {
        static const struct conversion UNCHANGED = { .format = { .dtype = DLP_DTYPE_UINT8,
                                                                 .n_channels = PIXEL_BYTES } },
                                       WIDE = { .format = { .dtype = DLP_DTYPE_UINT16,
                                                            .mode = PIXELS_I16,
                                                            .n_channels = 1 } };
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        fold_init(&fold, ret_geometry, width, height, is_wide ? &WIDE : &UNCHANGED);
        fold.is_mask = true;
        return recipe_plan_plan_all(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
}
