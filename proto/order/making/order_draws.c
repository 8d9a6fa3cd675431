#include "proto/order/making/order_draws.h"

#include <errno.h>
#include <math.h>

#define CHUNK 65536u

/* Fills the order from its own table where the elements are as wide, else through another one. */
static int order_draws_shuffle(struct dlp_making *making, struct dlp_torch_random *random, void *table, uint64_t n,
                               const struct dlp_order *order) {
        struct dlp_shuffle shuffle;
        uint64_t n_done = 0;

        dlp_shuffle_init(&shuffle, random, table, n, making->terms->base.compat);
        for (uint64_t n_steps = 0; n_steps < n; n_steps += CHUNK) {
                n_done = dlp_shuffle_advance(&shuffle, CHUNK);
                if (!making->go_on(making, n_done, n))
                        return -ECANCELED;
        }
        for (uint64_t i = 0; table != order->samples && i < n; i++)
                dlp_order_set_sample(order, i, dlp_shuffle_element(table, n, i));
        return 0;
}

int dlp_making_randperm(struct dlp_making *making, struct dlp_torch_random *random, uint64_t n,
                        struct dlp_order *ret_order) {
        uint64_t element = dlp_shuffle_element_bytes(n);
        struct dlp_order order = { 0 };
        void *table;
        bool is_own;
        int r = dlp_making_samples(making, n, &order);

        if (r < 0)
                return r;
        table = order.samples;
        is_own = element != (order.is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
        if (is_own)
                r = dlp_making_allocate(making, n, element, &table);
        if (r == 0) {
                r = order_draws_shuffle(making, random, table, n, &order);
                if (is_own)
                        making->release(making, table, n * element);
        }
        if (r < 0)
                dlp_making_free(making, &order);
        else
                *ret_order = order;
        return r;
}

static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33; /* high: 32 bits */

/* x = m * 2^e with m between sqrt(1/2) and sqrt(2); with s = (m - 1) / (m + 1), log m = 2 (s + s^3 / 3 + s^5 / 5 +
 * ...), of which the terms up to s^23 are enough. */
double dlp_logarithm(double x) {
        int exponent;
        double m = frexp(x, &exponent), s, square, sum = 0;

        if (m < 0.70710678118654752) {
                m *= 2;
                exponent--;
        }
        s = (m - 1) / (m + 1);
        square = s * s;
        for (int k = 23; k >= 3; k -= 2)
                sum = (sum + 1.0 / k) * square;
        return exponent * LN2_HIGH + (2 * s + (2 * s * sum + exponent * LN2_LOW));
}

/* x = k * log 2 + r with r between -0.35 and 0.35, and e^r = 1 + r + r^2 / 2 + ... + r^14 / 14! */
double dlp_exponential(double x) {
        double k = rint(x * 1.4426950408889634), r = (x - k * LN2_HIGH) - k * LN2_LOW, sum = 1;

        for (int i = 14; i >= 1; i--)
                sum = 1 + sum * r / i;
        return ldexp(sum, (int)k);
}
