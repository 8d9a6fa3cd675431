/* The staging program's main(), to be called. */
#define main dataloaderd_stage_main
int dataloaderd_stage_main(int argc, char **argv);
#include "daemon/staging/run/stage_main.c"
