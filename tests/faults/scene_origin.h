/* tests/faults/scene_origin.h: a folder as an origin over http, by a process of its own: nothing of it fails. */
#pragma once

#include <sys/types.h>

#include "tests/faults/scene.h"

/* Serves `folder`, which is not changed meanwhile, and writes a manifest of it to `manifest`, whose URLs lead there.
 * Returns the process, or -1 with a problem of the scene. */
pid_t scene_origin_start(struct scene *scene, const char *folder, const char *manifest);
void scene_origin_stop(pid_t server);
