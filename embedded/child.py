"""Become another program that cannot outlive its parent: `python -I -S child.py OPTIONS -- COMMAND`.

A script of its own rather than `preexec_fn`, which is unsafe in a parent with threads (pytest may have some).
The order matters: a change of user clears the parent-death signal, so the signal is asked for after it; and a
parent that died before that call would go unnoticed, so the parent's id is compared afterwards.
"""

import argparse
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: int) -> None:
    """Ask the kernel for `signal_number` when the parent dies. Elsewhere than on Linux nothing happens."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--death-signal", type=int, required=True)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--uid", type=int)
    parser.add_argument("--gid", type=int)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    os.nice(options.nice)
    if options.uid is not None:
        os.setgroups([options.gid])
        os.setgid(options.gid)
        os.setuid(options.uid)
    die_with_parent(options.death_signal)
    if os.getppid() != options.parent:
        sys.exit("the parent process is gone")
    # Python ignores SIGPIPE, and an ignored signal stays ignored through exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(options.command[0], options.command)  # noqa: S606 (no shell is the point)


if __name__ == "__main__":
    main()
