/* augment/table.h: the steps of pipelines, one row for each, in the sequence in which messages list them. Private to
 * this floor.
 *
 * A row is the name of a step, whose struct step_type is step_NAME in a file NAME.c below steps/ or in groups/. */
#pragma once

#define STEPS(ROW)                                                                                                     \
        /* sizes and places */                                                                                         \
        ROW(random_resized_crop)                                                                                       \
        ROW(resize)                                                                                                    \
        ROW(center_crop)                                                                                               \
        ROW(random_crop)                                                                                               \
        ROW(pad)                                                                                                       \
        ROW(random_zoom_out)                                                                                           \
        ROW(scale_jitter)                                                                                              \
        ROW(random_shortest_size)                                                                                      \
        ROW(random_resize)                                                                                             \
        ROW(five_crop)                                                                                                 \
        ROW(ten_crop)                                                                                                  \
        ROW(random_iou_crop)                                                                                           \
        ROW(hflip)                                                                                                     \
        ROW(vflip)                                                                                                     \
        ROW(random_rotation)                                                                                           \
        ROW(random_affine)                                                                                             \
        ROW(random_perspective)                                                                                        \
        ROW(elastic)                                                                                                   \
        /* colours and levels */                                                                                       \
        ROW(color_jitter)                                                                                              \
        ROW(grayscale)                                                                                                 \
        ROW(random_grayscale)                                                                                          \
        ROW(invert)                                                                                                    \
        ROW(posterize)                                                                                                 \
        ROW(solarize)                                                                                                  \
        ROW(autocontrast)                                                                                              \
        ROW(equalize)                                                                                                  \
        ROW(sharpness)                                                                                                 \
        ROW(gaussian_blur)                                                                                             \
        ROW(gaussian_noise)                                                                                            \
        ROW(erasing)                                                                                                   \
        ROW(random_channel_permutation)                                                                                \
        ROW(random_photometric_distort)                                                                                \
        ROW(clahe)                                                                                                     \
        ROW(coarse_dropout)                                                                                            \
        ROW(jpeg)                                                                                                      \
        ROW(motion_blur)                                                                                               \
        ROW(random_brightness_contrast)                                                                                \
        /* groups of steps */                                                                                          \
        ROW(random_apply)                                                                                              \
        ROW(random_choice)                                                                                             \
        ROW(random_order)                                                                                              \
        ROW(one_of)                                                                                                    \
        /* policies, which choose among the others */                                                                  \
        ROW(auto_augment)                                                                                              \
        ROW(rand_augment)                                                                                              \
        ROW(timm_rand_augment)                                                                                         \
        ROW(trivial_augment_wide)                                                                                      \
        ROW(aug_mix)                                                                                                   \
        /* boxes */                                                                                                    \
        ROW(sanitize)                                                                                                  \
        /* the form of the result */                                                                                   \
        ROW(to)                                                                                                        \
        ROW(normalize)                                                                                                 \
        ROW(layout)
