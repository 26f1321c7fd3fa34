#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A Debian system is installed in a mount and in tmpfs: names, types, modes,
# owners, links, devices, capabilities and contents are the same, dpkg finds
# all as it should be, and programs run from it. The mirror is the one that
# the system itself has its packages from.
. "$(dirname "$0")/../system/lib.sh"

command -v debootstrap >/dev/null || skip_all "no debootstrap"
read -r mirror suite < <(apt-get indextargets 'Identifier: Packages' \
	'Origin: Debian' 'Component: main' \
	--format '$(REPO_URI) $(CODENAME)' | head -n 1)
[ -n "$mirror" ] || skip_all "no mirror"

install() {
	mkdir -p "$CACHE/debs" && debootstrap --variant=minbase \
		--include=libcap2-bin,iputils-ping \
		--cache-dir="$CACHE/debs" "$suite" "$1" "$mirror"
}
: "${CACHE:=/var/tmp/zramfs-cache}"

# Everything that an installation determines, in a line for each name. Logs,
# caches and what has the time or chance in it apart.
describe() {
	(cd "$1" && find . -path ./proc -prune -o -path ./sys -prune -o \
		-path ./var/log -prune -o -path ./var/cache -prune -o \
		-path ./debootstrap -prune -o \
		-printf '%p %y %m %U %G %n %l\n' | sed '/ d /s/ [0-9]* *$//' &&
		find . -xdev \( -path ./var/log -o -path ./var/cache -o \
			-path ./proc -o -path ./sys \) -prune -o -type f \
			! -name machine-id ! -path ./etc/shadow\* \
			! -path ./etc/ld.so.cache ! -path ./var/lib/dpkg/status\* \
			! -path ./var/lib/apt/lists/\* -print0 |
			xargs -0 sha256sum &&
		getcap -r . 2>/dev/null) | sort
}

for fs in tmpfs zramfs; do
	FS=$fs mount_fs size=2g
	declare "$fs=$MNT"
	from=$(date +%s)
	check "$fs: debootstrap $suite" install "$MNT"
	note "$fs: $(($(date +%s) - from)) s, $(du -sm "$MNT" | cut -f1) MB"
	check "$fs: dpkg finds all as it should be" chroot "$MNT" dpkg --audit
	check "$fs: and what packages say is there" chroot "$MNT" dpkg --verify
	check "$fs: apt-get check" chroot "$MNT" apt-get check
	equal "$fs: programs run" "$(chroot "$MNT" sh -c 'id -un')" root
	describe "$MNT" >"$TEST_DIR/$fs"
done
check "the same system" diff "$TEST_DIR/tmpfs" "$TEST_DIR/zramfs"
between "names compared" "$(wc -l <"$TEST_DIR/zramfs")" 5000 1000000
check "packages can be removed" chroot "$zramfs" dpkg --purge iputils-ping
check "check is clean" "$CTL" check --verify "$zramfs"
check "all of it can be deleted" find "$zramfs" -mindepth 1 -delete
