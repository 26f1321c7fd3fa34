#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# All of this machine's libraries and headers go in and come out the same, and
# so they do through an image on a loop device.
cd "$(dirname "$0")/../.." || exit 1
TREES="/usr/lib/x86_64-linux-gnu /usr/include" tests/system/70-real-trees.sh ||
	failed=1
LOOP_TREE=/usr/lib/x86_64-linux-gnu tests/system/60-loop.sh || failed=1
exit ${failed:-0}
