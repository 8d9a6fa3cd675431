/* augment/steps/policies/change.c: what one change does. */
#include <errno.h>
#include <math.h>

#include "daemon/augment/steps/policies/policies.h"

static const double PI = 3.141592653589793;

const struct policy_reach POLICY_NARROW = {
        .shear = 0.3, .rotate = 30, .blend = 0.9, .translate = 150.0 / 331.0, .is_relative = true, .n_bits = 4
};
const struct policy_reach POLICY_WIDE = { .shear = 0.99, .rotate = 135, .blend = 0.99, .translate = 32, .n_bits = 6 };

static float change_bits_left(uint32_t n_bits, struct policy_magnitude magnitude) {
        float taken = (float)magnitude.idx / (float)((magnitude.n - 1) / (double)n_bits);

        return rintf(8.0f - taken);
}

static int change_shear(struct fold *fold, double x, double y, const struct warp_look *look, struct why *why) {
        struct affine affine = { .scale = 1, .center.is_given = true };

        affine.shear_x = atan(x) * (180.0 / PI); /* as Python's math.degrees() */
        affine.shear_y = atan(y) * (180.0 / PI);
        return fold_affine(fold, &affine, look, why);
}

static int change_translate(struct fold *fold, double x, double y, const struct warp_look *look, struct why *why) {
        struct affine affine = { .scale = 1, .translate_x = trunc(x), .translate_y = trunc(y) };

        return fold_affine(fold, &affine, look, why);
}

static int change_operate(struct fold *fold, const struct operation_type *type, float amount) {
        fold_operate(fold, &(struct operation){ type, amount });
        return 0;
}

int policy_change(struct fold *fold, enum policy_change change, const struct policy_reach *reach,
                  struct policy_magnitude magnitude, bool is_negative, const struct warp_look *look, struct why *why) {
        double sign = is_negative ? -1 : 1, width = reach->is_relative ? fold_width(fold) : 1,
               height = reach->is_relative ? fold_height(fold) : 1;
        float factor = (float)(1.0 + sign * policy_on_scale(0, reach->blend, magnitude));
        struct warp_center middle = { 0 };

        switch (change) {
        case POLICY_SHEAR_X:
                return change_shear(fold, sign * policy_on_scale(0, reach->shear, magnitude), 0, look, why);
        case POLICY_SHEAR_Y:
                return change_shear(fold, 0, sign * policy_on_scale(0, reach->shear, magnitude), look, why);
        case POLICY_TRANSLATE_X:
                return change_translate(fold, sign * policy_on_scale(0, reach->translate * width, magnitude), 0, look,
                                        why);
        case POLICY_TRANSLATE_Y:
                return change_translate(fold, 0, sign * policy_on_scale(0, reach->translate * height, magnitude), look,
                                        why);
        case POLICY_ROTATE:
                return fold_rotate(fold, sign * policy_on_scale(0, reach->rotate, magnitude), false, &middle, look,
                                   why);
        case POLICY_BRIGHTNESS:
                return change_operate(fold, &operation_brightness, factor);
        case POLICY_COLOR:
                return change_operate(fold, &operation_saturation, factor);
        case POLICY_CONTRAST:
                return change_operate(fold, &operation_contrast, factor);
        case POLICY_SHARPNESS:
                return change_operate(fold, &operation_sharpness, factor);
        case POLICY_POSTERIZE:
                return change_operate(fold, &operation_posterize, change_bits_left(reach->n_bits, magnitude));
        case POLICY_SOLARIZE: /* levels from the threshold on are those from the next whole number on */
                return change_operate(fold, &operation_solarize, (float)ceil(255.0 * policy_on_scale(1, 0, magnitude)));
        case POLICY_AUTO_CONTRAST:
                return change_operate(fold, &operation_autocontrast, 0);
        case POLICY_EQUALIZE:
                return change_operate(fold, &operation_equalize, 0);
        case POLICY_INVERT:
                return change_operate(fold, &operation_invert, 0);
        default:
                return 0;
        }
}

bool policy_sign(struct dlp_philox *philox) {
        return dlp_philox_f32(philox) <= 0.5f;
}

int policy_begin(const struct fold *fold, const char *name, struct why *why) {
        if (fold->is_mask || fold->motions)
                return why_set(why, -EINVAL,
                               "%s is not for pictures with masks, boxes or points, as in torchvision; use "
                               "random_rotation, random_affine and the steps that change colours",
                               name);
        return 0;
}

int policy_check(const struct value *fill, const struct conversion *conversion, struct why *why) {
        int r = mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L), "mode=RGB or L", why);

        return r < 0 ? r : fill_check(fill, conversion, why);
}
