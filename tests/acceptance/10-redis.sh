#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# redis is unpacked and built in a mount, and its server runs from there; how
# long that takes next to tmpfs, in interleaved rounds.
#
# ROUNDS=3
. "$(dirname "$0")/../system/lib.sh"
. tests/acceptance/redis.sh
: "${ROUNDS:=3}"

redis_fetch || skip_all "no redis source"

declare -A unpack build
for ((round = 1; round <= ROUNDS; round++)); do
	for FS in tmpfs zramfs; do
		mount_fs size=3g
		check "round $round $FS: unpack" redis_unpack "$MNT"
		rm -rf "$MNT"/redis-*
		unpack[$FS]+=" $(seconds redis_unpack "$MNT")"
		if took=$(seconds redis_build "$MNT"); then
			ok "round $round $FS: build"
			build[$FS]+=" $took"
		else
			not_ok "round $round $FS: build" "$took"
		fi
		check "round $round $FS: redis-server runs" redis_ping "$MNT"
		if on_zramfs; then
			note "requests: $("$CTL" stat --json "$MNT" |
				tr -d '\n ' | grep -o '"requests":{[^}]*}')"
			check "round $round: check is clean" \
				"$CTL" check --verify "$MNT"
		else
			note "the tree: $(find "$MNT" -type f | wc -l) files," \
				"$(du -sB1 --apparent-size "$MNT" | cut -f1)" \
				"bytes, $(($(stat -f -c '%b - %f' "$MNT"))) pages"
		fi
		unmount "$MNT"
	done
done
for what in unpack build; do
	declare -n times=$what
	t=$(median ${times[tmpfs]}) z=$(median ${times[zramfs]})
	note "$what: tmpfs$(printf ' %s' ${times[tmpfs]}), zramfs$(printf ' %s' \
		${times[zramfs]}): medians $t and $z s, ratio" \
		"$(awk "BEGIN { printf \"%.2f\", $z / $t }")"
done
