/* augment/operations/motion_blur_pixels.h: the largest kernel. Sums of as many levels fit into 16 bits. */
#pragma once

#define MOTION_KERNEL_MAX 255u
