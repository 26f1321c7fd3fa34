#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many threads doing everything to files at once read what they wrote,
# whatever codec, with pages moving between tiers all the time (a small hot
# tier); afterwards the filesystem's own check finds nothing, and when all is
# deleted the memory is given back.
#
# STRESS_SECONDS=3 for each variant. STRESS_SEED=N repeats one.
. "$(dirname "$0")/lib.sh"
: "${STRESS_SECONDS:=3}" "${STRESS_THREADS:=8}" "${STRESS_SEED:=}"

# FRESH: within 1 MiB, two seconds after the work, or more on a busy machine.
given_back() {
	local used i
	for ((i = 0; i < 4; i++)); do
		sleep 2
		used=$(stat_of mem_used_total)
		[ "$used" -gt $(($1 + 1048576)) ] || return 0
	done
	echo "mem_used_total $used, fresh $1"
	return 1
}

stress() { # NAME OPTIONS
	local fresh=0
	mount_fs "size=1g,$2"
	if on_zramfs; then
		: "$(stat_of pid)" # has what answers paged in
		sleep 0.3
		fresh=$(stat_of mem_used_total)
	fi
	check "$1: stress" "$HELPERS/stress" -k -t "$STRESS_THREADS" \
		-s "$STRESS_SECONDS" ${STRESS_SEED:+-r "$STRESS_SEED"} "$MNT"
	if on_zramfs; then
		check "$1: check is clean" "$CTL" check --verify "$MNT"
		equal "$1: no checksum error" "$(stat_of checksum_errors)" 0
		rm -rf "${MNT:?}"/*
		if sanitized; then
			skip "$1: memory is given back" "a sanitizer keeps it"
		else
			check "$1: memory is given back" given_back "$fresh"
		fi
		check "$1: check is clean when empty" "$CTL" check "$MNT"
		equal "$1: no page is used" "$(stat_of size_used)" 0
	fi
	unmount "$MNT"
}

if ! on_zramfs; then
	stress "$FS" ""
	exit
fi
for alg in lz4 zstd:1 lzo deflate:1 none; do
	stress "$alg" "alg=$alg,hot=1m"
done
stress "hot tier off" "alg=lz4,hot=0"
stress "dedup off" "alg=lz4,hot=1m,dedup=off"
stress "writeback" "alg=lz4,hot=1m,writeback"
for pool in zbud z3fold; do
	if "$ZRAMFS" --help 2>&1 | grep -q "$pool"; then
		stress $pool "alg=zstd:1,hot=1m,pool=$pool"
	fi
done
