#!/bin/bash
# Are the pixels of the NEON form those of the scalar one?  neon.sh PROGRAM: bench/resize_only, built for 64-bit ARM, is
# run by qemu-aarch64-static with each filter, at once and by odd portions, and its hashes are compared.
set -euo pipefail

hash_of() { qemu-aarch64-static "$@" | sed 's/.*"hash": "\(.*\)".*/\1/'; }

n_equal=0
for filter in nearest box bilinear hamming bicubic lanczos; do
        want=$(hash_of "$1" 20 scalar $filter)
        for rows in 0 7; do
                got=$(hash_of "$1" 20 neon $filter $rows)
                [ -n "$want" ] && [ "$got" = "$want" ] || {
                        echo "check-neon: $filter, fed by $rows: $got instead of $want" >&2
                        exit 1
                }
                n_equal=$((n_equal + 1))
        done
done
[ "$(qemu-aarch64-static "$1" 1 | grep -c '"neon"')" = 1 ] || { echo "check-neon: it is not chosen" >&2; exit 1; }
echo "check-neon: $n_equal runs of 20 pictures have the scalar form's pixels"
