// SPDX-License-Identifier: MIT
// Runs a command on a kernel that refuses some system calls, as containers and old kernels do:
//   deny io_uring_setup io_uring_enter=ENOSYS -- COMMAND ARGUMENT...
// The refusals are a seccomp filter, written by hand and inherited by all that the command starts.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

#if defined(__x86_64__)
constexpr unsigned machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned machine = AUDIT_ARCH_AARCH64;
#else
#error "deny knows x86-64 and aarch64 only"
#endif

constexpr int skipped = 77;  // Meson's exit status of a test that could not be made here

struct named {
  std::string_view name;
  unsigned number;
};

constexpr named calls[] = {
    {"io_uring_setup", SYS_io_uring_setup},
    {"io_uring_enter", SYS_io_uring_enter},
    {"io_uring_register", SYS_io_uring_register},
    {"process_madvise", SYS_process_madvise},
    {"pidfd_open", SYS_pidfd_open},
};

constexpr named errors[] = {
    {"EPERM", EPERM},   {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM},
    {"EACCES", EACCES}, {"EMFILE", EMFILE}, {"ENODEV", ENODEV}, {"EOPNOTSUPP", EOPNOTSUPP},
};

template <std::size_t Size>
unsigned find(const named (&table)[Size], std::string_view name) {
  for (const named& entry : table) {
    if (entry.name == name) return entry.number;
  }
  throw std::invalid_argument("unknown name: " + std::string(name));
}

/// Appends "this call fails with this error" for `CALL` or `CALL=ERROR`.
void append_refusal(std::vector<sock_filter>& filter, std::string_view rule) {
  const std::size_t equals = rule.find('=');
  const bool plain = equals == std::string_view::npos;
  const unsigned call = find(calls, rule.substr(0, equals));
  const unsigned error = plain ? EPERM : find(errors, rule.substr(equals + 1));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

/// System call numbers mean nothing before the machine is known: a call of another one is fatal.
std::vector<sock_filter> check_machine() {
  return {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
}

bool install(std::vector<sock_filter>& filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int deny(char** argument) {
  std::vector<sock_filter> filter = check_machine();
  for (; *argument != nullptr && std::strcmp(*argument, "--") != 0; ++argument) {
    append_refusal(filter, *argument);
  }
  if (argument[0] == nullptr || argument[1] == nullptr) {
    throw std::invalid_argument("usage: deny CALL[=ERROR]... -- COMMAND ARGUMENT...");
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));

  if (!install(filter)) {
    std::perror("deny: seccomp");
    return skipped;
  }
  ::execvp(argument[1], argument + 1);
  std::perror(argument[1]);
  return 127;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return deny(arguments + (count > 0 ? 1 : 0));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
