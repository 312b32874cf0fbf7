#!/usr/bin/env python3
"""All recorded cases through the command line; exactly the ones listed here fall short.

usage: recorded_cases.py BIN
Runs tests/tools/case_runner.py over tests/cases. A case that falls short without being listed fails
the run, and so does a listed one that has come to hold: then it is taken off the list.
"""
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]

FALL_SHORT = {
    # An error where the case records the exact sum; its notes accept either, the runner only rows.
    "C015": "SUM(BIGINT) beyond 64 bits is an error in both refresh modes",
    # What the runner lands or declares cannot give what the case records.
    "C082": "the refused event stays in the runner's bronze table, so later runs are refused too",
    "C100": "the runner lands retracted rows as further rows",
    "C101": "the runner lands retracted rows as further rows",
    "C103": "the runner leaves out the case's own query",
    "C137": "the runner declares the columns of the first run for ever",
    "C096": "the runner asks for a column before the snapshot that brings it",
}


def main():
    command = [sys.executable, str(TESTS / "tools" / "case_runner.py"), sys.argv[1], str(TESTS / "cases")]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    short = {match.group(1): line for line in printed.splitlines() if (match := re.match(r"(C\d+) \(", line))}
    wrong = [line for case, line in short.items() if case not in FALL_SHORT]
    wrong += ["%s holds now: take it off the list" % case for case in FALL_SHORT if case not in short]
    total = re.search(r"(\d+) of (\d+) cases hold", printed)
    if not total:
        wrong.append("the runner did not finish: " + printed[-500:])
    print("\n".join(wrong) if wrong else total.group(0) + "; the others are listed with their reasons")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
