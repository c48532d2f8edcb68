// SPDX-License-Identifier: MIT
// See summary.hpp.
#include "summary.hpp"

#include <chrono>
#include <map>
#include <sstream>

#include "this_thread.hpp"

namespace cached_fetch {

namespace {

template <typename Members>
void write_object(std::ostream& out, const Members& members) {
  const char* before = "{";
  for (const auto& [name, value] : members) {
    out << before << '"' << name << "\":" << value;
    before = ",";
  }
  out << (members.empty() ? "{}" : "}");
}

auto in_us(std::chrono::nanoseconds length) {
  return std::chrono::duration_cast<std::chrono::microseconds>(length).count();
}

}  // namespace

std::string summarize(house& its, const std::vector<outcome>& outcomes) {
  std::map<std::string, int> ends;
  for (const outcome& each : outcomes) ++ends[name_of(each.how)];
  std::map<std::string, long> stretches;
  for (const auto& [thread, length] : longest_stretches()) stretches[thread] = in_us(length);
  const counters& seen = its.fetch().seen();

  std::ostringstream out;
  out << R"({"summary":{"outcomes":)";
  write_object(out, ends);
  out << R"(,"counters":)";
  write_object(out, std::map<std::string, int>{{"cache_hits", seen.cache_hits},
                                               {"fetched", seen.fetched},
                                               {"get_failures", seen.get_failures},
                                               {"set_failures", seen.set_failures}});
  out << R"(,"max_ui_gap_us":)" << in_us(its.ui().loop().longest_gap());
  out << R"(,"max_run_without_switch_us":)";
  write_object(out, stretches);
  out << R"(,"threads":)" << count_threads() << "}}\n";
  return std::move(out).str();
}

}  // namespace cached_fetch
