/* augment/warp/displace.h: where torchvision's ElasticTransform moves pixels: for each of them a random number from -1 to 1
 * along either axis, blurred, so that neighbours move alike. Private to this floor.
 *
 * A number belongs to its pixel: word y * width + x of the stream of a seed (noise.h). So a displacement can be
 * computed for a single point too, as boxes and points need it. float32 throughout, as in torch. */
#pragma once

#include <stdint.h>

enum {
        ALONG_X,
        ALONG_Y,
        N_ALONG
};

struct displacement {
        float alpha[N_ALONG], sigma[N_ALONG]; /* along x and y; sigmas are positive */
        uint64_t seeds[N_ALONG];
};

/* Points go where pixels come from, nearly: to the place of the pixel in which they are, less its displacement. */
void displace_point(const struct displacement *displacement, uint32_t width, uint32_t height, float *x, float *y);

/* Memory for a picture of this width. */
uint64_t displace_bytes(const struct displacement *displacement, uint32_t width);
