/* The daemon's main(), to be called. */
#define main dataloaderd_main
int dataloaderd_main(int argc, char **argv);
#include "daemon/main.c"
