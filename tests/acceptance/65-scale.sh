#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A million files in one directory, and a hundred thousand open ones; on tmpfs
# for comparison, too.
cd "$(dirname "$0")/../.." || exit 1
export SCALE_FILES=${SCALE_FILES:-1000000} SCALE_OPEN=${SCALE_OPEN:-100000}
FS=tmpfs tests/system/55-scale.sh | sed 's/ - / - tmpfs: /' || failed=1
tests/system/55-scale.sh || failed=1
exit ${failed:-0}
