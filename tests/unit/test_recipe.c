/* unit/test_recipe.c: what a pipeline's text may say, what it is told where it is wrong, and what it does to pixels. */
#include "daemon/augment/crop.h"
#include "daemon/augment/recipe.h"
#include "daemon/augment/step.h"
#include "daemon/base/half.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct recipe *parse(const char *text) {
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s: %s", text, why.text);
        return recipe;
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

START_TEST(a_text_has_one_normal_spelling) {
        static const struct {
                const char *text, *normal;
        } rows[] = {
                { "raw", "raw" },
                { " raw() ", "raw" },
                { "decode", "decode" },
                { "decode( 500000 )", "decode(max_pixels=500000)" },
                { "decode(9, transpose)", "decode(max_pixels=9, exif=transpose)" },
                { "decode(exif=transpose) vflip", "decode(exif=transpose) vflip(0.5)" },
                { "decode(exif=ignore)", "decode" },
                { "decode(mode=RGB)", "decode" },
                { "decode(mode=I;16)", "decode(mode=I;16)" },
                { "decode(mode=F)", "decode(mode=F)" },
                { "decode(bands=1, mode=F)", "decode(mode=F)" },
                { "decode(bands=1, mode=L)", "decode(mode=L, bands=1)" },
                { "decode(mode=I;16, bands=1024, max_pixels=9)", "decode(max_pixels=9, mode=I;16, bands=1024)" },
                { "decode(mask=uint8)", "decode(mask=uint8)" },
                { "decode(mask=int64, max_pixels=7) hflip", "decode(max_pixels=7, mask=int64) hflip(0.5)" },
                { "decode(mode=LA, exif=transpose) hflip", "decode(exif=transpose, mode=LA) hflip(0.5)" },
                { "decode(7, mode=RGBA) normalize(1:2:3:4, 5)",
                  "decode(max_pixels=7, mode=RGBA) normalize(1:2:3:4, std=5)" },
                { "decode(mode=L) grayscale(3) normalize(1:2:3, 1)",
                  "decode(mode=L) grayscale(3) normalize(1:2:3, std=1)" },
                { "decode(mode=RGBA) color_jitter(0.5:1, 1, 1)",
                  "decode(mode=RGBA) color_jitter(0.5:1, contrast=0:2, saturation=0:2, hue=0:0)" },
                { "decode(max_pixels=4294967295) hflip", "decode(max_pixels=4294967295) hflip(0.5)" },
                { "random_resized_crop(224)",
                  "random_resized_crop(224, scale=0.08:1, ratio=0.75:1.3333333333333333, interpolation=bilinear)" },
                { "decode\trandom_resized_crop( size = 224:224 ,ratio=0.75:1.3333 , scale=.08:1.0)\n hflip",
                  "random_resized_crop(224, scale=0.08:1, ratio=0.75:1.3333, interpolation=bilinear) hflip(0.5)" },
                { "random_resized_crop(96:128, 0.5:1, 1:1, lanczos)",
                  "random_resized_crop(96:128, scale=0.5:1, ratio=1:1, interpolation=lanczos)" },
                { "resize(256) center_crop(224)", "resize(256, interpolation=bilinear) center_crop(224)" },
                { "resize(short=800, max=1333)", "resize(800, interpolation=bilinear, max=1333)" },
                { "resize(256:256, interpolation=bicubic)", "resize(256:256, interpolation=bicubic)" },
                { "center_crop(1:16384)", "center_crop(1:16384)" },
                { "hflip()", "hflip(0.5)" },
                { "hflip(p=1e-1) hflip(0) hflip(-0.0)", "hflip(0.1) hflip(0) hflip(0)" },
                { "vflip", "vflip(0.5)" },
                { "random_crop(32, 4)",
                  "random_crop(32, padding=4, pad_if_needed=false, fill=0, padding_mode=constant)" },
                { "random_crop(size=32:40,pad_if_needed=true , fill=1:2:3,padding=1:2:3:4,padding_mode=reflect)",
                  "random_crop(32:40, padding=1:2:3:4, pad_if_needed=true, fill=1:2:3, padding_mode=reflect)" },
                { "color_jitter", "color_jitter(1:1, contrast=1:1, saturation=1:1, hue=0:0)" },
                { "color_jitter(0.4, 2, .5:1.5, hue=0.1)",
                  "color_jitter(0.6:1.4, contrast=0:3, saturation=0.5:1.5, hue=-0.1:0.1)" },
                { "random_grayscale random_grayscale(1)", "random_grayscale(0.1) random_grayscale(1)" },
                { "grayscale grayscale(3)", "grayscale(1) grayscale(3)" },
                { "invert autocontrast() equalize(0.25)", "invert(0.5) autocontrast(0.5) equalize(0.25)" },
                { "sharpness(2) sharpness(p=1, factor=0)", "sharpness(2, p=0.5) sharpness(0, p=1)" },
                { "decode(mode=LA) sharpness(1)", "decode(mode=LA) sharpness(1, p=0.5)" },
                { "random_rotation(15) random_rotation(90:180, bicubic, true, 3:-4.5, 1:2:3)",
                  "random_rotation(-15:15, interpolation=nearest, expand=false, fill=0) "
                  "random_rotation(90:180, interpolation=bicubic, expand=true, center=3:-4.5, fill=1:2:3)" },
                { "RandomAffine(degrees=0, translate=(0.1, 0.25), scale=[0.5, 2], shear=-3:4:5:6)",
                  "random_affine(0:0, translate=0.1:0.25, scale=0.5:2, shear=-3:4:5:6, interpolation=nearest, fill=0)" },
                { "random_affine(1) random_perspective() v2.RandomPerspective(0.2, p=1, interpolation=nearest, fill=9)",
                  "random_affine(-1:1, translate=0:0, scale=1:1, shear=0, interpolation=nearest, fill=0) "
                  "random_perspective(0.5, p=0.5, interpolation=bilinear, fill=0) "
                  "random_perspective(0.2, p=1, interpolation=nearest, fill=9)" },
                { "timm_rand_augment(9, mstd=0.5, increasing=true, fill=1:2:3)",
                  "timm_rand_augment(9, num_layers=2, p=0.5, mstd=0.5, mmax=10, increasing=true, interpolation=random, "
                  "fill=1:2:3)" },
                { "gaussian_blur(3) GaussianBlur(kernel_size=(5, 9), sigma=1.5)",
                  "gaussian_blur(3, sigma=0.1:2) gaussian_blur(5:9, sigma=1.5)" },
                { "random_channel_permutation RandomChannelPermutation()",
                  "random_channel_permutation() random_channel_permutation()" },
                { "RandomPhotometricDistort(hue=(-0.5, -0.1), p=1)",
                  "random_photometric_distort(0.875:1.125, contrast=0.5:1.5, saturation=0.5:1.5, hue=-0.5:-0.1, p=1)" },
                { "erasing RandomErasing(1, value='random') erasing(value=1:2:3)",
                  "erasing(0.5, scale=0.02:0.33, ratio=0.3:3.3, value=0) "
                  "erasing(1, scale=0.02:0.33, ratio=0.3:3.3, value=random) "
                  "erasing(0.5, scale=0.02:0.33, ratio=0.3:3.3, value=1:2:3)" },
                { "MotionBlur(5) motion_blur(blur_limit=(3, 9), allow_shifted=False, p=1)",
                  "motion_blur(5, allow_shifted=true, angle_range=0:360, direction_range=-1:1, p=0.5) "
                  "motion_blur(3:9, allow_shifted=false, angle_range=0:360, direction_range=-1:1, p=1)" },
                { "CoarseDropout(num_holes_range=(1, 8), hole_height_range=(8, 32), hole_width_range=(8, 32))",
                  "coarse_dropout(1:8, hole_height=8:32, hole_width=8:32, fill=0, p=0.5)" },
                { "coarse_dropout(fill=random) coarse_dropout(fill=1:2:3)",
                  "coarse_dropout(1:2, hole_height=0.1:0.2, hole_width=0.1:0.2, fill=random, p=0.5) "
                  "coarse_dropout(1:2, hole_height=0.1:0.2, hole_width=0.1:0.2, fill=1:2:3, p=0.5)" },
                { "jpeg(50) JPEG((50, 90)) ImageCompression(quality_range=(80, 100), p=0.5)",
                  "jpeg(50, p=1) jpeg(50:90, p=1) jpeg(80:100, p=0.5)" },
                { "RandomBrightnessContrast(0.3, p=1)",
                  "random_brightness_contrast(-0.3:0.3, contrast_limit=-0.2:0.2, p=1)" },
                { "normalize(0.5, 1) erasing(value=-1.5) to(float16) erasing layout(nchw) erasing",
                  "normalize(0.5, std=1) erasing(0.5, scale=0.02:0.33, ratio=0.3:3.3, value=-1.5) to(float16) "
                  "erasing(0.5, scale=0.02:0.33, ratio=0.3:3.3, value=0) layout(nchw) "
                  "erasing(0.5, scale=0.02:0.33, ratio=0.3:3.3, value=0)" },
                { "AutoAugment(policy=SVHN) v2.RandAugment() TrivialAugmentWide(7, fill=[1, 2, 3])",
                  "auto_augment(svhn, interpolation=nearest, fill=0) "
                  "rand_augment(2, magnitude=9, num_magnitude_bins=31, interpolation=nearest, fill=0) "
                  "trivial_augment_wide(7, interpolation=nearest, fill=1:2:3)" },
                { "AugMix() aug_mix(10, 1, 0, 0.5, False, nearest, fill=(1, 2, 3))",
                  "aug_mix(3, mixture_width=3, chain_depth=-1, alpha=1, all_ops=true, interpolation=bilinear) "
                  "aug_mix(10, mixture_width=1, chain_depth=0, alpha=0.5, all_ops=false, interpolation=nearest, "
                  "fill=1:2:3)" },
                { "to(float16) layout(nchw)", "to(float16) layout(nchw)" },
                { "to(float32, multiply)", "to(float32, scale=multiply)" },
                { "to(float16, scale=divide)", "to(float16)" },
                { "hflip normalize(0.5, std=.25:1:2e0)", "hflip(0.5) normalize(0.5, std=0.25:1:2)" },
                { "pad(4:0, 255.0, edge)", "pad(4:0, fill=255, padding_mode=edge)" },
                { "pad(10, 250)", "pad(10, fill=250, padding_mode=constant)" },
                { "random_zoom_out RandomZoomOut([1, 2, 3], side_range=(1, 2))",
                  "random_zoom_out(0, side_range=1:4, p=0.5) random_zoom_out(1:2:3, side_range=1:2, p=0.5)" },
                { "scale_jitter([1024, 512]) ScaleJitter(target_size=(8, 8), scale_range=(0.5, 1))",
                  "scale_jitter(1024:512, scale_range=0.1:2, interpolation=bilinear) "
                  "scale_jitter(8, scale_range=0.5:1, interpolation=bilinear)" },
                { "RandomShortestSize(min_size=[480, 512], max_size=1333), random_shortest_size(9)",
                  "random_shortest_size(480:512, max_size=1333, interpolation=bilinear) "
                  "random_shortest_size(9, interpolation=bilinear)" },
                { "RandomResize(256, max_size=480)", "random_resize(256, max_size=480, interpolation=bilinear)" },
                { "RandomIoUCrop(sampler_options=[0.5, 1.0])",
                  "random_iou_crop(0.3, max_scale=1, min_aspect_ratio=0.5, max_aspect_ratio=2, "
                  "sampler_options=0.5:1, trials=40)" },
                { "FiveCrop(size=(8, 9))", "five_crop(8:9)" },
                { "v2.TenCrop(8, vertical_flip=True)", "ten_crop(8, vertical_flip=true)" },
                { "sanitize sanitize(0.5, min_area=4)", "sanitize(1, min_area=1) sanitize(0.5, min_area=4)" },
                /* as fingers type it */
                { "resize([256, 256])", "resize(256:256, interpolation=bilinear)" },
                { "resize((256,), 'Bicubic')", "resize(256, interpolation=bicubic)" },
                { "resize(256, max_size=1333)", "resize(256, interpolation=bilinear, max=1333)" },
                { "random_resized_crop(8, scale=(0.08, 1.0), ratio=[ 1 ,2, ])",
                  "random_resized_crop(8, scale=0.08:1, ratio=1:2, interpolation=bilinear)" },
                { "random_crop(32, padding=[1,2,3,4], pad_if_needed=True, fill=(1, 2, 3))",
                  "random_crop(32, padding=1:2:3:4, pad_if_needed=true, fill=1:2:3, padding_mode=constant)" },
                { "hflip to(fp16) layout(NCHW)", "hflip(0.5) to(float16) layout(nchw)" },
                { "to(torch.bfloat16) layout(\"channels_last\")", "to(bfloat16) layout(channels_last)" },
                { "layout(HWC)", "layout(nhwc)" },
                { "to(half)", "to(float16)" },
                { "to(bf16)", "to(bfloat16)" },
                { "transforms.RandomResizedCrop(8), T.RandomHorizontalFlip(p=0.3), v2.ColorJitter(), ToTensor(), "
                  "Normalize(mean=[0.5, 0.4, 0.3], std=(1, 2, 3))",
                  "random_resized_crop(8, scale=0.08:1, ratio=0.75:1.3333333333333333, interpolation=bilinear) hflip(0.3) "
                  "color_jitter(1:1, contrast=1:1, saturation=1:1, hue=0:0) to(float32) layout(nchw) "
                  "normalize(0.5:0.4:0.3, std=1:2:3)" },
                { "Resize(3) CenterCrop(2) RandomVerticalFlip RandomGrayscale PILToTensor",
                  "resize(3, interpolation=bilinear) center_crop(2) vflip(0.5) random_grayscale(0.1) layout(nchw)" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text), *again;

                ck_assert_str_eq(recipe_text(recipe), rows[i].normal);
                again = parse(rows[i].normal); /* and the normal spelling is its own */
                ck_assert_str_eq(recipe_text(again), rows[i].normal);
                recipe_free(recipe);
                recipe_free(again);
        }
}
END_TEST

/* One row a mistake: what the message must contain, the column before all. */
static const struct {
        const char *text, *contains;
} MISTAKES[] = {
        { "", "is empty; write" },
        { " \t\n ", "is empty; write" },
        { "foo(3)", "column 1: unknown step \"foo\"; the steps are random_resized_crop, resize" },
        { "hflip(0.5) bar", "column 12: unknown step \"bar\"" },
        { "reszie(3)",
          "column 1: unknown step \"reszie\" (did you mean \"resize\"?); the steps are random_resized_crop" },
        { "hflip LinearTransformation(3)",
          "column 7: LinearTransformation is not a step here; do it with the batch in the trainer" },
        { "Compose([Resize(3)])", "column 1: Compose is not needed: write the steps one after the other" },
        { "ToTensor(3)", "column 10: \"3\"; expected \")\": it has no arguments" },
        { "hflip ToTensor ToTensor",
          "column 16: in place of \"ToTensor\": to: the type of the numbers is given twice" },
        { "hflip fp16", "column 7: \"fp16\" is not the name of a step; it is written as in to(float16)" },
        { "NCHW", "column 1: \"NCHW\" is not the name of a step; it is written as in layout(nchw)" },
        { "random-resized-crop(8)",
          "column 1: \"random-resized-crop\" is not the name of a step; it is written as in random_resized_crop(" },
        { "hflip random-thing", "column 7: unknown step \"random-thing\"" },
        { "to(double)",
          "\"double\" is not allowed; expected uint8, float16, bfloat16 or float32; write to(float32), and" },
        { "to(float32, scale=true)", "scale: \"true\" is not allowed; expected divide or multiply" },
        { "resize(224, 256)", "column 13: interpolation: \"256\" is not allowed; expected nearest" },
        { "resize(224, 256)", "; height and width are written resize(224:256)" },
        { "random_resized_crop(224, 224)", "; height and width are written random_resized_crop(224:224)" },
        { "normalize(imagenet)", "; ImageNet's are written normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)" },
        { "ToTensor() hflip", "column 12: \"hflip\" after \"layout\"" },
        { "resize(3, antialias=True)",
          "column 11: resize has no argument \"antialias\"; leave it out: a resize always" },
        { "resize([3, 4 5])", "column 8: size: \"[3, 4 5]\" is not allowed" },
        { "resize([])", "column 8: size: \"[]\" is not allowed" },
        { "resize([3, 4)", "column 8: size: \"[3\" is not allowed" },
        { "resize([3,,4])", "column 8: size: \"[3,,4]\" is not allowed" },
        { "resize([3] 4)", "column 8: size: \"[3]\" is not allowed" },
        { "resize((3, (4, 5)))", "column 8: size: \"(3, (4, 5))\" is not allowed" },
        { "resize([3, 4, 5]) hfilp", "column 8: size: \"3:4:5\" is not allowed" },
        { "pad([3, 4]) hfilp", "column 13: unknown step \"hfilp\" (did you mean \"hflip\"?)" },
        { "normalize(mean=0.5, 0.4, 0.4)",
          "column 21: \"0\"; expected key=value, as after another key=value; a list is "
          "written mean=[0.5, 0.4, 0.4], or mean=0.5:0.4:0.4" },
        { "(3)", "column 1: \"(\"; expected the name of a step" },
        { "hflip;resize(3)", "column 6: \";\"; expected a blank and the next step" },
        { "hflip(0.5)resize(3)", "column 11: \"r\"; expected a blank" },
        { "resize", "column 1: resize needs its size, as in resize(256)" },
        { "hflip resize()", "column 7: resize needs its size" },
        { "random_resized_crop(scale=0.1:1)", "column 1: random_resized_crop needs its size" },
        { "resize(", "column 8: the text ends where size should be" },
        { "resize(3", "column 9: the text ends; expected \",\" or \")\"" },
        { "resize(3,", "column 10: the text ends where interpolation should be" },
        { "resize(3,)", "column 10: \")\"; expected another argument after \",\"" },
        { "resize(3 4)", "column 10: \"4\"; expected \",\" or \")\"" },
        { "resize(0)", "column 8: size: \"0\" is not allowed; expected a size in pixels, 1 to 16384" },
        { "resize(-5)", "column 8: size: \"-5\"" },
        { "resize(16385)", "column 8: size: \"16385\"" },
        { "resize(99999999999999999999)", "column 8: size: \"99999999999999999999\"" },
        { "resize(2.5)", "column 8: size: \"2.5\"" },
        { "resize(3:)", "column 8: size: \"3:\"" },
        { "resize(:3)", "column 8: size: \":3\"" },
        { "resize(3:4:5)", "column 8: size: \"3:4:5\"" },
        { "resize(nan)", "column 8: size: \"nan\"" },
        { "resize(3, bilinera)", "column 11: interpolation: \"bilinera\" is not allowed (did you mean \"bilinear\"?); "
                                 "expected nearest, box" },
        { "resize(3, interpolation=linear)",
          "column 25: interpolation: \"linear\" is not allowed (did you mean \"bilin" },
        { "resize(3, box, 5, 7)", "column 19: \"7\"; expected \")\": the step has no more arguments" },
        { "resize(size=3, size=4)", "column 21: size of resize is given twice" },
        { "resize(3, size=4)", "column 16: size of resize is given twice" },
        { "resize(3, side=4)",
          "column 11: resize has no argument \"side\" (did you mean \"size\"?); it has size, interpolation, max" },
        { "resize(3, short=4)", "column 17: size of resize is given twice" },
        { "resize(800, max=800)", "column 1: resize: max is 800; expected more than the short side, which is 800" },
        { "resize(80:90, max=100)", "column 1: resize: max needs one number as the size" },
        { "resize(800, max=0)", "column 17: max: \"0\" is not allowed; expected N, whole numbers from 1 to 16384" },
        { "resize(800, max=900:901)", "column 17: max: \"900:901\"" },
        { "resize(size=3, box)", "column 16: \"b\"; expected key=value" },
        { "hflip(1.5)", "column 7: p: \"1.5\" is not allowed; expected a number from 0 to 1" },
        { "hflip(-0.1)", "column 7: p: \"-0.1\"" },
        { "hflip(nan)", "column 7: p: \"nan\"" },
        { "hflip(inf)", "column 7: p: \"inf\"" },
        { "hflip(1e999)", "column 7: p: \"1e999\"" },
        { "hflip(0x1)", "column 7: p: \"0x1\"" },
        { "hflip(0.5.5)", "column 7: p: \"0.5.5\"" },
        { "hflip(p=)", "column 9: p: \")\"" },
        { "random_resized_crop(8, scale=1:0.5)", "column 30: scale: \"1:0.5\" is not allowed; expected FROM:TO" },
        { "random_resized_crop(8, scale=0:0)", "column 30: scale: \"0:0\"" },
        { "random_resized_crop(8, scale=-1:1)", "column 30: scale: \"-1:1\"" },
        { "random_resized_crop(8, scale=0.5)", "column 30: scale: \"0.5\"" },
        { "random_resized_crop(8, scale=nan:1)", "column 30: scale: \"nan:1\"" },
        { "random_resized_crop(8, ratio=0:1)", "column 30: ratio: \"0:1\"" },
        { "random_resized_crop(8, ratio=1:1e308)", "column 30: ratio: \"1:1e308\"" },
        { "resize(3, interpolation=)",
          "column 25: interpolation: \")\" is not allowed; expected nearest, box, bilinear, " },
        { "vflip(2)", "column 7: p: \"2\"" },
        { "random_crop", "column 1: random_crop needs its size, as in random_crop(32, padding=4)" },
        { "random_crop(8, padding=1:2:3)",
          "column 24: padding: \"1:2:3\" is not allowed; expected N, X:Y or LEFT:TOP" },
        { "random_crop(8, padding=1:2:3:4:5)", "column 24: padding: \"1:2:3:4:5\"" },
        { "random_crop(8, -1)", "column 16: padding: \"-1\"" },
        { "random_crop(8, 16385)", "whole numbers from 0 to 16384" },
        { "random_crop(8, 1:)", "column 16: padding: \"1:\"" },
        { "random_crop(8, 1.5)", "column 16: padding: \"1.5\"" },
        { "random_crop(8, pad_if_needed=yes)",
          "column 30: pad_if_needed: \"yes\" is not allowed; expected true or false" },
        { "pad", "column 1: pad needs its padding, as in pad(4)" },
        { "sanitize(-1)", "column 10: min_size: \"-1\" is not allowed; expected a number from 0 to 16384" },
        { "sanitize(1, 2, 3)", "column 16: \"3\"; expected \")\"" },
        { "to(float32) sanitize", "column 13: \"sanitize\" after \"to\"" },
        { "pad(1, fill=256)",
          "column 13: fill: \"256\" is not allowed; expected N or R:G:B, whole numbers from 0 to 255" },
        { "pad(1, fill=1:2)", "column 13: fill: \"1:2\"" },
        { "pad(1, fill=nan)", "column 13: fill: \"nan\"" },
        { "pad(1, 0, wrap)",
          "column 11: padding_mode: \"wrap\" is not allowed; expected constant, edge, reflect or sym" },
        { "color_jitter(-0.1)",
          "column 14: brightness: \"-0.1\" is not allowed; expected a number from 0 to 999, or FROM" },
        { "color_jitter(-0.1:1)", "column 14: brightness: \"-0.1:1\"" },
        { "color_jitter(1001)", "column 14: brightness: \"1001\"" },
        { "color_jitter(1:1001)", "column 14: brightness: \"1:1001\"" },
        { "color_jitter(contrast=2:1)", "column 23: contrast: \"2:1\"" },
        { "color_jitter(hue=0.6)", "column 18: hue: \"0.6\" is not allowed; expected a number from 0 to 0.5, or FROM" },
        { "color_jitter(hue=-0.6:0)", "column 18: hue: \"-0.6:0\"" },
        { "color_jitter(hue=-0.6:)", "column 18: hue: \"-0.6:\"" },
        { "color_jitter(0,0,0,0,0)", "column 22: \"0\"; expected \")\": the step has no more arguments" },
        { "random_zoom_out(0, 0.5:2)", "column 20: side_range: \"0.5:2\" is not allowed; expected FROM:TO with 1 <=" },
        { "random_zoom_out(0, 1:17)", "column 20: side_range: \"1:17\"" },
        { "random_zoom_out(256)", "column 17: fill: \"256\"" },
        { "decode(mode=P) random_zoom_out(1:2:3)", "column 16: random_zoom_out: fill is a colour" },
        { "scale_jitter", "column 1: scale_jitter needs its target_size, as in scale_jitter(1024" },
        { "scale_jitter(8, 0:101)", "column 17: scale_range: \"0:101\"" },
        { "decode(mode=I;16) scale_jitter(8)", "column 19: scale_jitter: numbers of 16 bits" },
        { "random_shortest_size(0)", "column 22: min_size: \"0\" is not allowed; expected N or N:N, whole numbers" },
        { "random_shortest_size(1.5)", "column 22: min_size: \"1.5\"" },
        { "random_shortest_size(8, max_size=9:9)", "column 34: max_size: \"9:9\"" },
        { "random_resize(8)", "column 1: random_resize needs its max_size, as in random_resize(256, 480)" },
        { "random_resize(8, 8)", "column 1: random_resize: min_size 8 and max_size 8: sizes are drawn from" },
        { "random_resize(8, 8.5)", "column 18: max_size: \"8.5\"" },
        { "decode(mode=I;16) random_resize(8, 9)", "column 19: random_resize: numbers of 16 bits" },
        { "random_iou_crop(0.5, 0.4)", "column 1: random_iou_crop: min_scale 0.5 is above max_scale 0.4" },
        { "random_iou_crop(min_aspect_ratio=3)", "column 1: random_iou_crop: min_aspect_ratio 3 is above" },
        { "five_crop", "column 1: five_crop needs its size, as in five_crop(224)" },
        { "random_apply([five_crop(8)])",
          "column 15: \"five_crop\" makes 5 pictures of each sample, so it cannot be in" },
        { "ten_crop(8) five_crop(8)", "column 13: \"five_crop\" after \"ten_crop\": only one step of a part" },
        { "posterize(2.5)", "column 11: bits: \"2.5\"" },
        { "posterize(2:3)", "column 11: bits: \"2:3\"" },
        { "autocontrast(cutoff=1)", "column 14: autocontrast has no argument \"cutoff\"; it has p" },
        { "random_rotation", "column 1: random_rotation needs its degrees, as in random_rotation(15)" },
        { "random_rotation(361)",
          "column 17: degrees: \"361\" is not allowed; expected a number from 0 to 360, or FROM" },
        { "random_rotation(-5)", "column 17: degrees: \"-5\"" },
        { "random_rotation(9:8)", "column 17: degrees: \"9:8\"" },
        { "random_rotation(9, lanczos)",
          "column 20: interpolation: \"lanczos\" is not allowed; expected nearest, bilinear or bicubic" },
        { "random_rotation(9, center=5)",
          "column 27: center: \"5\" is not allowed; expected X:Y, numbers from -16384 to" },
        { "random_rotation(9, fill=1:2)", "column 25: fill: \"1:2\"" },
        { "decode(mode=LA) random_rotation(9, fill=1:2:3)", "column 17: random_rotation: fill is a colour" },
        { "decode(mode=I;16) random_affine(9, interpolation=bicubic)",
          "column 19: random_affine: numbers of 16 bits are not mixed; expected interpolation=nearest" },
        { "random_affine(9, translate=0.1)", "column 28: translate: \"0.1\" is not allowed; expected X:Y" },
        { "random_affine(9, translate=0.1:1.1)", "column 28: translate: \"0.1:1.1\"" },
        { "random_affine(9, scale=0:1)", "column 24: scale: \"0:1\" is not allowed; expected FROM:TO with 0.01 <=" },
        { "random_affine(9, shear=-1)",
          "column 1: random_affine: shear along x is from 1 to -1; expected a number that" },
        { "random_affine(9, shear=5:2)", "random_affine: shear along x is from 5 to 2; expected a range that goes up" },
        { "random_affine(9, shear=1:2:5:2)",
          "random_affine: shear along y is from 5 to 2; expected a range that goes" },
        { "random_affine(9, shear=90)",
          "column 24: shear: \"90\" is not allowed; expected N, FROM:TO or FROM:TO:FROM" },
        { "random_affine(9, shear=1:2:3)", "column 24: shear: \"1:2:3\"" },
        { "timm_rand_augment(interpolation=box)", "interpolation: \"box\" is not allowed; expected nearest" },
        { "decode(mode=RGBA) timm_rand_augment", "timm_rand_augment: is not for pictures" },
        { "decode(mode=I;16) random_perspective", "column 19: random_perspective: numbers of 16 bits are not mixed" },
        { "rand_augment(2, 9.5)", "column 17: magnitude: \"9.5\"" },
        { "rand_augment(2, 31)", "rand_augment: magnitude is 31; expected less than num_magnitude_bins, which is 31" },
        { "aug_mix(all_ops=2)", "all_ops: \"2\"" },
        { "aug_mix(interpolation=bicubic)", "interpolation: \"bicubic\" is not allowed; expected nearest or bilinear" },
        { "decode(mode=RGBA) aug_mix", "column 19: aug_mix: is not for pictures" },
        { "decode(mode=L) aug_mix(fill=1:2:3)", "fill" },
        { "auto_augment(imagnet)",
          "policy: \"imagnet\" is not allowed (did you mean \"imagenet\"?); expected imagenet, cif" },
        { "decode(mode=RGBA) rand_augment",
          "column 19: rand_augment: is not for pictures that are decoded with mode=RGBA; expected mode=RGB or L" },
        { "sharpness", "column 1: sharpness needs its factor, as in sharpness(2)" },
        { "sharpness(1, factor=1)", "column 21: factor of sharpness is given twice" },
        { "to(float32) equalize", "column 13: \"equalize\" after \"to\", which sets the form" },
        { "decode(mode=RGBA) invert",
          "column 19: invert: is not for pictures that are decoded with mode=RGBA; expected" },
        { "decode(mode=I;16) sharpness(2)", "column 19: sharpness: is not for pictures" },
        { "gaussian_blur", "column 1: gaussian_blur needs its kernel_size, as in gaussian_blur(23, sigma=0.1:2)" },
        { "gaussian_blur(4)",
          "column 15: kernel_size: \"4\" is not allowed; expected N or WIDTH:HEIGHT, odd numbers from "
          "1 to 255" },
        { "gaussian_blur(3:257)", "column 15: kernel_size: \"3:257\"" },
        { "gaussian_blur(-3)", "column 15: kernel_size: \"-3\"" },
        { "gaussian_blur(3.5)", "column 15: kernel_size: \"3.5\"" },
        { "gaussian_blur(3:3:3)", "column 15: kernel_size: \"3:3:3\"" },
        { "gaussian_blur(3, 0)", "column 18: sigma: \"0\" is not allowed; expected N or FROM:TO, numbers from 0.001" },
        { "gaussian_blur(3, sigma=2:1)", "column 24: sigma: \"2:1\"" },
        { "random_channel_permutation(1)", "column 28: \"1\"; expected \")\": it has no arguments" },
        { "decode(mode=LA) random_channel_permutation", "column 17: random_channel_permutation: is not for pictures" },
        { "random_photometric_distort(0.5)", "column 28: brightness: \"0.5\" is not allowed; expected FROM:TO" },
        { "random_photometric_distort(hue=-0.6:0)", "column 32: hue: \"-0.6:0\"" },
        { "random_photometric_distort(contrast=1:0.5)", "column 37: contrast: \"1:0.5\"" },
        { "decode(mode=I;16) random_photometric_distort",
          "column 19: random_photometric_distort: is not for pictures" },
        { "motion_blur(7:3)", "column 13: blur_limit: \"7:3\"" },
        { "motion_blur(angle_range=0:361)", "column 25: angle_range: \"0:361\"" },
        { "motion_blur(direction_range=-2)", "column 29: direction_range: \"-2\"" },
        { "coarse_dropout(hole_height=0.5:2)",
          "column 1: coarse_dropout: hole_height goes up to 2 and hole_width to 0.2; expected shares below 1 in both, or "
          "pixels in both" },
        { "coarse_dropout(fill=noise)", "column 21: fill: \"noise\"" },
        { "decode(mode=L) coarse_dropout(fill=1:2:3)",
          "column 16: coarse_dropout: fill is a colour, but mode=L leaves one channel" },
        { "jpeg", "column 1: jpeg needs its quality, as in jpeg(50:90)" },
        { "jpeg(90:50)", "column 6: quality: \"90:50\"" },
        { "random_brightness_contrast(1.5)", "column 28: brightness_limit: \"1.5\"" },
        { "random_brightness_contrast(contrast_limit=-2:0)", "column 43: contrast_limit: \"-2:0\"" },
        { "erasing(scale=0.5:0.4)", "column 15: scale: \"0.5:0.4\"" },
        { "erasing(ratio=0:1)", "column 15: ratio: \"0:1\"" },
        { "erasing(value=noise)",
          "column 15: value: \"noise\" is not allowed; expected N or one for each channel, numbers "
          "from -100000 to 100000, or the word random" },
        { "erasing(value=256)",
          "column 1: erasing: value: 256 is not a level; expected whole numbers from 0 to 255, or "
          "to(float32) or normalize before this step" },
        { "layout(nchw) erasing(value=0.5)", "column 14: erasing: value: 0.5 is not a level" },
        { "to(uint8) erasing(value=-1)", "column 11: erasing: value: -1 is not a level" },
        { "erasing(value=1:2)", "column 1: erasing: value: 2 numbers for 3 channels; expected 1, or one for each" },
        { "grayscale to(float32) erasing(value=1:2:3)",
          "column 23: erasing: value: 3 numbers for 1 channels; expected 1" },
        { "decode(mode=RGBA) erasing",
          "column 19: erasing: is not for pictures that are decoded with mode=RGBA; expected" },
        { "decode(mode=I;16) erasing", "column 19: erasing: is not for pictures" },
        { "to(float32) erasing normalize(0.5, 1)",
          "column 21: normalize: it would change what was erased; expected normalize before erasing" },
        { "normalize(0.5, 1) erasing hflip", "column 27: \"hflip\" after \"normalize\", which sets the form" },
        { "grayscale(2)", "column 11: num_output_channels: \"2\" is not allowed; expected 1 or 3" },
        { "to", "column 1: to needs its dtype, as in to(float32)" },
        { "to(float64)",
          "column 4: dtype: \"float64\" is not allowed (did you mean \"float16\"?); expected uint8, float16, bfloat16 or float32" },
        { "layout(chwn)", "column 8: order: \"chwn\" is not allowed; expected nhwc, nchw or channels_last" },
        { "normalize(0.5)", "column 1: normalize needs its std, as in normalize(mean=" },
        { "normalize(0.5, 0)",
          "column 16: std: \"0\" is not allowed; expected N or a number for each channel, numbers from 1e-06 to" },
        { "normalize(0.5, 1:1)", "column 1: normalize: 1 means and 2 deviations for 3 channels; expected one, or" },
        { "normalize(0:0:0:0, 1)", "4 means and 1 deviations for 3 channels" },
        { "normalize(0:0:0:0:0, 1)", "column 11: mean: \"0:0:0:0:0\"" },
        { "decode(mode=CMYK)", "column 13: mode: \"CMYK\" is not allowed; expected RGB, L, RGBA, LA, P, I;16 or F" },
        { "decode(mode=F) center_crop(8)", "column 16: \"center_crop\": numbers as they are stored" },
        { "decode(mode=L, bands=1024) random_apply([hflip(1)])", "\"random_apply\": numbers as they are stored" },
        { "decode(mode=L, bands=9) normalize(0:0:0:0:0, 1)", "\"normalize\": numbers as they are stored" },
        { "decode(bands=4)", "bands=N needs mode=L" },
        { "decode(mode=RGBA, bands=4)", "bands=N needs mode=L" },
        { "decode(mode=L, bands=1025)", "column 22: bands" },
        { "decode(mode=L, bands=0)", "column 22: bands" },
        { "decode(mode=F, mask=uint8)", "exif and mask are for pictures" },
        { "decode(mode=L, bands=2, exif=transpose)", "exif and mask are for pictures" },
        { "decode(mode=L) pad(1, fill=1:2:3)", "column 16: pad: fill is a colour, but mode=L leaves one channel" },
        { "decode(mode=RGBA) pad(1, fill=1:2:3)", "column 19: pad: fill is a colour, but the picture is decoded with" },
        { "decode(mode=RGBA) normalize(1:2:3, 1)", "3 means and 1 deviations for 4 channels" },
        { "decode(mode=RGBA) grayscale", "column 19: grayscale: is not for pictures that are decoded with mode=RGBA" },
        { "decode(mode=RGBA) random_grayscale", "column 19: random_grayscale: is not for pictures" },
        { "decode(mode=LA) color_jitter(hue=0.1)", "column 17: color_jitter: is not for pictures that are decoded" },
        { "decode(mode=P) color_jitter(0.1)", "column 16: color_jitter: is not for pictures" },
        { "decode(mode=P) to(float32)", "column 16: to: is not for pictures that are decoded with mode=P" },
        { "decode(mode=P) normalize(0, 1)", "column 16: normalize: is not for pictures" },
        { "decode(mode=I;16) resize(8)", "column 19: resize: numbers of 16 bits are not mixed" },
        { "decode(mode=I;16) random_resized_crop(8)", "column 19: random_resized_crop: numbers of 16 bits" },
        { "decode(mode=I;16) to(uint8)", "column 19: to: 16 bits do not fit into uint8" },
        { "decode(mask=int8)",
          "column 13: mask: \"int8\" is not allowed (did you mean \"uint8\"?); expected uint8, uint16, int32" },
        { "normalize(1:2:1e7, 1)", "column 11: mean: \"1:2:1e7\"" },
        { "to(float32) hflip",
          "column 13: \"hflip\" after \"to\", which sets the form of the pixels; expected to, nor" },
        { "layout(nchw) grayscale(1)", "column 14: \"grayscale\" after \"layout\"" },
        { "to(float32) layout(nchw) to(float16)", "column 26: to: the type of the numbers is given twice" },
        { "layout(nchw) layout(nchw)", "column 14: layout: the layout is given twice" },
        { "normalize(0, 1) normalize(0, 1)", "column 17: normalize: numbers are normalized twice" },
        { "to(uint8) normalize(0, 1)", "column 11: normalize: normalized numbers cannot be uint8" },
        { "normalize(0, 1) to(uint8)", "column 17: to: normalized numbers cannot be uint8" },
        { "grayscale normalize(0:0:0, 1)", "column 11: normalize: 3 means and 1 deviations for 1 channel; expected" },
        { "grayscale pad(1, fill=1:2:3)", "column 11: pad: fill is a colour, but grayscale(1) leaves one channel" },
        { "grayscale random_crop(1, fill=1:2:3)", "column 11: random_crop: fill is a colour" },
        { "resize(16384) center_crop(16384) to(float32)", "16384 x 16384 pixels exceed the limit of 67108864 for" },
        { "raw to(float32)", "column 5: \"to\" after \"raw\"" },
        { "raw hflip", "column 5: \"hflip\" after \"raw\"" },
        { "raw raw", "column 5: \"raw\" after \"raw\"" },
        { "hflip raw", "column 7: \"raw\" delivers the encoded bytes and cannot follow other steps" },
        { "decode raw", "column 8: \"raw\"" },
        { "hflip decode", "column 7: \"decode\" can only be the first step" },
        { "decode decode", "column 8: \"decode\" can only be the first step" },
        { "raw(3)", "column 5: \"3\"; expected \")\": it has no arguments" },
        { "decode(x", "column 8:" },
        { "decode(size=3)", "column 8: decode has no argument \"size\"; it has max_pixels" },
        { "decode(max_pixels=0)", "column 19:" },
        { "decode(max_pixels=1.5)", "column 19:" },
        { "decode(exif=turn)", "column 13:" },
        { "decode(max_pixels=100) center_crop(3)", "results of this pipeline are 3 x 3: leave it out" },
        { "hflip\x01", "column 6: byte 0x01" },
        { "hflip \xff", "column 7: byte 0xff" },
};

START_TEST(a_mistake_is_told_with_its_column_and_what_was_expected) {
        struct recipe *recipe = (struct recipe *)&recipe; /* must stay as it is */
        struct why why = {};

        ck_assert_int_eq(recipe_parse(MISTAKES[_i].text, &recipe, &why), -EINVAL);
        ck_assert_msg(strstr(why.text, MISTAKES[_i].contains) != NULL, "\"%s\" says \"%s\", not \"%s\"",
                      MISTAKES[_i].text, why.text, MISTAKES[_i].contains);
        ck_assert_ptr_eq(recipe, &recipe);
        ck_assert_int_eq(recipe_parse(MISTAKES[_i].text, &recipe, NULL), -EINVAL);
}
END_TEST

/* ---- what all kinds have in common ----------------------------------------------------------------------------- */

START_TEST(a_class_is_read_as_its_step) {
        const struct kind *kind = picture_steps.kinds[_i];
        struct recipe *meant = parse(kind->example);
        char names[128], text[256];

        snprintf(names, sizeof(names), "%s", kind->other_names ? kind->other_names : "");
        for (char *rest = NULL, *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
                struct recipe *recipe;

                snprintf(text, sizeof(text), "v2.%s%s", name, kind->example + strlen(kind->name));
                recipe = parse(text);
                ck_assert_str_eq(recipe_text(recipe), recipe_text(meant));
                recipe_free(recipe);
        }
        recipe_free(meant);
}
END_TEST

/* NAME(KEY=NUMBER), or with as many numbers as the argument has at least, refused at the column of the value. */
static void refuse_number(const struct kind *kind, const struct argument *argument, double number) {
        struct recipe *recipe = NULL;
        struct why why = {};
        char value[256], text[512], expected[512];
        int n = snprintf(value, sizeof(value), "%.10g", number);

        for (uint32_t i = 1; argument->counts && !(argument->counts >> i & 1); i++)
                n += snprintf(value + n, sizeof(value) - (size_t)n, ":%.10g", number);
        snprintf(text, sizeof(text), "%s(%s=%s)", kind->name, argument->name, value);
        snprintf(expected, sizeof(expected), "pipeline, column %zu: %s: \"%s\" is not allowed; expected ",
                 strlen(kind->name) + strlen(argument->name) + 3, argument->name, value);
        ck_assert_msg(recipe_parse(text, &recipe, &why) == -EINVAL, "%s", text);
        ck_assert_msg(strncmp(why.text, expected, strlen(expected)) == 0, "%s: %s", text, why.text);
}

START_TEST(numbers_beyond_their_bounds_are_refused_with_what_is_allowed) {
        const struct kind *kind = picture_steps.kinds[_i];

        for (uint32_t i = 0; i < kind_n_arguments(kind); i++) {
                const struct argument *argument = &kind->arguments[i];

                if (argument->type != ARGUMENT_WHOLE && argument->type != ARGUMENT_NUMBER &&
                    argument->type != ARGUMENT_LIST)
                        continue;
                refuse_number(kind, argument, argument->minimum - 1);
                refuse_number(kind, argument, argument->maximum + 1);
                refuse_number(kind, argument, NAN);
        }
}
END_TEST

START_TEST(a_step_that_changes_levels_is_for_colours_and_grey) {
        static const char *const modes[] = { "RGBA", "LA", "P", "I;16" };
        const struct kind *kind = picture_steps.kinds[_i];
        char text[256], expected[128];

        if (((const struct step_type *)kind)->convert != levels_check)
                return;
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                struct recipe *recipe = NULL;
                struct why why = {};

                snprintf(text, sizeof(text), "decode(mode=%s) %s", modes[i], kind->example);
                snprintf(expected, sizeof(expected), "%s: is not for pictures that are decoded with mode=%s",
                         kind->name, modes[i]);
                ck_assert_int_eq(recipe_parse(text, &recipe, &why), -EINVAL);
                ck_assert_msg(strstr(why.text, expected), "%s: %s", text, why.text);
        }
}
END_TEST

START_TEST(a_text_that_is_too_long_is_refused_with_the_limit) {
        char text[2 * DLP_PIPELINE_MAX];
        struct recipe *recipe = NULL;
        struct why why = {};

        memset(text, ' ', sizeof(text));
        memcpy(text, "hflip", 5);
        text[DLP_PIPELINE_MAX] = '\0';
        ck_assert_int_eq(recipe_parse(text, &recipe, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "4095"));
        text[DLP_PIPELINE_MAX - 1] = '\0';
        recipe_free(parse(text));
}
END_TEST

START_TEST(the_longest_pipeline_fits_and_one_step_more_is_refused) {
        static const char step[] = "random_resized_crop(16383:16384, 0.12345678901234567:1.2345678901234567,"
                                   " 0.12345678901234567:1.2345678901234567) ";
        static const char end[] = "interpolation=bilinear)";
        char text[(sizeof(step) - 1) * DLP_STEPS_MAX + 8] = "";
        struct recipe *recipe = NULL;
        struct why why = {};
        const char *normal;

        for (unsigned i = 0; i < DLP_STEPS_MAX; i++)
                strcat(text, step);
        recipe = parse(text);
        normal = recipe_text(recipe);
        ck_assert_str_eq(normal + strlen(normal) - strlen(end), end); /* nothing was cut */
        recipe_free(recipe);

        strcat(text, "hflip");
        ck_assert_int_eq(recipe_parse(text, &recipe, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "more than 32 steps"));
}
END_TEST

START_TEST(the_output_size_is_known_unless_it_depends_on_the_picture) {
        static const struct {
                const char *text;
                uint32_t height, width; /* 0: varies */
        } rows[] = {
                { "raw", 0, 0 },
                { "decode", 0, 0 },
                { "hflip", 0, 0 },
                { "decode(max_pixels=9) resize(256)", 0, 0 },
                { "resize(256)", 0, 0 },
                { "resize(256:300)", 256, 300 },
                { "resize(256) center_crop(224)", 224, 224 },
                { "random_resized_crop(96:128) hflip", 96, 128 },
                { "center_crop(100:50) resize(256)", 512, 256 },
                { "random_resized_crop(224) resize(7) hflip", 7, 7 },
                { "random_crop(32:40, padding=4)", 32, 40 },
                { "pad(4)", 0, 0 },
                { "resize(10:20) pad(1:2:3:4) vflip", 16, 24 },
                { "resize(10:20) random_rotation(9) random_affine(9) random_perspective", 10, 20 },
                { "resize(10:20) random_rotation(9, expand=true)", 0, 0 },
                { "resize(10:20) random_rotation(9, expand=true) center_crop(7)", 7, 7 },
                { "center_crop(8) random_zoom_out", 0, 0 },
                { "center_crop(8) random_zoom_out(side_range=1:1)", 8, 8 },
                { "center_crop(8) scale_jitter(8)", 0, 0 },
                { "center_crop(8) random_shortest_size(8)", 0, 0 },
                { "center_crop(8) random_resize(8, 9)", 0, 0 },
                { "five_crop(8:9)", 8, 9 },
                { "center_crop(8) random_iou_crop", 0, 0 },
                { "resize(20) ten_crop(8:9) pad(1)", 10, 11 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);
                uint32_t height = 0, width = 0;
                int r = recipe_output(recipe, &height, &width);

                ck_assert_int_eq(r, rows[i].height ? 0 : RECIPE_VARIES);
                ck_assert_uint_eq(height, rows[i].height);
                ck_assert_uint_eq(width, rows[i].width);
                ck_assert_int_eq(recipe_kind(recipe), i == 0 ? RECIPE_RAW : RECIPE_PIXELS);
                recipe_free(recipe);
        }
}
END_TEST

/* ---- geometry ------------------------------------------------------------------------------------------------ */

START_TEST(sizes_and_centres_are_torchvisions) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "transforms.jsonl");
        while (vectors_next(&vectors)) {
                uint32_t width, height, size;

                if (!vectors_kind(&vectors, "resize_short") && !vectors_kind(&vectors, "center_crop"))
                        continue;
                width = (uint32_t)vector_int(vectors.line, "width");
                height = (uint32_t)vector_int(vectors.line, "height");
                size = (uint32_t)vector_int(vectors.line, "size");
                if (vectors_kind(&vectors, "resize_short")) {
                        const cJSON *want = vector_array(vectors.line, "out_hw", NULL);
                        uint64_t new_width, new_height;

                        crop_resize_short(width, height, size, &new_width, &new_height);
                        ck_assert_int_eq((int64_t)new_height, vector_item(want, 0));
                        ck_assert_int_eq((int64_t)new_width, vector_item(want, 1));
                } else {
                        ck_assert_int_eq(crop_center_offset(height, size), vector_int(vectors.line, "top"));
                        ck_assert_int_eq(crop_center_offset(width, size), vector_int(vectors.line, "left"));
                }
                n++;
        }
        ck_assert_uint_gt(n, 10);
}
END_TEST

/* torchvision 0.29: Resize(800, max_size=1333) and others; the last picture would get no pixel on its short side. */
START_TEST(a_long_side_is_limited_as_torchvision_does) {
        static const struct {
                const char *text;
                uint32_t width, height, new_width, new_height;
        } rows[] = {
                { "resize(short=800, max=1333)", 640, 480, 1066, 800 },
                { "resize(short=800, max=1333)", 480, 640, 800, 1066 },
                { "resize(short=800, max=1333)", 640, 360, 1333, 749 },
                { "resize(short=800, max=1333)", 333, 1000, 443, 1333 },
                { "resize(short=800, max=1333)", 500, 500, 800, 800 },
                { "resize(100, max=101)", 1000, 999, 100, 100 },
                { "resize(7, max=11)", 97, 31, 11, 3 },
        };
        struct recipe *recipe;
        struct geometry geometry;
        struct why why;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                recipe = parse(rows[i].text);
                ck_assert_int_eq(recipe_plan(recipe, rows[i].width, rows[i].height, 1, 0, 0, &geometry, &why), 0);
                ck_assert_uint_eq(geometry.width, rows[i].new_width);
                ck_assert_uint_eq(geometry.height, rows[i].new_height);
                recipe_free(recipe);
        }
        recipe = parse("resize(8, max=9)");
        ck_assert_int_eq(recipe_plan(recipe, 1, 10000, 1, 0, 0, &geometry, &why), -ERANGE);
        ck_assert_ptr_nonnull(strstr(why.text, "leave no pixel on the short one"));
        recipe_free(recipe);
}
END_TEST

/* The first step draws from stream 1, whether `decode` is written in front or not. */
START_TEST(a_step_draws_from_the_stream_of_its_place) {
        static const char *const texts[] = { "random_resized_crop(224) hflip",
                                             "decode random_resized_crop(224) hflip(0.5)" };
        struct geometry geometry;
        struct dlp_philox philox;
        struct box box;

        for (uint64_t sample = 0; sample < 300; sample++)
                for (unsigned i = 0; i < 2; i++) {
                        struct recipe *recipe = parse(texts[i]);

                        ck_assert_int_eq(recipe_plan(recipe, 500, 375, 42, 3, sample, &geometry, NULL), 0);
                        dlp_philox_init(&philox, 42, 3, sample, 1);
                        crop_random_resized(&philox, 500, 375, (struct range){ 0.08, 1 },
                                            (struct range){ 0.75, 4.0 / 3 }, &box);
                        ck_assert_mem_eq(&geometry.source, &box, sizeof(box));
                        dlp_philox_init(&philox, 42, 3, sample, 2);
                        ck_assert_int_eq(geometry.stages[geometry.n_stages - 1].flip, dlp_philox_f32(&philox) < 0.5f);
                        recipe_free(recipe);
                }
}
END_TEST

START_TEST(a_picture_taken_as_it_is_needs_no_copy_and_anything_else_does) {
        static const struct {
                const char *text;
                bool is_copy;
        } rows[] = {
                { "decode", true },
                { "hflip(0)", true },
                { "resize(100)", true },
                { "resize(100:200)", true },
                { "center_crop(100:200)", true },
                { "hflip(1) hflip(1)", true },
                { "hflip(1)", false },
                { "center_crop(99:200)", false },
                { "center_crop(101:200)", false },
                { "resize(101)", false },
                { "center_crop(300) center_crop(100:200)", true },
                { "random_crop(300, pad_if_needed=true, padding_mode=edge) center_crop(1)", false },
                { "random_crop(100:200) pad(0)", true },
                { "color_jitter random_grayscale(0)", true },
                { "random_grayscale(1)", false },
                { "invert(0) posterize(0, p=0) autocontrast(0) equalize(0) sharpness(0, p=0)", true },
                { "invert(1)", false },
                { "erasing(0)", true },
                { "erasing(1)", false },
                { "gaussian_blur(3)", false },
                { "to(uint8) layout(nhwc)", true },
                { "grayscale(1)", false },
                { "layout(nchw)", false },
                { "to(float32)", false },
                { "vflip(1) hflip(1) vflip(1) hflip(1)", true },
                { "vflip(1)", false },
                { "pad(1)", false },
                { "pad(1) center_crop(100:200)", true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);
                struct geometry geometry;

                ck_assert_int_eq(recipe_plan(recipe, 200, 100, 0, 0, 0, &geometry, NULL), 0);
                ck_assert_msg(geometry.is_copy == rows[i].is_copy, "%s", rows[i].text);
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(a_resize_beyond_the_limits_is_refused_with_the_numbers) {
        static const struct {
                const char *text;
                uint32_t width, height;
                const char *contains;
        } rows[] = {
                { "resize(256)", 1, 65535, "16776960" },
                { "resize(8:8)", 1, 2000000, "1048576 pixels a side" },
                { "resize(16384:16384) resize(3:3)", 10, 10, "67108864" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);
                struct geometry geometry;
                struct why why = {};

                ck_assert_int_eq(recipe_plan(recipe, rows[i].width, rows[i].height, 0, 0, 0, &geometry, &why), -EFBIG);
                ck_assert_msg(strstr(why.text, rows[i].contains) != NULL, "%s", why.text);
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(only_what_must_begins_a_stage) {
        static const struct {
                const char *text;
                uint32_t n_stages, n_operations;
        } rows[] = {
                { "random_resized_crop(50) hflip(1) vflip(1) color_jitter(0.4, 0.4, 0.4, 0.1) random_grayscale(1)", 1,
                  5 },
                { "random_crop(50, padding=4) hflip(1) color_jitter(0.4)", 1, 1 },
                { "color_jitter(0.4, 0, 0.4, 0.1) hflip(1) center_crop(50)", 1, 3 },
                { "color_jitter(contrast=0.4) hflip(1) center_crop(100:200)", 1, 1 },
                { "color_jitter(contrast=0.4) center_crop(50)", 2, 1 }, /* the mean is that of more than is kept */
                { "color_jitter(0.4) pad(4)", 2, 1 },                   /* the border keeps its colour */
                { "invert(1) posterize(1, p=1) center_crop(50) vflip(1)", 1, 2 },
                { "autocontrast(1) equalize(1) sharpness(2, p=1) hflip(1) vflip(1)", 1, 3 },
                { "autocontrast(1) center_crop(50)", 2, 1 },
                { "equalize(1) center_crop(50)", 2, 1 },
                { "sharpness(2, p=1) center_crop(50)", 2, 1 }, /* pixels at the edge have neighbours beyond it */
                { "invert(1) pad(4)", 2, 1 },
                { "random_channel_permutation hflip(1) center_crop(50)", 1, 1 },
                { "gaussian_blur(5) hflip(1) vflip(1)", 1, 1 },
                { "gaussian_blur(5) center_crop(50)", 2, 1 },
                { "erasing(1) hflip(1)", 2, 1 }, /* the rectangle is mirrored with the picture */
                { "erasing(1) center_crop(50)", 2, 1 },
                { "gaussian_noise hflip(1)", 2, 1 },
                { "hflip(1) to(float32) erasing(1)", 1, 0 },
                { "clahe(p=1) hflip(1)", 2, 1 }, /* tiles are counted from the left */
                { "jpeg(50) vflip(1)", 2, 1 },
                { "motion_blur(p=1) hflip(1)", 2, 1 },
                { "coarse_dropout(p=1) center_crop(50)", 2, 1 },
                { "random_brightness_contrast(p=1) hflip(1) center_crop(50)", 1, 1 },
                { "random_photometric_distort(p=1)", 1, 5 },
                { "random_photometric_distort(p=0)", 1, 0 },
                { "color_jitter(0.4) resize(50)", 2, 1 },
                { "color_jitter(0.4) resize(100)", 1, 1 },
                { "pad(1) pad(2)", 1, 0 },
                { "pad(1) pad(2, fill=3)", 2, 0 },
                { "pad(1, padding_mode=edge) hflip(1) color_jitter(0.4)", 1, 1 },
                { "pad(1, padding_mode=edge) center_crop(50)", 2, 0 },
                { "random_crop(300, padding=2, pad_if_needed=true, padding_mode=edge)", 4, 0 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);
                struct geometry geometry;

                ck_assert_int_eq(recipe_plan(recipe, 200, 100, 0, 0, 0, &geometry, NULL), 0);
                ck_assert_msg(geometry.n_stages == rows[i].n_stages, "%s: %u stages", rows[i].text, geometry.n_stages);
                ck_assert_msg(geometry.n_operations == rows[i].n_operations, "%s: %u operations", rows[i].text,
                              geometry.n_operations);
                recipe_free(recipe);
        }
}
END_TEST

static void check_box(const struct box *box, uint32_t width, uint32_t height) {
        if (box->width < 1 || box->width > width || box->x > width - box->width || box->height < 1 ||
            box->height > height || box->y > height - box->height)
                ck_abort_msg("box %u x %u at (%u, %u) of %u x %u", box->width, box->height, box->x, box->y, width,
                             height);
}

static void check_stage(const struct stage *stage, uint32_t width, uint32_t height) {
        check_box(&stage->source, width, height);
        if (stage->window.width == 0)
                return;
        check_box(&stage->window, stage->width, stage->height);
        if (stage->paste_x + stage->window.width > stage->canvas_width ||
            stage->paste_y + stage->window.height > stage->canvas_height)
                ck_abort_msg("pasted over the edge");
}

static void draw_text(struct dlp_philox *philox, char *text, size_t size) {
        unsigned n_steps = 1 + dlp_philox_below(philox, 4);
        size_t n = 0;

        for (unsigned i = 0; i < n_steps; i++) {
                uint32_t a = 1 + dlp_philox_below(philox, 300), b = 1 + dlp_philox_below(philox, 300);

                switch (dlp_philox_below(philox, 11)) {
                case 0:
                        n += (size_t)snprintf(text + n, size - n, "random_resized_crop(%u:%u) ", a, b);
                        break;
                case 1:
                        n += (size_t)snprintf(text + n, size - n, "resize(%u) ", a % 40 + 1);
                        break;
                case 2:
                        n += (size_t)snprintf(text + n, size - n, "resize(%u:%u) ", a, b);
                        break;
                case 3:
                        n += (size_t)snprintf(text + n, size - n, "center_crop(%u:%u) ", a, b);
                        break;
                case 4:
                        n += (size_t)snprintf(text + n, size - n,
                                              "random_crop(%u:%u, %u, pad_if_needed=true, padding_mode=%s) ", a, b,
                                              a % 5, b % 2 ? "reflect" : "constant");
                        break;
                case 5:
                        n += (size_t)snprintf(text + n, size - n, "pad(%u:%u:0:1, fill=%u) ", a, b, a % 2);
                        break;
                case 6:
                        n += (size_t)snprintf(text + n, size - n, "vflip ");
                        break;
                case 7:
                        n += (size_t)snprintf(text + n, size - n, "color_jitter(1, %u, hue=0.5) ", a % 2);
                        break;
                case 8:
                        n += (size_t)snprintf(text + n, size - n, "random_rotation(%u, expand=%s) ", a,
                                              b % 2 ? "true" : "false");
                        break;
                case 9:
                        n += (size_t)snprintf(text + n, size - n, "random_affine(%u, scale=0.1:3) ", a);
                        break;
                default:
                        n += (size_t)snprintf(text + n, size - n, "hflip ");
                }
        }
}

START_TEST(every_box_of_a_plan_lies_where_it_must) {
        struct dlp_philox philox;
        char text[320];

        dlp_philox_init(&philox, 11, 0, 0, 0);
        for (unsigned n = 0, rounds = suite_rounds(20000); n < rounds; n++) {
                uint32_t width = 1 + dlp_philox_below(&philox, n % 2 ? 5000 : 10),
                         height = 1 + dlp_philox_below(&philox, 5000);
                uint32_t in_width = width, in_height = height;
                struct geometry geometry;
                struct recipe *recipe;

                draw_text(&philox, text, sizeof(text));
                recipe = parse(text);
                if (recipe_plan(recipe, width, height, n, 1, 2, &geometry, NULL) == 0) {
                        uint32_t out_height, out_width;

                        check_box(&geometry.source, width, height);
                        for (uint32_t i = 0; i < geometry.n_stages; i++) {
                                check_stage(&geometry.stages[i], in_width, in_height);
                                in_width = geometry.stages[i].canvas_width;
                                in_height = geometry.stages[i].canvas_height;
                        }
                        if (geometry.width != in_width || geometry.height != in_height)
                                ck_abort_msg("%s: size of the result", text);
                        if (recipe_output(recipe, &out_height, &out_width) == 0 &&
                            (out_height != geometry.height || out_width != geometry.width))
                                ck_abort_msg("%s: recipe_output() and the plan disagree", text);
                        if (recipe_bound(recipe, &out_height, &out_width) &&
                            (geometry.height > out_height || geometry.width > out_width))
                                ck_abort_msg("%s: %u x %u exceed the bound", text, geometry.width, geometry.height);
                }
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(the_size_that_no_picture_exceeds_follows_from_the_last_steps) {
        static const struct {
                const char *text;
                uint32_t height, width; /* 0: there is none */
        } rows[] = {
                { "decode", 0, 0 },
                { "resize(256)", 0, 0 },
                { "resize(short=800, max=1333) hflip", 1333, 1333 },
                { "resize(short=8, max=13) pad(1:2) to(float16)", 17, 15 },
                { "resize(short=8, max=13) center_crop(7:9)", 7, 9 },
                { "center_crop(7:9) vflip", 7, 9 },
                { "resize(short=8, max=13) resize(7)", 0, 0 },
                { "pad(3)", 0, 0 },
                { "pad(3) random_crop(9) pad(1)", 11, 11 },
                { "center_crop(30:40) random_rotation(9, expand=true) vflip", 52, 52 },
                { "random_rotation(9, expand=true)", 0, 0 },
                { "center_crop(30:40) random_rotation(9) random_affine(9)", 30, 40 },
                { "random_zoom_out", 0, 0 },
                { "center_crop(7:9) random_zoom_out(p=0)", 7, 9 },
                { "center_crop(7:9) random_zoom_out(side_range=1:2.5)", 18, 23 },
                { "scale_jitter(7:9, scale_range=0.5:3)", 28, 22 },
                { "center_crop(3) random_shortest_size(7:9)", 0, 0 },
                { "center_crop(7:9) random_iou_crop", 7, 9 },
                { "random_shortest_size(7:9, max_size=20) hflip", 20, 20 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct recipe *recipe = parse(rows[i].text);
                uint32_t height = 0, width = 0;

                ck_assert_msg(recipe_bound(recipe, &height, &width) == (rows[i].height > 0), "%s", rows[i].text);
                ck_assert_msg(height == rows[i].height && width == rows[i].width, "%s: %u x %u", rows[i].text, height,
                              width);
                recipe_free(recipe);
        }
}
END_TEST

/* ---- pixels -------------------------------------------------------------------------------------------------- */

/* A picture whose every pixel says where it is, in memory that ends with its last byte. */
static uint8_t *make_picture(uint32_t width, uint32_t height) {
        uint8_t *pixels = malloc((size_t)width * height * 3);

        for (uint32_t y = 0; y < height; y++)
                for (uint32_t x = 0; x < width; x++) {
                        uint8_t *pixel = pixels + ((size_t)y * width + x) * 3;

                        pixel[0] = (uint8_t)(x + 1);
                        pixel[1] = (uint8_t)(y + 1);
                        pixel[2] = (uint8_t)(1 + x / 200 + y / 200 * 16);
                }
        return pixels;
}

#define GUARD 32u /* bytes between rows that nobody may write */

static uint8_t *apply(struct workspace *workspace, const char *text, const uint8_t *pixels, uint32_t width,
                      uint32_t height, struct geometry *geometry) {
        struct recipe *recipe = parse(text);
        struct view view;
        uint8_t *out, *packed;
        size_t stride, n_held;

        ck_assert_int_eq(recipe_plan(recipe, width, height, 1, 2, 3, geometry, NULL), 0);
        view = (struct view){
                .pixels = pixels + ((size_t)geometry->source.y * width + geometry->source.x) * 3,
                .stride = (size_t)width * 3,
                .width = geometry->source.width,
                .height = geometry->source.height,
        };
        stride = (size_t)geometry->width * 3 + GUARD;
        out = malloc(stride * geometry->height);
        packed = malloc((size_t)geometry->width * 3 * geometry->height);
        memset(out, 0xa5, stride * geometry->height);
        if (text[strlen(text) / 2] % 2)
                workspace_trim(workspace);
        n_held = workspace_bytes(workspace);
        ck_assert_int_eq(recipe_apply(workspace, geometry, &view, out, stride, NULL), 0);
        if (workspace_bytes(workspace) > n_held + recipe_bytes_needed(geometry)) /* who pays has paid too little */
                ck_abort_msg("%s: %zu bytes, after %zu; said to need %llu", text, workspace_bytes(workspace), n_held,
                             (unsigned long long)recipe_bytes_needed(geometry));
        for (uint32_t y = 0; y < geometry->height; y++) {
                const uint8_t *row = out + y * stride;

                memcpy(packed + (size_t)y * geometry->width * 3, row, (size_t)geometry->width * 3);
                for (size_t i = 0; i < GUARD; i++)
                        if (row[geometry->width * 3 + i] != 0xa5)
                                ck_abort_msg("%s: written beside row %u", text, y);
        }
        free(out);
        recipe_free(recipe);
        return packed;
}

static struct workspace *new_workspace(void) {
        struct workspace *workspace = NULL;

        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        return workspace;
}

START_TEST(steps_without_resampling_move_pixels_and_nothing_else) {
        struct workspace *workspace = new_workspace();
        uint8_t *pixels = make_picture(20, 10), *out;
        struct geometry geometry;

        out = apply(workspace, "decode", pixels, 20, 10, &geometry);
        ck_assert_mem_eq(out, pixels, 20 * 10 * 3);
        free(out);

        out = apply(workspace, "hflip(1)", pixels, 20, 10, &geometry);
        for (uint32_t x = 0; x < 20; x++)
                ck_assert_mem_eq(out + x * 3, pixels + (19 - x) * 3, 3);
        free(out);

        out = apply(workspace, "center_crop(4:7)", pixels, 20, 10, &geometry); /* (20 - 7) / 2 = 6.5: to even, 6 */
        ck_assert_mem_eq(out, pixels + (3 * 20 + 6) * 3, 7 * 3);
        ck_assert_mem_eq(out + 3 * 7 * 3, pixels + (6 * 20 + 6) * 3, 7 * 3);
        free(out);

        free(pixels);
        workspace_free(workspace);
}
END_TEST

START_TEST(a_small_picture_gets_a_black_border_also_mirrored) {
        struct workspace *workspace = new_workspace();
        uint8_t *pixels = make_picture(2, 1), *out;
        static const uint8_t black[3] = {};
        struct geometry geometry;

        out = apply(workspace, "center_crop(4:5)", pixels, 2, 1,
                    &geometry); /* 1 column left, 2 right; 1 row above, 2 below */
        for (uint32_t i = 0; i < 20; i++)
                ck_assert_mem_eq(out + i * 3, i == 6 ? pixels : i == 7 ? pixels + 3 : black, 3);
        free(out);

        out = apply(workspace, "center_crop(4:5) hflip(1)", pixels, 2, 1, &geometry);
        for (uint32_t i = 0; i < 20; i++)
                ck_assert_mem_eq(out + i * 3, i == 8 ? pixels : i == 7 ? pixels + 3 : black, 3);
        free(out);

        out = apply(workspace, "hflip(1) center_crop(4:5)", pixels, 2, 1, &geometry);
        for (uint32_t i = 0; i < 20; i++)
                ck_assert_mem_eq(out + i * 3, i == 7 ? pixels : i == 6 ? pixels + 3 : black, 3);
        free(out);

        /* A crop that holds nothing but border. */
        out = apply(workspace, "center_crop(1:4) center_crop(1)", pixels, 1, 1, &geometry);
        ck_assert_mem_eq(out, black, 3);
        free(out);
        free(pixels);
        workspace_free(workspace);
}
END_TEST

struct interest {
        uint32_t n_asked, n_yes;
};

static bool is_interested(const void *userdata) {
        struct interest *interest = (struct interest *)(uintptr_t)userdata;

        return interest->n_asked++ < interest->n_yes;
}

START_TEST(what_nobody_wants_any_more_is_given_up_between_steps_and_within_long_ones) {
        static const char text[] =
                "resize(300:500) equalize(1) gaussian_blur(7:3, sigma=1.3) random_rotation(30:30) "
                "resize(1500:3000) resize(1500:1000) gaussian_blur(3, sigma=1) motion_blur(3, p=1) clahe(p=1) "
                "elastic_transform jpeg(50:50, p=1) aug_mix random_rotation(30:30) center_crop(20)";
        struct workspace *workspace = new_workspace();
        struct recipe *recipe = parse(text);
        const uint32_t width = 1024, height = 2500;
        uint8_t *pixels = make_picture(width, height), out[20 * 20 * 3];
        struct view view = { .pixels = pixels, .stride = (size_t)width * 3, .width = width, .height = height };
        struct interest interest = { .n_yes = UINT32_MAX };
        struct geometry geometry;
        uint32_t n_asked;

        ck_assert_int_eq(recipe_plan(recipe, width, height, 1, 2, 3, &geometry, NULL), 0);
        ck_assert_uint_eq(geometry.source.height, height);
        workspace_set_wanted(workspace, is_interested, &interest);
        ck_assert_int_eq(recipe_run(workspace, &geometry, &view, out, 20 * 3, NULL), 0);
        n_asked = interest.n_asked;
        /* Before each step, within each that reads or makes more than a megapixel, and after each chain of aug_mix. Of
         * the tall resize that makes 4.5 of few there would be one look if only those that are read counted: 37. */
        ck_assert_uint_eq(n_asked, 41);
        for (uint32_t n = 0; n < n_asked; n += n_asked / suite_rounds(n_asked)) {
                interest = (struct interest){ .n_yes = n };
                ck_assert_int_eq(recipe_run(workspace, &geometry, &view, out, 20 * 3, NULL), -ECANCELED);
                ck_assert_uint_eq(interest.n_asked, n + 1);
        }
        workspace_set_wanted(workspace, NULL, NULL);
        ck_assert_int_eq(recipe_run(workspace, &geometry, &view, out, 20 * 3, NULL), 0);
        free(pixels);
        recipe_free(recipe);
        workspace_free(workspace);
}
END_TEST

START_TEST(a_picture_with_alpha_that_was_given_up_is_not_held_against_the_next) {
        struct workspace *workspace = new_workspace();
        struct recipe *recipe = parse("decode(mode=RGBA) resize(16)");
        struct interest interest = { .n_yes = 0 };
        uint8_t *colors = make_picture(32, 32), *alpha = make_picture(32, 32), out[16 * 16 * 4];
        struct geometry geometry;

        ck_assert_int_eq(recipe_plan(recipe, 32, 32, 1, 2, 3, &geometry, NULL), 0);
        workspace_set_wanted(workspace, is_interested, &interest);
        ck_assert_int_eq(recipe_run_alpha(workspace, &geometry, colors, alpha, out, 16 * 4, NULL), -ECANCELED);
        interest.n_yes = UINT32_MAX;
        ck_assert_int_eq(recipe_run_alpha(workspace, &geometry, colors, alpha, out, 16 * 4, NULL), 0);
        free(colors);
        free(alpha);
        recipe_free(recipe);
        workspace_free(workspace);
}
END_TEST

/* Folding steps into stages changes no pixel: each pipeline equals its steps, applied one by one. */
START_TEST(a_pipeline_equals_its_steps_one_by_one) {
        static const char *const steps[] = {
                "resize(37)",
                "resize(20:50, interpolation=lanczos)",
                "resize(33:21, nearest)",
                "center_crop(30)",
                "center_crop(60:25)",
                "hflip(1)",
                "resize(64:64)",
                "vflip(1)",
                "pad(3)",
                "pad(1:2:0:4, fill=9:99:200)",
                "pad(2:0:5:3, padding_mode=edge)",
                "pad(40:1:2:3, padding_mode=reflect)",
                "pad(2:3:40:1, padding_mode=symmetric)",
                "color_jitter(brightness=1.5:1.5)",
                "color_jitter(contrast=0.5:0.5)",
                "color_jitter(saturation=2:2)",
                "color_jitter(hue=0.2:0.2)",
                "random_grayscale(1)",
                "invert(1)",
                "posterize(3, p=1)",
                "autocontrast(1)",
                "equalize(1)",
                "sharpness(2.5, p=1)",
                "random_rotation(30:30, fill=9:99:200)",
                "random_rotation(90:90, expand=true)",
                "random_affine(5:5, scale=0.7:0.7, shear=10:10, interpolation=bilinear)",
                "random_affine(-20:-20, center=3:4, fill=7, interpolation=bicubic)",
                "gaussian_blur(7:3, sigma=1.3)",
                "gaussian_blur(1:255, sigma=9)",
                "clahe(2:2, p=1)",
                "clahe(9:9, tile_grid_size=3:5, p=1)",
                "jpeg(30)",
                "random_brightness_contrast(0.1:0.1, contrast_limit=0.2:0.2, p=1)",
        };
        struct workspace *workspace = new_workspace();
        struct dlp_philox philox;

        dlp_philox_init(&philox, 12, 0, 0, 0);
        for (unsigned n = 0, rounds = suite_rounds(2000); n < rounds; n++) {
                uint32_t width = 1 + dlp_philox_below(&philox, 90), height = 1 + dlp_philox_below(&philox, 90);
                uint8_t *whole = make_picture(width, height), *by_steps = make_picture(width, height);
                struct geometry geometry = { .width = width, .height = height };
                unsigned n_steps = 1 + dlp_philox_below(&philox, 5);
                char text[512] = "";
                uint8_t *out;

                for (unsigned i = 0; i < n_steps; i++) {
                        const char *step = steps[dlp_philox_below(&philox, sizeof(steps) / sizeof(steps[0]))];

                        strcat(strcat(text, step), " ");
                        out = apply(workspace, step, by_steps, geometry.width, geometry.height, &geometry);
                        free(by_steps);
                        by_steps = out;
                }
                out = apply(workspace, text, whole, width, height, &geometry);
                ck_assert_msg(memcmp(out, by_steps, (size_t)geometry.width * geometry.height * 3) == 0, "%u x %u: %s",
                              width, height, text);
                free(out);
                free(by_steps);
                free(whole);
        }
        workspace_free(workspace);
}
END_TEST

START_TEST(a_border_is_drawn_around_and_mirrored_with_the_picture) {
        struct workspace *workspace = new_workspace();
        static const uint8_t row[] = { 1, 1, 1, 2, 2, 2, 3, 3, 3 };
        static const struct {
                const char *text;
                uint8_t reds[8];
        } rows[] = {
                { "pad(3:0:2:0, fill=7:8:9)", { 7, 7, 7, 1, 2, 3, 7, 7 } },
                { "pad(3:0:2:0, padding_mode=edge)", { 1, 1, 1, 1, 2, 3, 3, 3 } },
                { "pad(3:0:2:0, padding_mode=symmetric)", { 3, 2, 1, 1, 2, 3, 3, 2 } },
                { "pad(3:0:2:0, padding_mode=reflect)", { 2, 3, 2, 1, 2, 3, 2, 1 } }, /* wider than it: back again */
                { "hflip(1) pad(3:0:2:0, padding_mode=reflect)", { 2, 1, 2, 3, 2, 1, 2, 3 } },
                { "pad(3:0:2:0, padding_mode=reflect) hflip(1)", { 1, 2, 3, 2, 1, 2, 3, 2 } },
                { "pad(3:0:2:0, fill=7) pad(1:0:2:0, fill=8) center_crop(1:8)", { 7, 7, 1, 2, 3, 7, 7, 8 } },
        };
        struct geometry geometry;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint8_t *out = apply(workspace, rows[i].text, row, 3, 1, &geometry);

                ck_assert_uint_eq(geometry.width, 8);
                for (uint32_t x = 0; x < 8; x++)
                        ck_assert_msg(out[x * 3] == rows[i].reds[x], "%s: pixel %u is %u", rows[i].text, x, out[x * 3]);
                free(out);
        }
        workspace_free(workspace);
}
END_TEST

/* Black, white, three colours, nearly a grey. tests/integration/test_transforms.py tries them all, where torchvision is
 * installed; here are some of Pillow's answers. */
START_TEST(colours_change_as_pillow_changes_them) {
        static const uint8_t pixels[18] = { 0, 0, 0, 255, 255, 255, 200, 30, 40, 30, 200, 190, 13, 7, 250, 90, 91, 92 };
        static const struct {
                const char *text;
                uint8_t want[18];
        } rows[] = {
                { "color_jitter(brightness=1.3:1.3)",
                  { 0, 0, 0, 255, 255, 255, 255, 39, 52, 39, 255, 246, 16, 9, 255, 116, 118, 119 } },
                { "color_jitter(brightness=0.3:0.3)",
                  { 0, 0, 0, 76, 76, 76, 60, 9, 12, 9, 60, 57, 3, 2, 75, 27, 27, 27 } },
                { "color_jitter(contrast=1.7:1.7)",
                  { 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 255, 251, 0, 0, 255, 81, 83, 85 } },
                { "color_jitter(contrast=0.5:0.5)",
                  { 51, 51, 51, 178, 178, 178, 151, 66, 71, 66, 151, 146, 57, 54, 176, 96, 96, 97 } },
                { "color_jitter(saturation=1.7:1.7)",
                  { 0, 0, 0, 255, 255, 255, 255, 0, 10, 0, 236, 219, 0, 0, 255, 89, 91, 92 } },
                { "color_jitter(saturation=0.3:0.3)",
                  { 0, 0, 0, 255, 255, 255, 117, 66, 69, 112, 163, 160, 29, 27, 100, 90, 91, 91 } },
                { "color_jitter(hue=0.1:0.1)",
                  { 0, 0, 0, 255, 255, 255, 200, 114, 31, 31, 110, 200, 156, 8, 250, 90, 90, 92 } },
                { "color_jitter(hue=-0.3:-0.3)",
                  { 0, 0, 0, 255, 255, 255, 55, 31, 200, 174, 200, 31, 8, 250, 65, 91, 92, 90 } },
                { "grayscale(3)", { 0, 0, 0, 255, 255, 255, 82, 82, 82, 148, 148, 148, 36, 36, 36, 91, 91, 91 } },
        };
        struct workspace *workspace = new_workspace();
        struct geometry geometry;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint8_t *out = apply(workspace, rows[i].text, pixels, 6, 1, &geometry);

                for (size_t at = 0; at < sizeof(pixels); at++)
                        ck_assert_msg(out[at] == rows[i].want[at], "%s: byte %zu is %u", rows[i].text, at, out[at]);
                free(out);
        }
        workspace_free(workspace);
}
END_TEST

/* What leaves, tried on a picture of one row, whose bytes are given back. */
static uint8_t *convert(struct workspace *workspace, const char *text, const uint8_t *pixels, uint32_t width,
                        size_t *ret_n_bytes) {
        struct recipe *recipe = parse(text);
        const struct pixel_format *format = recipe_format(recipe);
        struct view view = { .pixels = pixels, .stride = (size_t)width * 3, .width = width, .height = 1 };
        struct geometry geometry;
        uint8_t *out;

        *ret_n_bytes = width * pixel_format_bytes(format);
        out = malloc(*ret_n_bytes);
        ck_assert_int_eq(recipe_plan(recipe, width, 1, 1, 2, 3, &geometry, NULL), 0);
        ck_assert_int_eq(recipe_apply(workspace, &geometry, &view, out, pixel_format_row_bytes(format, width), NULL),
                         0);
        recipe_free(recipe);
        return out;
}

START_TEST(numbers_leave_in_the_type_and_layout_that_were_asked_for) {
        static const uint8_t pixels[] = { 0, 51, 102, 255, 254, 1 };
        static const struct {
                const char *text;
                size_t n_bytes;
                const char *hex; /* of the elements, little-endian */
        } rows[] = {
                { "decode", 6, "003366fffe01" },
                { "to(uint8)", 6, "003366fffe01" },
                { "layout(nchw)", 6, "00ff33fe6601" },
                { "to(float32)", 24, "00000000cdcc4c3ecdcccc3e0000803ffffe7e3f8180803b" },
                { "to(float32) layout(nchw)", 24, "000000000000803fcdcc4c3efffe7e3fcdcccc3e8180803b" },
                { "layout(nchw) to(bfloat16)", 12, "0000803f4d3e7f3fcd3e813b" },
                { "to(float16)", 12, "000066326636003cf83b041c" },
                { "normalize(0.2:0.2:0.4, 0.5)", 24, "cdccccbe0000000000000000cdcccc3fcccbcb3fcbca4abf" },
                { "grayscale", 2, "2ae1" },
                { "grayscale layout(nchw) to(float16)", 4, "45310f3b" },
        };
        struct workspace *workspace = new_workspace();

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                size_t n_bytes;
                uint8_t *out = convert(workspace, rows[i].text, pixels, 2, &n_bytes);
                char hex[64] = ""; /* room for 24 bytes and more */

                for (size_t at = 0; at < n_bytes; at++)
                        sprintf(hex + 2 * at, "%02x", out[at]);
                ck_assert_uint_eq(n_bytes, rows[i].n_bytes);
                ck_assert_msg(strcmp(hex, rows[i].hex) == 0, "%s: %s", rows[i].text, hex);
                free(out);
        }
        workspace_free(workspace);
}
END_TEST

START_TEST(halves_are_rounded_to_the_nearest_ties_to_even) {
        static const struct {
                uint32_t bits;
                uint16_t half, bfloat;
        } rows[] = {
                { 0x00000000, 0x0000, 0x0000 }, { 0x80000000, 0x8000, 0x8000 }, { 0x3f800000, 0x3c00, 0x3f80 },
                { 0x3f801000, 0x3c00, 0x3f80 },                                 /* 1 + 2^-11: a tie for float16 */
                { 0x3f801001, 0x3c01, 0x3f80 }, { 0x3f803000, 0x3c02, 0x3f80 }, /* a tie, odd below */
                { 0x3f808000, 0x3c04, 0x3f80 }, { 0x3f818000, 0x3c0c, 0x3f82 }, /* ties for bfloat16 */
                { 0x3fffffff, 0x4000, 0x4000 },                                 /* carries into the exponent */
                { 0x477fe000, 0x7bff, 0x4780 },                                 /* 65504, the largest float16 */
                { 0x477fefff, 0x7bff, 0x4780 }, { 0x477ff000, 0x7c00, 0x4780 }, /* half a step above: infinite */
                { 0xc7800000, 0xfc00, 0xc780 }, { 0x7f7fffff, 0x7c00, 0x7f80 }, { 0x7f800000, 0x7c00, 0x7f80 },
                { 0x38800000, 0x0400, 0x3880 },                                 /* 2^-14, the smallest that is normal */
                { 0x387fffff, 0x0400, 0x3880 }, { 0x33800000, 0x0001, 0x3380 }, /* 2^-24, the smallest */
                { 0x33000000, 0x0000, 0x3300 }, { 0x33000001, 0x0001, 0x3300 }, /* half of it: a tie; and more */
                { 0x33c00000, 0x0002, 0x33c0 }, { 0x00000001, 0x0000, 0x0000 }, { 0x7f800001, 0x7e00, 0x7fc0 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                ck_assert_msg(half_from_float32(rows[i].bits) == rows[i].half, "%08x: float16 %04x", rows[i].bits,
                              half_from_float32(rows[i].bits));
                ck_assert_msg(bfloat16_from_float32(rows[i].bits) == rows[i].bfloat, "%08x: bfloat16 %04x",
                              rows[i].bits, bfloat16_from_float32(rows[i].bits));
        }
}
END_TEST

START_TEST(a_crop_that_does_not_fit_names_both_sizes) {
        struct recipe *recipe = parse("random_crop(30:40, padding=2)");
        struct geometry geometry;
        struct why why = {};

        ck_assert_int_eq(recipe_plan(recipe, 36, 26, 0, 0, 0, &geometry, &why), 0);
        ck_assert_int_eq(recipe_plan(recipe, 35, 26, 0, 0, 0, &geometry, &why), -ERANGE);
        ck_assert_ptr_nonnull(strstr(why.text, "a crop of 40 x 30 pixels does not fit into 39 x 30"));
        ck_assert_int_eq(recipe_plan(recipe, 36, 25, 0, 0, 0, &geometry, NULL), -ERANGE);
        recipe_free(recipe);
}
END_TEST

/* The box filter's edges fall between pixels one way or the other: mirroring first and resizing then is not the same.
 */
START_TEST(mirroring_is_done_where_it_stands) {
        struct workspace *workspace = new_workspace();
        uint8_t *pixels = make_picture(292, 24), *mirrored, *want, *out, *other;
        struct geometry geometry;

        mirrored = apply(workspace, "hflip(1)", pixels, 292, 24, &geometry);
        want = apply(workspace, "resize(24:256, interpolation=box)", mirrored, 292, 24, &geometry);
        out = apply(workspace, "hflip(1) resize(24:256, interpolation=box)", pixels, 292, 24, &geometry);
        other = apply(workspace, "resize(24:256, interpolation=box) hflip(1)", pixels, 292, 24, &geometry);
        ck_assert_mem_eq(out, want, 256 * 24 * 3);
        ck_assert_mem_ne(other, want, 256 * 24 * 3);
        free(pixels);
        free(mirrored);
        free(want);
        free(out);
        free(other);
        workspace_free(workspace);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("recipe");
        TCase *tcase = tcase_create("recipe"), *large = tcase_create("large");
        SRunner *runner;
        int n_failed, n_kinds = 0;

        while (picture_steps.kinds[n_kinds])
                n_kinds++;
        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, a_text_has_one_normal_spelling);
        tcase_add_loop_test(tcase, a_mistake_is_told_with_its_column_and_what_was_expected, 0,
                            (int)(sizeof(MISTAKES) / sizeof(MISTAKES[0])));
        tcase_add_loop_test(tcase, a_class_is_read_as_its_step, 0, n_kinds);
        tcase_add_loop_test(tcase, numbers_beyond_their_bounds_are_refused_with_what_is_allowed, 0, n_kinds);
        tcase_add_loop_test(tcase, a_step_that_changes_levels_is_for_colours_and_grey, 0, n_kinds);
        tcase_add_test(tcase, a_text_that_is_too_long_is_refused_with_the_limit);
        tcase_add_test(tcase, the_longest_pipeline_fits_and_one_step_more_is_refused);
        tcase_add_test(tcase, the_output_size_is_known_unless_it_depends_on_the_picture);
        tcase_add_test(tcase, the_size_that_no_picture_exceeds_follows_from_the_last_steps);
        tcase_add_test(tcase, sizes_and_centres_are_torchvisions);
        tcase_add_test(tcase, a_long_side_is_limited_as_torchvision_does);
        tcase_add_test(tcase, a_step_draws_from_the_stream_of_its_place);
        tcase_add_test(tcase, a_picture_taken_as_it_is_needs_no_copy_and_anything_else_does);
        tcase_add_test(tcase, a_resize_beyond_the_limits_is_refused_with_the_numbers);
        tcase_add_test(tcase, only_what_must_begins_a_stage);
        tcase_add_test(tcase, every_box_of_a_plan_lies_where_it_must);
        tcase_add_test(tcase, steps_without_resampling_move_pixels_and_nothing_else);
        tcase_add_test(tcase, a_small_picture_gets_a_black_border_also_mirrored);
        tcase_add_test(tcase, a_pipeline_equals_its_steps_one_by_one);
        tcase_add_test(tcase, a_picture_with_alpha_that_was_given_up_is_not_held_against_the_next);
        tcase_add_test(tcase, a_border_is_drawn_around_and_mirrored_with_the_picture);
        tcase_add_test(tcase, colours_change_as_pillow_changes_them);
        tcase_add_test(tcase, numbers_leave_in_the_type_and_layout_that_were_asked_for);
        tcase_add_test(tcase, halves_are_rounded_to_the_nearest_ties_to_even);
        tcase_add_test(tcase, a_crop_that_does_not_fit_names_both_sizes);
        tcase_add_test(tcase, mirroring_is_done_where_it_stands);
        suite_add_tcase(suite, tcase);
        tcase_set_timeout(large, 60);
        tcase_add_test(large, what_nobody_wants_any_more_is_given_up_between_steps_and_within_long_ones);
        suite_add_tcase(suite, large);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
