/* augment/recipe/plan.c: all steps of a recipe, drawn and folded for one picture. */
#include "daemon/augment/recipe/body.h"

#include <assert.h>

/* Steps from idx_left on are left to the client. */
static int plan_steps(const struct recipe *recipe, uint32_t idx_left, struct fold *fold, uint64_t seed, uint32_t epoch,
                      uint64_t sample, struct why *why) {
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                const struct step *step = &recipe->steps[i];
                struct dlp_philox philox;
                int r;

                if (!step->type->plan)
                        continue;
                dlp_philox_init(&philox, seed, epoch, sample,
                                (uint16_t)(i + 1)); /* number 0 is `decode`, written or not */
                fold->step = step->stage;
                fold->is_left = i >= idx_left;
                fold->is_formed = step->is_formed;
                r = step->type->plan(step->values, &philox, fold, why);
                if (r < 0)
                        return r;
        }
        return fold_finish(fold, why);
}

int recipe_plan(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                uint64_t sample, struct geometry *ret_geometry, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        return plan_steps(recipe, recipe->has_left_operations ? recipe->idx_left : recipe->n_steps, &fold, seed, epoch,
                          sample, why);
}

int recipe_plan_motions(const struct recipe *recipe, uint32_t width, uint32_t height, uint64_t seed, uint32_t epoch,
                        uint64_t sample, struct geometry *ret_geometry, struct motions *ret_motions, struct why *why) {
        struct fold fold;

        assert(recipe->kind == RECIPE_PIXELS && width > 0 && height > 0);

        ret_motions->n = 0;
        fold_init(&fold, ret_geometry, width, height, &recipe->conversion);
        fold.motions = ret_motions;
        return plan_steps(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
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
        return plan_steps(recipe, recipe->n_steps, &fold, seed, epoch, sample, why);
}
