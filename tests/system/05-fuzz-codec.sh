#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Damaged pages to every codec, and odd command lines, for some seconds.
cd "$(dirname "$0")/../.." || exit 1
"${BUILD:-build}/tests/fuzz/fuzz_codec" 10 || exit
"${BUILD:-build}/tests/fuzz/fuzz_options" 2
