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

void tell_findings(const std::vector<motet_doctor::finding>& found) {
  for (const auto& each : found)
    std::cout << std::left << std::setw(24) << each.what << each.is << '\n';
}

void tell_advice(const std::vector<motet_doctor::finding>& found) {
  bool any = false;
  for (const auto& each : found) {
    if (each.advice.empty()) continue;
    if (!any) std::cout << "\nFor more:\n";
    any = true;
    std::cout << "  " << each.what << ": " << each.advice << '\n';
  }
  if (!any) std::cout << "\nThere is nothing to set.\n";
}

int examine(bool quick) {
  const auto found = motet_doctor::look_at_host();
  tell_findings(found);
  if (!quick) {
    std::cout << "\nMeasured here, on one thread:\n" << std::flush;
    motet_doctor::tell_figures(std::cout);
  }
  tell_advice(found);
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
