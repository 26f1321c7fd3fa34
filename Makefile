# SPDX-License-Identifier: GPL-2.0-or-later
#
# make            build/zramfs and build/zramfsctl
# make check      unit and system tests; ends with 'N passed, N failed'
# make asan|tsan  the tests again, under the sanitizers
# make faults     the programs that die and run out of memory where tests want
# make acceptance  the long checks: takes an hour or so
# make bench      figures: QUICK=1 for all of them briefly, ROUNDS=, ONLY=
# make install    DESTDIR= PREFIX=; make uninstall takes away what that put there
# make V=1        shows the commands

PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
SANITIZE ?=
FAULTS  ?=
CC      ?= cc
CFLAGS  ?= -O2 -g
PKG_CONFIG ?= pkg-config

# liblzo2 has its header in a folder of its own and, in Debian 12, no path to
# it in its .pc file; it is included as <lzo/lzo1x.h>.
LIBS := fuse3 libzstd liblz4 libdeflate libxxhash lzo2

PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(LIBS) 2>/dev/null)
PKG_LDLIBS := $(shell $(PKG_CONFIG) --libs $(LIBS) 2>/dev/null)

VERSION := 0.1

ALL_CFLAGS = -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter \
	-fno-strict-aliasing -D_GNU_SOURCE -DFUSE_USE_VERSION=314 \
	-DZRAMFS_VERSION='"$(VERSION)"' -Isrc -I. $(PKG_CFLAGS) \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer) \
	$(if $(FAULTS),-DZRAMFS_FAULTS) \
	$(CFLAGS)
# zramfsctl needs none of the codecs' libraries; and as long as it had them too,
# the daemon's share of them looked smaller than it is without.
ALL_LDFLAGS = -Wl,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
LDLIBS_ALL = $(PKG_LDLIBS) -lpthread

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @echo
endif

PROGRAM_SOURCES := src/main.c src/zramfsctl.c
# What takes the C library's place is for the daemon of test builds alone.
FAULT_OBJECTS := $(if $(FAULTS),$(BUILD)/src/fault_malloc.o)
LIBRARY_SOURCES := $(filter-out $(PROGRAM_SOURCES) src/fault_malloc.c,$(wildcard src/*.c)) \
	$(wildcard src/*/*.c) $(wildcard codec/*.c) $(wildcard pool/*.c)
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%.c=$(BUILD)/%.o)
LIBRARY := $(BUILD)/libzramfs.a

# Where to die is known to builds with FAULTS only.
UNIT_SOURCES := $(filter-out $(if $(FAULTS),,tests/unit/test_recovery_points.c),\
	$(wildcard tests/unit/test_*.c))
UNIT_TESTS := $(UNIT_SOURCES:%.c=$(BUILD)/%)
UNIT_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,\
	$(filter-out tests/unit/test_%.c,$(wildcard tests/unit/*.c)))
SYSTEM_HELPERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/system/*.c))
SYSTEM_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,\
	$(wildcard tests/system/support/*.c))
SYSTEM_LIBRARY := $(BUILD)/tests/system/support.a
BENCH_SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(wildcard bench/support/*.c))
BENCH_LIBRARY := $(BUILD)/bench/support.a
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/*.c))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/*.c))

.PHONY: all check acceptance unit system tests asan tsan faults bench bench-programs fuzz install uninstall clean format
.SECONDARY:

all: $(BUILD)/zramfs $(BUILD)/zramfsctl

$(BUILD)/%.o: %.c
	$(say) "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(LIBRARY): $(LIBRARY_OBJECTS)
	$(say) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/zramfs: $(BUILD)/src/main.o $(FAULT_OBJECTS) $(LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(BUILD)/zramfsctl: $(BUILD)/src/zramfsctl.o $(LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(BUILD)/tests/unit/test_%: $(BUILD)/tests/unit/test_%.o $(UNIT_SUPPORT) $(LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS_ALL)

$(SYSTEM_LIBRARY): $(SYSTEM_SUPPORT)
	$(say) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/tests/system/%: $(BUILD)/tests/system/%.o $(SYSTEM_LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lpthread

$(BENCH_LIBRARY): $(BENCH_SUPPORT)
	$(say) "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BENCH_LIBRARY) $(LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(LIBRARY)
	$(say) "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

tests: all $(if $(FAULTS),,faults) $(UNIT_TESTS) $(SYSTEM_HELPERS) $(FUZZERS) \
	$(BENCH_PROGRAMS)

bench-programs: all $(BENCH_PROGRAMS)

check: tests
	@BUILD=$(BUILD) tests/run unit system

# Longer than anybody waits for: not part of check.
acceptance: tests
	@BUILD=$(BUILD) TEST_TIMEOUT=7200 VERBOSE=1 tests/run tests/acceptance/[0-9]*.sh

unit: tests
	@BUILD=$(BUILD) tests/run unit

system: tests
	@BUILD=$(BUILD) tests/run system

asan:
	@$(MAKE) --no-print-directory check BUILD=build-asan \
		SANITIZE=address,undefined CFLAGS="-O1 -g -fno-sanitize-recover=undefined"

tsan:
	@$(MAKE) --no-print-directory check BUILD=build-tsan \
		SANITIZE=thread CFLAGS="-O1 -g"

# The figures: see bench/run --help. OUT=, ROUNDS=, JOBS=, ONLY=regex, QUICK=1,
# EXCHANGE=NS.
OUT ?= $(BUILD)/bench
bench: bench-programs
	bench/run --build $(BUILD) --out $(OUT) $(if $(QUICK),--quick) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(ONLY),--only '$(ONLY)') \
		$(if $(EXCHANGE),--exchange $(EXCHANGE))

faults:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-faults FAULTS=1 all \
		$(BUILD)-faults/tests/unit/test_recovery_points \
		$(BUILD)-faults/tests/unit/test_cluster

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin \
		$(DESTDIR)$(PREFIX)/share/man/man8
	install -m 755 $(BUILD)/zramfs $(BUILD)/zramfsctl $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(wildcard contrib/*.8) $(DESTDIR)$(PREFIX)/share/man/man8/

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/zramfs $(DESTDIR)$(PREFIX)/bin/zramfsctl \
		$(patsubst contrib/%,$(DESTDIR)$(PREFIX)/share/man/man8/%,$(wildcard contrib/*.8))

format:
	clang-format -i $(wildcard src/*.[ch] src/*/*.[ch] codec/*.[ch] pool/*.[ch] tests/*/*.[ch] bench/*.[ch])

clean:
	rm -rf build build-asan build-tsan build*-faults

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
