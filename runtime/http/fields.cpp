// SPDX-License-Identifier: MIT
// See motet/http/fields.hpp.
#include <motet/http/fields.hpp>
#include <stdexcept>
#include <string>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

void check(std::string_view name, std::string_view value) {
  if (!is_token(name)) {
    throw std::invalid_argument("fields: not a valid field name: '" + std::string(name) + "'");
  }
  if (!is_field_value(value)) {
    throw std::invalid_argument("fields: the value of " + std::string(name) +
                                " contains a line end or another control character");
  }
}

}  // namespace

void fields::add(std::string_view name, std::string_view value) {
  check(name, value);
  std::string copy;  // a copy, because they may be views of text_
  copy.append(name).append(value);
  const auto begin = static_cast<std::uint32_t>(text_.size());
  const auto name_size = static_cast<std::uint32_t>(name.size());
  const auto value_size = static_cast<std::uint32_t>(value.size());
  text_ += copy;
  extents_.push_back({begin, name_size, begin + name_size, value_size});
}

void fields::set(std::string_view name, std::string_view value) {
  if (!find(name).has_value()) return add(name, value);
  check(name, value);
  fields result;
  for (const field& entry : *this) {
    if (!equal_but_for_case(entry.name, name)) result.add(entry.name, entry.value);
  }
  result.add(name, value);
  *this = std::move(result);
}

void fields::remove(std::string_view name) {
  if (!find(name).has_value()) return;
  fields remainder;
  for (const field& entry : *this) {
    if (!equal_but_for_case(entry.name, name)) remainder.add(entry.name, entry.value);
  }
  *this = std::move(remainder);
}

void fields::clear() noexcept {
  text_.clear();
  extents_.clear();
}

field fields::at(std::size_t index) const noexcept {
  const extent& position = extents_[index];
  const std::string_view text = text_;
  return {text.substr(position.name, position.name_size),
          text.substr(position.value, position.value_size)};
}

std::optional<std::string_view> fields::find(std::string_view name) const noexcept {
  for (const field& entry : *this) {
    if (equal_but_for_case(entry.name, name)) return entry.value;
  }
  return std::nullopt;
}

std::string_view fields::get(std::string_view name) const noexcept {
  return find(name).value_or(std::string_view());
}

}}}  // namespace motet::MOTET_ABI::http
