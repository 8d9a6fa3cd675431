/* cuda/cuda_finish.h: the kernels that finish pictures. */
#pragma once

#include "client/cuda/flight.h"
#include "client/cuda/route.h"

/* Queues, on device->working: from the uint8 pictures of this route at `from` to the tensor, which describes the
 * finished one. What their operations ask for is done before that, in place. */
cu_result finish_launch(const struct device *device, const struct route *route, cu_pointer from,
                        const struct dlc_tensor *tensor);
