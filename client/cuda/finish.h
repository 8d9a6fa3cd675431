/* cuda/finish.h: the kernel that finishes pictures. */
#pragma once

#include "client/cuda/flight.h"

/* Queues, on device->working: from uint8 pictures at `from`, sample_stride bytes apart, to the tensor, which describes
 * the finished one. */
cu_result finish_launch(const struct device *device, const struct finish_form *form, cu_pointer from,
                        uint64_t sample_stride, const struct dlc_tensor *tensor);
