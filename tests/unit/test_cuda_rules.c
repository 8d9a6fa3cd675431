/* The stand-in for CUDA's driver: what it refuses, what it counts as a violation, and what it tells of it. */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cuda_driver.h"
#include "tests/support/suite.h"
#include "tests/support/temporary.h"

#define PAGE  4096u
#define BYTES (16u * PAGE)
#define ROOM  (64u << 20)

#define OK(call)           ck_assert_int_eq(call, CUDA_SUCCESS)
#define FAILS(call, error) ck_assert_int_eq(call, error)
#define SETTINGS(...)      ((const char *const[]){ "DLT_CUDA_DELAY_US=200", __VA_ARGS__, NULL })
#define REPORTS            "report" /* argument of this program: see some_calls_are_made */

static const char *const QUICK[] = { "DLT_CUDA_DELAY_US=200", NULL };

/* More than is asked for: in a hole that is made at its end, others put their memory at the far end first. */
static uint8_t *map(int rights) {
        void *memory = mmap(NULL, ROOM, rights, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        ck_assert_ptr_ne(memory, MAP_FAILED);
        return memory;
}

static uint64_t new_memory(size_t n_bytes) {
        uint64_t pointer;

        OK(cuda.cuMemAlloc(&pointer, n_bytes));
        return pointer;
}

static void *new_stream(void) {
        void *stream;

        OK(cuda.cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
        return stream;
}

/* The first and only violation says so. */
static void one_violation(const char *part) {
        struct dlt_cuda_counts counts = cuda_driver_counts();

        ck_assert_uint_eq(counts.n_violations, 1);
        ck_assert_msg(strstr(counts.first_violation, part) != NULL, "%s", counts.first_violation);
}

/* ---- symbols, devices and contexts ------------------------------------------------------------------------------- */

START_TEST(symbols_are_found_by_name_and_version) {
        void *function;
        int status;

        cuda_driver_begin(SETTINGS("DLT_CUDA_VERSION=11030"));
        OK(cuda.cuGetProcAddress("cuMemAlloc", &function, 11030, 0, &status));
        ck_assert_int_eq(status, CUDA_LOOKUP_FOUND);
        ck_assert_ptr_eq(function, (void *)cuda.cuMemAlloc);
        FAILS(cuda.cuGetProcAddress("cuMemAlloc_v2", &function, 11030, 0, &status), CUDA_ERROR_NOT_FOUND);
        ck_assert_ptr_null(function);
        ck_assert_int_eq(status, CUDA_LOOKUP_NO_SYMBOL);
        FAILS(cuda.cuGetProcAddress("cuMemAlloc", &function, 2000, 0, &status), CUDA_ERROR_NOT_FOUND);
        ck_assert_int_eq(status, CUDA_LOOKUP_VERSION_TOO_OLD);
        FAILS(cuda.cuGetProcAddress("cuDeviceGetUuid", &function, 12000, 0, NULL), CUDA_ERROR_NOT_FOUND);
        FAILS(cuda.cuGetProcAddress(NULL, &function, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_device_is_what_the_environment_says) {
        int n, major, minor, read_only;
        char id[16];

        cuda_driver_begin(SETTINGS("DLT_CUDA_DEVICES=2", "DLT_CUDA_CAPABILITY=8.6"));
        FAILS(cuda.cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
        OK(cuda.cuInit(0));
        OK(cuda.cuDeviceGetCount(&n));
        ck_assert_int_eq(n, 2);
        OK(cuda.cuDeviceGetAttribute(&major, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, 1));
        OK(cuda.cuDeviceGetAttribute(&minor, CUDA_ATTRIBUTE_CAPABILITY_MINOR, 1));
        OK(cuda.cuDeviceGetAttribute(&read_only, CUDA_ATTRIBUTE_READ_ONLY_HOST_REGISTER, 1));
        ck_assert_int_eq(major, 8);
        ck_assert_int_eq(minor, 6);
        ck_assert_int_eq(read_only, 0);
        OK(cuda.cuDeviceGetPCIBusId(id, sizeof(id), 1));
        ck_assert_str_eq(id, "0000:C1:00.0");
        FAILS(cuda.cuDeviceGetPCIBusId(id, sizeof(id), 2), CUDA_ERROR_INVALID_DEVICE);
        cuda_driver_begin(SETTINGS("DLT_CUDA_DEVICES=0"));
        FAILS(cuda.cuInit(0), CUDA_ERROR_NO_DEVICE);
}
END_TEST

START_TEST(calls_need_a_context_that_is_current_and_retained) {
        void *context, *popped;
        uint64_t pointer;

        cuda_driver_begin(QUICK);
        OK(cuda.cuInit(0));
        FAILS(cuda.cuMemAlloc(&pointer, 100), CUDA_ERROR_INVALID_CONTEXT);
        OK(cuda.cuDevicePrimaryCtxRetain(&context, 0));
        FAILS(cuda.cuMemAlloc(&pointer, 100), CUDA_ERROR_INVALID_CONTEXT);
        OK(cuda.cuCtxPushCurrent(context));
        OK(cuda.cuMemAlloc(&pointer, 100));
        OK(cuda.cuCtxPopCurrent(&popped));
        ck_assert_ptr_eq(popped, context);
        OK(cuda.cuCtxGetCurrent(&popped));
        ck_assert_ptr_null(popped);
        FAILS(cuda.cuMemFree(pointer), CUDA_ERROR_INVALID_CONTEXT);
        OK(cuda.cuCtxSetCurrent(context));
        new_stream();
        OK(cuda.cuDevicePrimaryCtxRelease(0));
        FAILS(cuda.cuMemFree(pointer), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        ck_assert_uint_eq(cuda_driver_counts().n_left, 2);
        ck_assert_uint_eq(cuda_driver_counts().n_allocations, 0);
        ck_assert_uint_eq(cuda_driver_counts().n_streams, 0);
        ck_assert_uint_eq(cuda_driver_counts().n_contexts, 0);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        FAILS(cuda.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

/* In a child, which must not return. */
static int status_of(void (*function)(void *), void *argument) {
        pid_t child = fork();
        int status;

        ck_assert_int_ge(child, 0);
        if (child == 0) {
                function(argument);
                _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        return status;
}

static void call_in_child(void *argument) {
        uint64_t pointer;
        int n;

        if (cuda.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED)
                _exit(1);
        if (cuda.cuDeviceGetCount(&n) != CUDA_ERROR_NOT_INITIALIZED)
                _exit(2);
        if (cuda.cuMemAlloc(&pointer, 100) != CUDA_ERROR_NOT_INITIALIZED)
                _exit(3);
}

static void begin_in_child(void *argument) {
        if (cuda.cuInit(0) != CUDA_SUCCESS)
                _exit(1);
}

START_TEST(nothing_works_in_a_child_of_a_process_that_has_begun) {
        cuda_driver_begin(QUICK);
        ck_assert_int_eq(status_of(begin_in_child, NULL), 0);
        cuda_driver_begin_current(QUICK);
        new_stream();
        ck_assert_int_eq(status_of(call_in_child, NULL), 0);
        ck_assert_uint_eq(cuda.calls("cuInit"), 1);
}
END_TEST

/* ---- device memory ----------------------------------------------------------------------------------------------- */

START_TEST(memory_is_used_up_and_comes_back) {
        uint64_t first, second;
        void *stream;

        cuda_driver_begin_current(SETTINGS("DLT_CUDA_MEMORY=1000000"));
        stream = new_stream();
        first = new_memory(600000);
        FAILS(cuda.cuMemAlloc(&second, 600000), CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuda.cuMemFree(first));
        OK(cuda.cuMemAllocAsync(&first, 600000, stream));
        OK(cuda.cuMemFreeAsync(first, stream));
        OK(cuda.cuMemAlloc(&second, 600000)); /* after the stream has freed it */
        ck_assert_uint_eq(cuda_driver_counts().bytes_allocated, 600000);
        ck_assert_uint_eq(cuda_driver_counts().max_bytes_allocated, 600000);
        OK(cuda.cuMemFree(second));
        ck_assert_uint_eq(cuda_driver_counts().n_allocations, 0);
        FAILS(cuda.cuMemAlloc(&second, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_is_freed_after_the_work_that_is_queued) {
        uint64_t memory;
        void *stream;

        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        memory = new_memory(BYTES);
        for (uint32_t i = 0; i < 20; i++)
                OK(cuda.cuMemsetD8Async(memory, 1, BYTES, stream));
        OK(cuda.cuMemFree(memory));
        OK(cuda.cuStreamQuery(stream));
        ck_assert_uint_eq(cuda_driver_counts().bytes_on_device, 20 * BYTES);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
}
END_TEST

START_TEST(memory_is_freed_once) {
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        memory = new_memory(100);
        OK(cuda.cuMemFreeAsync(memory, NULL));
        FAILS(cuda.cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
        one_violation("freed before");
}
END_TEST

START_TEST(memory_is_not_used_after_its_free_is_queued) {
        struct cuda_gate gate;
        uint64_t memory;
        void *stream;

        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        memory = new_memory(100);
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemFreeAsync(memory, stream));
        FAILS(cuda.cuMemsetD8Async(memory, 0, 100, stream), CUDA_ERROR_INVALID_VALUE);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        one_violation("within one allocation");
        ck_assert_uint_eq(cuda_driver_counts().n_allocations, 0);
}
END_TEST

START_TEST(a_copy_must_stay_within_an_allocation) {
        uint8_t bytes[200] = {};
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        memory = new_memory(100);
        OK(cuda.cuMemcpyHtoDAsync(memory + 50, bytes, 50, NULL));
        FAILS(cuda.cuMemcpyHtoDAsync(memory + 50, bytes, 51, NULL), CUDA_ERROR_INVALID_VALUE);
        one_violation("51 bytes");
        FAILS(cuda.cuMemsetD8Async(memory - 1, 0, 2, NULL), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuMemcpyDtoH((void *)memory, memory, 1), CUDA_ERROR_INVALID_VALUE);
        OK(cuda.cuMemFree(memory));
        FAILS(cuda.cuMemcpyDtoH(bytes, memory, 1), CUDA_ERROR_INVALID_VALUE);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 4);
}
END_TEST

START_TEST(memory_that_is_freed_before_its_copy_is_an_illegal_address) {
        struct cuda_gate gate;
        uint64_t memory;
        void *first, *second;

        cuda_driver_begin_current(QUICK);
        first = new_stream();
        second = new_stream();
        memory = new_memory(100);
        cuda_gate_shut(&gate, first);
        OK(cuda.cuMemsetD8Async(memory, 0, 100, first));
        OK(cuda.cuMemFreeAsync(memory, second));
        OK(cuda.cuStreamSynchronize(second));
        cuda_gate_open(&gate);
        FAILS(cuda.cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
        one_violation("freed before the work");
        FAILS(cuda.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(a_byte_beside_an_allocation_is_missed) {
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        memory = new_memory(100);
        ((volatile uint8_t *)memory)[99] = 1;
        OK(cuda.cuMemFree(memory));
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        memory = new_memory(100);
        ((volatile uint8_t *)memory)[100] = 1;
        OK(cuda.cuMemFree(memory));
        one_violation("beside the 100 bytes");
}
END_TEST

#define FAULT 5 /* exit status */

static void leave(int signal_number) {
        _exit(FAULT);
}

static void touch(void *argument) {
        signal(SIGSEGV, leave); /* the sanitizers' own handler would tell a story */
        *(volatile uint8_t *)argument = 1;
}

START_TEST(neither_freed_memory_nor_the_page_after_can_be_touched) {
        uint64_t memory;

        cuda_driver_begin_current(QUICK);
        memory = new_memory(256);
        ck_assert_int_eq(status_of(touch, (void *)(memory + 255)), 0);
        ck_assert_int_eq(WEXITSTATUS(status_of(touch, (void *)(memory + 256))), FAULT);
        OK(cuda.cuMemFree(memory));
        ck_assert_int_eq(WEXITSTATUS(status_of(touch, (void *)memory)), FAULT);
}
END_TEST

/* ---- registration ------------------------------------------------------------------------------------------------ */

START_TEST(registration_has_its_rules) {
        uint8_t *memory = map(PROT_READ | PROT_WRITE), *readable = map(PROT_READ), *holed = map(PROT_READ | PROT_WRITE);

        ck_assert_int_eq(mprotect(memory + 8 * PAGE, PAGE, PROT_NONE), 0);
        munmap(holed + 2 * PAGE, ROOM - 2 * PAGE);
        cuda_driver_begin_current(QUICK);
        FAILS(cuda.cuMemHostRegister(memory + 1, PAGE, 0), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuMemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuMemHostRegister(memory, PAGE, CUDA_HOST_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
        FAILS(cuda.cuMemHostRegister(readable, PAGE, CUDA_HOST_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
        FAILS(cuda.cuMemHostRegister(holed, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuMemHostRegister(memory, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
        OK(cuda.cuMemHostRegister(holed, 2 * PAGE, 0));
        OK(cuda.cuMemHostRegister(memory + PAGE, 2 * PAGE, CUDA_HOST_PORTABLE));
        FAILS(cuda.cuMemHostRegister(memory, BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        FAILS(cuda.cuMemHostRegister(memory + 2 * PAGE, PAGE, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        OK(cuda.cuMemHostRegister(memory + 3 * PAGE, PAGE, 0));
        ck_assert_uint_eq(cuda_driver_counts().n_registrations, 3);
        ck_assert_uint_eq(cuda_driver_counts().bytes_registered, 5 * PAGE);
        FAILS(cuda.cuMemHostUnregister(memory + 2 * PAGE), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        OK(cuda.cuMemHostUnregister(memory + PAGE));
        FAILS(cuda.cuMemHostUnregister(memory + PAGE), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        ck_assert_uint_eq(cuda_driver_counts().bytes_registered, 3 * PAGE);
        ck_assert_uint_eq(cuda_driver_counts().max_bytes_registered, 5 * PAGE);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        cuda_driver_begin_current(SETTINGS("DLT_CUDA_READ_ONLY=1"));
        OK(cuda.cuMemHostRegister(readable, PAGE, CUDA_HOST_READ_ONLY));
        munmap(memory, ROOM);
        munmap(readable, ROOM);
        munmap(holed, 2 * PAGE);
}
END_TEST

START_TEST(a_copy_lies_in_one_registration_or_in_none) {
        uint8_t *memory = map(PROT_READ | PROT_WRITE);
        uint64_t to;

        cuda_driver_begin_current(QUICK);
        to = new_memory(BYTES);
        OK(cuda.cuMemHostRegister(memory, PAGE, 0));
        OK(cuda.cuMemHostRegister(memory + PAGE, PAGE, 0));
        OK(cuda.cuMemcpyHtoD(to, memory + PAGE, PAGE));
        FAILS(cuda.cuMemcpyHtoD(to, memory, PAGE + 1), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuMemcpyHtoD(to, memory + PAGE, PAGE + 1), CUDA_ERROR_INVALID_VALUE);
        OK(cuda.cuMemcpyHtoD(to, memory + 2 * PAGE, PAGE));
        OK(cuda.cuMemHostUnregister(memory));
        OK(cuda.cuMemHostUnregister(memory + PAGE));
        munmap(memory, ROOM);
}
END_TEST

START_TEST(a_private_mapping_of_a_file_is_a_trap) {
        int file = memfd_create("payload", MFD_CLOEXEC);
        void *memory;

        ck_assert_int_eq(ftruncate(file, PAGE), 0);
        memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        close(file);
        cuda_driver_begin_current(QUICK);
        OK(cuda.cuMemHostRegister(memory, PAGE, 0));
        one_violation("private mapping");
        OK(cuda.cuMemHostUnregister(memory));
        munmap(memory, PAGE);
}
END_TEST

START_TEST(memory_that_is_unmapped_before_its_copy_is_a_violation) {
        struct cuda_gate gate;
        uint8_t *memory = map(PROT_READ | PROT_WRITE), copy[BYTES / 2];
        uint64_t to;
        void *stream;

        memset(memory, 3, BYTES);
        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        to = new_memory(BYTES);
        OK(cuda.cuMemHostRegister(memory, BYTES, 0));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemcpyHtoDAsync(to, memory, BYTES, stream));
        munmap(memory + BYTES / 2, ROOM - BYTES / 2);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(stream));
        one_violation("not mapped");
        OK(cuda.cuMemcpyDtoH(copy, to, sizeof(copy)));
        for (uint32_t i = 0; i < sizeof(copy); i++) /* pieces that were there have come */
                ck_assert_uint_eq(copy[i], 3);
        OK(cuda.cuMemHostUnregister(memory));
        munmap(memory, BYTES / 2);
}
END_TEST

/* Opens the gate once the other thread has called it. */
static void *open_later(void *argument) {
        while (cuda.calls("cuMemHostUnregister") == 0)
                sched_yield();
        cuda_gate_open(argument);
        return NULL;
}

START_TEST(memory_is_not_unregistered_while_copies_are_queued) {
        struct cuda_gate gate;
        uint8_t *memory = map(PROT_READ | PROT_WRITE);
        pthread_t opener;
        uint64_t to;
        void *stream;

        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        to = new_memory(BYTES);
        OK(cuda.cuMemHostRegister(memory, BYTES, 0));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuMemcpyHtoDAsync(to, memory, BYTES, stream));
        ck_assert_int_eq(pthread_create(&opener, NULL, open_later, &gate), 0);
        OK(cuda.cuMemHostUnregister(memory));
        ck_assert_uint_eq(cuda_driver_counts().bytes_to_device, BYTES); /* it waited */
        one_violation("still queued");
        pthread_join(opener, NULL);
        munmap(memory, ROOM);
}
END_TEST

/* ---- handles ------------------------------------------------------------------------------------------------------
 */

START_TEST(handles_are_not_used_after_their_end) {
        void *stream, *event;

        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        OK(cuda.cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
        OK(cuda.cuEventDestroy(event));
        FAILS(cuda.cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
        one_violation("destroyed before");
        OK(cuda.cuStreamDestroy(stream));
        FAILS(cuda.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
        FAILS(cuda.cuEventRecord(stream, NULL), CUDA_ERROR_INVALID_HANDLE); /* not an event */
        FAILS(cuda.cuEventQuery(&event), CUDA_ERROR_INVALID_HANDLE);        /* not a handle */
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 4);
        ck_assert_uint_eq(cuda_driver_counts().n_events, 0);
}
END_TEST

START_TEST(an_event_may_be_destroyed_while_it_is_to_come_and_is_waited_for_all_the_same) {
        struct cuda_gate gate;
        void *stream, *waiting, *event;

        cuda_driver_begin_current(QUICK);
        stream = new_stream();
        waiting = new_stream();
        OK(cuda.cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuEventRecord(event, stream));
        OK(cuda.cuStreamWaitEvent(waiting, event, 0));
        OK(cuda.cuEventDestroy(event));
        ck_assert_uint_eq(cuda_driver_counts().n_events, 0);
        usleep(20000);
        FAILS(cuda.cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        OK(cuda.cuStreamSynchronize(waiting));
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
}
END_TEST

static void call_from_work(void *argument) {
        *(int *)argument = cuda.cuCtxSynchronize();
}

START_TEST(host_functions_do_not_call_the_driver) {
        int r = CUDA_SUCCESS;

        cuda_driver_begin_current(QUICK);
        OK(cuda.cuLaunchHostFunc(NULL, call_from_work, &r));
        OK(cuda.cuStreamSynchronize(NULL));
        ck_assert_int_eq(r, CUDA_ERROR_NOT_PERMITTED);
        one_violation("host function");
}
END_TEST

static void run_nothing(const void *params, const uint32_t grid[3], const uint32_t block[3]) {
}

START_TEST(launches_have_their_limits) {
        static const struct dlk_cpu_kernel NOTHING_KERNEL[] = { { "nothing", 4, run_nothing } };
        uint32_t params = 0;
        void *module, *function, *list[] = { &params };

        cuda_driver_begin_current(QUICK);
        cuda.add_kernels(NOTHING_KERNEL, 1);
        FAILS(cuda.cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
        OK(cuda.cuModuleLoadDataEx(&module, ".version 8.0", 0, NULL, NULL));
        FAILS(cuda.cuModuleGetFunction(&function, module, "unheard of"), CUDA_ERROR_NOT_FOUND);
        OK(cuda.cuModuleGetFunction(&function, module, "nothing"));
        OK(cuda.cuLaunchKernel(function, 1, 1, 1, 1024, 1, 1, 0, NULL, list, NULL));
        FAILS(cuda.cuLaunchKernel(function, 1, 1, 1, 1025, 1, 1, 0, NULL, list, NULL), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, list, NULL), CUDA_ERROR_INVALID_VALUE);
        FAILS(cuda.cuLaunchKernel(function, 1, 65536, 1, 32, 1, 1, 0, NULL, list, NULL), CUDA_ERROR_INVALID_VALUE);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        OK(cuda.cuModuleUnload(module));
        FAILS(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, list, NULL), CUDA_ERROR_INVALID_HANDLE);
        one_violation("unloaded");
}
END_TEST

/* ---- errors on demand, and the report ------------------------------------------------------------------------------
 */

START_TEST(a_call_fails_when_the_environment_says_so) {
        uint64_t pointer;
        void *stream;

        cuda_driver_begin_current(SETTINGS("DLT_CUDA_FAIL=cuMemAlloc:2:2,cuStreamCreate:1:999"));
        OK(cuda.cuMemAlloc(&pointer, 1));
        FAILS(cuda.cuMemAlloc(&pointer, 1), CUDA_ERROR_OUT_OF_MEMORY);
        OK(cuda.cuMemAlloc(&pointer, 1));
        FAILS(cuda.cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
        OK(cuda.cuStreamCreate(&stream, 0));
        ck_assert_uint_eq(cuda_driver_counts().n_failed, 2);
        ck_assert_uint_eq(cuda.calls("cuMemAlloc_v2"), 3);
}
END_TEST

static void set_flag(void *argument) {
        *(int *)argument = 1;
}

START_TEST(after_a_sticky_error_nothing_is_executed) {
        struct cuda_gate gate;
        const char *name;
        void *stream;
        int executed = 0, version;

        cuda_driver_begin_current(SETTINGS("DLT_CUDA_FAIL=cuStreamQuery:1:719:sticky"));
        stream = new_stream();
        cuda_gate_shut(&gate, stream);
        OK(cuda.cuLaunchHostFunc(stream, set_flag, &executed));
        FAILS(cuda.cuStreamQuery(stream), CUDA_ERROR_LAUNCH_FAILED);
        cuda_gate_open(&gate);
        FAILS(cuda.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
        FAILS(cuda.cuDevicePrimaryCtxRelease(0), CUDA_ERROR_ILLEGAL_ADDRESS);
        OK(cuda.cuDriverGetVersion(&version));
        OK(cuda.cuGetErrorName(CUDA_ERROR_LAUNCH_FAILED, &name));
        ck_assert_str_eq(name, "CUDA_ERROR_LAUNCH_FAILED");
        cuda.restart(); /* waits for what is queued */
        ck_assert_int_eq(executed, 0);
}
END_TEST

/* What the test below starts, as the only test of a process of its own. */
START_TEST(some_calls_are_made) {
        const char *const settings[] = { getenv("REPORT"), NULL };
        uint64_t pointer;

        cuda_driver_begin_current(settings);
        OK(cuda.cuMemAlloc(&pointer, 123));
        FAILS(cuda.cuMemFree(pointer + 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static void start_reporter(void *argument) {
        char self[] = "/proc/self/exe", word[] = REPORTS, *command[] = { self, word, NULL };

        setenv("REPORT", argument, 1);
        setenv("CK_FORK", "no", 1);
        execv(self, command);
        _exit(9);
}

START_TEST(a_report_is_written_when_a_process_ends) {
        char folder[TEMPORARY_MAX], setting[TEMPORARY_MAX + 40], text[4096];
        const char *path = setting + strlen("DLT_CUDA_REPORT=");
        FILE *file;
        size_t n;

        temporary_folder(folder, sizeof(folder));
        snprintf(setting, sizeof(setting), "DLT_CUDA_REPORT=%s/report", folder);
        ck_assert_int_eq(status_of(start_reporter, setting), 0);
        file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        n = fread(text, 1, sizeof(text) - 1, file);
        text[n] = '\0';
        fclose(file);
        ck_assert_ptr_nonnull(strstr(text, "bytes_allocated 123\n"));
        ck_assert_ptr_nonnull(strstr(text, "n_violations 1\n"));
        ck_assert_ptr_nonnull(strstr(text, "first_violation cuMemFree: "));
        ck_assert_ptr_nonnull(strstr(text, "calls.cuMemAlloc 1\n"));
        unlink(path);
        rmdir(folder);
}
END_TEST

int main(int argc, char **argv) {
        const struct suite_row rows[] = {
                { "contexts", symbols_are_found_by_name_and_version },
                { "contexts", a_device_is_what_the_environment_says },
                { "contexts", calls_need_a_context_that_is_current_and_retained },
                { "contexts", nothing_works_in_a_child_of_a_process_that_has_begun },
                { "memory", memory_is_used_up_and_comes_back },
                { "memory", memory_is_freed_after_the_work_that_is_queued },
                { "memory", memory_is_freed_once },
                { "memory", memory_is_not_used_after_its_free_is_queued },
                { "memory", a_copy_must_stay_within_an_allocation },
                { "memory", memory_that_is_freed_before_its_copy_is_an_illegal_address },
                { "memory", a_byte_beside_an_allocation_is_missed },
                { "memory", neither_freed_memory_nor_the_page_after_can_be_touched },
                { "registration", registration_has_its_rules },
                { "registration", a_copy_lies_in_one_registration_or_in_none },
                { "registration", a_private_mapping_of_a_file_is_a_trap },
                { "registration", memory_that_is_unmapped_before_its_copy_is_a_violation },
                { "registration", memory_is_not_unregistered_while_copies_are_queued },
                { "handles", handles_are_not_used_after_their_end },
                { "handles", an_event_may_be_destroyed_while_it_is_to_come_and_is_waited_for_all_the_same },
                { "handles", host_functions_do_not_call_the_driver },
                { "handles", launches_have_their_limits },
                { "errors", a_call_fails_when_the_environment_says_so },
                { "errors", after_a_sticky_error_nothing_is_executed },
                { "errors", a_report_is_written_when_a_process_ends },
        };

        const struct suite_row reporter[] = { { "reports", some_calls_are_made } };

        if (argc == 2 && strcmp(argv[1], REPORTS) == 0)
                return suite_run("cuda_report", reporter, 1);
        return suite_run("cuda_rules", rows, sizeof(rows) / sizeof(rows[0]));
}
