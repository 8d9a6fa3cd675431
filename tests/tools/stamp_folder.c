/* Stamps a folder as a version of a dataset, as if a staging had just ended: for tests of whoever serves it.
 *
 *   stamp_folder PATH MANIFEST [index|none]
 *
 * PATH is the dataset's path; the version's folder, named by the first 12 of MANIFEST's 64 digits, is there already.
 * "index" makes its index, too. Prints the version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/dataset.h"
#include "daemon/store/record/stamp.h"

static int make_index(const struct place *place, struct stamp *stamp, struct why *why) {
        char path[PATH_MAX];
        struct dataset_spec spec = { .name = stamp->version, .path = path, .format = "imagefolder" };
        struct dataset *dataset;
        int r = place_file(place, stamp->version, "", path);

        if (r == 0) /* NAME.index in the place's folder: where it belongs */
                r = dataset_open(&spec, place->folder, NULL, &dataset, NULL, why);
        if (r < 0)
                return r;
        snprintf(stamp->index, sizeof(stamp->index), "%s", dataset_source(dataset)->digest);
        snprintf(stamp->format, sizeof(stamp->format), "imagefolder");
        dataset_unref(dataset);
        return 0;
}

int main(int argc, char **argv) {
        struct stamp stamp = { .dataset = "test", .n_files = 1, .n_bytes = 1, .n_nodes = 1, .when = 1700000000 };
        struct place place;
        struct why why = { 0 };
        int r;

        if (argc != 4 || strlen(argv[2]) != PLACE_DIGEST_SIZE - 1) {
                fprintf(stderr, "Usage: stamp_folder PATH MANIFEST index|none\n");
                return 64;
        }
        snprintf(stamp.manifest, sizeof(stamp.manifest), "%s", argv[2]);
        snprintf(stamp.source, sizeof(stamp.source), "%s", argv[2]);
        place_version(stamp.manifest, stamp.version);
        r = place_init(&place, argv[1], &why);
        if (r == 0 && strcmp(argv[3], "index") == 0)
                r = make_index(&place, &stamp, &why);
        if (r == 0)
                r = stamp_write(&place, &stamp, &why);
        if (r < 0) {
                fprintf(stderr, "stamp_folder: %s\n", why.text);
                return 1;
        }
        puts(stamp.version);
        return 0;
}
