#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The README's commands do what they say in a Debian 12 with nothing else in
# it: those of its section 'Two commands' (install, build and mount; run the
# tests) are run as they stand, one after the other, by root in a chroot that
# debootstrap makes.
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
# A mount point of its own, as a root directory is.
mount --bind "$root" "$root" && mount --make-private "$root"
for special in proc sys dev; do
	mount --rbind "/$special" "$root/$special" &&
		mount --make-rslave "$root/$special"
done
leave() {
	mountpoint -q "$root/mnt/zram" && umount -l "$root/mnt/zram"
	for special in dev sys proc; do
		umount -R -l "$root/$special"
	done
	umount -R -l "$root"
}
trap 'leave; clean_up' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
ln -sf /proc/self/mounts "$root/etc/mtab" # fusermount3 reads it
[ ! -d /etc/apt/apt.conf.d ] ||
	cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"

# The repository as it is committed, where the README's clone would put it.
git clone -q . "$root/root/zramfs"

awk '/^## / { on = /^## Two commands/ } on && sub(/^    /, "")' README.md \
	>"$root/root/readme.sh"
[ -s "$root/root/readme.sh" ] || skip_all "README.md has no commands"
note "the commands:
$(cat "$root/root/readme.sh")"
if chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	DEBIAN_FRONTEND=noninteractive TERM=dumb \
	bash -exc 'apt-get update -q; cd /root/zramfs; . /root/readme.sh
		echo hello >/mnt/zram/file; cat /mnt/zram/file; df -h /mnt/zram
		umount /mnt/zram' >"$TEST_DIR/log" 2>&1; then
	ok "the README's commands work in a clean Debian 12"
	note "$(grep -E '^[0-9]+ passed' "$TEST_DIR/log")"
else
	not_ok "the README's commands work in a clean Debian 12" \
		"$(tail -n 60 "$TEST_DIR/log")"
fi
