#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The README's commands do what they say in a Debian 12 with nothing else in
# it. The blocks marked as sh in README.md's quick start are run as they
# stand, one after the other, by root in a chroot that debootstrap makes.
#
# CACHE=/var/tmp/zramfs-cache keeps the bare system between runs.
. "$(dirname "$0")/../system/lib.sh"
: "${CACHE:=/var/tmp/zramfs-cache}"

command -v debootstrap >/dev/null || skip_all "no debootstrap"
base=$CACHE/bookworm.tar
if [ ! -f "$base" ]; then
	mkdir -p "$CACHE"
	debootstrap --variant=minbase bookworm "$TEST_DIR/base" \
		>"$TEST_DIR/log" 2>&1 &&
		tar -C "$TEST_DIR/base" -cf "$base" . || {
		tail "$TEST_DIR/log"
		skip_all "debootstrap did not work"
	}
	rm -rf "$TEST_DIR/base"
fi

root=$TEST_DIR/root
mkdir "$root"
tar -C "$root" -xf "$base"
for special in proc sys dev; do
	mount --rbind "/$special" "$root/$special" &&
		mount --make-rslave "$root/$special"
done
leave() {
	for special in dev sys proc; do
		umount -R -l "$root/$special"
	done
}
trap 'leave; clean_up' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -d /etc/apt/apt.conf.d ] ||
	cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"

# The repository as it is committed, where the README's clone would put it.
git clone -q . "$root/root/zramfs"

awk '/^```sh/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$TEST_DIR/all"
[ -s "$TEST_DIR/all" ] || skip_all "README.md has no block of commands"
# A clone from somewhere else is what was just done.
grep -v -e '^git clone' "$TEST_DIR/all" >"$root/root/readme.sh"
note "the commands:
$(cat "$root/root/readme.sh")"
check "the README's commands work in a clean Debian 12" chroot "$root" \
	env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	DEBIAN_FRONTEND=noninteractive TERM=dumb \
	bash -exc 'apt-get update -q; cd /root/zramfs; . /root/readme.sh'
