/* Which epoch and position come. The loader itself may be one batch further: the one that was copied ahead. */

#include <errno.h>

#include "client/cuda/cuda.h"

static int cuda_place_from_loader(struct dlc_cuda *cuda, int r) {
        return r < 0 ? cuda_report(cuda, why_set(&cuda->why, r, "%s", dlc_last_error())) : r;
}

static void move_to(struct dlc_cuda *cuda, uint64_t epoch, uint64_t position) {
        cuda->epoch = epoch;
        cuda->position = position;
        cuda->turn++;
}

int dlc_cuda_set_epoch(struct dlc_cuda *cuda, uint64_t epoch) {
        int r = cuda_enter(cuda, "dlc_cuda_set_epoch");

        if (r < 0)
                return r;
        if (cuda->position == 0 && cuda->epoch == epoch && cuda->ahead) {
                device_leave(&cuda->device); /* its first batch is what comes next */
                return 0;
        }
        cuda_drop_ahead(cuda);
        device_leave(&cuda->device);
        r = cuda_place_from_loader(cuda, dlc_set_epoch(cuda->loader, epoch));
        if (r < 0)
                return r;
        move_to(cuda, epoch, 0);
        return 0;
}

int dlc_cuda_seek(struct dlc_cuda *cuda, uint64_t epoch, uint64_t position) {
        int r = cuda_enter(cuda, "dlc_cuda_seek");

        if (r < 0)
                return r;
        cuda_drop_ahead(cuda);
        device_leave(&cuda->device);
        r = cuda_place_from_loader(cuda, dlc_seek(cuda->loader, epoch, position));
        if (r < 0)
                return r;
        move_to(cuda, epoch, position);
        return 0;
}

static bool cuda_place_is_before(const struct flight *flight, uint64_t epoch, uint64_t position) {
        return flight->epoch < epoch || (flight->epoch == epoch && flight->position < position);
}

int dlc_cuda_get_cursor(struct dlc_cuda *cuda, uint64_t *ret_epoch, uint64_t *ret_position) {
        uint64_t epoch, position;
        int r;

        if (!ret_epoch || !ret_position)
                return cuda_refuse(-EINVAL, "dlc_cuda_get_cursor: ret_epoch and ret_position must not be NULL");
        r = cuda_enter(cuda, "dlc_cuda_get_cursor");
        if (r < 0)
                return r;
        device_leave(&cuda->device);
        epoch = cuda->epoch;
        position = cuda->position;
        for (uint32_t i = 0; i < cuda->n_flights; i++) {
                const struct flight *flight = &cuda->flights[i];

                if (atomic_load_explicit(&flight->state, memory_order_acquire) == FLIGHT_HELD &&
                    flight->turn == cuda->turn && cuda_place_is_before(flight, epoch, position)) {
                        epoch = flight->epoch;
                        position = flight->position;
                }
        }
        *ret_epoch = epoch;
        *ret_position = position;
        return 0;
}
