# SPDX-License-Identifier: MIT
"""Which backend a program gets on kernels that refuse io_uring.

    choice_test.py DENY WHICH_BACKEND NAME...

NAME... are the backends of this build. Exits with 77 where no system call can be refused.
"""
import os
import resource
import subprocess
import sys
import time

SKIPPED = 77
deny, which_backend, *backends = sys.argv[1:]
failures = []


def run(refusals, backend=None, **environment):
    """Returns: exit code, output, lines on stderr."""
    command = [which_backend] + ([backend] if backend is not None else [])
    if refusals:
        command = [deny, *refusals, '--', *command]
    clean = {k: v for k, v in os.environ.items() if not k.startswith('MOTET_')}
    result = subprocess.run(command, env=clean | environment, capture_output=True, text=True,
                            timeout=50)
    if result.returncode == SKIPPED:
        print('skipped: ' + result.stderr)
        sys.exit(SKIPPED)
    return result.returncode, result.stdout.split(), result.stderr.splitlines()


def check(title, holds, result):
    print(('ok      ' if holds else 'FAILED  ') + title)
    if not holds:
        print('        ' + repr(result))
        failures.append(title)


def ring_refused_here():
    return 'io_uring' in backends and run([], MOTET_BACKEND='io_uring')[0] != 0


def notices(lines):
    return [line for line in lines if 'io_uring' in line and 'libev' in line]


def falls_back(refusals):
    code, names, lines = result = run(refusals)
    check(f'{refusals}: libev is used', code == 0 and names == ['libev'] * 2, result)
    check(f'{refusals}: it is said', bool(notices(lines)), result)
    check(f'{refusals}: it is said once', len(notices(lines)) == len(lines) == 1, result)


def is_an_error(refusals, **options):
    code, names, lines = result = run(refusals, **options)
    names_ring = any('io_uring' in line for line in lines)
    check(f'{refusals} {options}: is an error that names io_uring',
          code == 1 and not names and names_ring, result)


def with_little_locked_memory():
    """Rings count against RLIMIT_MEMLOCK, per user; root's do not."""
    def limit(size):
        def before():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (size, size))
            if os.geteuid() == 0:
                os.setgid(64997)
                os.setuid(64997)
        return before
    if os.geteuid() == 0 and not os.access(which_backend, os.X_OK):
        return
    for size in 0, 64 << 10, 8 << 20:
        clean = {k: v for k, v in os.environ.items() if not k.startswith('MOTET_')}
        try:
            result = subprocess.run([which_backend], env=clean, capture_output=True, text=True,
                                    timeout=50, preexec_fn=limit(size))
        except PermissionError:
            return  # the other user may not come to the program
        answer = result.returncode, result.stdout.split(), result.stderr.splitlines()
        check(f'with {size} bytes of locked memory a program starts', result.returncode == 0, answer)
        check(f'with {size} bytes of locked memory there is one notice at most',
              len(answer[2]) <= 1, answer)


def in_time_namespace():
    """Where the monotonic clock is shifted a deadline comes neither at once nor never."""
    for offset in '1000000', '-1':
        command = ['unshare', '--time', '--monotonic', offset, '--', which_backend]
        probe = subprocess.run(command[:-1] + ['true'], capture_output=True)
        if probe.returncode != 0:
            print('left out: no time namespaces here')
            return
        begin = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, timeout=50)
        duration = time.monotonic() - begin
        answer = result.returncode, result.stdout, result.stderr, duration
        check(f'a clock shifted by {offset} s: timers fire in time',
              result.returncode == 0 and duration < 5, answer)


def main():
    for name in backends:
        if name == 'io_uring' and ring_refused_here():
            continue
        answer = run([], MOTET_BACKEND=name)
        check(f'MOTET_BACKEND={name} is obeyed without a word', answer == (0, [name] * 2, []), answer)
        answer = run([], name, MOTET_BACKEND='libev')
        check(f'options.backend = {name} is stronger', answer == (0, [name] * 2, []), answer)
    code, names, lines = answer = run([], MOTET_BACKEND='kqueue')
    check('an unknown backend is an error that names those in the build',
          code == 1 and not names and all(n in ' '.join(lines) for n in ['kqueue', *backends]), answer)
    answer = run([], 'auto', MOTET_BACKEND='kqueue')
    check('options.backend = auto is stronger than the environment', answer[0] == 0, answer)
    if backends[:2] == ['io_uring', 'libev'] and not ring_refused_here():
        answer = run([])
        check('io_uring is preferred, without a word', answer == (0, ['io_uring'] * 2, []), answer)
        for call in 'io_uring_setup', 'io_uring_enter':
            for error in 'EPERM', 'ENOSYS', 'EINVAL', 'EACCES', 'EOPNOTSUPP', 'ENODEV', 'ENOMEM':
                falls_back([f'{call}={error}'])
            is_an_error([call], MOTET_BACKEND='io_uring')
            is_an_error([call], backend='io_uring')
            is_an_error([call], backend='io_uring', MOTET_BACKEND='libev')
            is_an_error([f'{call}=EMFILE'])  # which would stop another backend as well
        with_little_locked_memory()
        in_time_namespace()
    return 1 if failures else 0


sys.exit(main())
