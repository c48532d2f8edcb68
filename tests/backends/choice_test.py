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
deny, which_backend, *built = sys.argv[1:]
failures = []


def run(refusals, chosen=None, **environment):
    """Returns: exit code, output, lines on stderr."""
    command = [which_backend] + ([chosen] if chosen is not None else [])
    if refusals:
        command = [deny, *refusals, '--', *command]
    clean = {k: v for k, v in os.environ.items() if not k.startswith('MOTET_')}
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True,
                          timeout=50)
    if done.returncode == SKIPPED:
        print('skipped: ' + done.stderr)
        sys.exit(SKIPPED)
    return done.returncode, done.stdout.split(), done.stderr.splitlines()


def check(what, holds, seen):
    print(('ok      ' if holds else 'FAILED  ') + what)
    if not holds:
        print('        ' + repr(seen))
        failures.append(what)


def ring_refused_here():
    return 'io_uring' in built and run([], MOTET_BACKEND='io_uring')[0] != 0


def notices(lines):
    return [line for line in lines if 'io_uring' in line and 'libev' in line]


def falls_back(refusals):
    code, names, lines = seen = run(refusals)
    check(f'{refusals}: libev is used', code == 0 and names == ['libev'] * 2, seen)
    check(f'{refusals}: it is said', bool(notices(lines)), seen)
    check(f'{refusals}: it is said once', len(notices(lines)) == len(lines) == 1, seen)


def is_an_error(refusals, **how):
    code, names, lines = seen = run(refusals, **how)
    named = any('io_uring' in line for line in lines)
    check(f'{refusals} {how}: is an error that names io_uring',
          code == 1 and not names and named, seen)


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
            done = subprocess.run([which_backend], env=clean, capture_output=True, text=True,
                                  timeout=50, preexec_fn=limit(size))
        except PermissionError:
            return  # the other user may not come to the program
        seen = done.returncode, done.stdout.split(), done.stderr.splitlines()
        check(f'with {size} bytes of locked memory a program starts', done.returncode == 0, seen)
        check(f'with {size} bytes of locked memory there is one notice at most',
              len(seen[2]) <= 1, seen)


def in_time_namespace():
    """Where the monotonic clock is shifted a deadline comes neither at once nor never."""
    for offset in '1000000', '-1':
        command = ['unshare', '--time', '--monotonic', offset, '--', which_backend]
        probe = subprocess.run(command[:-1] + ['true'], capture_output=True)
        if probe.returncode != 0:
            print('left out: no time namespaces here')
            return
        begin = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=50)
        took = time.monotonic() - begin
        seen = done.returncode, done.stdout, done.stderr, took
        check(f'a clock shifted by {offset} s: timers fire in time',
              done.returncode == 0 and took < 5, seen)


def main():
    for name in built:
        if name == 'io_uring' and ring_refused_here():
            continue
        seen = run([], MOTET_BACKEND=name)
        check(f'MOTET_BACKEND={name} is obeyed without a word', seen == (0, [name] * 2, []), seen)
        seen = run([], name, MOTET_BACKEND='libev')
        check(f'options.backend = {name} is stronger', seen == (0, [name] * 2, []), seen)
    code, names, lines = seen = run([], MOTET_BACKEND='kqueue')
    check('an unknown backend is an error that names those in the build',
          code == 1 and not names and all(n in ' '.join(lines) for n in ['kqueue', *built]), seen)
    seen = run([], 'auto', MOTET_BACKEND='kqueue')
    check('options.backend = auto is stronger than the environment', seen[0] == 0, seen)
    if built[:2] == ['io_uring', 'libev'] and not ring_refused_here():
        seen = run([])
        check('io_uring is preferred, without a word', seen == (0, ['io_uring'] * 2, []), seen)
        for call in 'io_uring_setup', 'io_uring_enter':
            for error in 'EPERM', 'ENOSYS', 'EINVAL', 'EACCES', 'EOPNOTSUPP', 'ENODEV', 'ENOMEM':
                falls_back([f'{call}={error}'])
            is_an_error([call], MOTET_BACKEND='io_uring')
            is_an_error([call], chosen='io_uring')
            is_an_error([call], chosen='io_uring', MOTET_BACKEND='libev')
            is_an_error([f'{call}=EMFILE'])  # which would stop another backend as well
        with_little_locked_memory()
        in_time_namespace()
    return 1 if failures else 0


sys.exit(main())
