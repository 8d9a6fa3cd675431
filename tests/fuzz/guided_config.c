/* Any bytes as the configuration file. What is accepted is complete: each setting is there and within its bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/config.h"
#include "tests/fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct setting *rows, size_t n_rows, const void *fields) {
        char buffer[32];

        for (size_t i = 0; i < n_rows; i++) {
                const char *value = setting_value(&rows[i], fields, buffer);

                if (!value) {
                        fprintf(stderr, "fuzz: a configuration was accepted without %s\n", rows[i].name);
                        abort();
                }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        struct config config;
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_write("configuration", data, n_bytes);
        if (config_read(folder_path("configuration", path), &config, &why) < 0) {
                if (!why.text[0])
                        abort();
                return 0;
        }
        check(SETTINGS, N_SETTINGS, &config.settings);
        for (size_t i = 0; i < config.n_datasets; i++)
                check(DATASET_SETTINGS, N_DATASET_SETTINGS, &config.datasets[i]);
        config_fini(&config);
        return 0;
}
