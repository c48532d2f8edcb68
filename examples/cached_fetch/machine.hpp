// SPDX-License-Identifier: MIT
// How much of the machine has been left to us: a time that is measured while others compute says
// little otherwise.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace cached_fetch {

class machine_share {
 public:
  /// `helper` is another process that works for this one.
  explicit machine_share(pid_t helper)
      : helper_(helper), busy_(busy()), idle_(idle()), own_(own()) {}

  /// Returns: the share of all processors' time that others have not used since then, at least a
  ///          quarter.
  double left_by_others() const {
    const double used = busy() - busy_;
    const double all = used + idle() - idle_;
    const double others = std::max(0.0, used - (own() - own_));
    return all > 0 ? std::clamp(1 - others / all, 0.25, 1.0) : 1;
  }

 private:
  /// In ticks, as all here. user, nice, system, idle, iowait, irq, softirq, steal.
  static double busy() { return field(1) + field(2) + field(3) + field(6) + field(7) + field(8); }
  static double idle() { return field(4) + field(5); }
  static double field(int wanted) {
    std::ifstream all("/proc/stat");
    std::string name;
    all >> name;
    double value = 0;
    for (int i = 0; i < wanted; ++i) all >> value;
    return value;
  }
  double own() const { return of_process(::getpid()) + of_process(helper_); }
  static double of_process(pid_t process) {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), line);
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return user + system;
  }

  pid_t helper_;
  double busy_;
  double idle_;
  double own_;
};

}  // namespace cached_fetch
