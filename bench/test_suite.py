# SPDX-License-Identifier: GPL-2.0-or-later
"""What the suite itself promises: python3 bench/test_suite.py"""

import os
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from suite import (command, exchange, fio, goals, main,  # noqa: E402
                   report, undo, workloads)
from suite.steps import Outcome  # noqa: E402


class Signals(unittest.TestCase):
    def setUp(self):
        undo.install_signal_handlers()

    def tearDown(self):
        for number in undo.ENDING:
            signal.signal(number, signal.SIG_DFL)

    def test_what_was_set_up_last_goes_first(self):
        order = []
        with undo.Undo() as cleanup:
            cleanup.push("first", order.append, 1)
            cleanup.push("second", order.append, 2)
        self.assertEqual(order, [2, 1])

    def test_one_failure_keeps_no_other_from_its_turn(self):
        order = []
        with undo.Undo() as cleanup:
            cleanup.push("good", order.append, 1)
            cleanup.push("bad", os.unlink, "/nonexistent")
        self.assertEqual(order, [1])
        self.assertEqual(len(cleanup.problems), 1)
        self.assertTrue(cleanup.problems[0].startswith("bad: "))

    def test_a_signal_undoes(self):
        order = []
        with self.assertRaises(undo.Interrupted):
            with undo.Undo() as cleanup:
                cleanup.push("it", order.append, 1)
                os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(order, [1])

    def test_a_signal_waits_while_something_is_set_up(self):
        order = []
        with self.assertRaises(undo.Interrupted):
            with undo.deferred():
                os.kill(os.getpid(), signal.SIGINT)
                order.append(1)
        self.assertEqual(order, [1])

    def test_no_signal_stops_the_undoing(self):
        order = []
        with undo.Undo() as cleanup:
            cleanup.push("second", order.append, 2)
            cleanup.push("signal", os.kill, os.getpid(), signal.SIGINT)
        self.assertEqual(order, [2])


class Commands(unittest.TestCase):
    def test_a_failure_says_what_the_program_said_last(self):
        with self.assertRaisesRegex(command.Failed, "status 3: oh no"):
            command.run("sh", "-c", "echo so; echo oh no >&2; exit 3")

    def test_what_takes_too_long_is_killed(self):
        with self.assertRaisesRegex(command.Failed, "not done"):
            command.run("sleep", 60, timeout=0.1)

    def test_descendants_count(self):
        measured = command.measure(
            ["sh", "-c", "sh -c 'i=0; while [ $i -lt 50000 ]; do "
             "i=$((i+1)); done'; true"])
        self.assertGreater(measured.user, 0)

    def test_counters_that_do_not_count_are_left_out(self):
        text = "123,,cycles:u,1,100.00,,\n<not supported>,,instructions,0,,\n"
        self.assertEqual(command.parse_events(text), {"cycles": 123.0})


class Rows(unittest.TestCase):
    class Directory:
        device = False
        path = "/x"

    class Device:
        device = True
        path = "/dev/x"

    def arguments(self, row, target, **keywords):
        return row.arguments(fio.Fio("s", [row], **keywords), target)

    def test_jobs_share_the_size_out(self):
        row = fio.Row("r", "randread", 1 << 20, jobs=4)
        self.assertIn(f"--size={1 << 18}",
                      self.arguments(row, self.Directory))
        self.assertEqual(row.bytes_expected(), 1 << 20)

    def test_jobs_get_whole_blocks_whatever_their_number(self):
        for sizes in (workloads.scale(True, 64 << 20, 1, 10),
                      workloads.scale(False, 256 << 20, 1, 10)):
            for workload in workloads.suite(sizes):
                for step in workload.steps:
                    for row in getattr(step, "rows", []):
                        self.assertEqual(row.size % (row.jobs * 4096), 0)

    def test_jobs_on_one_file_each_do_all_of_it(self):
        row = fio.Row("r", "randread", 1 << 20, jobs=2, shared=True)
        self.assertIn("--filename=shared",
                      self.arguments(row, self.Directory))
        self.assertEqual(row.bytes_expected(), 2 << 20)

    def test_jobs_on_a_device_keep_apart(self):
        row = fio.Row("r", "write", 1 << 20, jobs=2)
        self.assertIn(f"--offset_increment={1 << 19}",
                      self.arguments(row, self.Device))

    def test_files_are_trimmed_by_fallocate_devices_by_discard(self):
        row = fio.Row("r", "trim", 1 << 20)
        self.assertIn("--ioengine=falloc",
                      self.arguments(row, self.Directory))
        self.assertIn("--ioengine=sync", self.arguments(row, self.Device))

    def test_no_row_repeats_the_data_of_another(self):
        def seeds(step, name):
            row = fio.Row(name, "write", 1 << 20)
            return [a for a in row.arguments(fio.Fio(step, [row]),
                                             self.Directory)
                    if a.startswith("--randseed=")]

        self.assertEqual(len(seeds("fill", "fill")), 1)
        self.assertNotEqual(seeds("fill", "write"), seeds("again", "write"))
        self.assertNotEqual(seeds("fill", "write"), seeds("fill", "random"))

    def test_what_is_buffered_is_synced_at_the_end(self):
        row = fio.Row("r", "randwrite", 1 << 20)
        self.assertIn("--fsync_on_close=1",
                      self.arguments(row, self.Directory, direct=False))
        self.assertNotIn("--fsync_on_close=1",
                         self.arguments(row, self.Directory, direct=True))


class Exchange(unittest.TestCase):
    """Processors whose distance is as told, one figure at each asking."""

    class Target:
        name = "zramfs"

    class Workload:
        name = "stream"

    def run_one(self, most, *distances):
        """The values that count, and the rounds that were measured."""
        run = main.Run.__new__(main.Run)
        run.options = type("Options", (), {"exchange": most})
        run.place, run.results = None, report.Results()
        run._say = lambda text: None
        measured = []

        def measure(*_):
            measured.append(1)
            return [("s", [Outcome("r", len(measured), "B/s")], {}, {})]

        run._measure = measure
        told = iter(distances)
        asked, exchange.line_ns = exchange.line_ns, lambda place: next(told)
        try:
            run._one(self.Workload, self.Target, 1)
        finally:
            exchange.line_ns = asked
        self.skipped = run.results.skipped
        rows = run.results.rows.get("stream", {})
        return [{row: series["zramfs"].values for row, series in rows.items()},
                len(measured)]

    def test_the_greater_distance_is_told(self):
        self.assertEqual(
            self.run_one(0, 5, 30),
            [{"r": [1], "exchange of a line": [30]}, 1])

    def test_what_was_measured_far_apart_is_measured_again(self):
        self.assertEqual(
            self.run_one(10, 5, 30, 5, 6),
            [{"r": [2], "exchange of a line": [6]}, 2])
        self.assertEqual(self.skipped, [])

    def test_but_not_for_ever(self):
        self.assertEqual(self.run_one(10, *[5, 30] * exchange.ATTEMPTS),
                         [{}, exchange.ATTEMPTS])
        self.assertEqual(len(self.skipped), 1)

    def test_one_processor_has_no_distance(self):
        self.assertEqual(self.run_one(10, None, None),
                         [{"r": [1]}, 1])


class Figures(unittest.TestCase):
    def results(self, **values):
        results = report.Results()
        for target, numbers in values.items():
            for number, value in enumerate(numbers):
                results.add("stream", target.replace("_", "-"), number, "s",
                            [Outcome("write, fits hot", value, "B/s")], {},
                            {})
        return results

    def test_medians_and_spread(self):
        series = report.Series("s")
        series.values = [1.0, 4.0, 2.0]
        self.assertEqual(series.median(), 2.0)
        self.assertEqual(series.spread(), 0.75)

    def test_what_did_not_do_its_work_does_not_count(self):
        results = self.results(zramfs=[1.0])
        results.add("stream", "zramfs", 2, "s",
                    [Outcome("write, fits hot", 99.0, "B/s", {}, "lazy")],
                    {}, {})
        self.assertEqual(
            results.median("stream", "write, fits hot", "zramfs"), 1.0)
        self.assertEqual(results.invalid(),
                         [("stream", "write, fits hot", "zramfs", "lazy")])

    def goal(self, results):
        for goal, ratios in goals.measure(results, 1, None):
            if goal.what.endswith("write, fits the hot tier"):
                return goals.reached(goal, ratios)
        return "gone"

    def test_goals(self):
        self.assertIs(True, self.goal(self.results(
            zramfs=[1, 4, 9], ext4_zram=[2, 2, 2])))
        self.assertIs(False, self.goal(self.results(
            zramfs=[3.9], ext4_zram=[2])))
        self.assertIsNone(self.goal(self.results(zramfs=[3.9])))

    def test_the_worst_row_decides(self):
        ratios = [goals.Ratio("a", 2.0), goals.Ratio("b", 0.5)]
        self.assertFalse(goals.reached(goals.Goal("", "", 1.0), ratios))
        self.assertFalse(goals.reached(goals.Goal("", "", 1.0, True),
                                       ratios))


if __name__ == "__main__":
    unittest.main()
