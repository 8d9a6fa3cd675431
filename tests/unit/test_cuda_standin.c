/* The stand-in for CUDA's driver: when work is executed, in which order, and what it sees. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "tests/support/cuda_driver.h"
#include "tests/support/suite.h"

#define PAGE   4096u
#define PAGES  16u
#define BYTES  (PAGES * PAGE)
#define NUMBER 1024u /* of words that the kernels work on */

#define OK(call) ck_assert_int_eq(call, CUDA_SUCCESS)

static const char *const QUICK[] = { "DLT_CUDA_DELAY_US=200", NULL };
static const char *const AT_ONCE[] = { "DLT_CUDA_DELAY_US=0", NULL };

/* ---- what the tests use ------------------------------------------------------------------------------------------ */

struct step_params {
        uint64_t words;
        uint32_t n, add;
};

/* Depends on the order: (3 x + 1) + 1 is not 3 (x + 1) + 1. */
static void run_step(const void *argument, const uint32_t grid[3], const uint32_t block[3]) {
        const struct step_params *params = argument;
        uint32_t *words = (uint32_t *)params->words;

        ck_assert_uint_eq(grid[0] * block[0], params->n);
        for (uint32_t i = 0; i < params->n; i++)
                words[i] = 3 * words[i] + params->add;
}

static const struct dlk_cpu_kernel KERNELS[] = { { "step", sizeof(struct step_params), run_step } };

static void *step_kernel(void **ret_module) {
        void *function;

        cuda.add_kernels(KERNELS, 1);
        OK(cuda.cuModuleLoadData(ret_module, "\x7f"
                                             "ELF"));
        OK(cuda.cuModuleGetFunction(&function, *ret_module, "step"));
        return function;
}

static void launch_step(void *function, void *stream, uint64_t words, uint32_t add) {
        struct step_params params = { words, NUMBER, add };
        void *list[] = { &params };

        OK(cuda.cuLaunchKernel(function, NUMBER / 64, 1, 1, 64, 1, 1, 0, stream, list, NULL));
        params = (struct step_params){}; /* they were copied */
}

static void *new_stream(unsigned flags) {
        void *stream;

        OK(cuda.cuStreamCreate(&stream, flags));
        return stream;
}

static void *new_event(void) {
        void *event;

        OK(cuda.cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
        return event;
}

static uint64_t new_memory(size_t n_bytes) {
        uint64_t pointer;

        OK(cuda.cuMemAlloc(&pointer, n_bytes));
        return pointer;
}

/* Shared memory of some pages, all of `value`, and registered. */
static uint8_t *new_registered(uint8_t value) {
        uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        ck_assert_ptr_ne(memory, MAP_FAILED);
        memset(memory, value, BYTES);
        OK(cuda.cuMemHostRegister(memory, BYTES, CUDA_HOST_PORTABLE));
        return memory;
}

static void drop_registered(uint8_t *memory) {
        OK(cuda.cuMemHostUnregister(memory));
        munmap(memory, BYTES);
}

static uint32_t count_of(uint64_t pointer, size_t n_bytes, uint8_t value) {
        _cleanup_(freep) uint8_t *copy = malloc(n_bytes);
        uint32_t n = 0;

        OK(cuda.cuMemcpyDtoH(copy, pointer, n_bytes));
        for (size_t i = 0; i < n_bytes; i++)
                n += copy[i] == value;
        return n;
}

static void no_violation(void) {
        struct dlt_cuda_counts counts = cuda_driver_counts();

        ck_assert_msg(counts.n_violations == 0, "%s", counts.first_violation);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

START_TEST(work_in_a_stream_is_executed_in_order) {
        uint32_t words[NUMBER], expected = 0;
        void *stream, *module, *step;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        step = step_kernel(&module);
        memory = new_memory(sizeof(words));
        OK(cuda.cuMemsetD8Async(memory, 0, sizeof(words), stream));
        for (uint32_t i = 1; i <= 10; i++) {
                launch_step(step, stream, memory, i);
                expected = 3 * expected + i;
        }
        OK(cuda.cuMemcpyDtoHAsync(words, memory, sizeof(words), stream));
        for (uint32_t i = 0; i < NUMBER; i++)
                ck_assert_uint_eq(words[i], expected);
        ck_assert_uint_eq(cuda_driver_counts().n_launches, 10);
        ck_assert_uint_eq(cuda_driver_counts().n_images, 1);
        OK(cuda.cuModuleUnload(module));
        no_violation();
}
END_TEST

START_TEST(a_call_returns_before_its_work_is_done) {
        struct cuda_gate gate;
        void *stream;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        memory = new_memory(100);
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemsetD8Async(memory, 1, 100, stream));
        ck_assert_int_eq(cuda.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        OK(cuda.cuStreamQuery(stream));
        ck_assert_uint_eq(count_of(memory, 100, 1), 100);
}
END_TEST

START_TEST(an_event_is_complete_once_the_work_before_it_is_done) {
        struct cuda_gate gate, later;
        void *stream, *event;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        event = new_event();
        OK(cuda.cuEventQuery(event)); /* was never recorded */
        OK(cuda.cuEventSynchronize(event));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuEventRecord(event, stream));
        cuda_gate_shut(&later, stream);
        ck_assert_int_eq(cuda.cuEventQuery(event), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuEventSynchronize(event));
        OK(cuda.cuEventQuery(event));
        ck_assert_int_eq(cuda.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&later);
        OK(cuda.cuStreamSynchronize(stream));
        OK(cuda.cuEventDestroy(event));
        no_violation();
}
END_TEST

static void sleep_a_while(void *argument) {
        usleep(*(const useconds_t *)argument);
}

START_TEST(the_time_between_two_events_is_that_of_the_work_between_them) {
        useconds_t nap_us = 20000;
        void *stream, *begin, *end, *untimed;
        struct cuda_gate gate;
        float ms = -1;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        OK(cuda.cuEventCreate(&begin, 0));
        OK(cuda.cuEventCreate(&end, 0));
        untimed = new_event();
        ck_assert_int_eq(cuda.cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE); /* never recorded */
        OK(cuda.cuEventRecord(begin, stream));
        OK(cuda.cuLaunchHostFunc(stream, sleep_a_while, &nap_us));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuEventRecord(end, stream));
        OK(cuda.cuEventRecord(untimed, stream));
        ck_assert_int_eq(cuda.cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        OK(cuda.cuEventElapsedTime(&ms, begin, end));
        ck_assert_float_ge(ms, 20);
        OK(cuda.cuEventElapsedTime(&ms, end, begin));
        ck_assert_float_le(ms, -20);
        ck_assert_int_eq(cuda.cuEventElapsedTime(&ms, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
        ck_assert_int_eq(cuda.cuEventElapsedTime(NULL, begin, end), CUDA_ERROR_INVALID_VALUE);
        no_violation();
}
END_TEST

/* Long enough for work that is not held up, as a rule. */
static void let_others_run(void) {
        void *stream = new_stream(CUDA_STREAM_NON_BLOCKING), *event = new_event();

        for (uint32_t i = 0; i < 30; i++)
                OK(cuda.cuEventRecord(event, stream));
        OK(cuda.cuStreamSynchronize(stream));
        OK(cuda.cuStreamDestroy(stream));
}

START_TEST(a_stream_waits_for_an_event_of_another_one) {
        struct cuda_gate gate;
        void *first, *second, *event;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        first = new_stream(CUDA_STREAM_NON_BLOCKING);
        second = new_stream(CUDA_STREAM_NON_BLOCKING);
        event = new_event();
        memory = new_memory(BYTES);
        cuda_gate_shut(&gate, first);
        OK(cuda.cuMemsetD8Async(memory, 1, BYTES, first));
        OK(cuda.cuEventRecord(event, first));
        OK(cuda.cuStreamSynchronize(second)); /* nothing orders them yet */
        OK(cuda.cuStreamWaitEvent(second, event, 0));
        OK(cuda.cuMemsetD8Async(memory, 2, BYTES / 2, second));
        let_others_run();
        ck_assert_int_eq(cuda.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(second));
        ck_assert_uint_eq(count_of(memory, BYTES, 2), BYTES / 2);
        ck_assert_uint_eq(count_of(memory, BYTES, 1), BYTES / 2);
}
END_TEST

START_TEST(a_later_record_of_an_event_is_not_waited_for) {
        struct cuda_gate gate;
        void *first, *second, *event;

        cuda_driver_begin_current(QUICK);
        first = new_stream(CUDA_STREAM_NON_BLOCKING);
        second = new_stream(CUDA_STREAM_NON_BLOCKING);
        event = new_event();
        OK(cuda.cuEventRecord(event, first));
        OK(cuda.cuStreamWaitEvent(second, event, 0));
        cuda_gate_shut(&gate, first);
        OK(cuda.cuEventRecord(event, first));
        OK(cuda.cuStreamSynchronize(second));
        ck_assert_int_eq(cuda.cuEventQuery(event), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuCtxSynchronize());
        OK(cuda.cuEventQuery(event));
}
END_TEST

START_TEST(the_legacy_stream_waits_for_blocking_streams_only) {
        struct cuda_gate blocking_gate, other_gate;
        void *blocking, *other;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        blocking = new_stream(0);
        other = new_stream(CUDA_STREAM_NON_BLOCKING);
        memory = new_memory(100);
        cuda_gate_shut(&other_gate, other);
        OK(cuda.cuMemsetD8Async(memory, 1, 100, NULL));
        OK(cuda.cuStreamSynchronize(NULL));
        cuda_gate_shut(&blocking_gate, blocking);
        OK(cuda.cuMemsetD8Async(memory, 2, 100, CUDA_STREAM_LEGACY));
        cuda_gate_open(&other_gate);
        OK(cuda.cuStreamSynchronize(other));
        ck_assert_int_eq(cuda.cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&blocking_gate);
        OK(cuda.cuStreamSynchronize(NULL));
        OK(cuda.cuStreamQuery(blocking));
        ck_assert_uint_eq(count_of(memory, 100, 2), 100);
}
END_TEST

START_TEST(blocking_streams_alone_wait_for_the_legacy_stream) {
        struct cuda_gate gate;
        void *blocking, *other;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        blocking = new_stream(0);
        other = new_stream(CUDA_STREAM_NON_BLOCKING);
        memory = new_memory(300); /* a part for each: nothing orders them */
        cuda_gate_shut(&gate, NULL);
        OK(cuda.cuMemsetD8Async(memory, 1, 100, blocking));
        OK(cuda.cuMemsetD8Async(memory + 200, 1, 100, CUDA_STREAM_PER_THREAD));
        OK(cuda.cuMemsetD8Async(memory + 100, 1, 100, other));
        OK(cuda.cuStreamSynchronize(other));
        ck_assert_int_eq(cuda.cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
        ck_assert_int_eq(cuda.cuStreamQuery(CUDA_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuCtxSynchronize());
        ck_assert_uint_eq(count_of(memory, 300, 1), 300);
}
END_TEST

START_TEST(a_stream_that_is_destroyed_finishes_its_work) {
        struct cuda_gate gate;
        void *stream, *event;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        event = new_event();
        memory = new_memory(100);
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemsetD8Async(memory, 7, 100, stream));
        OK(cuda.cuEventRecord(event, stream));
        OK(cuda.cuStreamDestroy(stream));
        ck_assert_uint_eq(cuda_driver_counts().n_streams, 0);
        cuda_gate_open(&gate);
        OK(cuda.cuEventSynchronize(event));
        ck_assert_uint_eq(count_of(memory, 100, 7), 100);
        no_violation();
}
END_TEST

/* ---- copies ------------------------------------------------------------------------------------------------------ */

START_TEST(a_copy_from_registered_memory_sees_what_is_written_later) {
        struct cuda_gate gate;
        void *stream;
        uint8_t *source;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        source = new_registered(1);
        memory = new_memory(BYTES);
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemcpyHtoDAsync(memory, source, BYTES, stream));
        memset(source, 2, BYTES); /* a slot that is used again too early */
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        ck_assert_uint_eq(count_of(memory, BYTES, 2), BYTES);
        ck_assert_uint_eq(cuda_driver_counts().n_copies_late, 1);
        ck_assert_uint_eq(cuda_driver_counts().bytes_to_device, BYTES);
        drop_registered(source);
        no_violation();
}
END_TEST

struct scribble {
        uint8_t *memory;
        atomic_bool ends;
};

static void *scribble(void *argument) {
        struct scribble *to = argument;

        for (uint8_t value = 0; !atomic_load(&to->ends); value++)
                memset(to->memory, value, BYTES);
        return NULL;
}

START_TEST(a_copy_while_the_source_is_written_is_a_mixture) {
        struct scribble to = {};
        uint8_t *copy = malloc(BYTES);
        bool mixed = false;
        pthread_t writer;
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        to.memory = new_registered(0);
        memory = new_memory(BYTES);
        ck_assert_int_eq(pthread_create(&writer, NULL, scribble, &to), 0);
        for (uint32_t i = 0; i < 1000 && !mixed; i++) {
                OK(cuda.cuMemcpyHtoD(memory, to.memory, BYTES));
                OK(cuda.cuMemcpyDtoH(copy, memory, BYTES));
                mixed = memcmp(copy, copy + 1, BYTES - 1) != 0;
        }
        atomic_store(&to.ends, true);
        pthread_join(writer, NULL);
        ck_assert(mixed);
        drop_registered(to.memory);
        free(copy);
}
END_TEST

START_TEST(a_copy_from_other_memory_sees_what_was_there_at_the_call) {
        struct cuda_gate gate;
        uint8_t source[1000];
        uint64_t memory;
        void *stream;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        memory = new_memory(sizeof(source));
        memset(source, 1, sizeof(source));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemcpyHtoDAsync(memory, source, sizeof(source), stream));
        memset(source, 2, sizeof(source));
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        ck_assert_uint_eq(count_of(memory, sizeof(source), 1), sizeof(source));
        ck_assert_uint_eq(cuda_driver_counts().n_copies_late, 0);
}
END_TEST

START_TEST(a_copy_to_registered_memory_is_late_too) {
        struct cuda_gate gate;
        uint8_t *to;
        uint64_t memory;
        void *stream;

        cuda_driver_begin_current(QUICK);
        stream = new_stream(CUDA_STREAM_NON_BLOCKING);
        to = new_registered(1);
        memory = new_memory(BYTES);
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemsetD8Async(memory, 2, BYTES, stream));
        OK(cuda.cuMemcpyDtoHAsync(to, memory, BYTES, stream));
        ck_assert_uint_eq(to[0], 1);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        ck_assert_uint_eq(to[0], 2);
        ck_assert_uint_eq(to[BYTES - 1], 2);
        ck_assert_uint_eq(cuda_driver_counts().bytes_to_host, BYTES);
        drop_registered(to);
}
END_TEST

START_TEST(pinned_memory_of_the_driver_is_a_device_pointer_too) {
        void *host;
        uint64_t pointer, memory;
        unsigned type;

        cuda_driver_begin_current(AT_ONCE);
        memory = new_memory(BYTES);
        OK(cuda.cuMemHostAlloc(&host, BYTES, CUDA_HOST_PORTABLE));
        OK(cuda.cuMemHostGetDevicePointer(&pointer, host, 0));
        OK(cuda.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, pointer));
        ck_assert_uint_eq(type, CUDA_MEMORY_HOST);
        OK(cuda.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, memory + 17));
        ck_assert_uint_eq(type, CUDA_MEMORY_DEVICE);
        ck_assert_int_eq(cuda.cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uint64_t)&type),
                         CUDA_ERROR_INVALID_VALUE);
        memset(host, 5, BYTES);
        OK(cuda.cuMemcpyDtoDAsync(memory, pointer, BYTES, NULL));
        ck_assert_uint_eq(count_of(memory, BYTES, 5), BYTES);
        OK(cuda.cuMemFreeHost(host));
        ck_assert_uint_eq(cuda_driver_counts().n_host_allocations, 0);
        no_violation();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "order", work_in_a_stream_is_executed_in_order, 3 },
                { "order", a_call_returns_before_its_work_is_done },
                { "order", an_event_is_complete_once_the_work_before_it_is_done },
                { "order", the_time_between_two_events_is_that_of_the_work_between_them },
                { "order", a_stream_waits_for_an_event_of_another_one },
                { "order", a_later_record_of_an_event_is_not_waited_for },
                { "order", the_legacy_stream_waits_for_blocking_streams_only },
                { "order", blocking_streams_alone_wait_for_the_legacy_stream },
                { "order", a_stream_that_is_destroyed_finishes_its_work },
                { "copies", a_copy_from_registered_memory_sees_what_is_written_later },
                { "copies", a_copy_while_the_source_is_written_is_a_mixture },
                { "copies", a_copy_from_other_memory_sees_what_was_there_at_the_call },
                { "copies", a_copy_to_registered_memory_is_late_too },
                { "copies", pinned_memory_of_the_driver_is_a_device_pointer_too },
        };

        return suite_run("cuda_standin", rows, sizeof(rows) / sizeof(rows[0]));
}
