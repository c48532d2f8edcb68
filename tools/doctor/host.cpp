// SPDX-License-Identifier: MIT
// See host.hpp. Source: proc(5), io_uring_setup(2), madvise(2), cgroups(7), getrlimit(2);
// Documentation/admin-guide/sysctl/kernel.rst of Linux, io_uring_disabled.
#include "host.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <motet/motet.hpp>
#include <sstream>

namespace motet_doctor {

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string or_unknown(std::string text) {
  return text.empty() ? "not known" : text;
}

/// Returns: 100 times the major number, and the minor number.
int kernel_version() {
  utsname names{};
  ::uname(&names);
  int major = 0, minor = 0;
  char dot = 0;
  std::istringstream(names.release) >> major >> dot >> minor;
  return 100 * major + minor;
}

finding kernel() {
  utsname names{};
  ::uname(&names);
  return {"kernel", std::string(names.sysname) + ' ' + names.release + ", " + names.machine, ""};
}

/// What must change for io_uring, by how the kernel refuses it.
std::string cure_for_io_uring(const std::string& refusal) {
  if (refusal.find("no backend") != std::string::npos) return "build motet with liburing";
  const std::string setting = first_line("/proc/sys/kernel/io_uring_disabled");
  if (setting == "2") return "sysctl kernel.io_uring_disabled=0";
  if (setting == "1")
    return "sysctl kernel.io_uring_disabled=0, or run in the group kernel.io_uring_group";
  if (kernel_version() < 506) return "Linux 6.1 or later";
  if (refusal.find("memory") != std::string::npos) return "ulimit -l unlimited";
  return "allow io_uring_setup, io_uring_enter and io_uring_register in the filter (seccomp) "
         "of the container or service";
}

finding backend() {
  const std::string refusal = why_not("io_uring");
  std::string name = "none";
  try {
    motet::run([&] { name = motet::backend_name(); });
  } catch (const std::exception& error) {
    name = error.what();
  }
  const char* variable = std::getenv("MOTET_BACKEND");
  if (variable != nullptr && *variable != '\0') name += " (MOTET_BACKEND asks for it)";
  if (refusal.empty()) return {"backend", name, ""};
  return {"backend", name + "; not io_uring: " + refusal, cure_for_io_uring(refusal)};
}

finding task_work() {
  const bool has = kernel_version() >= 601;
  return {"io_uring's task work", has ? "when the thread asks for it" : "at any system call",
          has ? "" : "Linux 6.1 or later"};
}

/// Whether a page in the middle of a mapping can become a guard.
bool has_guards() {
  constexpr int guard_install = 102;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* mapping = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return false;
  const bool has = ::madvise(mapping, page, guard_install) == 0;
  ::munmap(mapping, page);
  return has;
}

finding guards() {
  if (has_guards())
    return {"guards of stacks", "light ones: as many fibers as there is memory", ""};
  const long maps = std::atol(first_line("/proc/sys/vm/max_map_count").c_str());
  return {"guards of stacks",
          "each takes mappings, of which a process has " + std::to_string(maps) + ": about " +
              std::to_string(maps / 4) + " fibers",
          "Linux 6.13 or later; or sysctl vm.max_map_count=1048576"};
}

finding huge_pages() {
  const std::string modes = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  return {"huge pages", or_unknown(modes) + "; stacks never have any", ""};
}

finding descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string is = std::to_string(limit.rlim_cur) + " at once";
  return {"descriptors", is, limit.rlim_cur < 4096 ? "ulimit -n 65536, for a server" : ""};
}

finding clock_source() {
  const std::string source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const bool quick = source == "tsc" || source == "arch_sys_counter" || source == "kvm-clock" ||
                     source == "hyperv_clocksource_tsc_page";
  return {"clock source", or_unknown(source),
          source.empty() || quick
              ? ""
              : "tsc, if the processor's counter is steady: to read this clock is "
                "a system call"};
}

finding counter() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    const bool steady = line.find("nonstop_tsc") != std::string::npos &&
                        line.find("constant_tsc") != std::string::npos;
    return {"processor's counter",
            steady ? "steady: time is read from it" : "not steady: the clock is read", ""};
  }
  return {"processor's counter", "steady: time is read from it", ""};
}

/// A cgroup's processor quota: "200000 100000" is two processors.
double quota() {
  std::istringstream line(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  return line >> quota >> period && period > 0 ? quota / period : 0;
}

finding processors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  const int count =
      ::sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 0;
  std::string is = std::to_string(count) + " of " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
  const double share = quota();
  if (share <= 0 || share >= count) return {"processors", is, ""};
  std::ostringstream text;
  text << is << ", but time of only " << share;
  return {"processors", text.str(),
          "no more threads than that, or a larger cpu.max of the control group"};
}

finding memory_lock() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
  return {"locked memory", unlimited ? "any" : std::to_string(limit.rlim_cur / 1024) + " KiB",
          kernel_version() < 512 && !unlimited
              ? "ulimit -l unlimited: rings count as locked before Linux 5.12"
              : ""};
}

}  // namespace

std::string why_not(const std::string& backend) {
  motet::options settings;
  settings.backend = backend;
  try {
    motet::run(settings, [] {});
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<finding> look_at_host() {
  std::vector<finding> findings = {kernel(), backend()};
  if (why_not("io_uring").empty()) findings.push_back(task_work());
  for (auto look :
       {guards, huge_pages, clock_source, counter, processors, descriptors, memory_lock})
    findings.push_back(look());
  return findings;
}

}  // namespace motet_doctor
