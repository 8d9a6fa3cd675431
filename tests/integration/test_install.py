#!/usr/bin/env python3
"""make install puts everything in its Debian place, what was installed can be built against, uninstall removes it, and
the distributed sources are whole."""
import os
import re
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from gpu import STAND_IN, has_real_driver
from harness import ROOT, VARIANT, Skip, case, check_sequence, contains, equal, main

PLACES = """
usr/sbin/dataloaderd 755
usr/bin/dlctl 755
STAGER
usr/lib/MULTIARCH/libdlclient-cuda.so.0 644
usr/lib/MULTIARCH/libdlclient.so.0 644
usr/lib/MULTIARCH/libdlclient.a 644
usr/lib/MULTIARCH/pkgconfig/dlclient.pc 644
usr/lib/MULTIARCH/pkgconfig/dlclient-cuda.pc 644
usr/lib/MULTIARCH/pkgconfig/dlplugin.pc 644
usr/include/dlclient.h 644
usr/include/dlclient-cuda.h 644
usr/include/dlplugin.h 644
etc/dataloaderd/dataloaderd.conf 644
lib/systemd/system/dataloaderd.service 644
lib/systemd/system/dataloaderd.socket 644
lib/systemd/system/dataloaderd-stage@.service 644
usr/lib/sysusers.d/dataloaderd.conf 644
usr/lib/tmpfiles.d/dataloaderd.conf 644
usr/share/bash-completion/completions/dlctl 644
usr/share/zsh/vendor-completions/_dlctl 644
usr/share/fish/vendor_completions.d/dlctl.fish 644
usr/share/man/man1/dlctl.1 644
usr/share/man/man7/dataloaderd-datasets.7 644
usr/share/man/man7/dataloaderd-pipeline.7 644
usr/share/man/man7/dataloaderd-samplers.7 644
usr/share/man/man8/dataloaderd.8 644
usr/share/man/man8/dataloaderd-stage.8 644
usr/share/man/man5/dataloaderd.conf.5 644
usr/share/doc/dataloaderd/README.md 644
usr/share/doc/dataloaderd/examples/blocks.c 644
usr/share/doc/dataloaderd/examples/cuda_trainer.c 644
usr/share/doc/dataloaderd/examples/trainer.c 644
usr/share/doc/dataloaderd/metrics.md 644
usr/share/dataloaderd/alerts.yml 644
usr/share/dataloaderd/grafana.json 644
usr/lib/python3/dist-packages/dlclient/__init__.py 644
usr/lib/python3/dist-packages/dlclient/_loader.py 644
usr/lib/python3/dist-packages/dlclient/_batches/batch.py 644
usr/lib/python3/dist-packages/dlclient/py.typed 644
"""


def make(*arguments, folder=ROOT, **keywords):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "DESTDIR")}
    done = subprocess.run(["make", "-s", "-C", folder] + list(arguments), check=False, stdout=subprocess.PIPE, env=env,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=300, **keywords)
    equal(done.returncode, 0, f"make {arguments}: {done.stdout[-2000:]}")
    return done.stdout


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(root, name), folder) for root, _, names in os.walk(folder)
                  for name in names)


def multiarch():
    return subprocess.run(["gcc", "-print-multiarch"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.strip()


def release_only():
    if VARIANT != "release":
        raise Skip("what is installed is the release build")


@case("install with DESTDIR puts every file in its place, with its mode; uninstall removes them all")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}")
    stager = "usr/sbin/dataloaderd-stage 755" if os.path.exists(os.path.join(ROOT, "daemon/staging/run/stage_main.c")) else ""
    for line in PLACES.replace("MULTIARCH", multiarch()).replace("STAGER", stager).split("\n"):
        if line:
            path, mode = line.split()
            equal(os.path.isfile(os.path.join(root, path)), True, f"{path} is installed")
            equal(oct(os.stat(os.path.join(root, path)).st_mode & 0o777)[2:], mode, f"mode of {path}")
    link = os.path.join(root, "usr/lib", multiarch(), "libdlclient.so")
    equal(os.readlink(link), "libdlclient.so.0", "the link for the linker")
    equal(os.readlink(link.replace(".so", "-cuda.so")), "libdlclient-cuda.so.0", "the other link for the linker")
    make("uninstall", f"DESTDIR={root}")
    equal(files_of(root), [], "files that uninstall left")


@case("an edited configuration survives both install and uninstall")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}")
    config = os.path.join(root, "etc/dataloaderd/dataloaderd.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("# mine\n")
    make("install", f"DESTDIR={root}")
    with open(config, encoding="utf-8") as file:
        equal(file.read(), "# mine\n", "the configuration")
    make("uninstall", f"DESTDIR={root}")
    equal(files_of(root), ["etc/dataloaderd/dataloaderd.conf"], "files that uninstall left")


@case("another PREFIX, SYSCONFDIR and UNITDIR are honoured, in the unit's own text too")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}", "PREFIX=/opt/dl", "SYSCONFDIR=/opt/dl/etc", "UNITDIR=/opt/dl/lib/systemd/system")
    equal([path for path in files_of(root) if not path.startswith("opt/dl/")], [], "files elsewhere")
    with open(os.path.join(root, "opt/dl/lib/systemd/system/dataloaderd.service"), encoding="utf-8") as unit:
        contains(unit.read(), "ExecStart=/opt/dl/sbin/dataloaderd -c /opt/dl/etc/dataloaderd/dataloaderd.conf")
    with open(os.path.join(root, "opt/dl/lib", multiarch(), "pkgconfig/dlclient.pc"), encoding="utf-8") as file:
        contains(file.read(), "/opt/dl")


@case("a program in C and one in C++ build against what was installed, through pkg-config, and run")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}")
    libraries = os.path.join(root, "usr/lib", multiarch())
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=root, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"),
               PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "dlclient"], env=env, check=True,
                           stdout=subprocess.PIPE, universal_newlines=True).stdout.split()
    source = os.path.join(root, "usr/share/doc/dataloaderd/examples/trainer.c")
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", box.path("trainer"), source] + flags,
                   check=True, timeout=300)
    with open(box.path("user.cpp"), "w", encoding="utf-8") as file:
        file.write('#include <dlclient.h>\n#include <cstdio>\nint main() {\n'
                   '    struct dlc_options o = DLC_OPTIONS_INIT;\n    struct dlc_loader *loader;\n'
                   '    o.socket = "/nobody/is/here";\n    o.dataset = "d";\n'
                   '    int r = dlc_open(&o, &loader);\n    std::puts(dlc_last_error());\n    return r < 0 ? 0 : 1;\n}\n')
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", box.path("user"), box.path("user.cpp")] +
                   flags, check=True, timeout=300)
    done = subprocess.run([box.path("user")], env=dict(os.environ, LD_LIBRARY_PATH=libraries), check=True,
                          stdout=subprocess.PIPE, universal_newlines=True, timeout=300)
    contains(done.stdout, "/nobody/is/here")

    daemon = box.daemon({"d": box.folder_of_pictures("d", 20, width=300, height=300)})
    check_sequence(daemon.read("d"), 20)
    done = subprocess.run([box.path("trainer"), "d", "2"], check=False, stdout=subprocess.PIPE, timeout=300,
                          env=dict(daemon.client_environment(), LD_LIBRARY_PATH=libraries,
                                   DATALOADERD_SOCKET=daemon.socket),
                          stderr=subprocess.STDOUT, universal_newlines=True)
    equal(done.returncode, 0, done.stdout)
    contains(done.stdout, "20")


@case("the example of a plug-in builds against what was installed, through pkg-config, and runs; C++ takes the header")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}")
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=root, PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
               PKG_CONFIG_PATH=os.path.join(root, "usr/lib", multiarch(), "pkgconfig"))
    flags = subprocess.run(["pkg-config", "--cflags", "dlplugin"], env=env, check=True, stdout=subprocess.PIPE,
                           universal_newlines=True).stdout.split()
    folder = box.path("plugins")
    os.makedirs(folder, 0o755)
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", *flags, "-o",
                    os.path.join(folder, "blocks.so"), os.path.join(root, "usr/share/doc/dataloaderd/examples/blocks.c")],
                   check=True, timeout=300)
    os.chmod(os.path.join(folder, "blocks.so"), 0o644)
    with open(box.path("user.cpp"), "w", encoding="utf-8") as file:
        file.write('#include <dlplugin.h>\nextern "C" int answer() { return DLPLUGIN_FLOAT32 + sizeof(struct dlplugin); }\n')
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-c", *flags, "-o", box.path("user.o"),
                    box.path("user.cpp")], check=True, timeout=300)
    daemon = box.daemon({"d": box.folder_of_pictures("d", 20)}, plugins="blocks", plugin_dirs=folder)
    equal(len(daemon.read("d", pipeline="center_crop(6) plugin(blocks.mosaic, 2)")), 20)


@case("the program for GPUs builds through pkg-config, says why there is none, and runs with a driver")
def _(box):
    release_only()
    root = box.path("root")
    make("install", f"DESTDIR={root}")
    libraries = os.path.join(root, "usr/lib", multiarch())
    env = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=root, PKG_CONFIG_PATH=os.path.join(libraries, "pkgconfig"),
               PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "dlclient-cuda", "dlclient"], env=env, check=True,
                           stdout=subprocess.PIPE, universal_newlines=True).stdout.split()
    source = os.path.join(root, "usr/share/doc/dataloaderd/examples/cuda_trainer.c")
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", box.path("trainer"), source] + flags,
                   check=True, timeout=300)
    daemon = box.daemon({"d": box.folder_of_pictures("d", 20, width=300, height=300)})
    for driver, status, words in ((None, 1, ("no GPU", "libcuda.so.1")),
                                  (STAND_IN, 0, ("epoch 1, step 9: image float16 [2, 3, 224, 224]",))):
        if driver is None and has_real_driver():
            continue
        done = subprocess.run([box.path("trainer"), "d", "2"], check=False, stdout=subprocess.PIPE, timeout=300,
                              env=dict(os.environ, LD_LIBRARY_PATH=f"{libraries}:{driver}" if driver else libraries,
                                       DATALOADERD_SOCKET=daemon.socket),
                              stderr=subprocess.STDOUT, universal_newlines=True)
        equal(done.returncode, status, done.stdout)
        contains(done.stdout, *words)


@case("each library exports what its header declares and nothing else, and none needs CUDA")
def _(box):
    release_only()
    for header, library in (("dlclient.h", "libdlclient.so.0"), ("dlclient-cuda.h", "libdlclient-cuda.so.0")):
        with open(os.path.join(ROOT, "client/include", header), encoding="utf-8") as file:
            declared = {line.split("(")[0].split()[-1].lstrip("*") for line in file if line.startswith("DLC_API ")}
        path = os.path.join(ROOT, "build/release", library)
        output = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                                universal_newlines=True).stdout
        exported = {line.split()[2].split("@")[0] for line in output.splitlines() if line.split()[1] != "A"}
        equal(exported, declared, f"symbols that {library} exports")
        needed = subprocess.run(["objdump", "-p", path], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        equal("libcud" in needed, False, f"{library} needs CUDA")


@case("libdlclient.a leaves nothing in a program's name space but names that begin with dlc_, dli_, dlp_")
def _(box):
    release_only()
    output = subprocess.run(["nm", "--extern-only", "--defined-only", os.path.join(ROOT, "build/release/libdlclient.a")],
                            check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    names = {line.split()[2] for line in output.splitlines() if len(line.split()) == 3}
    equal(len(names) > 100, True, f"{len(names)} names")
    equal([name for name in sorted(names) if not name.startswith(("dlc_", "dli_", "dlp_"))], [], "other names")


@case("what is built has its commit in its version, also out of a tarball; without either it has the version alone")
def _(box):
    release_only()
    full = make("version").strip()
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as makefile:
        base = re.search(r"^VERSION := (\S+)$", makefile.read(), re.M)[1]
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], check=False, stdout=subprocess.PIPE, universal_newlines=True)
    if commit.returncode == 0:
        found = re.fullmatch(re.escape(base) + r"\+git\d{14}\.([0-9a-f]{8,})", full)
        equal(bool(found) and commit.stdout.startswith(found[1]), True, f"{full} has {commit.stdout}")
    for program in ("dataloaderd", "dlctl"):
        contains(subprocess.run([os.path.join(ROOT, "build/release", program), "--version"], check=True, stdout=subprocess.PIPE,
                                universal_newlines=True).stdout, full)
    with tarfile.open(os.path.join(ROOT, make("dist").split()[-1])) as archive:
        archive.extractall(box.path("sources"))
    folder, = os.listdir(box.path("sources"))
    equal(folder, f"dataloaderd-{full}", "the tarball's folder")
    folder = box.path("sources", folder)
    equal(make("version", folder=folder).strip(), full, "in the tarball")
    os.remove(os.path.join(folder, "packaging", "commit"))
    equal(make("version", folder=folder).strip(), base, "in neither")


@case("make dist packs the sources: what the build needs, nothing that was built")
def _(box):
    release_only()
    name = make("dist").split()[-1]
    with tarfile.open(os.path.join(ROOT, name)) as archive:
        members = archive.getnames()
    top = members[0].split("/")[0]
    for path in ("Makefile", "README.md", "proto/dataloader.proto", "client/include/dlclient.h", "tests/run.py",
                 "systemd/dataloaderd.service"):
        equal(f"{top}/{path}" in members, True, f"{path} is in {name}")
    equal([path for path in members if "/build/" in path or path.endswith((".o", ".pyc"))], [], "built files")


main()
