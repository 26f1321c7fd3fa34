#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Real trees go in and come out the same, and git, which trusts what a
# filesystem says more than most, finds its repository sound.
#
# TREES= further trees to copy.
. "$(dirname "$0")/lib.sh"
: "${TREES:=/usr/include}"

mount_fs size=4g

# One line for each file, as a sum; a directory's size is each filesystem's own.
listing() {
	(cd "$1" && find . -type d -printf '%P %y %m %U %G %T@\n' -o \
		-printf '%P %y %m %U %G %s %T@ %l\n' | sort | sha256sum)
}

copy_and_compare() { # NAME TREE...
	local name=$1
	shift
	mkdir "$MNT/trees"
	check "$name: cp -a" cp -a "$@" "$MNT/trees/"
	drop_caches
	for tree in "$@"; do
		check "$name: diff -r finds nothing" diff -r --no-dereference \
			"$tree" "$MNT/trees/$(basename "$tree")"
		equal "$name: owners, modes, times and links are kept" \
			"$(listing "$MNT/trees/$(basename "$tree")")" \
			"$(listing "$tree")"
	done
	rm -r "$MNT/trees"
}


for tree in $TREES; do
	copy_and_compare "$(basename "$tree")" "$tree"
done

# Part of the libraries: binaries, links and large files.
mkdir "$TEST_DIR/lib"
find /usr/lib/x86_64-linux-gnu -maxdepth 1 -name 'lib[a-g]*' \
	-exec cp -a -t "$TEST_DIR/lib" {} +
copy_and_compare libraries "$TEST_DIR/lib"
rm -rf "$TEST_DIR/lib"

# --- tar and rsync-like use: hard links, sparse files, holes -------------------

mkdir "$MNT/src"
truncate -s 100m "$MNT/src/sparse"
echo data | dd of="$MNT/src/sparse" bs=1 seek=50M conv=notrunc status=none
echo x >"$MNT/src/a"
ln "$MNT/src/a" "$MNT/src/b"
ln -s a "$MNT/src/link"
tar -C "$MNT" -cSf "$MNT/archive.tar" src
between "tar finds the holes" "$(stat -c %s "$MNT/archive.tar")" 0 100000
mkdir "$MNT/out"
check "tar unpacks what it packed" tar -C "$MNT/out" -xSf "$MNT/archive.tar"
check "... the same" diff -r --no-dereference "$MNT/src" "$MNT/out/src"
equal "... with its hard links" "$(stat -c %h "$MNT/out/src/a")" 2
rm -r "$MNT/src" "$MNT/out" "$MNT/archive.tar"

# --- git ---------------------------------------------------------------------

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost
export GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@localhost
repository=$MNT/repository
check "git init" git init -q "$repository"
cp -r /usr/include/linux "$repository/linux"
check "git add and commit" \
	sh -c "cd '$repository' && git add -A && git commit -qm first"
for ((i = 0; i < 10; i++)); do
	find "$repository/linux" -name "*$i*.h" -exec sh -c \
		'for f; do echo "/* changed */" >>"$f"; done' sh {} +
	git -C "$repository" commit -qam "change $i" --allow-empty
done
check "git fsck" git -C "$repository" fsck --full --strict
check "git clone" git clone -q --no-local "$repository" "$MNT/clone"
check "git gc" git -C "$repository" gc -q --prune=now
drop_caches
check "git fsck after gc" git -C "$repository" fsck --full
check "git status is clean" \
	test -z "$(git -C "$MNT/clone" status --porcelain)"
check "the clone is the same" \
	diff -r "$repository/linux" "$MNT/clone/linux"
! on_zramfs || check "check is clean" "$CTL" check --verify "$MNT"
