#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The stress test for ten minutes; and for a minute each under the sanitizers'
# builds of daemon and tools.
#
# LONG_SECONDS=600, SANITIZED_SECONDS=60
cd "$(dirname "$0")/../.." || exit 1
: "${LONG_SECONDS:=600}" "${SANITIZED_SECONDS:=60}"
export TEST_TIMEOUT=3600

# Ten variants share the time.
STRESS_SECONDS=$((LONG_SECONDS / 10)) tests/system/20-stress.sh || failed=1

for kind in address,undefined thread; do
	build=build-${kind%%,*}
	make --no-print-directory -j2 BUILD=$build SANITIZE=$kind \
		CFLAGS="-O1 -g -fno-sanitize-recover=undefined" tests \
		>"/tmp/$build.log" 2>&1 || {
		tail -n 20 "/tmp/$build.log"
		echo "not ok - build with -fsanitize=$kind"
		failed=1
		continue
	}
	BUILD=$build STRESS_SECONDS=$((SANITIZED_SECONDS / 10)) \
		tests/system/20-stress.sh | sed "s/ - / - $kind: /"
	[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
done
exit ${failed:-0}
