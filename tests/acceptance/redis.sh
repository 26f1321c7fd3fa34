# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# redis.sh - a real source tree to build: redis as Debian 12 has it
#
# Sourced after lib.sh. The tarball is kept in $CACHE. Debian's redis 7.0.15
# unpacks to 1395 files, 13 MB; built with 'make MALLOC=libc' it is 1645 files
# and 16110 pages, 66 MB (gcc 12). The same each time: time stamps apart, the
# build makes the same bytes.

: "${CACHE:=/var/tmp/zramfs-cache}"

redis_fetch() {
	REDIS_TARBALL=$(CACHE=$CACHE tests/fetch-source redis)
}

# redis_unpack DIRECTORY, redis_build DIRECTORY: the tree is DIRECTORY/redis-*
redis_unpack() {
	tar -C "$1" -xf "$REDIS_TARBALL"
}

redis_build() {
	(cd "$1"/redis-* && make -j2 MALLOC=libc) >"$TEST_DIR/build.log" 2>&1 ||
		{ tail -n 30 "$TEST_DIR/build.log"; return 1; }
}

# Start the server that was built there, ask it, stop it.
redis_ping() {
	local tree socket=$TEST_DIR/redis.sock pid i reply
	tree=$(echo "$1"/redis-*)
	(cd "$tree" && exec src/redis-server --port 0 --unixsocket "$socket" \
		--dir "$tree" --save "" --appendonly yes) \
		>"$TEST_DIR/redis.log" 2>&1 &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		reply=$("$tree/src/redis-cli" -s "$socket" ping 2>/dev/null)
		[ "$reply" != PONG ] || break
		sleep 0.1
	done
	"$tree/src/redis-cli" -s "$socket" set key value >/dev/null &&
		[ "$("$tree/src/redis-cli" -s "$socket" get key)" = value ]
	i=$?
	kill $pid
	wait $pid 2>/dev/null
	[ "$reply" = PONG ] && [ $i -eq 0 ]
}

# seconds COMMAND...: how long it took, to the hundredth
seconds() {
	local from to
	from=$(date +%s%N)
	"$@" || return
	to=$(date +%s%N)
	echo $(((to - from) / 10000000)) | sed -E 's/^(.*)(..)$/\1.\2/;
		s/^\./0./; s/^(.)$/0.0\1/'
}

# median NUMBER...
median() {
	printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 }
		END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
