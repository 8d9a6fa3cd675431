/* Processes beside the daemon: decoders, and plug-ins. They are started from this program (main() of faults.c), and
 * what they call is counted and fails as the daemon's own calls do. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"

/* Photos through a plug-in, or through a codec of one: looks at each sample. */
static void read_plugged(struct scene *scene, bool must_work) {
        struct dlc_options options = scene_options(scene, SCENE_PHOTOS);
        struct dlc_loader *loader;

        options.pipeline = "random_resized_crop(12) plugin(blocks.mosaic, 3) plugin(blocks.salt, 0.1)";
        loader = scene_open(scene, &options, must_work);
        if (!loader)
                return;
        if (scene_read_epoch(scene, SCENE_DAMAGED, loader, must_work) == DLC_END_OF_EPOCH)
                scene_read_epoch(scene, SCENE_DAMAGED, loader, must_work);
        dlc_close(loader);
}

static void configure(struct scene *scene, const char *more) {
        char settings[PATH_MAX];

        snprintf(settings, sizeof(settings), "plugins = \"blocks\"\nplugin_dirs = \"%s/plugins\"\n%s", scene->data,
                 more);
        scene_configure(scene, settings);
}

/* What a clean daemon delivers, so that it can be compared. */
static void begin(struct scene *scene, const char *more, bool with_plugins) {
        configure(scene, more);
        if (!scene_start(scene, true))
                scene_problem(scene, "the daemon did not start");
        scene_read(scene, SCENE_FILES, 0, 2, true);
        scene_read(scene, SCENE_PHOTOS, 0, 2, true);
        if (with_plugins)
                read_plugged(scene, true);
}

static void start(struct scene *scene, const char *more) {
        configure(scene, more);
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                scene_read(scene, SCENE_PHOTOS, 0, 1, false);
                read_plugged(scene, false);
                scene_must_serve(scene);
                return;
        }
        scene_end_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
        if (scene->daemon_status == 0)
                scene_problem(scene, "the daemon did not start and ended with 0");
}

/* ---- scenarios ------------------------------------------------------------------------------------------------ */

/* The plug-in is loaded while something fails: it may be refused, with a sentence. */
void scenario_plugins_start(struct scene *scene) {
        start(scene, "");
}

/* Its processes are replaced, and serve again when the trouble is over. */
void scenario_plugins(struct scene *scene) {
        begin(scene, "", true);
        scene_begin_trouble(scene);
        read_plugged(scene, false);
        scene_end_trouble(scene);
        read_plugged(scene, true);
        scene_must_serve(scene);
}

/* The daemon does not start if a decoder's process cannot be confined. */
void scenario_isolation_start(struct scene *scene) {
        start(scene, "isolation = \"process\"");
}

void scenario_isolation(struct scene *scene) {
        begin(scene, "isolation = \"process\"", false);
        scene_begin_trouble(scene);
        scene_read(scene, SCENE_PHOTOS, 0, 2, false);
        scene_must_serve(scene);
}

/* Both: what the decoder's process renders goes through the plug-in's. */
void scenario_isolation_plugins(struct scene *scene) {
        begin(scene, "isolation = \"process\"", true);
        scene_begin_trouble(scene);
        read_plugged(scene, false);
        scene_end_trouble(scene);
        read_plugged(scene, true);
        scene_must_serve(scene);
}
