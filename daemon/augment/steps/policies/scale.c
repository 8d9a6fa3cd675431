#include "daemon/augment/steps/policies/scale.h"

#include <math.h>

double policy_on_scale(double from, double to, struct policy_magnitude magnitude) {
        float step = ((float)to - (float)from) / (float)(magnitude.n - 1);

        if (magnitude.idx < magnitude.n / 2)
                return (double)fmaf(step, (float)magnitude.idx, (float)from);
        return (double)fmaf(-step, (float)(magnitude.n - 1 - magnitude.idx), (float)to);
}
