#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# git is built in a mount, and its own test suite run there and on tmpfs by an
# ordinary user: each test that passes on tmpfs passes on zramfs.
#
# GIT_TESTS='t[0-9]*.sh' which of its scripts; each runs on both filesystems at
# once, one script after the other, in an order that is mixed, but always the
# same.
# GIT_SECONDS= after which no other script is begun
. "$(dirname "$0")/../system/lib.sh"
: "${GIT_TESTS:=t[0-9]*.sh}" "${GIT_SECONDS:=1000000}"

SOURCE_TARBALL=$(tests/fetch-source git) || skip_all "no git source"
command -v ip >/dev/null || skip_all "no ip"
[ -f /usr/include/zlib.h ] || skip_all "no zlib1g-dev"
chmod 711 "$TEST_DIR"

as_user() {
	setpriv --reuid=1234 --regid=1234 --clear-groups "$@"
}

unpack() {
	mkdir "$MNT/git" && tar -C "$MNT/git" --strip-components=1 \
		--no-same-owner -xf "$SOURCE_TARBALL" && chown -R 1234:1234 "$MNT/git"
}

build() {
	as_user make -C "$MNT/git" -j2 NO_OPENSSL=1 NO_CURL=1 NO_EXPAT=1 \
		NO_GETTEXT=1 NO_TCLTK=1 NO_PYTHON=1 NO_INSTALL_HARDLINKS=1
}

# With a network of its own: a script's servers have the same port always.
# (The shell in it is to expand its arguments.)
# shellcheck disable=SC2016
alone() { # COMMAND...
	unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
}

# run_test MOUNT RESULTS SCRIPT: a file of 'ok' and 'not ok' lines
run_test() {
	mkdir -p "$2"
	cd "$1/git/t" || return
	alone setpriv --reuid=1234 --regid=1234 --clear-groups \
		env HOME="$1/git" timeout 900 ./"$3" </dev/null 2>&1 |
		grep -E '^(not )?ok ' |
		sed "s/ # TODO.*//; s,$1,MOUNT,g" >"$2/$3"
}

run_tests() {
	local script
	# shellcheck disable=SC2086 # it is a pattern
	for script in $( (cd "$zramfs/git/t" && ls $GIT_TESTS) |
		shuf --random-source=LICENSE); do
		[ $SECONDS -lt "$GIT_SECONDS" ] || break
		run_test "$tmpfs" "$TEST_DIR/tmpfs" "$script" &
		run_test "$zramfs" "$TEST_DIR/zramfs" "$script" &
		wait
	done
}

mount_fs size=3g
zramfs=$MNT
check "unpack" unpack
check "build" build
FS=tmpfs mount_fs size=3g
tmpfs=$MNT
check "copy what was built to tmpfs" \
	cp -a "$zramfs/git" "$tmpfs/git"
check "and it is the same" diff -r --no-dereference "$zramfs/git" "$tmpfs/git"

run_tests

# What passes there and does not here, with the script's name before it.
worse() {
	local script
	for script in "$TEST_DIR"/tmpfs/*; do
		script=${script##*/}
		grep -vxFf "$TEST_DIR/zramfs/$script" \
			<(grep '^ok ' "$TEST_DIR/tmpfs/$script") |
			sed "s/^/$script: /"
	done
}
count() {
	cat "$TEST_DIR/$1"/* | grep -c "^$2"
}
note "$(ls "$TEST_DIR/tmpfs" | wc -l) scripts; tmpfs: $(count tmpfs 'ok ') ok," \
	"$(count tmpfs 'not ok ') not; zramfs: $(count zramfs 'ok ') ok," \
	"$(count zramfs 'not ok ') not"
equal "what passes on tmpfs passes on zramfs" "$(worse)" ""
between "tests that ran" "$(count tmpfs 'ok ')" 100 1000000
! on_zramfs || check "check is clean" "$CTL" check --verify "$zramfs"
