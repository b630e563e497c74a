"""The system calls that a submission may not make, as a program for the kernel's seccomp filter.

Namespaces do not cover everything: a filter also keeps a submission from memory that no limit
counts (memfd, System V segments), from sockets that no network namespace holds (vsock), from
debugging a neighbour and from large, rarely used parts of the kernel.
"""

import errno
import struct

# Numbers of x86-64, the only platform that torch-xla is built for.
_DENIED = {
    "shmget": 29,
    "msgget": 68,
    "ptrace": 101,
    "pivot_root": 155,
    "chroot": 161,
    "mount": 165,
    "umount2": 166,
    "init_module": 175,
    # Each sandbox has its own share of the processors: a fork bomb must not slow another
    # submission.
    "sched_setaffinity": 203,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "finit_module": 313,
    "memfd_create": 319,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "memfd_secret": 447,
}
_SOCKET, _CLONE, _CLONE3 = 41, 56, 435
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink: what a network namespace isolates
# Every CLONE_NEW* flag but CLONE_NEWTIME, which in clone is a bit of the exit signal.
_NAMESPACES = 0x7E020000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def _refuse(code: int) -> int:
    return 0x00050000 | code


def program() -> bytes:
    """The filter as an array of `struct sock_filter`."""
    lines: list[tuple[int, int, int, int]] = []

    def when(test: int, value: int, result: int) -> None:
        lines.extend([(test, 0, 1, value), (_RETURN, 0, 0, result)])

    lines.extend([(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, 0xC000003E), (_RETURN, 0, 0, _KILL)])
    lines.append((_LOAD, 0, 0, _NUMBER))
    when(_AT_LEAST, 0x40000000, _refuse(errno.ENOSYS))  # the x32 numbers of the same calls
    for number in _DENIED.values():
        when(_EQUAL, number, _refuse(errno.EPERM))
    # The C library falls back to clone, whose flags a filter can see.
    when(_EQUAL, _CLONE3, _refuse(errno.ENOSYS))
    lines.extend([(_EQUAL, 0, 4, _CLONE), (_LOAD, 0, 0, _ARGUMENT_0)])
    when(_ANY_BIT, _NAMESPACES, _refuse(errno.EPERM))
    lines.append((_RETURN, 0, 0, _ALLOW))
    lines.extend([(_EQUAL, 0, 2 + 2 * len(_FAMILIES), _SOCKET), (_LOAD, 0, 0, _ARGUMENT_0)])
    for family in _FAMILIES:
        when(_EQUAL, family, _ALLOW)
    lines.append((_RETURN, 0, 0, _refuse(errno.EAFNOSUPPORT)))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
