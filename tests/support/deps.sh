#!/bin/bash
# Installs the Debian packages of packages.list that are missing: deps.sh [--dry-run] TAG...
#
# Everything that is there costs one dpkg-query. Root is used only to install: directly, or through sudo. A package
# whose tag ends in "?" is a wish; that it is not to be had is said, and is no failure. Needs nothing but what every
# Debian has (bash, dpkg, apt).
set -euo pipefail

cd "$(dirname "$0")/../.."
LIST=packages.list
LOG=build/deps.log
dry_run=

say() { printf 'deps: %s\n' "$*"; }
fail() { printf 'deps: %s\n' "$*" >&2; exit 1; }

# Packages of the tags in "$@" that are needed ($kind is empty) or wished for ($kind is "?").
packages_of() {
        local kind=$1 tag package tags
        shift
        while read -r package tags _; do
                case $package in ''|'#'*) continue ;; esac
                for tag in "$@"; do
                        case ",$tags," in *",$tag$kind,"*) echo "$package"; break ;; esac
                done
        done <$LIST
}

# Those of "$@" that are not installed.
missing_of() {
        local package installed
        [ $# -gt 0 ] || return 0
        installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p') || true
        for package in "$@"; do
                grep -qxF "$package" <<<"$installed" || echo "$package"
        done
}

as_root() {
        if [ "$(id -u)" = 0 ]; then
                "$@"
        elif command -v sudo >/dev/null; then
                sudo "$@"
        else
                return 126
        fi
}

apt() {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 \
                -o APT::Install-Recommends=false "$@" >>$LOG 2>&1
}

# Lists of packages are fetched at most once a run, and only when an installation without it has failed.
updated=
install() {
        if apt install "$@"; then
                return 0
        fi
        if [ -z "$updated" ]; then
                updated=yes
                say "fetching the lists of packages"
                apt update || true
                apt install "$@" && return 0
        fi
        return 1
}

if [ "${1:-}" = --dry-run ]; then
        dry_run=yes
        shift
fi
[ $# -gt 0 ] || fail "usage: deps.sh [--dry-run] TAG...   (tags: see $LIST)"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "this is no Debian, so nothing is installed; what is needed stands in $LIST"
        exit 0
fi

mapfile -t needed < <(packages_of '' "$@")
mapfile -t wished < <(packages_of '?' "$@")
[ $((${#needed[@]} + ${#wished[@]})) -gt 0 ] || fail "no package has the tag $* in $LIST"
mapfile -t missing < <(missing_of "${needed[@]}")
mapfile -t missing_wishes < <(missing_of "${wished[@]}")

if [ -n "$dry_run" ]; then
        printf '%s\n' "${missing[@]}" "${missing_wishes[@]}" | sed '/^$/d'
        exit 0
fi
[ $((${#missing[@]} + ${#missing_wishes[@]})) -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        [ ${#missing[@]} -gt 0 ] || { say "not installed, and there is no sudo: ${missing_wishes[*]}"; exit 0; }
        fail "missing, and there is no sudo; as root: apt-get install ${missing[*]}"
fi
mkdir -p build
: >$LOG

if [ ${#missing[@]} -gt 0 ]; then
        say "installing ${#missing[@]} packages: ${missing[*]}"
        if ! install "${missing[@]}"; then
                tail -n 12 $LOG >&2
                fail "cannot install: ${missing[*]} (is the network there? all of apt's words are in $LOG)"
        fi
fi
if [ ${#missing_wishes[@]} -gt 0 ]; then
        say "installing ${#missing_wishes[@]} packages that some tests use: ${missing_wishes[*]}"
        if ! install "${missing_wishes[@]}"; then
                for package in "${missing_wishes[@]}"; do
                        install "$package" || say "$package is not to be had: what needs it is skipped"
                done
        fi
fi
