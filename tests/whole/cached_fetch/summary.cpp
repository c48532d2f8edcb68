// SPDX-License-Identifier: MIT
#include "summary.hpp"

#include <chrono>
#include <map>
#include <sstream>

#include "this_thread.hpp"

namespace fetch_test {

namespace {

template <typename Members>
void write_object(std::ostream& out, const Members& members) {
  const char* mark = "{";
  for (const auto& [name, value] : members) {
    out << mark << '"' << name << "\":" << value;
    mark = ",";
  }
  out << (members.empty() ? "{}" : "}");
}

auto in_us(std::chrono::nanoseconds length) {
  return std::chrono::duration_cast<std::chrono::microseconds>(length).count();
}

}  // namespace

std::string summarize(house& home, const std::vector<outcome>& outcomes) {
  std::map<std::string, int> ends;
  for (const outcome& result : outcomes) ++ends[name_of(result.end)];
  std::map<std::string, long> stretches;
  for (const auto& [thread, length] : longest_stretches()) stretches[thread] = in_us(length);
  const counters& counts = home.fetch().counts();

  std::ostringstream output;
  output << R"({"summary":{"outcomes":)";
  write_object(output, ends);
  output << R"(,"counters":)";
  write_object(output, std::map<std::string, int>{{"cache_hits", counts.cache_hits},
                                                  {"fetched", counts.fetched},
                                                  {"get_failures", counts.get_failures},
                                                  {"set_failures", counts.set_failures}});
  output << R"(,"max_ui_gap_us":)" << in_us(home.ui().loop().longest_gap());
  output << R"(,"max_run_without_switch_us":)";
  write_object(output, stretches);
  output << R"(,"threads":)" << count_threads() << "}}\n";
  return std::move(output).str();
}

}  // namespace fetch_test
