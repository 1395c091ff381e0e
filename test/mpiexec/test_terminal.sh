# SPDX-License-Identifier: BSD-3-Clause
# mpiexec on a terminal; the terminal is played by test_terminal.py.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "no python3 to play a terminal"
want 0 python3 "$(dirname "$0")/test_terminal.py" "$MPIEXEC" "$PROBE"
done_testing
