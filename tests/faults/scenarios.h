/* tests/faults/scenarios.h: the scenarios, and how most of them begin and end. */
#pragma once

#include "tests/faults/scene.h"

/* A daemon that runs, and how all samples look that it serves. */
void scene_begin(struct scene *scene, bool counts);

/* The trouble is over: whoever comes now gets every sample, and the daemon ends as it should. */
void scene_must_serve(struct scene *scene);

void scenario_client(struct scene *scene);
void scenario_client_asks(struct scene *scene);
void scenario_client_device(struct scene *scene);
void scenario_client_fork(struct scene *scene);
void scenario_client_restart(struct scene *scene);
void scenario_once(struct scene *scene);

void scenario_cuda(struct scene *scene);
void scenario_cuda_allocate(struct scene *scene);

void scenario_requests(struct scene *scene);
void scenario_metrics(struct scene *scene);
void scenario_trace(struct scene *scene);
void scenario_replay(struct scene *scene);

void scenario_work(struct scene *scene);
void scenario_client_work(struct scene *scene);

void scenario_plugins_start(struct scene *scene);
void scenario_plugins(struct scene *scene);
void scenario_isolation_start(struct scene *scene);
void scenario_isolation(struct scene *scene);
void scenario_isolation_plugins(struct scene *scene);

void scenario_tables(struct scene *scene);
void scenario_listings(struct scene *scene);
void scenario_streams(struct scene *scene);
void scenario_pipe(struct scene *scene);

void scenario_stage_folder(struct scene *scene);
void scenario_stage_http(struct scene *scene);
void scenario_stage_packed(struct scene *scene);
void scenario_stage_archive(struct scene *scene);
void scenario_stage_converted(struct scene *scene);
