# One wheel: the Python client, libdlclient and the programs, for every Linux with glibc 2.34.
#
# The programs are the release's objects, linked once more: Debian's static libraries where there are any, else its shared
# ones, which build_wheel.py packs beside them (dlclient/lib). What neither has is in the C files of this folder. A library
# that is added to LIBS_daemon, LIBS_stage or LIBS_dlctl is linked statically; one without a .a gets its name in
# WHEEL_SHARED, and what its archive needs of other libraries goes into WHEEL_BELOW.

WHEEL := build/wheel
WHEEL_PROGRAMS := dataloaderd dlctl dataloaderd-stage
WHEEL_SHARED := -lspng -lsndfile -lvorbis -logg -lsamplerate -lcjson -lxxhash
# Ours instead (systemd.c), and what is part of glibc.
WHEEL_OURS := -lsystemd -lm
WHEEL_BELOW := -l:libssl.a -l:libnghttp2.a -l:libbrotlidec.a -l:libbrotlicommon.a -l:libbz2.a -l:liblzma.a -l:libdeflate.a \
	-l:libstdc++.a
wheel_libs = -Wl,--start-group $(patsubst -l%,-l:lib%.a,$(filter-out $(WHEEL_SHARED) $(WHEEL_OURS),$(1))) $(WHEEL_BELOW) \
	-Wl,--end-group $(filter $(WHEEL_SHARED),$(1)) -lgcc_s -lm

# Found before what the archives hold for the same functions. Libraries that are loaded late elsewhere (OBJ_linked) are
# inside: the machine may not have them, and what is inside costs no time at the start.
WHEEL_INSTEAD := $(call obj,$(wildcard packaging/wheel/*.c) daemon/base/machine/linked_portable.c)
WHEEL_ALONE := $(call obj,daemon/staging/nodes/cluster_mpi_absent.c)

# RPATH and not RUNPATH: the libraries that are packed find each other by it, and LD_LIBRARY_PATH comes after it.
WHEEL_LDFLAGS = -pthread -Wl,--as-needed $(HARD_LDFLAGS) $(LDFLAGS) $(HARD_PROGRAM) -s -Wl,--exclude-libs,ALL \
	-Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib'
# The linker says which archives it took something from: their licences go into the wheel.
link_wheel = @mkdir -p $(@D)
link_wheel += && $(CC) $(ALL_CFLAGS) $(WHEEL_LDFLAGS) -Wl,-Map=$(WHEEL)/$(@F).archives -o $@ $^

wheel: ## daemon, dlctl, staging, library and the Python client as build/dlclient-*.whl
	@$(DEPS) build wheel
	$(SUBMAKE) VARIANT=release wheel-files
	@rm -f build/dlclient-*.whl
	@$(PYTHON) packaging/wheel/build_wheel.py $(WHEEL) build

wheel-files: $(WHEEL_PROGRAMS:%=$(WHEEL)/bin/%) $(WHEEL)/$(SONAME) $(WHEEL)/$(SONAME_cuda)

$(WHEEL)/bin/dataloaderd: $(O)/obj/daemon/main.o $(WHEEL_INSTEAD) $(OBJ_linked) $(B)/libdaemon.a $(B)/libproto.a
	$(link_wheel) $(call wheel_libs,$(LIBS_daemon) $(LIBS_late_daemon))

$(WHEEL)/bin/dataloaderd-stage: $(O)/obj/daemon/staging/run/stage_main.o $(WHEEL_INSTEAD) $(OBJ_linked) $(WHEEL_ALONE) $(B)/libstaging.a \
		$(B)/libdaemon.a $(B)/libproto.a
	$(link_wheel) $(call wheel_libs,$(filter -l%,$(LIBS_daemon) $(LIBS_late_daemon) $(filter-out $(LIBS_mpi),$(LIBS_stage))))

$(WHEEL)/bin/dlctl: $(OBJ_dlctl) $(WHEEL_INSTEAD) $(call obj,proto/late/mhd_linked.c) $(B)/libdlclient.a $(B)/libproto.a
	$(link_wheel) $(call wheel_libs,$(LIBS_dlctl) $(LIBS_late_dlctl))

$(WHEEL)/$(SONAME): $(OBJ_client) $(OBJ_proto_client) client/lib/libdlclient.map
	@mkdir -p $(@D)
	$(CC) -pthread $(CFLAGS_release) $(HARD_LDFLAGS) $(LDFLAGS) -Wl,--as-needed -shared -s -Wl,-soname,$(SONAME) \
		-Wl,--version-script=client/lib/libdlclient.map -Wl,-z,defs -o $@ $(OBJ_client) $(OBJ_proto_client) -l:libprotobuf-c.a -lm

# It finds libdlclient by its name, for Python has loaded that one before.
$(WHEEL)/$(SONAME_cuda): $(OBJ_cuda) $(B)/libkernels.a $(B)/libproto.a $(WHEEL)/$(SONAME) client/cuda/libdlclient-cuda.map
	$(CC) -pthread $(CFLAGS_release) $(HARD_LDFLAGS) $(LDFLAGS) -Wl,--as-needed -shared -s -Wl,-soname,$(SONAME_cuda) \
		-Wl,--version-script=client/cuda/libdlclient-cuda.map -Wl,-z,defs -o $@ $(OBJ_cuda) $(B)/libkernels.a \
		$(B)/libproto.a $(WHEEL)/$(SONAME)

.PHONY: wheel wheel-files
