# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# block.sh - what the checks of block mode share: git's source, and a zram
# device of their own to compare with. Sourced after lib.sh.

: "${CACHE:=/var/tmp/zramfs-cache}"

# Fetch git's source once, and keep it uncompressed: unpacking is then about
# files, not about xz. Debian's git 2.39.5 is 4400 files, 40 MB.
git_fetch() {
	local packed options apt=$CACHE/apt
	GIT_TAR=$(ls "$CACHE"/git_*.orig.tar 2>/dev/null | head -n 1)
	[ -z "$GIT_TAR" ] || return 0
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts"
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
	options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list"
		-o "Dir::Etc::sourceparts=$apt/parts"
		-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt"
		-o "Dir::Cache::archives=$apt/archives"
		-o APT::Sandbox::User=root)
	packed=$(ls "$CACHE"/git_*.orig.tar.xz 2>/dev/null | head -n 1)
	if [ -z "$packed" ]; then
		(cd "$CACHE" && apt-get "${options[@]}" update &&
			apt-get "${options[@]}" source --download-only git) \
			>"$TEST_DIR/git.log" 2>&1 || return 1
		packed=$(ls "$CACHE"/git_*.orig.tar.xz | head -n 1)
	fi
	GIT_TAR=${packed%.xz}
	xz -dk "$packed"
}

# zram_add SIZE ALGORITHM: $ZRAM is a device that nobody else uses; else
# $ZRAM_WHY tells why not.
zram_add() {
	local number
	ZRAM=
	modprobe zram 2>/dev/null
	number=$(cat /sys/class/zram-control/hot_add 2>&1) ||
		{ ZRAM_WHY=$number; return 1; }
	ZRAM=/dev/zram$number
	ZRAM_WHY=$(zram_set "$1" "$2" 2>&1) || { zram_remove; return 1; }
}

zram_set() {
	local dir=/sys/block/${ZRAM#/dev/}
	echo "$2" >"$dir/comp_algorithm" && echo "$1" >"$dir/disksize"
}

# Empty it, with all that it remembers.
zram_reset() {
	echo 1 >"/sys/block/${ZRAM#/dev/}/reset" && zram_set "$@"
}

zram_remove() {
	[ -n "$ZRAM" ] || return 0
	echo 1 >"/sys/block/${ZRAM#/dev/}/reset"
	echo "${ZRAM#/dev/zram}" >/sys/class/zram-control/hot_remove
	ZRAM=
}
