/* cuda/route.h: where each tensor of a batch goes: from which bytes of the slot, to where on the stage, and what it is on
 * the device. Pure arithmetic; calls no driver. */
#pragma once

#include <stdbool.h>

#include "client/include/dlclient-cuda.h"
#include "proto/base/why.h"
#include "proto/limits.h"

#define DEVICE_ALIGN 256u /* of each tensor on the device: what cuMemAlloc() and torch align to */

struct finish_form;
struct finish_forms;

enum route_kind {
        ROUTE_HOST,   /* bytes and text, which mean nothing to a GPU: copied on the host */
        ROUTE_AS_IS,  /* to the device, the same elements */
        ROUTE_FINISH, /* to the device, and a kernel makes of it what its form says */
};

struct route {
        enum route_kind kind;
        const struct finish_form *form; /* ROUTE_FINISH */
        const uint8_t *from;            /* in the slot */
        uint64_t n_bytes;               /* from there on; 0: there is nothing to copy */
        uint64_t skipped;               /* of a ragged tensor: bytes from its data to `from` */
        uint64_t stage_at;              /* on the stage; ROUTE_HOST: in the host's memory */
        uint64_t sample_stride;         /* ROUTE_FINISH: from sample to sample in the slot and on the stage */
        bool has_flips;                 /* ROUTE_FINISH: of any sample, by its operations, */
        uint32_t n_passes;              /* and in how many passes (kernels/color.h) these are done; 0: none has any */
        uint64_t output_bytes;          /* on the device, finished */
        uint64_t output_at;             /* in the flight's own output */
};

struct routes {
        struct route items[DLP_TENSORS_MAX];
        uint32_t n;
        uint64_t stage_bytes, output_bytes, host_bytes; /* all of each */
};

/* Lays out all tensors of the batch. -EPROTO: a picture is not what its form says. */
int routes_make(const struct dlc_batch *batch, const struct finish_forms *forms, struct routes *ret_routes,
                struct why *why);
