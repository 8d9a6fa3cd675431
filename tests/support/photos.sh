#!/bin/bash
# Photographs to work on: photos.sh OUT N_PHOTOS N_CLASSES CUTTER [--baseline]
#
# Cuts photos of the size that training sets have (about 500x375, 60-110 KB) from the photographs of a small Debian
# package, into one folder a class below OUT. The package is unpacked below build/, not installed. What was cut once
# stays: the same call again costs nothing. With --baseline none of them is progressive. Exits 77 if the photographs are not to be had.
set -euo pipefail

[ $# = 4 ] || [ "$#:${5-}" = 5:--baseline ] || {
        echo "usage: photos.sh OUT N_PHOTOS N_CLASSES CUTTER [--baseline]" >&2
        exit 64
}
out=$1 n_photos=$2 n_classes=$3 cutter=$4
here=$(dirname "$0")
list=$here/../../packages.list
store=$here/../../build/photographs
stamp=$out/.cut
what="$n_photos $n_classes${5:+ $5}"

is_cut() {
        [ "$(cat "$stamp" 2>/dev/null)" = "$what" ]
}

is_cut && exit 0
mkdir -p "$(dirname "$store")"
exec 9>"$store.lock" # two tests at once would move one's folder into the other's
flock 9
is_cut && exit 0

find_photographs() {
        find "$store" -name '*.jpg' 2>/dev/null | sort
}

# A machine that never installed anything has no lists of packages yet.
update_lists() {
        if [ "$(id -u)" = 0 ]; then
                apt-get -q update
        elif command -v sudo >/dev/null; then
                sudo apt-get -q update
        fi
}

fetch() {
        local package
        package=$(awk '$1 !~ /^#/ && $2 == "photos" { print $1; exit }' "$list")
        mkdir -p "$store"
        echo "photos: fetching $package"
        # Root's apt warns about its sandbox user in folders like these; that warning is all that is dropped.
        (cd "$store" && apt-get -q download "$package" >apt.log 2>&1) || {
                update_lists >>"$store/apt.log" 2>&1 || true
                (cd "$store" && apt-get -q download "$package" >>apt.log 2>&1)
        } || {
                tail -n 5 "$store/apt.log" >&2
                echo "photos: $package is not to be had (no network?)"
                exit 77
        }
        dpkg -x "$store"/*.deb "$store"
        rm -f "$store"/*.deb
}

mapfile -t photographs < <(find_photographs)
if [ ${#photographs[@]} = 0 ]; then
        fetch
        mapfile -t photographs < <(find_photographs)
fi
[ ${#photographs[@]} -gt 0 ] || { echo "photos: no photographs below $store"; exit 77; }

# Cut beside, then renamed: a folder that is there is whole.
rm -rf "$out" "$out.new"
mkdir -p "$(dirname "$out")"
"$cutter" "${@:5}" "$out.new" "$n_photos" "$n_classes" "${photographs[@]}"
echo "$what" >"$out.new/.cut"
mv "$out.new" "$out"
