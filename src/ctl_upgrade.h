/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ctl_upgrade.h - the command zramfsctl upgrade: go on with another program
 */
#ifndef ZRAMFS_CTL_UPGRADE_H
#define ZRAMFS_CTL_UPGRADE_H

/* What follows "upgrade" on the command line. Returns the exit status. */
int ctl_upgrade(int argc, char **argv);

#endif
