#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Damaged pages to every codec for some seconds.
cd "$(dirname "$0")/../.." || exit 1
exec "${BUILD:-build}/tests/fuzz/fuzz_codec" 10
