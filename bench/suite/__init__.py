# SPDX-License-Identifier: GPL-2.0-or-later
"""zramfs measured next to its rivals.

main       the command line; rounds, interleaved
undo       what was set up is taken down, whatever happens
command    programs run and measured
process    what a daemon used
machine    what was measured on
sources    real source trees, fetched once
targets    what is under test: zramfs in its modes
rivals     what it is measured next to
steps      what one measurement does, and how it is checked
fio        steps that fio does
workloads  all that is measured, declared
report     medians, spread, the text table
plots      pictures by gnuplot
goals      what is to be reached, and whether it is
"""
