#include "client/cuda/pinned.h"

#include <errno.h>

#define CHUNK_BYTES (32ull << 30) /* one call for 512 GiB or more fails */

static uint64_t chunk_at(const struct pinned *pinned, uint64_t offset) {
        return pinned->bytes - offset < CHUNK_BYTES ? pinned->bytes - offset : CHUNK_BYTES;
}

static void unregister(struct pinned *pinned, const struct device *device) {
        for (uint64_t offset = 0; offset < pinned->n_registered; offset += CHUNK_BYTES)
                device->driver->host_unregister((uint8_t *)pinned->base + offset);
        pinned->n_registered = 0;
}

static void register_all(struct pinned *pinned, const struct device *device) {
        for (uint64_t offset = 0; offset < pinned->bytes; offset += CHUNK_BYTES) {
                cu_result result = device->driver->host_register((uint8_t *)pinned->base + offset,
                                                                 chunk_at(pinned, offset), CU_HOST_REGISTER_PORTABLE);

                if (result != CU_SUCCESS) {
                        driver_refuse(device->driver, result, "registering the memory of the batches",
                                      &pinned->refusal);
                        unregister(pinned, device);
                        return;
                }
                pinned->n_registered += chunk_at(pinned, offset);
        }
}

int pinned_open(struct pinned *pinned, const struct device *device, struct dlc_loader *loader, struct why *why) {
        int r;

        *pinned = (struct pinned){ 0 };
        r = dlc_hold_memory(loader, &pinned->base, &pinned->bytes);
        if (r < 0)
                return why_set(why, r, "%s", dlc_last_error());
        register_all(pinned, device);
        return 0;
}

bool pinned_is_current(const struct pinned *pinned, struct dlc_loader *loader) {
        return pinned->base == dlc_get_info(loader)->memory_base;
}

void pinned_close(struct pinned *pinned, const struct device *device, struct dlc_loader *loader, bool can_call) {
        if (!pinned->base)
                return;
        if (can_call)
                unregister(pinned, device);
        dlc_let_memory(loader, pinned->base);
        *pinned = (struct pinned){ 0 };
}
