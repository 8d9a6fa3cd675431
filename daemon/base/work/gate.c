#include "daemon/base/work/gate.h"

#include "proto/base/clock.h"

void gate_init(struct gate *gate, uint32_t n_most) {
        *gate = (struct gate){ .n_most = n_most };
        pthread_mutex_init(&gate->lock, NULL);
        fair_queue_init(&gate->queue);
}

void gate_fini(struct gate *gate) {
        fair_queue_fini(&gate->queue);
        pthread_mutex_destroy(&gate->lock);
}

/* The queue has as many items as threads wait, so taking one never blocks. */
static void let_in_locked(struct gate *gate) {
        while (gate->n_inside < gate->n_most && gate->n_waiting > 0) {
                struct gate_turn *next = (struct gate_turn *)fair_queue_pop(&gate->queue, NULL); /* its first member */

                gate->n_waiting--;
                gate->n_inside++;
                next->is_called = true;
                pthread_cond_signal(&next->called);
        }
}

static void wait_locked(struct gate *gate, struct fair_share *share, struct gate_turn *turn) {
        turn->is_called = false;
        fair_queue_push(&gate->queue, share, &turn->item);
        gate->n_waiting++;
        let_in_locked(gate);
        while (!turn->is_called)
                pthread_cond_wait(&turn->called, &gate->lock);
        turn->since_ns = clock_now_ns();
}

void gate_enter(struct gate *gate, struct fair_share *share, struct gate_turn *turn) {
        pthread_cond_init(&turn->called, NULL);
        pthread_mutex_lock(&gate->lock);
        wait_locked(gate, share, turn);
        pthread_mutex_unlock(&gate->lock);
}

uint64_t gate_pass(struct gate *gate, struct gate_turn *turn) {
        uint64_t spent_ns = clock_now_ns() - turn->since_ns;

        if (spent_ns < GATE_TURN_NS)
                return 0;
        pthread_mutex_lock(&gate->lock);
        fair_item_done(&turn->item, spent_ns);
        gate->n_inside--;
        wait_locked(gate, turn->item.share, turn); /* it may be called at once */
        pthread_mutex_unlock(&gate->lock);
        return spent_ns;
}

uint64_t gate_leave(struct gate *gate, struct gate_turn *turn) {
        uint64_t spent_ns = clock_now_ns() - turn->since_ns;

        pthread_mutex_lock(&gate->lock);
        fair_item_done(&turn->item, spent_ns);
        gate->n_inside--;
        let_in_locked(gate);
        pthread_mutex_unlock(&gate->lock);
        pthread_cond_destroy(&turn->called);
        return spent_ns;
}
