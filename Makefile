# dataloaderd: `make help` lists what can be made.
#
# Everything is built below build/VARIANT/, so that variants live side by side: release (default), debug, asan (with
# ubsan), tsan, fallback (without io_uring). Sources are found by folder: a new file is picked up by itself.

VARIANT ?= release
B := build/$(VARIANT)
# Where objects lie. The fallback differs from the release by one file, so it links the release's objects: build that first.
O := $(if $(filter fallback,$(VARIANT)),build/release,$(B))

VERSION := 0.1.0
SOVERSION := 0
# "0.1.0+git20261128010203.0123abcd", with the commit and its moment: what is built later is newer to pip and dpkg. `make dist`
# writes it into the tarball, which has no git. In neither it is the version alone.
COMMIT := $(if $(wildcard .git),$(shell TZ=UTC git log -1 --abbrev=8 --date=format-local:%Y%m%d%H%M%S \
	--format=+git%cd.%h 2>/dev/null),$(shell cat packaging/commit 2>/dev/null))
FULL_VERSION := $(VERSION)$(COMMIT)

PREFIX ?= /usr
SYSCONFDIR ?= /etc
UNITDIR ?= /lib/systemd/system
LIBDIR ?= $(PREFIX)/lib/$(shell $(CC) -print-multiarch)

CC ?= gcc
PROTOC ?= protoc-c
PKG_CONFIG ?= pkg-config

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings \
	-Wundef -Wformat=2 -Wvla -Wno-unused-parameter -Wno-missing-field-initializers
# Warnings end the build in CI and when asked for; a newer compiler's new warning must not stop a user.
ifneq ($(CI)$(WERROR),)
WARNINGS += -Werror
endif

# -ffp-contract=off: fused multiply-adds would change pixels (augment/resize) and crop boxes between machines.
CFLAGS_release := -O2 -g
CFLAGS_debug := -O0 -g3
# -g1: lines of stack traces are what is read of these; the rest doubles what is written and linked.
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_tsan := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_fallback = $(CFLAGS_release)
CFLAGS_fuzzer := -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined \
	-Wno-format-nonliteral -Wno-unused-variable

# What makes a bug harder to use, in what is installed. Sanitizers see more by themselves, and valgrind and debuggers are to
# see what is there. Left to CFLAGS and CPPFLAGS where they say something about _FORTIFY_SOURCE, which needs -O1 at least.
# `make HARD_CFLAGS= HARD_ZEROS= HARD_LDFLAGS= HARD_PROGRAM=` builds without all of it.
IS_HARD := $(filter release fallback,$(VARIANT))
HARD_FORTIFY := $(if $(filter -O0,$(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
HARD_CFLAGS := $(if $(IS_HARD),-fstack-protector-strong -fstack-clash-protection $(HARD_FORTIFY) \
	$(if $(filter x86_64%,$(shell $(CC) -dumpmachine)),-fcf-protection))
# Variables begin as zeros: what is forgotten is not what lay there before. GCC 12 and clang 16 know how.
HARD_ZEROS := $(if $(IS_HARD),$(shell echo | $(CC) -ftrivial-auto-var-init=zero -x c -c -o /dev/null - 2>/dev/null && \
	echo -ftrivial-auto-var-init=zero))
HARD_LDFLAGS := -Wl,-z,relro,-z,now,-z,noexecstack
HARD_PROGRAM := $(if $(IS_HARD),-pie)

CPPFLAGS += -I. -I$(O)/generated -D_GNU_SOURCE -DDLP_VERSION='"$(VERSION)"'
CFLAGS ?=
ALL_CFLAGS = -std=c11 -fPIC -pthread -fvisibility=hidden -ffp-contract=off $(WARNINGS) $(HARD_CFLAGS) $(HARD_ZEROS) \
	$(CFLAGS_$(VARIANT)) $(CFLAGS)
ALL_LDFLAGS = -pthread $(filter -fsanitize=%,$(CFLAGS_$(VARIANT))) -Wl,--as-needed $(LINKER) $(HARD_LDFLAGS) $(LDFLAGS)

LIBS_proto := -lprotobuf-c
LIBS_daemon := -lexpat -lxxhash -levent_core -luring -lprotobuf-c -ljpeg -lspng -lwebp -ltiff -lgif -lsndfile -lvorbis -logg -lsamplerate -lconfuse -lcjson -llz4 -lzstd -lsnappy -lz -lcrypto -lhwloc -lsystemd -lm
LIBS_stage :=
# Loaded when they are needed (proto/late/late.h): only what is linked with $(OBJ_linked) is linked to them as well.
LIBS_late_daemon := -lcurl -larchive -lmicrohttpd
LIBS_late_dlctl := -lmicrohttpd
LIBS_client := -lprotobuf-c -lm
LIBS_dlctl := -levent_core -lprotobuf-c -lsndfile -lcjson -lcrypto -lz -lncursesw -ltinfo -lm

# Without MPI everything is built, but the staging program stages for one node only. `make MPICC=` leaves it out on purpose.
MPICC ?= mpicc
HAS_MPI := $(if $(MPICC),$(shell command -v $(MPICC) 2>/dev/null))
ifneq ($(HAS_MPI),)
CPPFLAGS_mpi := $(shell $(MPICC) --showme:compile)
LIBS_mpi := $(shell $(MPICC) --showme:link)
LIBS_stage += $(LIBS_mpi)
else
# Other targets install it before they build.
ifneq ($(if $(MAKECMDGOALS),$(filter all install build-%,$(MAKECMDGOALS)),all),)
$(info make: $(or $(MPICC),mpicc) is not to be had (Debian: libopenmpi-dev): dataloaderd-stage is built for one node alone)
endif
endif

# ---- what is built from what ---------------------------------------------------------------------------------------

KINDS := samplers picture_steps field_steps sounds collations formats
GENERATED := $(O)/generated/proto/dataloader.pb-c.c $(O)/generated/proto/version.h $(KINDS:%=$(O)/generated/kinds/%.h) $(O)/generated/kinds/stages.h
SRC_linked := proto/late/mhd_linked.c daemon/fetch/late/curl_linked.c daemon/fetch/late/archive_linked.c
SRC_proto := $(filter-out $(SRC_linked),$(wildcard proto/*.c proto/*/*.c proto/*/*/*.c))
SRC_staging := $(filter-out daemon/staging/run/stage_main.c,$(wildcard daemon/staging/*/*.c))
SRC_daemon := $(filter-out daemon/main.c daemon/staging/run/stage_main.c $(SRC_staging),$(wildcard daemon/*/*.c daemon/*/*/*.c daemon/*/*/*/*.c daemon/*/*/*/*/*.c))
# A feature that is not there is another file with the same functions, not an #ifdef.
SRC_daemon := $(filter-out daemon/base/machine/linked_portable.c $(SRC_linked),$(SRC_daemon))
ifeq ($(VARIANT),fallback)
SRC_daemon := $(filter-out daemon/io/uring.c,$(SRC_daemon))
else
SRC_daemon := $(filter-out daemon/io/uring_absent.c,$(SRC_daemon))
endif
ifneq ($(HAS_MPI),)
SRC_staging := $(filter-out daemon/staging/nodes/cluster_mpi_absent.c,$(SRC_staging))
else
SRC_staging := $(filter-out $(addprefix daemon/staging/nodes/cluster_mpi,.c _words.c _spread.c),$(SRC_staging))
endif
SRC_client := $(wildcard client/lib/*.c client/lib/*/*.c)
SRC_cuda := $(wildcard client/cuda/*.c)
SRC_dlctl := $(wildcard client/dlctl/*.c client/dlctl/*/*.c client/dlctl/*/*/*.c)
# What the library for GPUs is linked with: which kernel runs how, and the images. cpu.c is for tests.
SRC_kernels := $(filter-out client/cuda/kernels/cpu.c,$(wildcard client/cuda/kernels/*.c))
SRC_kernels_cpu := client/cuda/kernels/cpu.c $(wildcard client/cuda/kernels/*.cu)
SRC_support := $(wildcard tests/support/*.c)
SRC_unit := $(wildcard tests/unit/test_*.c)
SRC_bench := $(wildcard tests/bench/*.c)
SRC_bench_gpu := $(wildcard tests/bench/gpu/*.c)
SRC_tools := $(wildcard tests/tools/*.c)
# The tests' failing file system needs libfuse3 (Debian: libfuse3-dev); without it the tests that use it are skipped.
HAS_FUSE := $(shell $(PKG_CONFIG) --exists fuse3 2>/dev/null && echo yes)
ifeq ($(HAS_FUSE),)
SRC_tools := $(filter-out tests/tools/failing_fs.c,$(SRC_tools))
endif
SRC_fuzz := $(wildcard tests/fuzz/fuzz_*.c)
SRC_guided := $(wildcard tests/fuzz/guided_*.c)
SRC_fuzz_support := $(filter-out $(SRC_fuzz) $(SRC_guided) tests/fuzz/replay_main.c,$(wildcard tests/fuzz/*.c))
SRC_cuda_driver := $(wildcard tests/cuda/*.c)
SRC_examples := $(wildcard client/examples/*.c)

comma := ,
obj = $(patsubst %.c,$(O)/obj/%.o,$(1))
OBJ_proto := $(call obj,$(SRC_proto)) $(O)/obj/generated/dataloader.pb-c.o
# A client reads no JPEG, has no visitors, and loads no library.
OBJ_proto_client := $(filter-out $(addprefix $(O)/obj/proto/,jpeg/% http/% late/%),$(OBJ_proto))
OBJ_linked := $(call obj,$(SRC_linked))
OBJ_daemon := $(call obj,$(SRC_daemon))
OBJ_staging := $(call obj,$(SRC_staging))
OBJ_client := $(call obj,$(SRC_client))
OBJ_cuda := $(call obj,$(SRC_cuda))
OBJ_dlctl := $(call obj,$(SRC_dlctl))
OBJ_kernels := $(call obj,$(SRC_kernels)) $(O)/obj/client/cuda/kernels/images.o
OBJ_kernels_cpu := $(patsubst %.cu,$(O)/obj/%.cu.o,$(call obj,$(SRC_kernels_cpu)))
OBJ_support := $(call obj,$(SRC_support))
OBJ_fuzz_support := $(call obj,$(SRC_fuzz_support) tests/support/maker.c)

UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(SRC_unit))
BENCH_PROGRAMS := $(patsubst tests/bench/%.c,$(B)/bench/%,$(SRC_bench)) $(B)/bench/gpu $(B)/bench/libgpu_jpeg.so
FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(SRC_fuzz))
GUIDED := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(SRC_guided))
REPLAY := $(patsubst tests/fuzz/guided_%.c,$(B)/fuzz/replay_%,$(SRC_guided))
TOOLS := $(patsubst tests/tools/%.c,$(B)/tools/%,$(SRC_tools))
CUDA_DRIVER := $(B)/cuda/libcuda.so.1
EXAMPLES := $(patsubst client/examples/%.c,$(B)/examples/%,$(SRC_examples))

SONAME := libdlclient.so.$(SOVERSION)
SONAME_cuda := libdlclient-cuda.so.$(SOVERSION)
LIBRARIES := $(B)/$(SONAME) $(B)/libdlclient.so $(B)/libdlclient.a $(B)/dlclient.pc \
	$(B)/$(SONAME_cuda) $(B)/libdlclient-cuda.so $(B)/dlclient-cuda.pc
PRODUCT := $(B)/dataloaderd $(B)/dataloaderd-stage $(B)/dlctl $(LIBRARIES)

all: $(PRODUCT) $(EXAMPLES) ## the daemon, dlctl, the client libraries and the examples

lib: $(LIBRARIES) ## the client libraries alone

$(B)/dataloaderd: $(O)/obj/daemon/main.o $(B)/libdaemon.a $(B)/libproto.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(HARD_PROGRAM) -o $@ $^ $(LIBS_daemon)

$(B)/dataloaderd-stage: $(O)/obj/daemon/staging/run/stage_main.o $(B)/libstaging.a $(B)/libdaemon.a $(B)/libproto.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(HARD_PROGRAM) -o $@ $^ $(LIBS_daemon) $(LIBS_stage)

$(B)/dlctl: $(OBJ_dlctl) $(B)/libdlclient.a $(B)/libproto.a
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(HARD_PROGRAM) -o $@ $^ $(LIBS_dlctl)

# For each shell, out of dlctl's own tables.
$(B)/completion/%: $(B)/dlctl
	@mkdir -p $(@D)
	@$< completion $* >$@

$(B)/libdaemon.a: $(OBJ_daemon)
$(B)/libstaging.a: $(OBJ_staging)
$(B)/libproto.a: $(OBJ_proto)
$(B)/libkernels.a: $(OBJ_kernels)
$(B)/libkernels-cpu.a: $(OBJ_kernels_cpu)
$(B)/libdlclient.a: $(OBJ_client) $(OBJ_proto_client)
$(B)/%.a:
	@mkdir -p $(@D)
	rm -f $@ && $(AR) rcs $@ $^

$(B)/$(SONAME): $(OBJ_client) $(OBJ_proto_client) client/lib/libdlclient.map
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=client/lib/libdlclient.map \
		-Wl,-z,defs -o $@ $(OBJ_client) $(OBJ_proto_client) $(LIBS_client)

$(B)/libdlclient.so: $(B)/$(SONAME)
	ln -sf $(SONAME) $@

# Linked to no library of CUDA: the driver is looked for at run time.
$(B)/$(SONAME_cuda): $(OBJ_cuda) $(B)/libkernels.a $(B)/libproto.a $(B)/libdlclient.so client/cuda/libdlclient-cuda.map
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -Wl,-soname,$(SONAME_cuda) -Wl,--version-script=client/cuda/libdlclient-cuda.map \
		-Wl,-z,defs -o $@ $(OBJ_cuda) $(B)/libkernels.a $(B)/libproto.a -L$(B) -ldlclient -ldl

$(B)/libdlclient-cuda.so: $(B)/$(SONAME_cuda)
	ln -sf $(SONAME_cuda) $@

$(B)/dlclient-cuda.pc: client/cuda/dlclient-cuda.pc.in
$(B)/dlclient.pc: client/lib/dlclient.pc.in
$(B)/%.pc: Makefile $(O)/generated/proto/version.h
	@mkdir -p $(@D)
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(FULL_VERSION)|' $(filter %.in,$^) >$@

$(B)/examples/cuda_trainer: LIBS_example := -ldlclient-cuda
$(B)/examples/%: $(O)/obj/client/examples/%.o $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(HARD_PROGRAM) -o $@ $< -L$(B) $(LIBS_example) -ldlclient -Wl,-rpath,'$$ORIGIN/..'

# ---- objects, with the headers that they depend on -----------------------------------------------------------------

$(O)/generated/proto/%.pb-c.c $(O)/generated/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(O)/generated
	$(PROTOC) --c_out=$(O)/generated $<

# Only who includes it is compiled again after a commit.
$(O)/generated/proto/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define DLP_FULL_VERSION DLP_VERSION "$(COMMIT)"' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The kinds of each family (proto/text/kinds.h), in the files that there are: whatever file defines a struct of the family.
KINDS_samplers := dlp_step_type dlp_step_ proto/order/steps
KINDS_picture_steps := step_type step_ daemon/augment/steps daemon/augment/groups
KINDS_sounds := sound_step_type sound_step_ daemon/sound/steps
KINDS_field_steps := kind field_step_ daemon/codec
KINDS_collations := collation_type collation_ daemon/collate
KINDS_formats := format format_ daemon/data/formats
# By a static rule: the headers of an implicit one count as changed whenever it ran, and with them all that includes them.
$(KINDS:%=$(O)/generated/kinds/%.h): $(O)/generated/kinds/%.h: FORCE
	@mkdir -p $(@D)
	@grep -rhoE '^const struct $(word 1,$(KINDS_$*)) $(word 2,$(KINDS_$*))[a-z0-9_]+ = \{$$' --include='*.c' \
		$(wordlist 3,9,$(KINDS_$*)) | sed -E 's/.* $(word 2,$(KINDS_$*))([a-z0-9_]+) = .*/KIND(\1)/' | LC_ALL=C sort >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The stages of steps for pictures (daemon/base/stages.h): whatever step says that it takes time of its own.
$(O)/generated/kinds/stages.h: FORCE
	@mkdir -p $(@D)
	@grep -rhoE '^ +\.stage = STAGE_[A-Z0-9_]+,$$' --include='*.c' daemon/augment/steps | LC_ALL=C sort | \
		sed -E 's/.*STAGE_(.*),/ROW(\1, "\L\1", "the step")/' | tr '\n' ' ' | sed 's/^/#define STEP_STAGES(ROW) /;s/$$/\n/' >$@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

version: ## the version of what is built here
	@echo $(FULL_VERSION)

FORCE:
.PHONY: FORCE version

$(O)/obj/generated/%.o: $(O)/generated/proto/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out -W%,$(ALL_CFLAGS)) -MMD -MP -c -o $@ $<

$(O)/obj/%.o: %.c Makefile | $(GENERATED)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Kernels as C, for tests: nvcc makes the images of the same files (`make kernels`).
$(O)/obj/%.cu.o: %.cu Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -x c -c -o $@ $<

$(O)/obj/%.o: %.S Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(O)/obj/client/cuda/kernels/images.o: $(wildcard client/cuda/kernels/generated/*)
$(O)/obj/tests/bench/gpu/image.o: tests/bench/gpu/kernels.ptx

# Warnings about MPI's own headers are not ours to mend.
$(O)/obj/daemon/staging/nodes/cluster_mpi%o: CPPFLAGS += $(patsubst -I%,-isystem %,$(CPPFLAGS_mpi))

# The page is part of the program.
$(O)/obj/client/dlctl/web/web_page.o: $(wildcard client/dlctl/web/page/*)

# Examples are written as users write them.
$(O)/obj/client/examples/%.o: CPPFLAGS += -Iclient/include

# What runs once for each pixel, sample or token earns -O3; the numbers stay exact.
$(O)/obj/daemon/augment/resize%.o: CFLAGS_release += -O3
$(O)/obj/daemon/augment/operation%.o $(O)/obj/daemon/augment/steps/pixels/%.o: CFLAGS_release += -O3
$(O)/obj/daemon/augment/conversion.o: CFLAGS_release += -O3
$(O)/obj/daemon/decode/jpeg/%.o: CFLAGS_release += -O3
$(O)/obj/daemon/decode/flac/%.o: CFLAGS_release += -O3
$(O)/obj/daemon/codec/convert.o: CFLAGS_release += -O3
$(O)/obj/daemon/sound/code_%.o: CFLAGS_release += -O3 -fno-math-errno
$(O)/obj/daemon/collate/mix/blend.o: CFLAGS_release += -O3
# What is cleared for each block, and checked for each call, costs a tenth and a twentieth of a photo there.
HARD_LESS := $(if $(IS_HARD),$(if $(HARD_ZEROS),-ftrivial-auto-var-init=uninitialized))
$(O)/obj/daemon/decode/jpeg/%.o $(O)/obj/daemon/augment/%.o: HARD_ZEROS += $(HARD_LESS)
# A row of tokens has three pieces, and each is copied in the time that clearing room for a chunk and a jump takes.
$(O)/obj/daemon/pipeline/pipeline_rows.o $(O)/obj/daemon/codec/gathered.o $(O)/obj/daemon/base/machine/mapped.o: \
	HARD_ZEROS += $(HARD_LESS)
$(O)/obj/daemon/decode/jpeg/entropy.o $(O)/obj/daemon/decode/jpeg/kernels%.o $(O)/obj/daemon/decode/jpeg/idct%.o: \
	HARD_CFLAGS += $(if $(IS_HARD),-fno-stack-protector)
# The bit buffer stays in scalar registers: GCC would else pack it into vectors.
$(O)/obj/daemon/decode/jpeg/entropy.o: CFLAGS_release += -fno-tree-slp-vectorize
# Tests are compiled in half the time without what only the product needs; they stay fast enough.
TEST_OBJECTS := $(foreach folder,unit support fuzz tools,$(O)/obj/tests/$(folder)/%.o)
$(TEST_OBJECTS): CFLAGS_release := -O1 -g1
$(TEST_OBJECTS): HARD_CFLAGS :=
$(TEST_OBJECTS): HARD_ZEROS :=
# tests/support/marks.c says why.
$(O)/obj/tests/unit/%.o $(O)/obj/tests/support/%.o: CPPFLAGS += -D_mark_point=suite_mark
# Allocates already while the sanitizers' own beginnings are not over.
$(O)/obj/tests/faults/memory.o: CFLAGS += -fno-sanitize=all
# Shared libraries that call the same functions make the linker look for these names.
$(O)/obj/tests/faults/wraps.o: CFLAGS += -fvisibility=default

# Not for what builds nothing: reading them takes 0.4 s.
ifneq ($(filter-out version dist uninstall deb wheel,$(or $(MAKECMDGOALS),all)),)
-include $(shell find $(O)/obj -name '*.d' 2>/dev/null)
endif

# ---- tests ---------------------------------------------------------------------------------------------------------

# Each program of the tests holds the whole daemon, and there are five hundred over all builds: gold links one in a third of
# the time. It belongs to Debian 12's binutils; without it the usual linker does.
$(B)/tests/% $(B)/bench/% $(B)/tools/% $(B)/fuzz/%: private LINKER := $(if $(filter fuzzer,$(VARIANT)),,$(if $(shell command -v ld.gold),-fuse-ld=gold))

$(B)/tests/%: $(O)/obj/tests/unit/%.o $(OBJ_support) $(B)/libstaging.a $(B)/libdaemon.a $(B)/libdlclient.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_daemon) $(LIBS_stage) -lcjson -lcheck -lsubunit -lrt -lm

# Two of its functions take the place of the daemon's.
$(B)/tests/test_origin $(B)/tests/test_origin_listings: private ALL_LDFLAGS += -Wl,-z,muldefs
# What dlctl alone computes is in no library.
$(B)/tests/test_forecast: $(call obj,client/dlctl/forecast/forecast.c)
$(B)/tests/test_web_past: $(call obj,client/dlctl/web/past.c client/dlctl/glance.c client/dlctl/question.c)
$(B)/tests/test_cuda_loader: $(OBJ_cuda) $(B)/libkernels.a
$(B)/tests/test_color_kernels $(B)/tests/test_finish_kernels: $(B)/libkernels.a $(B)/libkernels-cpu.a
$(B)/tests/test_top $(B)/tests/test_top_page: $(call obj,client/dlctl/diagnose/confirming.c client/dlctl/glance.c client/dlctl/question.c $(addprefix client/dlctl/top/,rates.c shown.c line.c top_amounts.c head.c top_table.c top_words.c details.c help.c top_state.c top_page.c))

$(B)/bench/%: $(O)/obj/tests/bench/%.o $(B)/libstaging.a $(B)/libdaemon.a $(B)/libdlclient.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_daemon) $(LIBS_stage) -lcjson

# Its other side is a bare loop of libcurl's.
$(B)/bench/fetch_rate: LIBS_daemon += -lcurl

# Plays the daemon's part, as in the client's tests.
$(B)/bench/ready_batches: $(O)/obj/tests/bench/ready_batches.o $(OBJ_support) $(B)/libstaging.a $(B)/libdaemon.a $(B)/libdlclient.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_daemon) $(LIBS_stage) -lcjson -lcheck -lsubunit -lrt -lm

# As a user's program is linked. It also calls the driver, by the library's own table, and the library's kernels; its own
# kernels as functions of the CPU are for the tests' driver.
$(B)/bench/gpu: $(call obj,$(SRC_bench_gpu) client/cuda/driver.c) $(O)/obj/tests/bench/gpu/image.o $(O)/obj/tests/bench/gpu/kernels.cu.o \
		$(B)/libkernels.a $(B)/libproto.a $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o %/libkernels.a %/libproto.a,$^) -L$(B) -ldlclient-cuda -ldlclient -ldl \
		-Wl,-rpath,'$$ORIGIN/..'

# The trial of docs/gpu-jpeg.md, for tests/bench/gpu_jpeg/measure.py.
$(B)/bench/libgpu_jpeg.so: $(call obj,$(wildcard tests/bench/gpu_jpeg/*.c) client/cuda/driver.c) $(B)/libstaging.a $(B)/libdaemon.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -Wl,-z,defs -o $@ $^ $(LIBS_daemon) $(LIBS_stage) -ldl -lm

$(B)/tools/%: $(O)/obj/tests/tools/%.o $(B)/libstaging.a $(B)/libdaemon.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_daemon) $(LIBS_stage)

# As a user's program is linked; it also calls the driver, by the library's own table.
$(B)/tools/cuda_batches: $(O)/obj/tests/tools/cuda_batches.o $(call obj,client/cuda/driver.c) $(B)/libproto.a $(LIBRARIES)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o %/libproto.a,$^) -L$(B) -ldlclient-cuda -ldlclient -ldl -Wl,-rpath,'$$ORIGIN/..'

$(O)/obj/tests/tools/failing_fs.o: CPPFLAGS += $(shell $(PKG_CONFIG) --cflags fuse3 2>/dev/null)
$(B)/tools/failing_fs: LIBS_stage += $(shell $(PKG_CONFIG) --libs fuse3 2>/dev/null)

$(B)/libfuzzsupport.a: $(OBJ_fuzz_support)
FUZZ_LIBS := $(B)/libfuzzsupport.a $(B)/libstaging.a $(B)/libdaemon.a $(B)/libdlclient.a $(B)/libproto.a

$(B)/fuzz/%: $(O)/obj/tests/fuzz/%.o $(OBJ_support) $(FUZZ_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIBS_daemon) $(LIBS_stage) -lcjson -lcheck -lsubunit -lrt -lm

# libFuzzer's main() calls the one function of these; clang alone has it.
$(B)/fuzz/guided_%: $(O)/obj/tests/fuzz/guided_%.o $(FUZZ_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_daemon) $(LIBS_stage) -lcjson

# The same function under a main() of our own: any compiler, any sanitizer.
$(B)/fuzz/replay_%: $(O)/obj/tests/fuzz/guided_%.o $(O)/obj/tests/fuzz/replay_main.o $(FUZZ_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_daemon) $(LIBS_stage) -lcjson

# dlctl's reader of traces is in no library.
$(B)/fuzz/guided_trace $(B)/fuzz/replay_trace: $(call obj,$(addprefix client/dlctl/trace/,chrome.c counts.c trace_file.c recorded.c tracks.c))

# Whatever tests/faults/calls.h lists goes by a wrapper that may fail. The sanitizer's malloc() stands behind our own.
FAULTS_WRAPPED := $(shell sed -nE 's/^(ERRNO|NEGATIVE|POSITIVE|AFTER|BYTES|VALUE|HAND).([A-Za-z0-9_]+).*/\2/p' tests/faults/calls.h)
OBJ_faults := $(call obj,$(wildcard tests/faults/*.c))
$(B)/faults/faults: $(OBJ_faults) $(OBJ_linked) $(OBJ_support) $(OBJ_cuda) $(B)/libkernels.a $(B)/libstaging.a $(B)/libdaemon.a $(B)/libdlclient.a $(B)/libproto.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -rdynamic $(addprefix -Wl$(comma)--wrap=,$(FAULTS_WRAPPED)) -o $@ $^ $(LIBS_daemon) \
		$(LIBS_late_daemon) $(LIBS_stage) -lcjson -lcheck -lsubunit -lrt -lm

# Stands in for the driver of a GPU: whoever looks for libcuda.so.1 on this path finds it. It stays loaded, for it has threads.
$(CUDA_DRIVER): $(call obj,$(SRC_cuda_driver)) $(B)/libkernels-cpu.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs,-z,nodelete -o $@ $(filter %.o,$^) \
		-Wl,--whole-archive $(B)/libkernels-cpu.a -Wl,--no-whole-archive
$(filter $(B)/tests/test_cuda%,$(UNIT)) $(B)/faults/faults: | $(CUDA_DRIVER)

unit: $(UNIT) $(CUDA_DRIVER)
tools: $(TOOLS) $(CUDA_DRIVER)
fuzz-programs: $(FUZZ_PROGRAMS) $(REPLAY)
guided-programs: $(GUIDED)
bench-programs: $(BENCH_PROGRAMS)

# ---- what people type ----------------------------------------------------------------------------------------------

include tests/tests.mk
include client/python/python.mk
include systemd/packaging.mk
include packaging/wheel/wheel.mk
include packaging/deb.mk

SOURCES := $(shell find proto daemon client packaging tests -name '*.[ch]' -o -name '*.cu' 2>/dev/null)

format: ## lay out all C files as .clang-format says
	clang-format -i $(SOURCES)

format-check: ## would `make format` change anything?
	clang-format --dry-run -Werror $(SOURCES)

tidy: ## clang-tidy's bug finders over the daemon and the library
	clang-tidy --quiet --checks='-*,bugprone-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-bugprone-reserved-identifier' \
		$(SRC_daemon) $(SRC_staging) $(SRC_client) $(SRC_proto) -- -std=c11 $(CPPFLAGS)

kernels: ## the images of the GPU's kernels, after a change of one: needs nvcc (CUDA 12.8 or later)
	$(PYTHON) client/cuda/kernels/make_images.py
	$(PYTHON) tests/bench/gpu/make_image.py

number-tables: ## the tables of docs/metrics.md and the counters of dlctl(1), after a change of daemon/base/number_rows.h
	$(PYTHON) tests/support/make_number_tables.py

settings-page: $(B)/dataloaderd ## config/dataloaderd.conf and the keys of its manual page, after a change of a setting's row
	$< --print-config >config/dataloaderd.conf
	$(PYTHON) tests/support/make_settings_page.py client/man/dataloaderd.conf.5 <config/dataloaderd.conf

kinds-pages: $(B)/tools/print_kinds ## what manual, docs/transforms.md, Python and dlctl say of steps and samplers, after a change of a kind
	$< | $(PYTHON) tests/support/make_kinds_pages.py .
	$< | $(PYTHON) tests/support/make_kinds_help.py >client/dlctl/generated/kinds_rows.h

help: ## this list
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | sort -u | \
		awk -F'\t' '{ printf "  %-18s %s\n", $$1, $$2 }'
	@echo "  VARIANT=release|debug|asan|tsan|fallback chooses the build below build/; CFLAGS, DESTDIR, PREFIX as usual"

.PHONY: all lib kernels unit tools fuzz-programs guided-programs bench-programs format format-check tidy number-tables settings-page kinds-pages help
.SECONDARY:
.DELETE_ON_ERROR:
