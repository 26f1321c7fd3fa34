#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An ordinary user mounts by fusermount3: the root directory is the user's, the
# user is alone in it, and nothing in it is a device or gives privileges.
. "$(dirname "$0")/lib.sh"

on_zramfs || skip_all "about zramfs, and this is $FS"
[ "$(id -u)" = 0 ] || skip_all "not root"
[ -c /dev/fuse ] || skip_all "no /dev/fuse"
[ -u "$(command -v fusermount3)" ] || skip_all "no set-user-id fusermount3"

# All in a mount namespace, where /dev/fuse is open to others: not every
# machine has udev to see to that.
if [ -z "${INSIDE:-}" ]; then
	trap - EXIT
	rm -rf "$TEST_DIR"
	INSIDE=1 exec unshare -m --propagation private "$0"
fi
mkdir "$TEST_DIR/dev" "$TEST_DIR/home" "$TEST_DIR/data"
mount -t tmpfs -o mode=755 none "$TEST_DIR/dev" && MOUNTS+=("$TEST_DIR/dev")
mknod -m 666 "$TEST_DIR/dev/fuse" c 10 229
mount --bind "$TEST_DIR/dev/fuse" /dev/fuse && MOUNTS+=(/dev/fuse)
chown 65534:65534 "$TEST_DIR/home"
MNT=$TEST_DIR/home

# fusermount3 wants to know the user by name: nobody is one everywhere.
user() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
other() {
	setpriv --reuid=1 --regid=65534 --clear-groups "$@"
}
# Without a look into it, which is for the user alone.
is_mounted() {
	findmnt -n "$MNT" >/dev/null
}

# Until then /dev/fuse is in use. It may take its time, sanitized or on a busy
# machine.
no_daemon_is_left() {
	await 60 has_no_daemon
}
has_no_daemon() {
	[ -z "$(daemon_pids "$MNT")" ]
}

check "a user mounts" user "$ZRAMFS" "$MNT" -o size=64m
is_mounted || exit 1
equal "the root directory is the user's" \
	"$(user stat -c '%u %g %a' "$MNT")" "65534 65534 755"
options=$(findmnt -n -o OPTIONS "$MNT")
for option in nosuid nodev user_id=65534 group_id=65534; do
	check "it is mounted with $option" grep -qw -- "$option" <<<"$options"
done
refuses "others were not let in" grep -q allow_other <<<"$options"
equal "it is shown by its name" "$(findmnt -n -o SOURCE,FSTYPE "$MNT" |
	tr -s ' ')" "zramfs fuse.zramfs"

check "the user writes" user sh -c 'echo mine >"$1/file"' sh "$MNT"
equal "and reads" "$(user cat "$MNT/file")" mine
equal "what is made is the user's" "$(user stat -c '%u %g' "$MNT/file")" \
	"65534 65534"
refuses "another user sees nothing" other ls "$MNT"
refuses "nor reads a file by its name" other cat "$MNT/file"
refuses "nor does root" cat "$MNT/file"
refuses "the user gives nothing away" user chown 1 "$MNT/file"
refuses "nor makes devices" user mknod "$MNT/null" c 1 3

copy_id() {
	user cp "$(command -v id)" "$MNT/id" && user chmod 6755 "$MNT/id"
}
check "a program with set-user-ID" copy_id
equal "gives no privileges" \
	"$(setpriv --reuid=65534 --regid=65534 --clear-groups "$MNT/id" -u)" 65534

check "all the calls work for the user" user "$HELPERS/posix_data" "$MNT" offset
check "zramfsctl stat" user "$CTL" stat "$MNT"
check "zramfsctl set" user "$CTL" set "$MNT" size=128m
check "zramfsctl check" user "$CTL" check --verify "$MNT"
refuses "another user does not unmount it" other fusermount3 -u "$MNT"
check "the user does" user fusermount3 -u "$MNT"
refuses "then it is gone" is_mounted
check "and its daemon, soon" no_daemon_is_left

refuses "a user mounts on nothing but an own directory" \
	user "$ZRAMFS" "$TEST_DIR/data" -o size=64m
if ! grep -q '^user_allow_other' /etc/fuse.conf 2>/dev/null; then
	refuses "nor for others, unless fuse.conf lets users do so" \
		user "$ZRAMFS" "$MNT" -o allow_other
fi
check "none of those that were refused has left a daemon" no_daemon_is_left
