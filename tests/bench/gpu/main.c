/* gpu PART [key=value ...]: measures libdlclient-cuda on the first GPU. Prints one JSON object.
 *
 *      probe      what the device is
 *      link       GB/s of copies out of the ring's memory, of memory that the driver made, of ordinary memory
 *      kernel     TB/s that the kernels which finish pictures read and write
 *      next       us of dlc_cuda_next() for a batch that is ready
 *      rate       images/s from the loader to the GPU, alone and beside a trainer's matrix products
 *      lifetime   is what a trainer reads late still what was sent?
 *
 *      batch=256 side=224 slots=8 repeats=11 copies=16 n=200 kinds=61 matmul=2048 work_ms=100 pace=20000 pid=PID
 *      seconds=3 socket=PATH            see struct wish (bench.h)
 *
 * All but probe and kernel attach to a daemon that serves "photos", or to ready_batches (lifetime: to one with as many
 * KINDS). Ends with 3 and a sentence where there is no GPU. Over the tests' driver (tests/cuda) everything runs, and no
 * figure means anything: probe has "is_stand_in". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gpu/bench.h"

static const char *wished(char *arguments[], const char *key) {
        for (; *arguments; arguments++)
                if (strncmp(*arguments, key, strlen(key)) == 0 && (*arguments)[strlen(key)] == '=')
                        return *arguments + strlen(key) + 1;
        return NULL;
}

static int wished_number(char *arguments[], const char *key, int initial) {
        const char *text = wished(arguments, key);
        int value = text ? atoi(text) : initial;

        if (value < 1)
                bench_fail(2, "%s: %s; a number from 1 on is needed", key, text);
        return value;
}

static struct wish read_wish(char *arguments[]) {
        const char *pid = wished(arguments, "pid"), *seconds = wished(arguments, "seconds");
        struct wish wish = {
                .batch = wished_number(arguments, "batch", 256),
                .side = wished_number(arguments, "side", 224),
                .slots = wished_number(arguments, "slots", 8),
                .repeats = wished_number(arguments, "repeats", 11),
                .copies = wished_number(arguments, "copies", 16),
                .n = wished_number(arguments, "n", 200),
                .kinds = wished_number(arguments, "kinds", 61),
                .matmul = wished_number(arguments, "matmul", 2048),
                .work_ms = wished_number(arguments, "work_ms", 100),
                .pace = wished_number(arguments, "pace", 20000),
                .pid = pid ? atoi(pid) : 0,
                .seconds = seconds ? atof(seconds) : 3,
                .socket = wished(arguments, "socket"),
        };

        if (wish.matmul % (int)BENCH_TILE != 0)
                bench_fail(2, "matmul: %d; a multiple of %u is needed", wish.matmul, BENCH_TILE);
        if (wish.side % 2 != 0)
                bench_fail(2, "side: %d; an even number is needed", wish.side); /* sums are of 32 bits */
        return wish;
}

static void probe(const struct bench *bench) {
        char name[128] = "", bus_id[32] = "";

        bench_check(bench, bench->driver->device_name(name, sizeof(name), bench->device), "the device's name");
        bench_check(bench, bench->driver->device_bus_id(bus_id, sizeof(bus_id), bench->device), "the device's place");
        printf("{\"name\": \"%s\", \"bus_id\": \"%s\", \"cuda_version\": %d, \"n_multiprocessors\": %u, "
               "\"is_stand_in\": %s}\n",
               name, bus_id, bench->driver->version, bench->n_multiprocessors, bench->is_stand_in ? "true" : "false");
}

static const struct {
        const char *name;
        void (*measure)(const struct bench *bench);
} PARTS[] = { { "probe", probe },       { "link", measure_link }, { "kernel", measure_kernel },
              { "next", measure_next }, { "rate", measure_rate }, { "lifetime", measure_lifetime } };

int main(int argc, char *argv[]) {
        struct bench bench = { 0 };

        for (size_t i = 0; argc >= 2 && i < sizeof(PARTS) / sizeof(PARTS[0]); i++) {
                if (strcmp(argv[1], PARTS[i].name) != 0)
                        continue;
                bench.wish = read_wish(argv + 2);
                bench_open(&bench);
                PARTS[i].measure(&bench);
                bench_close(&bench);
                return 0;
        }
        fprintf(stderr, "usage: gpu probe|link|kernel|next|rate|lifetime [key=value ...]\n");
        return 2;
}
