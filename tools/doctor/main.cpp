// SPDX-License-Identifier: MIT
// motet-doctor: one page about what this host gives to programs with motet.
#include <cstring>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "figures.hpp"
#include "host.hpp"

namespace {

constexpr const char* usage =
    "usage: motet-doctor [--quick]\n"
    "Says what this host gives to programs with motet, how quick that is, and what to set.\n"
    "  --quick  measures nothing\n";

void tell_findings(const std::vector<motet_doctor::finding>& findings) {
  for (const auto& entry : findings)
    std::cout << std::left << std::setw(24) << entry.subject << entry.is << '\n';
}

void tell_advice(const std::vector<motet_doctor::finding>& findings) {
  bool has_advice = false;
  for (const auto& entry : findings) {
    if (entry.advice.empty()) continue;
    if (!has_advice) std::cout << "\nFor more:\n";
    has_advice = true;
    std::cout << "  " << entry.subject << ": " << entry.advice << '\n';
  }
  if (!has_advice) std::cout << "\nThere is nothing to set.\n";
}

int examine(bool quick) {
  const auto findings = motet_doctor::look_at_host();
  tell_findings(findings);
  if (!quick) {
    std::cout << "\nMeasured here, on one thread:\n" << std::flush;
    motet_doctor::tell_figures(std::cout);
  }
  tell_advice(findings);
  if (!std::cout.flush()) throw std::runtime_error("the standard output could not be written");
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const char* word = count == 2 ? words[1] : "";
  const bool quick = std::strcmp(word, "--quick") == 0;
  try {
    if (std::strcmp(word, "--measure") == 0) {
      motet_doctor::measure();
      return 0;
    }
    if (count == 1 || quick) return examine(quick);
  } catch (const std::exception& wrong) {
    std::cerr << "motet-doctor: " << wrong.what() << '\n';
    return 1;
  }
  const bool helps = std::strcmp(word, "--help") == 0;
  (helps ? std::cout : std::cerr) << usage;
  return helps ? 0 : 64;
}
