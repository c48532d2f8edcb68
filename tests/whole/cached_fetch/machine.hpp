// SPDX-License-Identifier: MIT
// The share of the machine that other programs leave to this one, without which a measured time
// says little.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace fetch_test {

class machine_share {
 public:
  /// `helper` is another process that works for this one.
  explicit machine_share(pid_t helper)
      : helper_(helper), busy_time_(busy_time()), idle_time_(idle_time()), own_time_(own_time()) {}

  /// Returns: the share of the processors' time that other programs have not used since the
  ///          constructor; at least a quarter.
  double left_by_others() const {
    const double work = busy_time() - busy_time_;
    const double total = work + idle_time() - idle_time_;
    const double others = std::max(0.0, work - (own_time() - own_time_));
    return total > 0 ? std::clamp(1 - others / total, 0.25, 1.0) : 1;
  }

 private:
  /// In ticks: user, nice, system, idle, iowait, irq, softirq, steal.
  static double busy_time() {
    return field(1) + field(2) + field(3) + field(6) + field(7) + field(8);
  }
  static double idle_time() { return field(4) + field(5); }
  static double field(int number) {
    std::ifstream file("/proc/stat");
    std::string name;
    file >> name;
    double value = 0;
    for (int i = 0; i < number; ++i) file >> value;
    return value;
  }
  double own_time() const { return of_process(::getpid()) + of_process(helper_); }
  static double of_process(pid_t process) {
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), line);
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string word;
    for (int i = 0; i < 11; ++i) fields >> word;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return user + system;
  }

  pid_t helper_;
  double busy_time_;
  double idle_time_;
  double own_time_;
};

}  // namespace fetch_test
