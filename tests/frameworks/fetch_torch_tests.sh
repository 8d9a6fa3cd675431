#!/bin/sh
# fetch_torch_tests.sh FOLDER: leaves torch's own test_dataloader.py there. It is in no package of PyPI; Debian's source of
# torch has it (18 MB), which apt fetches with lists of its own, so that the machine's are not touched.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"
mkdir -p lists/partial
echo 'deb-src http://deb.debian.org/debian bookworm main' >sources.list
get() {
        apt-get -qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
                -o Dir::State::lists="$work/lists" -o APT::Sandbox::User=root "$@"
}
get update
get --download-only source pytorch 2>/dev/null || true # what Debian changed is not needed, and not always there
tar -xf pytorch_*.orig.tar.xz --no-same-owner --wildcards --strip-components=2 '*/test/test_dataloader.py'
mv test_dataloader.py "$folder"
