/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_du.h - the command zramfsctl du: what files and trees cost
 */
#ifndef ZRAMFS_CTL_DU_H
#define ZRAMFS_CTL_DU_H

/* argv[0] is "du". Returns the exit status. */
int ctl_du(int argc, char **argv);

#endif
